"""Casts between float16 and float32 at widths that are no whole pairs of float32 sticks: what is compiled is executed on the
simulated card and compared with the graph's own meaning; `right` says where it must be, elsewhere a refusal will do."""
import concurrent.futures, os, pathlib, sys

sys.path.insert(0, str(pathlib.Path(os.environ["SW_SOURCE"], "tests", "property")))
from random_graphs import judge  # noqa: E402

WIDTHS = (16, 32, 40, 64, 96, 100, 130)
NONE = ()

# name, the widths W at which it must be right, graph
CASES = [
    ("up and down", WIDTHS, """
        %x : f16[8,W] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %y : f16[8,W] = aten.to.dtype(%u, f16)
        return %y"""),
    ("up", WIDTHS, """
        %x : f16[8,W] = input
        %y : f32[8,W] = aten.to.dtype(%x, f32)
        return %y"""),
    ("down", WIDTHS, """
        %x : f32[8,W] = input
        %y : f16[8,W] = aten.to.dtype(%x, f16)
        return %y"""),
    ("computed, then down", WIDTHS, """
        %x : f32[8,W] = input
        %s : f32[8,W] = aten.mul.Tensor(%x, %x)
        %y : f16[8,W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("computed, down, computed", WIDTHS, """
        %x : f32[8,W] = input
        %s : f32[8,W] = aten.mul.Tensor(%x, %x)
        %h : f16[8,W] = aten.to.dtype(%s, f16)
        %y : f16[8,W] = aten.exp.default(%h)
        return %y"""),
    ("computed, down, summed", NONE, """
        %x : f32[8,W] = input
        %s : f32[8,W] = aten.mul.Tensor(%x, %x)
        %h : f16[8,W] = aten.to.dtype(%s, f16)
        %e : f16[8,W] = aten.abs.default(%h)
        %y : f16[8] = aten.sum.dim_IntList(%e, [1])
        return %y"""),
    ("exp between casts", WIDTHS, """
        %x : f16[8,W] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %e : f32[8,W] = aten.exp.default(%u)
        %y : f16[8,W] = aten.to.dtype(%e, f16)
        return %y"""),
    ("two operands between casts", WIDTHS, """
        %x : f16[8,W] = input
        %w : f16[8,W] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %v : f32[8,W] = aten.to.dtype(%w, f32)
        %s : f32[8,W] = aten.mul.Tensor(%u, %v)
        %t : f32[8,W] = aten.add.Tensor(%s, %u)
        %y : f16[8,W] = aten.to.dtype(%t, f16)
        return %y"""),
    ("vector", WIDTHS, """
        %x : f16[W] = input
        %u : f32[W] = aten.to.dtype(%x, f32)
        %s : f32[W] = aten.add.Tensor(%u, %u)
        %y : f16[W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("three dims", WIDTHS, """
        %x : f16[2,3,W] = input
        %u : f32[2,3,W] = aten.to.dtype(%x, f32)
        %s : f32[2,3,W] = aten.sqrt.default(%u)
        %y : f16[2,3,W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("row operand", WIDTHS, """
        %x : f16[8,W] = input
        %w : f16[W] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %v : f32[W] = aten.to.dtype(%w, f32)
        %s : f32[8,W] = aten.mul.Tensor(%u, %v)
        %y : f16[8,W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("sum down the rows", WIDTHS, """
        %x : f16[8,W] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %s : f32[W] = aten.sum.dim_IntList(%u, [0])
        %y : f16[W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("mean along the row", WIDTHS, """
        %x : f16[8,W] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %s : f32[8,1] = aten.mean.dim(%u, [1], True)
        %y : f16[8,1] = aten.to.dtype(%s, f16)
        return %y"""),
    ("amax along the row of 3-d", WIDTHS, """
        %x : f16[2,8,W] = input
        %u : f32[2,8,W] = aten.to.dtype(%x, f32)
        %s : f32[2,8] = aten.amax.default(%u, [2])
        %y : f16[2,8] = aten.to.dtype(%s, f16)
        return %y"""),
    ("sum of float32 rows", NONE, """
        %x : f32[8,W] = input
        %s : f32[8] = aten.sum.dim_IntList(%x, [1])
        %y : f16[8] = aten.to.dtype(%s, f16)
        return %y"""),
    ("sum of float32 columns", WIDTHS, """
        %x : f32[8,W] = input
        %s : f32[W] = aten.sum.dim_IntList(%x, [0])
        %y : f16[W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("softmax in float32", WIDTHS, """
        %x : f16[8,W] = input
        %s : f32[8,W] = aten.softmax.int(%x, 1, f32)
        %y : f16[8,W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("rmsnorm", WIDTHS, """
        %x : f16[8,W] = input
        %w : f16[W] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %q : f32[8,W] = aten.mul.Tensor(%u, %u)
        %m : f32[8,1] = aten.mean.dim(%q, [1], True)
        %e : f32[8,1] = aten.add.Scalar(%m, 1e-5)
        %r : f32[8,1] = aten.rsqrt.default(%e)
        %n : f32[8,W] = aten.mul.Tensor(%u, %r)
        %h : f16[8,W] = aten.to.dtype(%n, f16)
        %y : f16[8,W] = aten.mul.Tensor(%h, %w)
        return %y"""),
    ("transposed", WIDTHS, """
        %x : f16[W,8] = input
        %t : f16[8,W] = aten.t.default(%x)
        %u : f32[8,W] = aten.to.dtype(%t, f32)
        %s : f32[8,W] = aten.add.Tensor(%u, %u)
        %y : f16[8,W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("part of the rows, up", NONE, """
        %x : f16[8,256] = input
        %u : f32[8,256] = aten.to.dtype(%x, f32)
        %p : f32[8,W] = aten.slice.Tensor(%u, 1, 32, 32 + W)
        %s : f32[8,W] = aten.add.Tensor(%p, %p)
        %y : f16[8,W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("first part of the rows", NONE, """
        %x : f16[8,256] = input
        %u : f32[8,256] = aten.to.dtype(%x, f32)
        %p : f32[8,W] = aten.slice.Tensor(%u, 1, 0, W)
        %s : f32[8,W] = aten.exp.default(%p)
        %y : f16[8,W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("joined in float32", NONE, """
        %x : f16[8,W] = input
        %z : f16[8,64] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %v : f32[8,64] = aten.to.dtype(%z, f32)
        %c : f32[8,W + 64] = aten.cat.default([%u, %v], 1)
        %y : f16[8,W + 64] = aten.to.dtype(%c, f16)
        return %y"""),
    ("rows laid end to end", NONE, """
        %x : f16[8,W] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %f : f32[8 * W] = aten.view.default(%u, [8 * W])
        %s : f32[8 * W] = aten.abs.default(%f)
        %y : f16[8 * W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("product with what was computed in float32", NONE, """
        %x : f16[8,W] = input
        %k : f16[W,64] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %e : f32[8,W] = aten.exp.default(%u)
        %h : f16[8,W] = aten.to.dtype(%e, f16)
        %y : f16[8,64] = aten.mm.default(%h, %k)
        return %y"""),
    ("sum of all", NONE, """
        %x : f16[8,W] = input
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %q : f32[8] = aten.sum.dim_IntList(%u, [1])
        %s : f32[] = aten.sum.dim_IntList(%q, [0])
        %y : f16[] = aten.to.dtype(%s, f16)
        return %y"""),
    ("softmax down the columns", WIDTHS, """
        %x : f16[8,W] = input
        %s : f32[8,W] = aten.softmax.int(%x, 0, f32)
        return %s"""),
    ("float32 and its cast both wanted", WIDTHS, """
        %x : f32[8,W] = input
        %s : f32[8,W] = aten.mul.Tensor(%x, %x)
        %y : f16[8,W] = aten.to.dtype(%s, f16)
        return %s, %y"""),
    ("weights", NONE, """
        %x : f16[8,W] = input
        %w : f32[W] = parameter
        %u : f32[8,W] = aten.to.dtype(%x, f32)
        %s : f32[8,W] = aten.mul.Tensor(%u, %w)
        %y : f16[8,W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("written in place", WIDTHS, """
        %x : f32[8,W] = input
        %a : f16[8,W] = input
        %s : f32[8,W] = aten.mul.Tensor(%x, %x)
        %u : f32[8,W] = aten.to.dtype(%a, f32)
        %t : f32[8,W] = aten.add_.Tensor(%s, %u)
        %y : f16[8,W] = aten.to.dtype(%s, f16)
        return %y"""),
    ("down and up again", WIDTHS, """
        %x : f32[8,W] = input
        %s : f32[8,W] = aten.mul.Tensor(%x, %x)
        %h : f16[8,W] = aten.to.dtype(%s, f16)
        %u : f32[8,W] = aten.to.dtype(%h, f32)
        %y : f32[8,W] = aten.add.Tensor(%u, %x)
        return %y"""),
    ("columns of float32 sums", WIDTHS, """
        %x : f16[W,8,4] = input
        %u : f32[W,8,4] = aten.to.dtype(%x, f32)
        %s : f32[W] = aten.sum.dim_IntList(%u, [1, 2])
        %r : f32[W] = aten.sqrt.default(%s)
        %y : f16[W] = aten.to.dtype(%r, f16)
        return %y"""),
]


def graph(text, width):
    for e in ("32 + W", "W + 64", "8 * W"):
        text = text.replace(e, str(eval(e, {"W": width})))
    return "".join(line.strip().replace("W", str(width)) + "\n" for line in text.strip().splitlines())


def main():
    only = sys.argv[1:]
    todo = [(n, w, p, w in right and p == "best", graph(g, w)) for n, right, g in CASES for w in WIDTHS for p in ("best", "torch-spyre")
            if not only or n in only]
    options = ["--precision=strict"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda t: judge(t[4], t[2], options), todo))
    wrong = 0
    for (name, width, profile, must, _), (verdict, why) in zip(todo, results):
        bad = verdict == "WRONG" or (must and verdict != "right")
        wrong += bad
        if bad or os.environ.get("SW_VERBOSE"):
            print(f"{verdict} {name}, {width} lanes, {profile}: {why[:200]}")
    print(f"casts: {len(todo)} graphs, {sum(v == 'right' for v, _ in results)} right, "
          f"{sum(v == 'refused' for v, _ in results)} refused, {wrong} not as they must be")
    return wrong > 0


sys.exit(main())
