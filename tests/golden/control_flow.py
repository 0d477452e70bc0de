#!/usr/bin/env python3
"""cond and while_loop in profile best: both sides and a choice, copies of the body, or a refusal that says why. What compiles is executed on the
simulated card and compared with the graph as it was (the evaluator takes one side and turns the loop), for two models with PyTorch's values."""
import json, os, pathlib, subprocess, sys, tempfile

SW = os.environ["SW"]
VALUES = pathlib.Path(os.environ["SW_SOURCE"]) / "tests" / "data" / "values"

SIDES = """
    graph @yes {
      %a : f16[4,64] = input
      %e : f16[4,64] = aten.log(%a)
      return %e
    }
    graph @no {
      %a : f16[4,64] = input
      %n : f16[4,64] = aten.mul.Tensor(%a, 2)
      return %n
    }"""
LOOP = """
    graph @more {
      %i : i64[] = input
      %h : f16[4,64] = input
      %c : bool[] = aten.lt.Scalar(%i, TURNS)
      return %c
    }
    graph @step {
      %i : i64[] = input
      %h : f16[4,64] = input
      %j : i64[] = aten.add.Tensor(%i, 1)
      %k : f16[4,64] = aten.mul.Tensor(%h, 0.5)
      return %j, %k
    }
    loop: %n : i64[], %y : f16[4,64] = higher_order.while_loop(@more, @step, [START, %x], [])
    return %n, %y"""
ZERO = "%zero : i64[] = aten.full([], 0, dtype=i64)"
X = "%x : f16[4,64] = input"

RIGHT = {
    "choice by data; the log of numbers below 0 does not leak": [X, "%s : f16[] = aten.sum.default(%x)", "%p : bool[] = aten.gt.Scalar(%s, 100)", SIDES,
        "c: %y : f16[4,64] = higher_order.cond(%p, @yes, @no, [%x])", "return %y"],
    "a predicate that is given": [X, "%p : bool[] = input", SIDES, "c: %y : f16[4,64] = higher_order.cond(%p, @yes, @no, [%x])", "return %y"],
    "a constant predicate": [X, SIDES, "c: %y : f16[4,64] = higher_order.cond(False, @yes, @no, [%x])", "return %y"],
    "a choice that nobody reads": [X, "%p : bool[] = input", SIDES, "c: %y : f16[4,64] = higher_order.cond(%p, @yes, @no, [%x])",
        "%z : f16[4,64] = aten.relu(%y)", "%w : f16[4,64] = aten.neg(%x)", "return %w"],
    "sizes and whole numbers": [X, "%p : bool[] = input", "%i : i64[3] = input", """
    graph @yes {
      %a : f16[4,64] = input
      %b : i64[3] = input
      %t : f16[64,4] strides=[1,64] = aten.t(%a)
      %c : f16[64,4] strides=[1,64] = aten.relu(%t)
      %d : i64[3] = aten.add.Tensor(%b, 1)
      return %c, %d
    }
    graph @no {
      %a : f16[4,64] = input
      %b : i64[3] = input
      %c : f16[64,4] = aten.full([64, 4], 3, dtype=f16)
      %d : i64[3] = aten.neg(%b)
      return %c, %d
    }""", "c: %y : f16[64,4] strides=[1,64], %j : i64[3] = higher_order.cond(%p, @yes, @no, [%x, %i])", "return %y, %j"],
    "a choice in a choice": [X, "%p : bool[] = input", "%q : bool[] = input", """
    graph @yes {
      %a : f16[4,64] = input
      %r : bool[] = input
      graph @left {
        %b : f16[4,64] = input
        %c : f16[4,64] = aten.neg(%b)
        return %c
      }
      graph @right {
        %b : f16[4,64] = input
        %c : f16[4,64] = aten.exp(%b)
        return %c
      }
      d: %e : f16[4,64] = higher_order.cond(%r, @left, @right, [%a])
      %f : f16[4,64] = aten.add.Tensor(%e, 1)
      return %f
    }
    graph @no {
      %a : f16[4,64] = input
      %r : bool[] = input
      %n : f16[4,64] = aten.mul.Tensor(%a, 2)
      return %n
    }""", "c: %y : f16[4,64] = higher_order.cond(%p, @yes, @no, [%x, %q])", "return %y"],
    "three turns": [X, ZERO, LOOP.replace("TURNS", "3").replace("START", "%zero")],
    "no turn": [X, ZERO, LOOP.replace("TURNS", "0").replace("START", "%zero")],
    "a choice in a loop, by the parity of its counter": [X, ZERO, """
    graph @more {
      %i : i64[] = input
      %h : f16[4,64] = input
      %c : bool[] = aten.lt.Scalar(%i, 4)
      return %c
    }
    graph @step {
      %i : i64[] = input
      %h : f16[4,64] = input
      %j : i64[] = aten.add.Tensor(%i, 1)
      %m : i64[] = aten.remainder.Scalar(%i, 2)
      %p : bool[] = aten.eq.Scalar(%m, 0)
      graph @even {
        %b : f16[4,64] = input
        %c : f16[4,64] = aten.add.Tensor(%b, 1)
        return %c
      }
      graph @odd {
        %b : f16[4,64] = input
        %c : f16[4,64] = aten.mul.Tensor(%b, 0.5)
        return %c
      }
      d: %k : f16[4,64] = higher_order.cond(%p, @even, @odd, [%h])
      return %j, %k
    }
    loop: %n : i64[], %y : f16[4,64] = higher_order.while_loop(@more, @step, [%zero, %x], [])
    return %n, %y"""],
}

