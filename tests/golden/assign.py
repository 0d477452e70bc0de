"""Stored assignment problems: optimum and labels as several other programs found them (expected.json), all solvers in
their order, and the LP file for glpsol where that is installed. SW is the binary."""
import gzip, json, os, pathlib, shutil, subprocess, sys, tempfile

here = pathlib.Path(__file__).parent / "assign"
sw = os.environ["SW"]
expected = json.loads((here / "expected.json").read_text())
wrong = []


def solve(path, *args):
    run = subprocess.run([sw, "solve", str(path), "--json", *args], capture_output=True)
    return json.loads(run.stdout)


def cost(result):
    return float("inf") if result["cost"] is None else result["cost"]


def glpsol(path, scratch):
    """Optimum of the LP file by glpsol, or None when it found none."""
    subprocess.run([sw, "solve", str(path), "--lp", scratch / "p.lp"], capture_output=True)
    subprocess.run(["glpsol", "--lp", scratch / "p.lp", "-w", scratch / "p.out", "--tmlim", "60"], capture_output=True)
    for line in (scratch / "p.out").read_text().splitlines():
        if line.startswith("s mip"):
            return round(float(line.split()[5]))


with tempfile.TemporaryDirectory() as d:
    scratch = pathlib.Path(d)
    for name, want in expected.items():
        path = scratch / "p.json"
        path.write_bytes(gzip.decompress((here / (name + ".json.gz")).read_bytes()))
        exact, beam, greedy = solve(path), solve(path, "--solver", "beam"), solve(path, "--solver", "greedy")
        if exact["status"] != want["status"] or exact["cost"] != want["optimum"]:
            wrong.append(f"{name}: {exact['status']} {exact['cost']} expected {want['optimum']}")
        elif exact["labels"] != want["labels"]:
            wrong.append(f"{name}: optimal, but not the smallest labels")
        if not cost(exact) <= cost(beam) <= cost(greedy):
            wrong.append(f"{name}: {exact['cost']} {beam['cost']} {greedy['cost']} are out of order")
        if "shared" not in name and isinstance(want["greedy_cost"], int) and greedy["cost"] != want["greedy_cost"]:
            wrong.append(f"{name}: greedy {greedy['cost']} expected {want['greedy_cost']}")
        if "shared" not in name and isinstance(want["peer_beam_cost"], int) and beam["cost"] != want["peer_beam_cost"]:
            wrong.append(f"{name}: beam {beam['cost']} expected {want['peer_beam_cost']}")
        small = len(want["labels"]) <= 30
        if small and solve(path, "--solver", "ilp-full")["labels"] != want["labels"]:
            wrong.append(f"{name}: ilp-full differs")
        if small and shutil.which("glpsol") and glpsol(path, scratch) != want["optimum"]:
            wrong.append(f"{name}: glpsol on the LP file differs")

print("\n".join(wrong) or f"{len(expected)} problems as expected")
if not shutil.which("glpsol"):
    print("glpsol is not installed: LP files were not checked")
sys.exit(1 if wrong else 0)
