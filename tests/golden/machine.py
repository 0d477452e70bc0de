#!/usr/bin/env python3
"""Other machines: constants of the time model, cores, scratchpads, tiles and divisions at the edges of what they may be.

  machine.py [--count N] [--seed S]

data/spyre.machine.json is what is built in. Values that the model can't work with are refused, and the fault names the constant and its range.
Whatever else is given, a program compiles and computes what the graph means (the simulated card executes it), or is refused with a
reason; times are finite, and no plan is slower than the best one without one of its means."""
import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SW, SOURCE = os.environ["SW"], pathlib.Path(os.environ["SW_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests"))
import invariants  # noqa: E402

BUILT_IN = json.loads((SOURCE / "data/spyre.machine.json").read_text())
GRAPHS = {
    "mlp": ("%x : f16[64,128] = input\n%w : f16[128,256] = parameter\n%v : f16[256,64] = parameter\n%h : f16[64,256] = aten.mm.default(%x, %w)\n"
            "%g : f16[64,256] = aten.silu.default(%h)\n%y : f16[64,64] = aten.mm.default(%g, %v)\nreturn %y\n", {"x": 2, "w": 2, "g": 2}, {"h": 3, "g": 2}),
    "softmax": ("%x : f16[6,64,128] = input\n%y : f16[6,64,128] = aten.softmax.int(%x, -1)\n%z : f16[6,64,128] = aten.add.Tensor(%y, %x)\nreturn %z\n",
                {"x": 3, "y": 3}, {"z": 3}),
    "turned": ("%a : f16[128,192] = input\n%b : f16[192,128] = input\n%t : f16[192,128] strides=[1,192] = aten.t.default(%a)\n"
               "%s : f16[192,128] = aten.add.Tensor(%t, %b)\n%e : f16[192,128] = aten.exp.default(%s)\n%y : f16[192] = aten.sum.dim_IntList(%e, [1])\n"
               "return %y, %s\n", {"a": 2, "b": 2}, {"s": 2, "e": 2}),
    "attention": ("%q : f16[1,4,64,64] = input\n%k : f16[1,4,64,64] = input\n%v : f16[1,4,64,64] = input\n"
                  "%y : f16[1,4,64,64] = aten.scaled_dot_product_attention.default(%q, %k, %v)\nreturn %y\n", {"q": 4, "k": 4}, {}),
}
REFUSED = {"hbm": [0, -1, 1e400, "nan", 1e300], "interval[1]": [-1, 1e30], "reduction_cores[0]": [0, 1.01], "macs": [0], "tile.low": [0],
           "broadcast[0][1].least": [1e8], "speed": [1]}


def run(*args):
    return subprocess.run([SW, *map(str, args)], capture_output=True, timeout=300)


def built_in(t, complaints):
    for name, (text, _, _) in GRAPHS.items():
        (t / "g.graph").write_text(text)
        plain = json.loads(run("compile", t / "g.graph", "--json", "--verify", "never").stdout)
        given = json.loads(run("compile", t / "g.graph", "--json", "--verify", "never", "--machine", SOURCE / "data/spyre.machine.json").stdout)
        if len(given["options"].pop("constant")) != len(BUILT_IN) or plain["options"].pop("constant"):
            complaints.append("the result does not say which constants were given")
        if plain != given:
            complaints.append(f"{name}: another result with data/spyre.machine.json")
    slow = json.loads(run("compile", t / "g.graph", "--json", "--constant", "hbm=75", "--lx", "off").stdout)["objective"]["predicted_ns"]
    fast = json.loads(run("compile", t / "g.graph", "--json", "--lx", "off").stdout)["objective"]["predicted_ns"]
    if slow <= fast:
        complaints.append(f"half the memory rate takes {slow} ns, all of it {fast}")


def one_of_a_stack(t, complaints):
    """A matmul with one matrix of eight computes as long as with that matrix alone: 256 * 512 * 512 / (32 * 1140 * 0.5 ** 0.35) ns."""
    alone = "%x : f16[256,512] = input\n%s : f16[512,512] = parameter\n%y : f16[256,512] = aten.mm(%x,%s)\nreturn %y\n"
    stack = alone.replace("%s : f16[512,512] = parameter", "%w : f16[8,512,512] = parameter\n%s : f16[512,512] = aten.select.int(%w,0,3)")
    for text in alone, stack:
        (t / "g.graph").write_text(text)
        ns = json.loads(run("compile", t / "g.graph", "--json").stdout)["ops"][-1]["time"]["compute"]
        if abs(ns - 256 * 512 * 512 / (32 * 1140 * 0.5 ** 0.35)) > 0.01:
            complaints.append(f"a matmul of 256 x 512 x 512 computes {ns} ns")