REFUSED = {
    "the turns depend on data": ([X, "%i : i64[] = input", LOOP.replace("TURNS", "3").replace("START", "%i")], "unsupported", "depends on data"),
    "a loop without an end": ([X, ZERO, LOOP.replace("TURNS", "1000000000").replace("START", "%zero")], "limit", "1000 times"),
    "a write into an operand": ([X, "%p : bool[] = input", SIDES.replace("%e : f16[4,64] = aten.log(%a)", "%v : f16[64,4] strides=[1,64] = aten.t(%a)\n"
        "%o : f16[64,4] strides=[1,64] = aten.mul_.Tensor(%v, 2)\n%e : f16[4,64] = aten.log(%a)"),
        "c: %y : f16[4,64] = higher_order.cond(%p, @yes, @no, [%x])", "return %y"], "unsupported", "writes into an operand (o)"),
    "rows that might not be there": ([X, "%p : bool[] = input", "%i : i64[4] = input", """
    graph @yes {
      %a : f16[4,64] = input
      %r : i64[4] = input
      %e : f16[4,64] = aten.index_select(%a, 0, %r)
      return %e
    }
    graph @no {
      %a : f16[4,64] = input
      %r : i64[4] = input
      %n : f16[4,64] = aten.mul.Tensor(%a, 2)
      return %n
    }""", "c: %y : f16[4,64] = higher_order.cond(%p, @yes, @no, [%x, %i])", "return %y"], "unsupported", "e (aten.index_select.default) may fail"),
    "a predicate that is no bool": ([X, "%p : i64[] = input", SIDES, "c: %y : f16[4,64] = higher_order.cond(%p, @yes, @no, [%x])", "return %y"], "unsupported",
                                    "no tensor of bool"),
}


def text(lines):
    return "\n".join(line.strip() for part in lines for line in part.strip().splitlines()) + "\n"


def compiled(model, folder, *options):
    p = subprocess.run([SW, "compile", model, "-o", folder, "--json", *options], capture_output=True, text=True)
    return json.loads(p.stdout) if p.stdout else {"status": p.stderr, "faults": []}


def main():
    bad = []
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)

        def executed(what, model, io=None):
            folder = d / f"r{len(list(d.iterdir()))}"
            result = compiled(model, folder)
            if result["status"] not in ("optimal", "feasible"):
                bad.append(f"{what}: {result['status']} {result['faults']}")
                return
            p = subprocess.run([SW, "verify", folder, "--model", model, *(["--inputs", io] if io else [])], capture_output=True, text=True)
            if p.returncode:
                bad.append(f"{what}: {p.stdout}{p.stderr}")
        for name in "cond_graph", "while_graph":
            for file in f"{name}.pt2", f"{name}.core.pt2":
                executed(file, VALUES / file, VALUES / f"{name}.io.json")
        for what, lines in RIGHT.items():
            model = d / "model.graph"
            model.write_text(text(lines))
            executed(what, model)
        for what, (lines, status, words) in REFUSED.items():
            model = d / "model.graph"
            model.write_text(text(lines))
            result = compiled(model, d / "refused")
            said = " / ".join(f"{f['node']}: {f['detail']}" for f in result["faults"])
            if result["status"] != status or words not in said or (d / "refused").exists():
                bad.append(f"{what}: {result['status']}, {said}")
    print(*bad, sep="\n")
    print(f"{4 + len(RIGHT)} programs, {len(REFUSED)} refusals, {len(bad)} not as they must be")
    return len(bad) > 0


sys.exit(main())
