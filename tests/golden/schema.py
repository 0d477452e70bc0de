"""Every result.json, of good and of refused input, obeys docs/result.schema.json. The part of JSON schema that the file
uses, in a few lines."""
import json, os, pathlib, subprocess, sys, tempfile

SOURCE = pathlib.Path(os.environ["SW_SOURCE"])
SCHEMA = json.loads((SOURCE / "docs/result.schema.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(v, name):
    if name == "integer":
        return isinstance(v, int) and not isinstance(v, bool)
    if name == "number":
        return isinstance(v, (int, float)) and not isinstance(v, bool)
    return isinstance(v, TYPES[name])


def faults(v, s, where):
    """Every place where v does not obey s."""
    if "$ref" in s:
        s = SCHEMA["$defs"][s["$ref"].split("/")[-1]]
    if "const" in s and v != s["const"] or "enum" in s and v not in s["enum"]:
        yield f"{where}: {v!r}"
    types = s.get("type", [])
    if types and not any(is_type(v, t) for t in ([types] if isinstance(types, str) else types)):
        yield f"{where}: {type(v).__name__} is not {types}"
    elif isinstance(v, dict):
        for k in s.get("required", []):
            if k not in v:
                yield f"{where}/{k} is missing"
        for k, x in v.items():
            if k in s.get("properties", {}):
                yield from faults(x, s["properties"][k], f"{where}/{k}")
            elif s.get("additionalProperties") is False:
                yield f"{where}/{k} is not in the schema"
    elif isinstance(v, list) and "items" in s:
        for i, x in enumerate(v):
            yield from faults(x, s["items"], f"{where}/{i}")


def result(*args, text=None):
    p = subprocess.run([os.environ["SW"], "compile", *map(str, args), "--json"], input=text, capture_output=True, text=True)
    return json.loads(p.stdout)


REFUSED = ["%a : f16[64,64] = input\n%b : f16[64,64] = my.op.default(%a)\nreturn %b\n", "nonsense", "",
           "%a : f16[128,128,128] = input\n%m : f16[128,128] = aten.amin.default(%a, [-1], False)\n%b : f16[128,128] = input\n"
           "%y : f16[128,128] = aten.add.Tensor(%m, %b)\nreturn %y\n"]
found = []
for f in sorted((SOURCE / "data/models").glob("*.pt2")) + sorted((SOURCE / "data/graphs").glob("*.graph")):
    for profile in ("best", "torch-spyre"):
        found += [f"{f.name} {profile}{x}" for x in faults(result(f, "--profile", profile), SCHEMA, "")]
for text in REFUSED:
    r = result("-", "--profile", "torch-spyre", text=text)
    found += [f"{text[:20]!r}{x}" for x in faults(r, SCHEMA, "")]
    if r["status"] in ("optimal", "feasible") or not r["faults"]:
        found.append(f"{text[:20]!r}: {r['status']} without a fault")
print("\n".join(found[:40]))
sys.exit(len(found) > 0)
