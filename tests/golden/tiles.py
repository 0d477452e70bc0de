#!/usr/bin/env python3
"""Option tile: what runs in which loops, and that the values are those of the graph without tiles, in both profiles. The
cases are the families of tiling.md 6 (those of which the reference gives wrong numbers or an error among them) and the
reports BR-40 to BR-43; refusals name their reason."""
import concurrent.futures, json, os, pathlib, subprocess, sys, tempfile

SW = os.environ["SW"]


def graph(inputs, body, *returns):
    lines = [f"%{n} : f16[{size}] = input" for n, size in inputs.items()] + body.strip().splitlines()
    return "\n".join(l.strip() for l in lines) + "\nreturn " + ", ".join("%" + r for r in returns) + "\n"


def add(size):
    return graph({"a": size, "b": size}, f"%y : f16[{size}] = aten.add.Tensor(%a,%b)", "y")


def softmax(dim):
    return graph({"x": "128,256"}, f"%y : f16[128,256] = aten._softmax.default(%x,{dim},False)", "y")


MATMUL = graph({"x": "256,512", "w": "512,128"}, "%m : f16[256,128] = aten.mm(%x,%w)\n%y : f16[256,128] = aten.relu(%m)", "y")
MLP = graph({"x": "128,256", "w1": "256,1024", "w2": "1024,256"}, """
    %h : f16[128,1024] = aten.mm(%x,%w1)
    %r : f16[128,1024] = aten.relu(%h)
    %y : f16[128,256] = aten.mm(%r,%w2)""", "y")
SWIGLU = graph({"x": "128,256", "wg": "256,512", "wu": "256,512", "wd": "512,256"}, """
    %g : f16[128,512] = aten.mm(%x,%wg)
    %u : f16[128,512] = aten.mm(%x,%wu)
    %s : f16[128,512] = aten.silu(%g)
    %h : f16[128,512] = aten.mul.Tensor(%s,%u)
    %y : f16[128,256] = aten.mm(%h,%wd)""", "y")
MINIMUM = graph({"x": "64,512"}, "%y : f16[64] = aten.amin(%x,[-1])", "y")
USED_AGAIN = graph({"a": "64,256", "b": "64,256"}, """
    %m : f16[64,1] = aten.amin(%b,[-1],True)
    %n : f16[64,1] = aten.abs(%m)
    %y : f16[64,256] = aten.add.Tensor(%a,%n)""", "y")
KEYS = graph({"s": "2,64,256", "v": "2,256,64"}, "%m : f16[2,64] = aten.amax(%s,[-1])\n%o : f16[2,64,64] = aten.bmm(%s,%v)", "m", "o")
ATTENTION = graph({"q": "1,8,256,64", "k": "1,8,256,64", "v": "1,8,256,64"},
                  "%y : f16[1,8,256,64] = aten.scaled_dot_product_attention(%q,%k,%v)", "y")
LAYER_NORM = graph({"x": "128,512", "w": "512", "b": "512"}, "%y : f16[128,512] = aten.layer_norm(%x,[512],%w,%b)", "y")
IN_PLACE = graph({"x": "128,256", "y": "128,256"}, "%a : f16[128,256] = aten.add_.Tensor(%x,%y)\n%z : f16[128,256] = aten.neg(%a)", "z")
GATHER = "%w : f16[64,128] = input\n%i : i64[32] = input\n%y : f16[32,128] = aten.embedding(%w,%i)\nreturn %y\n"

