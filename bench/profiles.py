#!/usr/bin/env python3
"""Compiles every model of some folders in both profiles and lists those where best costs more than torch-spyre.

    bench/profiles.py [--bin build/release/stickwright] [--jobs 2] [--only TEXT] [--list] [--elements] [--update PAGE] FOLDER...

FOLDER holds *.pt2 at any depth. Compared are objective.predicted_ns (one time model for both profiles, transfers of host
steps included) and objective.conversion_elements. Models that only one profile accepts are counted, not compared. --list:
every model, with the layouts whose plan best keeps. --elements: both with objective elements, compared by
objective.full_value. Prints Markdown, or with --update writes it below "<!-- tables -->" in the page; exit 1 if best costs
more anywhere. Standard library only."""
import argparse, concurrent.futures, contextlib, io, json, math, pathlib, subprocess, sys

PROFILES = ("torch-spyre", "best")
MARK = "<!-- tables -->"


def objective(binary, path, profile, options):
    """The objective of a result, None when the profile does not accept the model."""
    p = subprocess.run([binary, "compile", "--json", "--verify=never", "--profile", profile, *options, str(path)], capture_output=True,
                       timeout=600)
    if p.returncode:
        return None
    result = json.loads(p.stdout)
    return result["objective"] | {"host_steps": len(result["host_steps"])}


def name_of(path):
    return path.parent.name if path.name == "graph.pt2" else path.name[:-4]


def more(a, b):
    """b above a by more than rounding."""
    return b > a * (1 + 1e-9)


def exceptions(rows, key, unit):
    worse = [(n, r, b) for n, r, b in rows if more(r[key], b[key])]
    print(f"\nbest has more {unit} on {len(worse)} of {len(rows)}.")
    if worse:
        print(f"\n| model | {PROFILES[0]} | {PROFILES[1]} | ratio | host steps |\n|---|---|---|---|---|")
    for n, r, b in worse:
        ratio = b[key] / r[key] if r[key] else math.inf
        print(f"| {n} | {r[key]:.0f} | {b[key]:.0f} | {ratio:.3f} | {r['host_steps']}, {b['host_steps']} |")
    return len(worse)


def summary(folder, rows, only):
    times = [(r["predicted_ns"], b["predicted_ns"]) for _, r, b in rows]
    ratios = [math.log(b / r) for r, b in times if r > 0 and b > 0]
    mean = math.exp(sum(ratios) / len(ratios)) if ratios else 1
    print(f"## {pathlib.Path(folder).name.capitalize()}\n\n| | {PROFILES[0]} | {PROFILES[1]} |\n|---|---|---|")
    print(f"| accepted by this one only | {only[0]} | {only[1]} |")
    for key, text in ("predicted_ns", "predicted ns"), ("conversion_elements", "elements converted"):
        print(f"| {text}, all {len(rows)} | {sum(r[key] for _, r, _ in rows):.0f} | {sum(b[key] for _, _, b in rows):.0f} |")
    less, equal = (sum(map(f, times)) for f in (lambda t: more(t[1], t[0]), lambda t: not more(*t) and not more(t[1], t[0])))
    print(f"| predicted less, equal, more | | {less}, {equal}, {len(times) - less - equal} |")
    print(f"| geometric mean of the time ratio | 1 | {mean:.3f} |")


def listing(rows):
    print("\n| model | torch-spyre us | best us | ratio | host us | conversions | elements converted | plan of |")
    print("|---|---|---|---|---|---|---|---|")
    for n, r, b in rows:
        ratio = f"{b['predicted_ns'] / r['predicted_ns']:.3f}" if r["predicted_ns"] else "1.000" if not b["predicted_ns"] else "inf"
        pairs = [f"{r[key]:,} -> {b[key]:,}" for key in ("conversions", "conversion_elements")]
        us = [f"{r['predicted_ns'] / 1e3:,.2f}", f"{b['predicted_ns'] / 1e3:,.2f}"]
        host = f"{r['host_ns'] / 1e3:,.1f} -> {b['host_ns'] / 1e3:,.1f}" if r["host_ns"] or b["host_ns"] else "0"
        print(f"| {n} | {us[0]} | {us[1]} | {ratio} | {host} | {pairs[0]} | {pairs[1]} | {b['plan_of'] or 'ilp'} |")


def report(args):
    """The tables of every folder, printed; 1 if best costs more anywhere."""
    worse, options = 0, ["--objective", "elements"] if args.elements else []
    for folder in args.folders:
        files = sorted(f for f in pathlib.Path(folder).rglob("*.pt2") if args.only in name_of(f))
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            got = list(pool.map(lambda f: [objective(args.bin, f, p, options) for p in PROFILES], files))
        rows = [(name_of(f), r, b) for f, (r, b) in zip(files, got) if r and b]
        summary(folder, rows, [sum(bool(r) and not b for r, b in got), sum(bool(b) and not r for r, b in got)])
        if args.elements:
            worse += exceptions(rows, "full_value", "elements converted")
        else:
            worse += exceptions(rows, "predicted_ns", "predicted time")
            exceptions(rows, "conversion_elements", "elements converted")
        if args.list:
            listing(rows)
        print()
    return 1 if worse else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default="build/release/stickwright")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--only", default="", help="names that contain this")
    p.add_argument("--list", action="store_true", help="a line for every model")
    p.add_argument("--elements", action="store_true", help="objective elements")
    p.add_argument("folders", nargs="+", metavar="FOLDER")
    p.add_argument("--update", type=pathlib.Path, metavar="PAGE")
    args = p.parse_args()
    if not args.update:
        return report(args)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        worse = report(args)
    above = args.update.read_text().partition(MARK)[0]
    args.update.write_text(f"{above}{MARK}\n\n{text.getvalue().rstrip()}\n")
    return worse


if __name__ == "__main__":
    sys.exit(main())
