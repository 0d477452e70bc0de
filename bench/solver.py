#!/usr/bin/env python3
"""Runs the assignment solver on the families of make_instances.py and prints the tables of docs/solver.md.

    bench/solver.py [--bin build/release/stickwright] [--sizes 400,1500,6000] [--families f1-decoder,...]
    bench/solver.py --scaling [--sizes 1000,10000,100000,1000000]
    bench/solver.py --glpsol          our whole process against glpsol on the LP file, sizes up to 400, limit 15 s

Seconds are processor time of the whole process, reading the document included, best of three runs (one above a second):
the machine may be shared. Ratios compare with reference_figures.json, recorded elsewhere: trust large ones only. Exit 1 if an optimum differs
from a recorded one. Standard library only."""
import argparse, json, math, pathlib, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import make_instances

SHARED = ["f2-deep", "f5-fanout", "f6-dag", "f12-layers", "f13-tied"]


# A small process between: what a large one holds would count as memory of its children.
MEASURE = """import resource, subprocess, sys
subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], "wb"), stderr=subprocess.DEVNULL)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)"""


def run(*args):
    """(result, processor seconds, peak MB) of a process that prints JSON, or None instead of the result."""
    with tempfile.NamedTemporaryFile() as out:
        p = subprocess.run([sys.executable, "-c", MEASURE, out.name, *args], stdout=subprocess.PIPE, check=True)
        try:
            result = json.loads(pathlib.Path(out.name).read_text())
        except ValueError:
            result = None
    seconds, mb = map(float, p.stdout.split())
    return result, seconds, mb


def make(family, size, path, mode="per-edge"):
    subprocess.run([sys.executable, str(HERE / "make_instances.py"), family, "--size", str(size), "--mode", mode, "-o", str(path)],
                   check=True)


def best(*args):
    runs = [run(*args)]
    while len(runs) < 3 and runs[0][1] < 1:
        runs.append(run(*args))
    return min(runs, key=lambda r: r[1])


def ratio(theirs, ours):
    if theirs is None:
        return ""
    above = "> " if isinstance(theirs, str) else ""
    x = float(str(theirs).lstrip("> ")) / max(ours, 0.001)
    return above + (f"{x:.0f}" if x >= 10 else f"{x:.1f}")


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for r in rows:
        print("| " + " | ".join(map(str, r)) + " |")


def families(o, scratch):
    recorded = json.loads((HERE / "reference_figures.json").read_text())["rows"]
    rows, wrong = [], 0
    todo = [(f, "per-edge") for f in o.families] + [(f, "shared") for f in o.families if f in SHARED]
    for family, mode in todo:
        for size in o.sizes:
            key = family + (" (shared)" if mode == "shared" else "") + f" {size}"
            if key not in recorded:
                continue
            path = scratch / "p.json"
            make(family, size, path, mode)
            r, seconds, mb = best(o.bin, "solve", str(path), "--json")
            b, beam_seconds, _ = run(o.bin, "solve", str(path), "--json", "--solver", "beam")
            ref, s = recorded[key], r["stats"]
            wrong += ref["optimum"] is not None and r["cost"] != ref["optimum"]
            over = "none" if not b or b["cost"] is None else f"{b['cost'] / max(1, r['cost']):.3f}"
            rows.append([key, r["status"] + ("" if r["status"] == "optimal" else f" (bound {r['bound']})"), r["cost"],
                         f"{s['islands']} ({s['distinct']})", s["max_width"], s["work"], f"{seconds:.3f}", f"{mb:.0f}", over,
                         f"{beam_seconds:.2f}", ratio(ref["beam_seconds"], seconds), ratio(ref.get("toulbar2_seconds"), seconds),
                         ratio(ref.get("cpsat_seconds"), seconds), ratio(ref.get("glpk_seconds"), seconds)])
    table(["family, size", "status", "cost", "islands (distinct)", "width", "work", "s", "MB", "beam / optimum", "own beam s",
           "reference beam ÷ ours", "toulbar2 ÷", "CP-SAT ÷", "GLPK ÷"], rows)
    return wrong


def scaling(o, scratch):
    rows = []
    for family in o.families:
        points = []
        for size in o.sizes:
            path = scratch / "p.json"
            make(family, size, path)
            r, seconds, mb = best(o.bin, "solve", str(path), "--json")
            points.append((math.log(size), math.log(max(seconds, 1e-3))))
            rows.append([family, f"{size:,}", r["status"], r["stats"]["max_width"], f"{seconds:.3f}", f"{mb:.0f}", ""])
        mx, my = (sum(p[i] for p in points) / len(points) for i in (0, 1))
        slope = sum((x - mx) * (y - my) for x, y in points) / max(1e-9, sum((x - mx) ** 2 for x, _ in points))
        rows[-1][-1] = f"{slope:.2f}"
    table(["family", "size", "status", "width", "s", "MB", "fitted exponent"], rows)


def glpsol(o, scratch):
    rows = []
    for family in o.families:
        for size in [s for s in o.sizes if s <= 400]:
            path, lp, out = scratch / "p.json", scratch / "p.lp", scratch / "p.out"
            make(family, size, path)
            r, seconds, _ = best(o.bin, "solve", str(path), "--json", "--lp", str(lp))
            _, theirs, _ = run("glpsol", "--lp", str(lp), "--gomory", "--mir", "--tmlim", "15", "-w", str(out))
            line = next((l for l in out.read_text().splitlines() if l.startswith("s mip")), "") if out.exists() else ""
            proved = " o " in line
            value = round(float(line.split()[5])) if line else None
            rows.append([f"{family} {size}", r["cost"], value if proved else f"{value} (no proof)", f"{seconds:.3f}",
                         f"{theirs:.3f}", ratio(theirs if proved else f"> {theirs}", seconds)])
    table(["family, size", "optimum", "glpsol", "s", "glpsol s", "glpsol ÷ ours"], rows)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", default=str(HERE.parent / "build/release/stickwright"))
    a.add_argument("--sizes")
    a.add_argument("--families")
    a.add_argument("--scaling", action="store_true")
    a.add_argument("--glpsol", action="store_true")
    o = a.parse_args()
    sizes = o.sizes or ("1000,10000,100000,1000000" if o.scaling else "400,1500,6000")
    o.sizes = [int(s) for s in sizes.split(",")]
    o.families = o.families.split(",") if o.families else ["f11-chain", "f6-dag"] if o.scaling else sorted(make_instances.FAMILIES)
    with tempfile.TemporaryDirectory() as d:
        scratch = pathlib.Path(d)
        if o.scaling:
            scaling(o, scratch)
        elif o.glpsol:
            glpsol(o, scratch)
        else:
            sys.exit(1 if families(o, scratch) else 0)


if __name__ == "__main__":
    main()
