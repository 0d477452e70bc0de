"""The README shows real output: each command of a ```console block is run and its output compared.
With --update the README is rewritten; read the difference before you commit it."""
import os, pathlib, re, subprocess, sys

SOURCE = pathlib.Path(os.environ["SW_SOURCE"])
PATH = os.path.dirname(os.path.abspath(os.environ["SW"])) + os.pathsep + os.environ["PATH"]
README = SOURCE / "README.md"


def run(command):
    p = subprocess.run(command, shell=True, cwd=SOURCE, env={**os.environ, "PATH": PATH}, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return p.stdout + (f"exit code {p.returncode}\n" if p.returncode else "")


def block(match):
    commands = [line for line in match.group(1).splitlines() if line.startswith("$ ")]
    return "```console\n" + "".join(f"{c}\n{run(c[2:])}" for c in commands) + "```"


text = README.read_text()
fresh = re.sub(r"```console\n(.*?)```", block, text, flags=re.S)
if "--update" in sys.argv:
    README.write_text(fresh)
elif fresh != text:
    import difflib
    sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), fresh.splitlines(True), "README.md", "now"))
    sys.exit("README.md does not show what the commands print; SW=... SW_SOURCE=... python3 tests/golden/readme.py --update")
