"""What holds of every result, whatever the graph: checked by the fault cases and by the random graphs."""
import json

SPAN = 65535 * 4096  # bytes one core may walk in one tensor
LX_END, POOL_END = 1625344, 15032385536
DTYPE_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1, "uint8": 1,
               "int16": 2, "int32": 4, "int64": 8, "bool": 1}


def product(numbers):
    n = 1
    for x in numbers:
        n *= x
    return n


def complaints_about(result, directory):
    """Sentences; none: all is well."""
    bad, status = [], result["status"]
    if status in ("optimal", "feasible"):
        bad += _of_plan(result)
        if directory:
            bad += _of_manifest(result, json.loads((directory / "manifest.json").read_text()))
    else:
        if directory:
            bad.append(f"status {status}, but files were written")
        if not result["faults"]:
            bad.append(f"status {status} without a reason")
        bad += [f"fault {f['detail']!r} names neither node nor tensor" for f in result["faults"]
                if status in ("unsupported", "infeasible") and not f["node"] and not f["tensor"] and not f["detail"].startswith("option ")]
    return bad


def _of_plan(r):
    bad, o = [], r["objective"]
    if o["bound"] > o["value"] or (r["status"] == "optimal" and o["bound"] != o["value"]):
        bad.append(f"{r['status']}, but value {o['value']} and bound {o['bound']}")
    if o["conversions"] != len(r["conversions"]):
        bad.append(f"{o['conversions']} conversions, {len(r['conversions'])} listed")
    listed = sum(c["elements"] for c in r["conversions"])
    if o["conversion_elements"] != listed:
        bad.append(f"{o['conversion_elements']} elements converted, {listed} listed")
    # best counts what the plan of torch-spyre copies without calling it a conversion (a scatter's target), and says so
    rival = r["options"]["profile"] == "best" and o["plan_of"] == "torch-spyre"
    if rival and (o["value"] != o["full_value"] or o["value"] < listed):
        bad.append(f"cost {o['value']} of torch-spyre's plan, {o['full_value']} with all its copies, {listed} elements of conversions")
    if o["unit"] == "elements" and not rival and o["value"] != listed + _loaded_again(r):
        bad.append(f"cost {o['value']} is not the {listed} elements of the conversions")
    slower = {k: ns for k, ns in o["without"].items() if o["predicted_ns"] > ns * (1 + 1e-6)}
    if slower:
        bad.append(f"{o['predicted_ns']} ns predicted, without one of its means {slower}")
    if r["options"]["profile"] == "best" and r["ops"] and o["plan_of"] != "torch-spyre" and "together" not in o["without"]:
        bad.append("no plan with every op divided by itself was tried")
    for s in r["storages"]:
        l, p = s["layout"], s["place"]
        if l and min(l["device_size"]) < 1:
            bad.append(f"{s['name']}: device size {l['device_size']}")
        if not p:
            continue
        if "lx" in p and (p["lx"] < 0 or p["lx"] % 128 or p["lx"] + p["bytes"] > LX_END):
            bad.append(f"{s['name']}: {p['bytes']} bytes at LX byte {p['lx']}")
        if "pool" in p and (p["pool"] % 128 or p["pool"] + p["bytes"] > POOL_END):
            bad.append(f"{s['name']}: {p['bytes']} bytes at pool byte {p['pool']}")
    for op in r["ops"]:
        if "split" in op and product(op["split"]) > r["options"]["cores"]:
            bad.append(f"{op['name']}: split {op['split']}")
    return bad


def _loaded_again(r):
    """What is loaded in a second layout: a parameter counts 1, so that none is loaded twice for nothing; an input, which
    every run loads, its padded elements."""
    again = [s for s in r["storages"] if s["name"].rsplit(":", 1)[-1].startswith("again")]
    return sum(product(s["layout"]["device_size"]) if s["kind"] == "input" else 1 for s in again)


def _of_manifest(r, m):
    bad = []
    for b in m["buffers"]:
        l = b["layout"]
        if l and l["format"].endswith("FP16") and b["bytes"] != 2 * product(l["device_size"]):
            bad.append(f"buffer {b['name']}: {b['bytes']} bytes in {l['device_size']}")
    names = [b["name"] for b in m["buffers"]]
    if len(set(names)) != len(names):
        bad.append("two buffers of one name")
    for step in m["steps"]:
        if "kernel" in step:
            bad += [f"{step['kernel']} takes {a}, which is no buffer" for a in step["args"] if a not in names]
    return bad
