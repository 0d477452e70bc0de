#!/usr/bin/env python3
"""Says which part of profile best each gain over torch-spyre comes from: every model is compiled again with one part left out.

    bench/gains.py [--bin build/release/stickwright] [--jobs 2] [--only TEXT] [--update docs/plans.md] FOLDER...

FOLDER holds *.pt2 at any depth. Layouts, weights, sharing and scratchpads are left out by an option; the means of the plan itself
by what the result says of them (objective.without). A figure is the predicted time without the part over the time with it: 1.00,
it does nothing here, -: refused without. Prints Markdown, or puts it between the marks "gains" of a page. Standard library only."""
import argparse, concurrent.futures, json, math, pathlib, re, subprocess, sys

BY_OPTION = {"layout optimum": ["--solver", "greedy"], "weights at load": ["--free-weights", "off"],
             "shared copies": ["--sharing", "off"], "scratchpads": ["--lx", "off"], "exact placer": ["--lx-placer", "greedy"]}
BY_RESULT = {"tiles": "tiles", "joint splits": "together", "input copies": "input_copies", "relayouts": "relayouts"}
PARTS = [*BY_OPTION, *BY_RESULT]
LISTED = 1.05  # models with such a gain in some part have a row


def objective(binary, path, options):
    """None when the model is refused."""
    p = subprocess.run([binary, "compile", "--json", "--verify=never", *options, str(path)], capture_output=True, timeout=1200)
    return None if p.returncode else json.loads(p.stdout)["objective"]


def measure(binary, path):
    best, reference = objective(binary, path, []), objective(binary, path, ["--profile", "torch-spyre"])
    if not best or not reference or not best["predicted_ns"] or not reference["predicted_ns"]:
        return None
    ns, row = best["predicted_ns"], {}
    for part, options in BY_OPTION.items():
        o = objective(binary, path, options)
        row[part] = o["predicted_ns"] / ns if o else math.nan
    for part, key in BY_RESULT.items():
        row[part] = best["without"].get(key, ns) / ns
    return path.name, row | {"all": reference["predicted_ns"] / ns}


def mean(rows, part):
    logs = [math.log(r[part]) for _, r in rows if r[part] > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def report(rows):
    def number(x):
        return "-" if math.isnan(x) else "" if abs(x - 1) < 5e-3 else f"{x:.2f}"
    how = {p: " ".join(o) for p, o in BY_OPTION.items()} | {p: f"`without.{k}`" for p, k in BY_RESULT.items()}
    out = [f"{len(rows)} models, times without a part over times with it.", "",
           "| part | left out by | geometric mean | models that it makes faster | most |", "|---|---|---|---|---|"]
    for part in PARTS + ["all"]:
        most = max(rows, key=lambda r: r[1][part] if r[1][part] == r[1][part] else 0)
        n = sum(r[part] > 1 + 1e-6 for _, r in rows)
        out.append(f"| {part} | {how.get(part, '--profile torch-spyre')} | {mean(rows, part):.3f} | {n} | {most[1][part]:.2f}, {most[0]} |")
    out += ["", f"Models where some part makes a difference of {100 * (LISTED - 1):.0f} % or more:", "",
            "| model | " + " | ".join(PARTS + ["all"]) + " |", "|---" * (len(PARTS) + 2) + "|"]
    for name, r in rows:
        if any(r[p] >= LISTED for p in PARTS):
            out.append(f"| {name} | " + " | ".join(number(r[p]) for p in PARTS + ["all"]) + " |")
    return "\n".join(out)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folders", nargs="+", type=pathlib.Path)
    args.add_argument("--bin", default="build/release/stickwright")
    args.add_argument("--jobs", type=int, default=2)
    args.add_argument("--only", default="")
    args.add_argument("--update", type=pathlib.Path)
    a = args.parse_args()
    paths = sorted(p for f in a.folders for p in f.rglob("*.pt2") if a.only in str(p))
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        rows = [r for r in pool.map(lambda p: measure(a.bin, p), paths) if r]
    if not rows:
        sys.exit("no model that both profiles accept")
    text = report(rows)
    if not a.update:
        return print(text)
    page, marks = a.update.read_text(), ("<!-- gains -->", "<!-- end of gains -->")
    a.update.write_text(re.sub(f"{marks[0]}.*{marks[1]}", lambda _: f"{marks[0]}\n\n{text}\n\n{marks[1]}", page, flags=re.S))


main()
