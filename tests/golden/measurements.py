#!/usr/bin/env python3
"""The published measurements against what is predicted: the table in docs/cost-model.md says what this program says.

  measurements.py [--update]

Each case is a graph that is compiled in profile torch-spyre, whose divisions and layouts are those that were measured, with the split
of the measurement where it names one. Times in ms; ratios where only those are published. Where two layouts of one product were
measured, the model, which does not tell them apart, stands against both."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SW, SOURCE = os.environ["SW"], pathlib.Path(os.environ["SW_SOURCE"])
PAGE, MARKS = SOURCE / "docs/cost-model.md", ("<!-- measured -->", "<!-- end of measured -->")


def ms(text, *options):
    with tempfile.TemporaryDirectory() as t:
        graph = pathlib.Path(t) / "g.graph"
        graph.write_text(text)
        p = subprocess.run([SW, "compile", graph, "--json", "--verify", "never", "--profile", "torch-spyre", *options], capture_output=True)
    if p.returncode:
        sys.exit(f"{text}{options}: {p.stderr.decode()}")
    return json.loads(p.stdout)["objective"]["predicted_ns"] / 1e6


def product(a, b, *options, turned=False):
    """x [a] by a weight [b], or by the transpose of one that lies the other way."""
    size = lambda s: "[" + ",".join(map(str, s)) + "]"
    w = (f"%u : f16{size(b[::-1])} = parameter\n%w : f16{size(b)} strides=[1,{b[0]}] = aten.t.default(%u)\n" if turned else
         f"%w : f16{size(b)} = parameter\n")
    return ms(f"%x : f16{size(a)} = input\n{w}%y : f16{size(a[:-1] + b[1:])} = aten.matmul.default(%x, %w)\nreturn %y\n", *options)


SOFTMAX = "%x : f16[512,1024] = input\n%y : f16[512,1024] = aten.softmax.int(%x, -1)\nreturn %y\n"
NORM = ("%x : f16[1,512,4096] = input\n%w : f16[4096] = parameter\n"
        "%y : f16[1,512,4096] = aten.rms_norm.default(%x, [4096], %w, 1e-05)\nreturn %y\n")


def cut(m, k, n, before, after):
    at = lambda s: product([m, k], [k, n], "--split", "y=" + ",".join(map(str, s)))
    return at(before) / at(after)


def cases():
    """(row of the list, what, unit, measured, predicted)."""
    out = [("1", "softmax [512,1024] on one core, nothing in LX over all that fits", "x", [32.51 / 23.67],
            ms(SOFTMAX, "--cores", "1", "--lx", "off") / ms(SOFTMAX, "--cores", "1"))]
    batched = {(2, 12800): (4.604, 2.196), (4, 12800): (6.631, 4.244), (8, 12800): (26.968, 8.384), (2, 25600): (6.862, 4.879),
               (4, 25600): (12.156, 7.672), (8, 25600): (31.985, 15.502)}
    for row, ((b, n), measured) in enumerate(batched.items(), 2):
        out.append((str(row), f"[{b},512,4096] by [4096,{n}], default layout; batch outermost", "ms", measured, product([b, 512, 4096], [4096, n])))
    for m, measured in {1: 1.762, 2: 1.463, 4: 1.389, 8: 1.377, 16: 1.365}.items():
        out.append(("8", f"[{m},4096] by [4096,25600]", "ms", [measured], product([m, 4096], [4096, 25600])))
    out.append(("9", "[1,4096] by [4096,26624]", "ms", [1.508], product([1, 4096], [4096, 26624])))
    plain, turned = (product([1, 4096], [4096, 51200], turned=t) for t in (False, True))
    out.append(("10", "[1,4096] by the transpose of a weight [51200,4096], over a plain product", "x", [3.5], turned / plain))
    for row, n, measured in ("11", 4096, 2.59), ("12", 1024, 1.76), ("12", 12800, 2.07):
        out.append((row, f"512 x 4096 x {n} cut 32, 1, 1 over 8, 4, 1", "x", [measured], cut(512, 4096, n, (32, 1, 1), (8, 4, 1))))
    for n, before, measured in (4096, (1, 32, 1), 1.02), (1024, (2, 16, 1), 1.06), (12800, (1, 25, 1), 1.2):
        out.append(("13", f"4 x 4096 x {n} cut {', '.join(map(str, before))} over 4, 8, 1", "x", [measured], cut(4, 4096, n, before, (4, 8, 1))))
    out.append(("18", "RMS norm of [1,512,4096], nothing in LX; an older build", "ms", [0.228, 0.124], ms(NORM, "--lx", "off")))
    return out


def table():
    out = ["| row | what | measured | predicted | error |", "|---|---|---|---|---|"]
    for row, what, unit, measured, predicted in cases():
        errors = ", ".join(f"{100 * (predicted / m - 1):+.0f} %" for m in measured)
        number = (lambda x: f"{x:.3f} ms") if unit == "ms" else lambda x: f"{x:.2f} x"
        out.append(f"| {row} | {what} | {'; '.join(map(number, measured))} | {number(predicted)} | {errors} |")
    return "\n".join(out)


def main():
    page, now = PAGE.read_text(), table()
    pattern = f"{MARKS[0]}\n\n(.*)\n\n{MARKS[1]}"
    if "--update" in sys.argv:
        return PAGE.write_text(re.sub(pattern, lambda _: f"{MARKS[0]}\n\n{now}\n\n{MARKS[1]}", page, flags=re.S))
    there = re.search(pattern, page, re.S)[1]
    for a, b in zip(there.split("\n"), now.split("\n")):
        if a != b:
            print(f"docs: {a}\nnow:  {b}")
    print(f"{len(now.splitlines()) - 2} measurements in docs/cost-model.md")
    sys.exit(there != now)


main()
