#!/usr/bin/env python3
"""Coarse tiling against the recorded plans: graphs compiled with hints have the loops, op specs, splits, LX addresses and
address steps that were recorded. What the recorded hint calls a dim is named here by the input it was given for."""
import json, os, pathlib, re, subprocess, sys, tempfile

SW = os.environ["SW"]
SHARED = pathlib.Path(os.environ.get("SW_SHARED") or pathlib.Path(os.environ["SW_SOURCE"]).parent / "shared")
GRAPHS = SHARED / "reference/graphs"
# The span of 174 is too long for one core; the tiles are the planner's own.
OPTIONS = {"180_hint_tiles_M4": ["--tile", "args_0:0=4"], "181_hint_tiles_matmul": ["--tile", "args_0:0=2"],
           "182_hint_tiles_sum_K": ["--tile", "args_0:1=4"], "174_big_add_span_tiling_384MB": ["--cores", "1"]}
# Here the reference counts what fill and combine write by a layout that the accumulator does not have.
OTHER_TIME = {"182_hint_tiles_sum_K"}
# Four buffers of one loop, all alive at the same step, which the recorded pool lists in no order that its names explain.
ANY_ORDER = {"181_hint_tiles_matmul"}


def advance(text):
    """Elements per turn of each level; the symbols end in their level."""
    return {int(l): int(k) for k, l in re.findall(r"floor\((\d+)\*\w+?_lvl(\d+)\)", text or "")}


def comparable(s, any_order):
    """An op spec or loop of plan.json or opspec.json, symbols by position."""
    if "body" in s:
        return ["loop", int(s.get("loop") or s.get("count")), [comparable(x, any_order) for x in s["body"]]]
    space = [(x["symbol"], x["range"], x["split"]) if isinstance(x, dict) else tuple(x[:3]) for x in s["iteration_space"]]
    place = {x[0]: f"v{i}" for i, x in enumerate(space)}
    coord = lambda c: re.sub(r"[A-Za-z_]\w*", lambda m: place.get(m.group(), m.group()), str(c).replace(" ", ""))
    return [s["op"], [list(x[1:]) for x in space],
            [[a["is_input"], a["arg_index"], a["device_size"], [coord(c) for c in a.get("coordinates") or a["device_coordinates"]],
              "pool" if any_order and "hbm_pool" in a["allocation"] else a["allocation"], advance(a.get("tile_advance") or a.get("device_tile_advance_expr"))] for a in s["args"]],
            [len(l) for l in s.get("tiled_symbols") or []]]


def compare(name):
    plan = json.loads((GRAPHS / name / "plan.json").read_text())
    with tempfile.TemporaryDirectory() as d:
        out = pathlib.Path(d) / "o"
        p = subprocess.run([SW, "compile", GRAPHS / name / "graph.pt2", "-o", out, "--json", "--profile", "torch-spyre", "--objective",
                            "elements", "--solver", "beam", *OPTIONS[name]], capture_output=True)
        if p.returncode:
            return p.stderr.decode()[-200:]
        specs = json.loads((out / "bundle_0/opspec.json").read_text())
        large = name.startswith("174")
        v = None if large else subprocess.run([SW, "verify", out, "--model", GRAPHS / name / "graph.pt2"], capture_output=True)
    kernel = plan["graphs"][0]["kernels"][0]
    got = [specs["pool_size"]] + [comparable(s, name in ANY_ORDER) for s in specs["specs"]]
    want = [kernel["pool_size"]] + [comparable(s, name in ANY_ORDER) for s in kernel["specs"]]
    if got != want:
        return f"\n  {json.dumps(got)}\nexpected\n  {json.dumps(want)}"
    us, recorded = json.loads(p.stdout)["objective"]["reference_ns"] / 1000, plan["graphs"][0]["predicted"]["total_us"]
    if name not in OTHER_TIME and abs(us - recorded) > 1e-9 * recorded:
        return f"{us} us, recorded {recorded}"
    return "" if not v or v.returncode == 0 else "verify: " + v.stdout.decode()[-200:]


def main():
    if not GRAPHS.is_dir():
        print(f"skipped: {len(OPTIONS)} recorded graphs, no {GRAPHS}")
        return 0
    loops = [d.name for d in sorted(GRAPHS.iterdir()) if '"loop": {' in (d / "plan.json").read_text()]
    bad = {n: why for n in OPTIONS if (why := compare(n))}
    for n, why in bad.items():
        print(f"{n}: {why}")
    print(f"{len(OPTIONS) - len(bad)} of {len(loops)} recorded graphs with loops are equal; "
          f"not compared: {', '.join(n for n in loops if n not in OPTIONS) or 'none'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
