#!/usr/bin/env python3
"""Copies into an input whose source is computed: the op that makes the source writes into the input where that is the same, and
the copy stays where it is not. Every program is executed against the graph's meaning, new contents of the input included.
Reference: layouts.md 4.12, the conditions of its test_copy_back_elision."""
import json, os, pathlib, subprocess, sys, tempfile

SW = os.environ["SW"]
HEAD = """%x : f16[64,128] = input
%w : f16[128,64] = input
%a : f16[64,64] = input
%b : f16[64,64] = input
%c : f16[64,64] = input
"""
MM = "%m : f16[64,64] = aten.mm.default(%x, %w)\n"
COPY = "%k : f16[64,64] = aten.copy_.default(%c, %m)\n"

# name: graph behind HEAD, device ops of profile best, of torch-spyre
CASES = {
    "product": (MM + COPY + "return %a", ["batchmatmul"], ["batchmatmul"]),
    "a sum that can only lie as its operand": ("%m : f16[64,64] = aten.add.Tensor(%a, %a)\n" + COPY + "return %x", ["add"], ["add"]),
    # two layouts would do: once chosen they are alike, but it was a choice
    "a sum of two": ("%m : f16[64,64] = aten.add.Tensor(%a, %b)\n" + COPY + "return %x", ["add"], ["add", "identity"]),
    "the input is read before": ("%r : f16[64,64] = aten.neg.default(%c)\n" + MM + COPY + "return %r", ["neg", "batchmatmul"],
                                 ["neg", "batchmatmul", "identity"]),
    "the input is read in between": (MM + "%r : f16[64,64] = aten.neg.default(%c)\n" + COPY + "return %r",
                                     ["batchmatmul", "neg", "identity"], ["neg", "batchmatmul", "identity"]),
    "the input is read afterwards": (MM + COPY + "%r : f16[64,64] = aten.neg.default(%c)\nreturn %r", ["batchmatmul", "neg"],
                                     ["batchmatmul", "identity", "neg"]),
    "the source is returned": (MM + COPY + "return %m", ["batchmatmul", "identity"], ["batchmatmul", "identity"]),
    "the source has another reader": (MM + COPY + "%r : f16[64,64] = aten.neg.default(%m)\nreturn %r",
                                      ["batchmatmul", "identity", "neg"], ["batchmatmul", "identity", "neg"]),
    "the input is returned": (MM + COPY + "return %c", ["batchmatmul"], ["batchmatmul", "identity"]),
    "the op reads the input where it writes": ("%m : f16[64,64] = aten.mul.Tensor(%c, %a)\n" + COPY + "return %a", ["mul"], ["mul", "identity"]),
    "the op reads the input elsewhere": ("%t : f16[64,64] strides=[1,64] = aten.t.default(%c)\n%m : f16[64,64] = aten.add.Tensor(%t, %a)\n" + COPY +
                                         "return %a", ["ReStickifyOpHBM", "add"], ["ReStickifyOpHBM", "add", "identity"]),
    "a product of the input": ("%m : f16[64,64] = aten.mm.default(%c, %a)\n" + COPY + "return %a", ["batchmatmul", "identity"],
                               ["batchmatmul", "identity"]),
    "a part of the input": (MM + "%s : f16[32,64] = aten.slice.Tensor(%m, 0, 0, 32)\n%v : f16[32,64] = aten.slice.Tensor(%c, 0, 0, 32)\n"
                            "%k : f16[32,64] = aten.copy_.default(%v, %s)\nreturn %a", ["batchmatmul", "identity"], ["batchmatmul", "identity"]),
    "transposed": (MM + "%t : f16[64,64] strides=[1,64] = aten.t.default(%m)\n%k : f16[64,64] = aten.copy_.default(%c, %t)\nreturn %a", None, None),
    "two copies into one input": (MM + COPY + "%n : f16[64,64] = aten.mm.default(%a, %a)\n%l : f16[64,64] = aten.copy_.default(%c, %n)\n"
                                  "return %a", ["batchmatmul"], None),
    "one source, two inputs": (MM + COPY + "%l : f16[64,64] = aten.copy_.default(%a, %m)\nreturn %x", ["batchmatmul", "identity", "identity"], None),
    "over the host": ("%m : f16[64,64] = aten.cumsum.default(%a, 0)\n" + COPY + "return %a", ["identity"], None),
}
PINNED = "pinned to another stick"  # the product's stick is on its columns: the copy moves it


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as d:
        at = pathlib.Path(d)
        cases = [(name, text, profile, ops, []) for name, (text, *both) in CASES.items() for profile, ops in zip(("best", "torch-spyre"), both)]
        cases.append((PINNED, MM + COPY + "return %a", "best", ["batchmatmul", "ReStickifyOpHBM"], ["--pin", "c=order:1,0"]))
        for name, text, profile, ops, options in cases:
            (at / "g.graph").write_text(HEAD + text + "\n")
            p = subprocess.run([SW, "compile", at / "g.graph", "--json", "--profile", profile, "--objective=elements", "--lx=off",
                                "--verify=always", *options], capture_output=True)
            r = json.loads(p.stdout)
            got = [o["device_op"] for o in r["ops"]]
            if r["status"] not in ("optimal", "feasible") or r["verify"]["outcome"] != "agrees":
                wrong.append(f"{name}, {profile}: {r['status']} {r.get('verify')} {p.stderr.decode()[-300:]}")
            elif ops is not None and got != ops:
                wrong.append(f"{name}, {profile}: {got}, expected {ops}")
            if any(s["name"] == "m" for s in r["storages"]) and ops in (["batchmatmul"], ["add"], ["mul"]):
                wrong.append(f"{name}, {profile}: m has memory that nobody touches")
    print("\n".join(wrong) or f"{len(cases)} programs as expected")
    sys.exit(len(wrong) > 0)


main()
