"""docs/openapi.yaml names the routes of the program, no more and no less, their methods and media types; and what the
daemon answers is what the document says."""
import json, pathlib, re, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SOURCE, SW, SWD, TEXT, Daemon, check, finish

text = (SOURCE / "docs/openapi.yaml").read_text()
paths = text[text.index("\npaths:"):text.index("\ncomponents:")]
documented, operations = set(), {}
for line in paths.splitlines():
    if m := re.fullmatch(r"  (/\S*):", line):
        path = m.group(1)
    elif m := re.fullmatch(r"    (get|post|delete|put):", line):
        method = m.group(1).upper()
        documented.add(f"{method} {path}")
        operations[method, path] = ""
    elif line.startswith("      "):
        operations[method, path] += line + "\n"
routes = set(subprocess.run([SWD, "--routes"], capture_output=True, text=True, check=True).stdout.splitlines())
check("only in the document", sorted(documented - routes), [])
check("only in the program", sorted(routes - documented), [])

version = subprocess.run([SW, "--version"], capture_output=True, text=True).stdout.split()[1]
check("version", re.search(r"^  version: (\S+)", text, re.M).group(1), version)
for ref in set(re.findall(r"'#/(components/\S+?)'", text)):
    kind, name = ref.split("/")[1:]
    check("there is " + ref, bool(re.search(rf"^  {kind}:\n(    .*\n|\n)*?    {name}:", text, re.M)), True)

help_text = subprocess.run([SW, "help", "compile"], capture_output=True, text=True).stdout.split("\noptions:\n")[1]
for path in "/compile", "/compare":
    for option in re.findall(r"^  --(\S+)", help_text, re.M):
        check(f"option {option} of {path}", f"parameters/option-{option}'" in operations["POST", path]
              or f"{{name: {option}," in operations["POST", path], True)

with Daemon() as d:
    check("served as it is", d.ask("GET", "/openapi.yaml")[2].decode(), text)
    where = d.ask("POST", "/compile", GOOD, **TEXT)[1]["Location"]
    job = d.job("/compile", GOOD, **TEXT)
    spec = {"format": "stickwright.study/1", "name": "s", "graphs": {"good.graph": GOOD.decode()}}
    study = d.ask("POST", "/studies", json.dumps(spec).encode(), Content_Type="application/json")[1]["Location"]
    d.wait(study, "done")
    fill = {"/results/{id}": where, "/results/{id}.zip": where + ".zip",
            "/results/{id}/files/{path}": where + "/files/manifest.json", "/jobs/{id}": job, "/jobs/{id}/events": job + "/events"}
    fill |= {p: p.replace("/studies/{id}", study) for _, p in operations if p.startswith("/studies/")}
    for (method, path), operation in operations.items():
        known = set(re.findall(r"'(\d\d\d)'", operation)) or {"200", "404"}
        known |= set(re.findall(r"'(\d\d\d)'", paths)) if "*" in operation else set()
        status, head, _ = d.ask(method, fill.get(path, path), GOOD if method == "POST" else None)
        check(f"status of {method} {path}", str(status) in known, True)
        check(f"kind of {method} {path}", head["Content-Type"].split(";")[0] in text, True)
        for other in {"GET", "POST", "DELETE", "PUT"} - {m for m, p in operations if p == path}:
            answer = d.ask(other, fill.get(path, path))
            check(f"{other} {path}", (answer[0], set(answer[1]["Allow"].split(", ")) - {"HEAD"}),
                  (405, {m for m, p in operations if p == path}))
finish()
