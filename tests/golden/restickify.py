"""The reference's own restickify suite in profile torch-spyre: data/restickify_cases.json.gz holds its 154 graphs with the cost in
padded elements, the number of conversions and the cost of its greedy. ilp and beam must give that cost and number,
ilp <= beam <= greedy always, and what the reference refuses is refused."""
import concurrent.futures, gzip, json, os, pathlib, subprocess, sys

SW = os.environ["SW"]
CASES = json.loads(gzip.decompress(pathlib.Path(os.environ["SW_SOURCE"], "tests/data/restickify_cases.json.gz").read_bytes()))
DTYPE = {"float16": "f16", "float32": "f32", "int64": "i64"}


def text_graph(case):
    dtype, lines = {}, []

    def arg(a):
        if isinstance(a, list):
            return "[" + ", ".join(map(arg, a)) + "]"
        return ("%" + a if a in dtype else DTYPE[a]) if isinstance(a, str) else repr(a)
    for i in case["inputs"]:
        dtype[i["name"]] = DTYPE[i["dtype"]]
        lay = i.get("device_layout") or {"default": True}
        pin = "" if lay.get("default") else f"(device_size={lay['device_size']}, stride_map={lay['stride_map']})"
        strides = f" strides={i['strides']}" if i.get("strides") else ""
        lines.append(f"%{i['name']} : {dtype[i['name']]}{i['shape']}{strides} = input{pin}")
    for o in case["ops"]:
        t = DTYPE[o["args"][1]] if "convert_element_type" in o["op"] else \
            next((dtype[a] for a in o["args"] if isinstance(a, str) and a in dtype), "f16")
        kw = "".join(f", {k}={arg(v)}" for k, v in o.get("kwargs", {}).items())
        lines.append(f"%{o['id']} : {t}{o['shape']} = {o['op']}({', '.join(map(arg, o['args']))}{kw})")
        dtype[o["id"]] = t
    return "\n".join(lines + ["return " + ", ".join("%" + x for x in case["outputs"])]) + "\n"


def compile(text, solver):
    p = subprocess.run([SW, "compile", "-", "--json", "--profile", "torch-spyre", "--solver", solver], input=text, capture_output=True,
                       text=True)
    return json.loads(p.stdout)


def faults(case):
    e, name, text = case["expected"], case["name"], text_graph(case)
    r = compile(text, "ilp")
    if "error" in e:
        return [f"{name}: accepted, should be refused"] if r["status"] not in ("unsupported", "infeasible") else []
    if r["status"] != "optimal":
        return [f"{name}: {r['status']} {r['faults'][:1]}"]
    found, best = [], r["objective"]
    want = e.get("optimizer_cost", best["value"]), e.get("restickify_count", best["conversions"])
    if (best["value"], best["conversions"]) != want:
        found.append(f"{name}: ilp {best['value']}, {best['conversions']} conversions; expected {want}")
    costs = [best["value"]] + [compile(text, s)["objective"]["value"] for s in ("beam", "greedy")]
    if costs[1] != costs[0] or costs[2] < costs[1]:
        found.append(f"{name}: ilp, beam, greedy cost {costs}")
    if "greedy_cost" in e and isinstance(e["greedy_cost"], int) and costs[2] > e["greedy_cost"] >= best["value"]:
        found.append(f"{name}: greedy {costs[2]}, recorded {e['greedy_cost']}")
    return found


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    found = sum(pool.map(faults, CASES), [])
print("\n".join(found), f"{len(CASES)} cases", sep="\n" if found else "")
sys.exit(len(found) > 0)
