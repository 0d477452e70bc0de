"""The part of JSON Schema 2020-12 that our schemas use, for tests that have the standard library only."""
import re

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_kind(v, kind):
    if kind in ("integer", "number"):
        return isinstance(v, int if kind == "integer" else (int, float)) and not isinstance(v, bool)
    return isinstance(v, KINDS[kind])


def same(a, b):
    return a == b and type(a) is type(b)


def faults(v, schema, root, where=""):
    """What in v does not obey the schema: "pointer: what" each."""
    if "$ref" in schema:
        schema = {**root["$defs"][schema["$ref"].split("/")[-1]], **{k: x for k, x in schema.items() if k != "$ref"}}
    known = {"$schema", "$defs", "title", "description", "type", "const", "enum", "required", "properties", "patternProperties",
             "additionalProperties", "items", "minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum", "pattern"}
    assert set(schema) <= known, set(schema) - known
    if "const" in schema and not same(v, schema["const"]) or "enum" in schema and not any(same(v, e) for e in schema["enum"]):
        yield f"{where}: {str(v)[:60]!r}"
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_kind(v, k) for k in kinds):
        yield f"{where}: {type(v).__name__} is not {kinds}"
        return
    if isinstance(v, (int, float)) and not isinstance(v, bool):
        if not schema.get("minimum", v) <= v <= schema.get("maximum", v):
            yield f"{where}: {v} is out of range"
    if isinstance(v, str) and "pattern" in schema and not re.search(schema["pattern"], v):
        yield f"{where}: {v!r} is not {schema['pattern']}"
    if isinstance(v, (dict, list)):
        kind = "Properties" if isinstance(v, dict) else "Items"
        if not schema.get("min" + kind, 0) <= len(v) <= schema.get("max" + kind, len(v)):
            yield f"{where}: {len(v)} parts"
    if isinstance(v, list) and "items" in schema:
        for i, x in enumerate(v):
            yield from faults(x, schema["items"], root, f"{where}/{i}")
    if isinstance(v, dict):
        for k in schema.get("required", []):
            if k not in v:
                yield f"{where}: {k} is missing"
        for k, x in v.items():
            by = [schema.get("properties", {}).get(k)] + [s for p, s in schema.get("patternProperties", {}).items() if re.search(p, k)]
            by = [s for s in by if s is not None]
            rest = schema.get("additionalProperties", True)
            if not by and rest is False:
                yield f"{where}/{k}: a member of unknown name"
            for s in by or ([rest] if isinstance(rest, dict) else []):
                yield from faults(x, s, root, f"{where}/{k}")
