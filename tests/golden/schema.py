"""Every result.json, of good and of refused input, obeys docs/result.schema.json."""
import json, os, pathlib, subprocess, sys

SOURCE = pathlib.Path(os.environ["SW_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests"))
from json_schema import faults  # noqa: E402

SCHEMA = json.loads((SOURCE / "docs/result.schema.json").read_text())
def result(*args, text=None):
    p = subprocess.run([os.environ["SW"], "compile", *map(str, args), "--json"], input=text, capture_output=True, text=True)
    return json.loads(p.stdout)


REFUSED = ["%a : f16[64,64] = input\n%b : f16[64,64] = my.op.default(%a)\nreturn %b\n", "nonsense", "",
           "%a : f16[128,128,128] = input\n%m : f16[128,128] = aten.amin.default(%a, [-1], False)\n%b : f16[128,128] = input\n"
           "%y : f16[128,128] = aten.add.Tensor(%m, %b)\nreturn %y\n"]
found = []
for f in sorted((SOURCE / "data/models").glob("*.pt2")) + sorted((SOURCE / "data/graphs").glob("*.graph")):
    for profile in ("best", "torch-spyre"):
        found += [f"{f.name} {profile}{x}" for x in faults(result(f, "--profile", profile), SCHEMA, SCHEMA)]
for text in REFUSED:
    r = result("-", "--profile", "torch-spyre", text=text)
    found += [f"{text[:20]!r}{x}" for x in faults(r, SCHEMA, SCHEMA)]
    if r["status"] in ("optimal", "feasible") or not r["faults"]:
        found.append(f"{text[:20]!r}: {r['status']} without a fault")
print("\n".join(found[:40]))
sys.exit(len(found) > 0)
