#!/usr/bin/env python3
"""usage: study_tables.py STUDY DOCS: writes the tables of DOCS/studies.md, models.md and plans.md from the directory of a
study that has the profiles best and torch-spyre with solver ilp. What stands above "<!-- tables -->" in a page is kept."""
import json, math, pathlib, re, sys

# Which faults are rules of the machine or of the export, by a part of their text; all others are "not yet".
RULES = [
    ("on float32", "machine: no matmul, clip, where or log on float32"),
    ("no complex numbers", "machine: no complex numbers"),
    ("known at run time only", "machine: sizes and numbers that depend on data"),
    ("control flow on data", "machine: control flow on data"),
    ("an operator outside ATen", "export: an operator outside ATen, whose meaning is not in the file"),
]
MARK = "<!-- tables -->"


def us(ns):
    return f"{ns / 1e3:,.2f}"


def kind(fault):
    return next((why for part, why in RULES if part in fault), "not yet")


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def gmean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def reasons(run):
    """Faults without the node's name, each once, at most three."""
    seen = []
    for f in run["faults"]:
        f = re.sub(r"^\S+: ", "", f)
        if f not in seen:
            seen.append(f)
    return "; ".join(seen[:3]) + (f"; and {len(seen) - 3} more" if len(seen) > 3 else "")


def models(runs):
    good = [r for r in runs if "predicted_ns" in r]
    out = [f"{len(runs)} files: {len(good)} compile, {len(runs) - len(good)} are refused.", "", "## Compiled", "",
           "| model | status | device ops | host steps | conversions | cost (ns) | predicted us | in LX | peak pool (KiB) |",
           "|---|---|---|---|---|---|---|---|---|"]
    for r in good:
        share = f"{100 * r['in_lx'] / r['intermediates']:.0f} %" if r["intermediates"] else "-"
        out.append(f"| {r['graph']} | {r['status']} | {r['ops']} | {r['host_steps']} | {r['conversions']} | {r['value']} | "
                   f"{us(r['predicted_ns'])} | {share} | {r['peak_pool_bytes'] / 1024:.0f} |")
    out += ["", "## Refused", "", "| model | status | why | reason |", "|---|---|---|---|"]
    for r in runs:
        if "predicted_ns" not in r:
            out.append(f"| {r['graph']} | {r['status']} | {', '.join(sorted({kind(f) for f in r['faults']}))} | {cell(reasons(r))} |")
    return out


def plans(best, reference):
    pairs = [(b, r) for b, r in zip(best, reference) if "predicted_ns" in b and "predicted_ns" in r]
    timed = [(b, r) for b, r in pairs if b["predicted_ns"] and r["predicted_ns"]]
    ratio = lambda b, r: b["predicted_ns"] / r["predicted_ns"]
    slower = [p for p in timed if ratio(*p) > 1 + 1e-9]
    out = [f"{len(pairs)} files compile in both profiles; {len(timed)} of them do something on the device. Geometric mean of the "
           f"time of best over that of torch-spyre: **{gmean(ratio(*p) for p in timed):.4f}**. Slower in best: {len(slower)}.", "",
           "| model | best us | torch-spyre us | ratio | in LX, best | in LX, torch-spyre | pool KiB, best | pool KiB, torch-spyre |",
           "|---|---|---|---|---|---|---|---|"]
    for b, r in pairs:
        share = [f"{x['in_lx']}/{x['intermediates']}" for x in (b, r)]
        q = f"{ratio(b, r):.4f}" if b["predicted_ns"] and r["predicted_ns"] else "-"
        out.append(f"| {b['graph']} | {us(b['predicted_ns'])} | {us(r['predicted_ns'])} | {q} | {share[0]} | {share[1]} | "
                   f"{b['peak_pool_bytes'] / 1024:.0f} | {r['peak_pool_bytes'] / 1024:.0f} |")
    return out


def replace(path, lines):
    head = path.read_text().split(MARK)[0]
    path.write_text(head + MARK + "\n\n" + "\n".join(lines) + "\n")


def main():
    study, docs = map(pathlib.Path, sys.argv[1:])
    runs = json.loads((study / "study.json").read_text())["runs"]
    runs = [r for r in runs if r["solver"] == "ilp" and not r["options"]]
    best, reference = ([r for r in runs if r["profile"] == p] for p in ("best", "torch-spyre"))
    summary = (study / "study.md").read_text().replace("\n## ", "\n### ").split("\n")
    replace(docs / "studies.md", summary[2:])  # without its title
    replace(docs / "models.md", models(best))
    replace(docs / "plans.md", plans(best, reference))


if len(sys.argv) != 3:
    sys.exit(__doc__)
main()