# name, graph, tiles, and of profile best the turns around each op, in order; or the reason of the refusal
CASES = [
    ("BR-40 tiles of one row", add("1,20,16,64"), "a:1=20", [[20]]),
    ("BR-41 a minimum of four parts", MINIMUM, "x:1=4", [[], [4], [4]]),
    ("BR-42 blocks of rows", graph({"x": "1024,4096"}, "%y : f16[1024,4096] = aten.relu(%x)", "y"), "x:0=2", [[2]]),
    ("BR-43 two reductions of one dim", KEYS, "s:2=4", [[], [], [4], [4], [4], [4]]),
    ("sticks", add("256,512"), "a:1=4", [[4]]),
    ("one dim twice", add("256,512"), "a:0=4 a:0=2", [[4, 2]]),
    ("three levels", add("64,32,128"), "a:0=4 a:1=2 a:2=2", [[4, 2, 2]]),
    ("matmul, K", MATMUL, "x:1=4", [[], [4], [4], []]),
    ("matmul, K in M", MATMUL, "x:0=2 x:1=4", [[2], [2, 4], [2, 4], [2]]),
    ("matmul, M in K", MATMUL, "x:1=4 x:0=2", [[], [4, 2], [4, 2], [2]]),
    ("matmul, N in K in M", MATMUL, "x:0=2 x:1=2 w:1=2", [[2], [2, 2, 2], [2, 2, 2], [2, 2]]),
    ("softmax, rows", softmax(1), "x:0=4", [[4]] * 5),
    ("softmax, reduced sticks", softmax(1), "x:1=4", [[], [4], [4], [], [4], [4], [4], [4], [4]]),
    ("softmax, reduced rows", softmax(0), "x:0=4", [[], [4], [4], [], [4], [4], [4], [4], [4]]),
    ("MLP, rows and columns of the result", MLP, "x:0=2 w2:1=2", [[2], [2], [2, 2]]),
    ("MLP, hidden dim", MLP, "w1:1=4", [[], [4], [4], [4], [4]]),
    ("SwiGLU, one name for both weights", SWIGLU, "x:0=2 wg:1+wu:1=4", [[2]] + [[2, 4]] * 6),
    ("SwiGLU, a name for one of them", SWIGLU, "x:0=2 wg:1=4", None),
    ("a result that is used again", USED_AGAIN, "a:1+b:1=4", [[], [4], [4], [], [4]]),
    ("attention, heads", ATTENTION, "q:1+k:1+v:1=4", None),
    ("attention, queries", ATTENTION, "q:2=2", None),
    ("attention, keys", ATTENTION, "k:2+v:2=2", None),
    ("in place: the sum where x lies, and its reader", IN_PLACE, "x:0=4", [[4], [4]]),
    ("not divisible", add("256,512"), "a:0=3", "a:0=3: 256 of y is not divisible by 3"),
    ("less than a stick", add("256,512"), "a:1=16", "end inside a stick"),
    ("statistics", LAYER_NORM, "x:1=4", "can't be added up tile by tile"),
    ("rows by number", GATHER, "w:1=2", "picks rows by number"),
    ("no such tensor", add("256,512"), "z:0=2", "there is no tensor z"),
    ("no such dim", add("256,512"), "a:2=2", "a has 2 dims"),
    ("no dim", add("256,512"), "a=2", "\"a\" is not a dim of a tensor"),
    ("no number", add("256,512"), "a:0=x", "has no number of tiles"),
    ("two loops of an op", graph({"x": "64,64"}, "%y : f16[64,64] = aten.mm(%x,%x)", "y"), "x:0+x:1=2", "two loops of y walk that dim"),
]


# Tiles that nobody asked for: graph, cores, scratchpad, turns of the loops. 128 KiB where 8 cores have 64: two tiles; where they have
# 160 KB there is no need. The scores of attention take 1 MiB.
AUTOMATIC = [
    ("two ops, no room for all", graph({"x": "256,256"}, "%r : f16[256,256] = aten.relu(%x)\n%y : f16[256,256] = aten.neg(%r)", "y"), 8, 8192, {2}),
    ("two ops, room enough", graph({"x": "256,256"}, "%r : f16[256,256] = aten.relu(%x)\n%y : f16[256,256] = aten.neg(%r)", "y"), 8, 20000, set()),
    ("attention, heads and rows", ATTENTION, 8, 20000, {16}),
    ("attention, heads", ATTENTION, 8, 65536, {8}),
    ("attention, no scratchpad", ATTENTION, 8, 0, set()),
]


# Parts of groups: graph, options, the turns of each op. The matmul that reduces what the others share is left out of their loop.
LONE = graph({"x": "64,512", "w": "512,2048"}, "%y : f16[64,2048] = aten.mm(%x,%w)", "y")
WEIGHTED = graph({"x": "64,256", "m": "64,1", "a": "256,1024", "b": "256,1024", "c": "1024", "d": "1024,128"}, """
    %p : f16[64,1024] = aten.mm(%x,%a)
    %q : f16[64,1024] = aten.mm(%x,%b)
    %r : f16[64,1024] = aten.mul.Tensor(%q,%m)
    %s : f16[64,1024] = aten.add.Tensor(%p,%r)
    %t : f16[64,1024] = aten.add.Tensor(%s,%c)
    %u : f16[64,1024] = aten.relu(%t)
    %y : f16[64,128] = aten.mm(%u,%d)""", "y", "t")
GATED = graph({"x": "256,256", "g": "256,1024", "u": "256,1024", "d": "1024,256"}, """
    %a : f16[256,1024] = aten.mm(%x,%g)
    %b : f16[256,1024] = aten.mm(%x,%u)
    %s : f16[256,1024] = aten.silu(%a)
    %h : f16[256,1024] = aten.mul.Tensor(%s,%b)
    %y : f16[256,256] = aten.mm(%h,%d)""", "y")