def refused(t, complaints):
    for name, values in REFUSED.items():
        for v in values:
            (t / "m.json").write_text(json.dumps({name: v}))
            for how in (["--constant", f"{name}={v}"], ["--machine", t / "m.json"]):
                p = run("compile", t / "g.graph", "--json", *how)
                if p.returncode not in (64, 65) or not (name in p.stderr.decode() or "machine file" in p.stderr.decode()):
                    complaints.append(f"{name}={v}: exit {p.returncode}, {p.stderr.decode()[-200:]}")
    (t / "m.json").write_text("[1]")
    if run("compile", t / "g.graph", "--machine", t / "m.json").returncode != 65:
        complaints.append("a machine file that is a list is taken")


def odd_options(r, tiles, splits):
    out = ["--cores", r.choice([1, 2, 3, 5, 7, 8, 16, 31, 32]), "--lx-bytes", r.choice([0, 1, 127, 128, 1024, 4096, 20000, 1625344, 2031616])]
    out += ["--profile", r.choice(["best", "best", "torch-spyre"])]
    for name, value in r.sample(sorted(BUILT_IN.items()), r.choice([0, 1, 5, len(BUILT_IN)])):
        part, fit = name.startswith("reduction_cores") or name == "macs_rows_exponent", value <= 0
        scale = r.choice([1, 1, 1e-6, 1e-3, 0.1, 0.5, 2, 10, 1e3, 1e6])
        x = value if fit or name.endswith(("least", "most")) or "by_" in name else value * scale
        out += ["--constant", f"{name}={min(max(x, 1e-3), 1) if part else x if fit else min(max(x, 1e-3), 1e4)!r}"]
    if tiles and r.random() < 0.5:
        name = r.choice(sorted(tiles))
        out += ["--tile", f"{name}:{r.choice([0, 1, -1, tiles[name], -9])}={r.choice([1, 2, 3, 4, 7, 64, 0, 10**18])}"]
    if splits and r.random() < 0.5:
        name = r.choice(sorted(splits))
        out += ["--split", name + "=" + ",".join(str(r.choice([1, 1, 2, 3, 4, 32, 33, 0])) for _ in range(splits[name]))]
    return out


def odd(t, r, complaints):
    name = r.choice(sorted(GRAPHS))
    text, tiles, splits = GRAPHS[name]
    (t / "g.graph").write_text(text)
    out, options = t / "o", odd_options(r, tiles, splits)
    what = f"{name} {' '.join(map(str, options))}"
    p = run("compile", t / "g.graph", "-o", out, "--json", "--verify", "always", *options)
    if p.returncode in (64, 65):
        if not p.stderr.decode().startswith("stickwright:"):
            complaints.append(f"{what}: refused without a reason")
        return "refused"
    if p.returncode:
        complaints.append(f"{what}: exit {p.returncode}: {p.stderr.decode()[-300:]}")
        return "failed"
    result = json.loads(p.stdout)
    bad = invariants.complaints_about(result, None)
    ns = [result["objective"]["predicted_ns"]] + [o["predicted_ns"] for o in result["ops"]]
    bad += [f"times {ns}"] if not all(math.isfinite(x) and x >= 0 for x in ns) else []
    v = run("verify", out, "--model", t / "g.graph")
    bad += [f"verify: {v.stdout.decode()[-200:]}"] if v.returncode else []
    complaints += [f"{what}: {b}" for b in bad]
    return "right"


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--count", type=int, default=40)
    a.add_argument("--seed", type=int, default=1)
    o = a.parse_args()
    r, complaints, tally = random.Random(o.seed), [], {}
    with tempfile.TemporaryDirectory() as t:
        t = pathlib.Path(t)
        built_in(t, complaints)
        one_of_a_stack(t, complaints)
        refused(t, complaints)
        for _ in range(o.count):
            outcome = odd(t, r, complaints)
            tally[outcome] = tally.get(outcome, 0) + 1
    print("\n".join(complaints))
    print(f"{o.count} odd machines: {', '.join(f'{n} {k}' for k, n in sorted(tally.items()))}; {len(complaints)} complaints")
    sys.exit(bool(complaints))


main()
