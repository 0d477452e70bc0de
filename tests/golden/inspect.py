#!/usr/bin/env python3
"""`inspect --json` on exported programs: all facts that PyTorch recorded beside them (NAME.expect.json), weights' SHA-256
included; and the text form, read back, is written as the same text. Some programs are in tests/data/models; the whole corpus is checked where SW_SHARED (or `shared` beside the
source folder) has it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SW = os.environ["SW"]
SOURCE = pathlib.Path(os.environ["SW_SOURCE"])
corpus = pathlib.Path(os.environ.get("SW_SHARED", SOURCE.parent / "shared")) / "models"
files = sorted((SOURCE / "tests/data/models").glob("*.pt2"))
more = sorted(corpus.glob("*.pt2")) if corpus.is_dir() else []
if not more:
    print(f"no corpus at {corpus}: only {len(files)} programs")
bad = []


def text(path):
    return subprocess.run([SW, "inspect", path, "--text"], capture_output=True, text=True).stdout


for f in files + more:
    want = json.loads(f.with_suffix(".expect.json").read_text())
    once, again = text(f), None
    with tempfile.TemporaryDirectory() as d:
        copy = pathlib.Path(d) / "copy.graph"
        copy.write_text(once)
        again = text(copy)
    if not once or again != once:
        bad.append(f"{f.name}: the text form is no fixed point")
    run = subprocess.run([SW, "inspect", f, "--json"], capture_output=True, text=True)
    try:
        got = json.loads(run.stdout)
    except ValueError:
        bad.append(f"{f.name}: exit {run.returncode} {run.stderr[:200]}")
        continue
    bad += [f"{f.name}: {k}: {str(got.get(k))[:120]} expected {str(want[k])[:120]}" for k in want if got.get(k) != want[k]]
print(*bad, sep="\n")
print(f"{len(files) + len(more)} programs, {len(bad)} differences")
sys.exit(bool(bad))