PARTS = [
    ("a matmul whose operands are fetched again", LONE, "--cores 8 --constant spill_area=4096", [[4]]),
    ("the same where a core can keep its part", LONE, "--cores 8 --constant spill_area=16384", [[]]),
    ("columns of a sum of products, one of them returned", WEIGHTED, "--cores 8 --lx-bytes 16384", [[4]] * 5 + [[], []]),
    ("the same in single sticks", WEIGHTED, "--cores 8 --lx-bytes 10000 --constant spill_area=2048", [[16]] * 5 + [[], []]),
    ("a gate", GATED, "--lx-bytes 20000 --constant spill_area=512", [[2]] * 4 + [[]]),
]


def judge_part(case):
    name, text, options, want = case
    with tempfile.TemporaryDirectory() as d:
        model, out = pathlib.Path(d, "g.graph"), pathlib.Path(d, "o")
        model.write_text(text)
        p = subprocess.run([SW, "compile", model, "-o", out, "--json", *options.split()], capture_output=True)
        if p.returncode:
            return p.stderr.decode()[-200:]
        r = json.loads(p.stdout)
        o, turns = r["objective"], [[l["turns"] for l in x.get("in_loops", [])] for x in r["ops"]]
        if turns != want:
            return f"{name}: {turns} turns, expected {want}"
        if any(want) and not o["predicted_ns"] < o["without"]["tiles"]:
            return f"{name}: {o['predicted_ns']} ns with tiles, {o['without']['tiles']} without"
        v = subprocess.run([SW, "verify", out, "--model", model], capture_output=True)
        return "" if v.returncode == 0 else f"{name}: verify: " + (v.stdout + v.stderr).decode()[-200:]


def judge_automatic(case):
    """Tiles there are where they are faster, and the plan is never slower than the one without them."""
    name, text, cores, lx, want = case
    with tempfile.TemporaryDirectory() as d:
        model, out = pathlib.Path(d, "g.graph"), pathlib.Path(d, "o")
        model.write_text(text)
        p = subprocess.run([SW, "compile", model, "-o", out, "--json", "--cores", str(cores), "--lx-bytes", str(lx)], capture_output=True)
        if p.returncode:
            return p.stderr.decode()[-200:]
        r = json.loads(p.stdout)
        o, turns = r["objective"], {l["turns"] for x in r["ops"] for l in x.get("in_loops", [])}
        if turns != want:
            return f"{name}: {turns} turns, expected {want}"
        if want and not o["predicted_ns"] < o["without"]["tiles"]:
            return f"{name}: {o['predicted_ns']} ns with tiles, {o['without']['tiles']} without"
        v = subprocess.run([SW, "verify", out, "--model", model], capture_output=True)
        return "" if v.returncode == 0 else f"{name}: verify: " + (v.stdout + v.stderr).decode()[-200:]


def judge(case, profile):
    name, text, tiles, want = case
    with tempfile.TemporaryDirectory() as d:
        model, out = pathlib.Path(d, "g.graph"), pathlib.Path(d, "o")
        model.write_text(text)
        options = [x for t in tiles.split() for x in ("--tile", t)]
        p = subprocess.run([SW, "compile", model, "-o", out, "--json", "--profile", profile, *options], capture_output=True)
        r = json.loads(p.stdout)
        if isinstance(want, str):
            said = " ".join(f["detail"] for f in r["faults"])
            return "" if want in said and not out.exists() else f"{r['status']}: {said}"
        if r["status"] not in ("optimal", "feasible"):  # feasible: a rival's plan is faster
            return f"{r['status']}: {[f['detail'] for f in r['faults']]}"
        turns = [[l["turns"] for l in o.get("in_loops", [])] for o in r["ops"] if ":relayout" not in o["name"]]
        if r["objective"].get("plan_of") == "torch-spyre": # which has copies of its own in the loops: compared as a set
            turns, want = sorted({str(t) for t in turns}), sorted({str(t) for t in want or turns})
        if profile == "best" and want is not None and turns != want:
            return f"turns {turns}, expected {want}"
        if not any(turns):
            return "no loop"
        v = subprocess.run([SW, "verify", out, "--model", model], capture_output=True)
        return "" if v.returncode == 0 else "verify: " + (v.stdout + v.stderr).decode()[-200:]


def main():
    todo = [(c, p) for c in CASES for p in ("best", "torch-spyre")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        bad = [(c[0], p, why) for (c, p), why in zip(todo, pool.map(lambda x: judge(*x), todo)) if why]
        wrong = [why for why in pool.map(judge_automatic, AUTOMATIC) if why] + [why for why in pool.map(judge_part, PARTS) if why]
    for name, profile, why in bad:
        print(f"{name}, {profile}: {why}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(todo) - len(bad)} of {len(todo)} given tiles right, {len(AUTOMATIC + PARTS) - len(wrong)} of {len(AUTOMATIC + PARTS)} automatic ones")
    return 1 if bad or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
