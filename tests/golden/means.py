#!/usr/bin/env python3
"""What profile best does where no conversion of a stick helps: matrices of zeros and ones, inputs laid out twice, ends of
rows made -inf, writes through whole rows, products by every expert, look-ups by a counter. Each graph is compiled, its
device ops are those worked out by hand, and the written files are executed against the graph's meaning.

And what a runtime must refuse: row numbers that name no row."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

SW = os.environ["SW"]
failed = []


def check(what, got, want):
    if got != want:
        failed.append(what)
        print(f"{what}: {got}, expected {want}")


def compile_(what, text, t, *options):
    graph, out = t / f"{what}.graph", t / what
    graph.write_text(text)
    r = subprocess.run([SW, "compile", graph, "-o", out, "--json", *options], capture_output=True)
    return graph, out, json.loads(r.stdout)


def best(what, text, t, has=(), lacks=(), host=0):
    """Compiles, looks for device ops, counts host steps, executes."""
    graph, out, r = compile_(what, text, t)
    check(what + ": status", (r["status"], [f["detail"] for f in r["faults"]]), ("optimal", []))
    if r["status"] != "optimal":
        return r, out
    ops = [o["device_op"] for o in r["ops"]]
    for op, n in has:
        check(f"{what}: {op}", ops.count(op), n)
    for op in lacks:
        check(f"{what}: {op}", ops.count(op), 0)
    check(what + ": host steps", len(r["host_steps"]), host)
    v = subprocess.run([SW, "verify", out, "--model", graph], capture_output=True)
    check(what + ": verify", (v.returncode, v.stdout.decode() if v.returncode else ""), (0, ""))
    return r, out


def constants(out):
    return {p.name.split("_", 1)[1]: p.read_bytes() for p in out.glob("constants/*")}


def numbers(halves):
    """Positions of the ones among 16-bit zeros and ones."""
    values = struct.unpack(f"<{len(halves) // 2}H", halves)
    assert set(values) <= {0, 0x3c00}, set(values)
    return [i for i, v in enumerate(values) if v]


# One row of 128 columns as 4 heads of 32: column 32h + d is element d of head h. The matrix is S[h,d,k], k = 32h + d.
HEADS = """%x : f16[1,64] = input
%w : f16[64,128] = parameter
%v : f16[32] = parameter
%p : f16[1,128] = aten.mm(%x, %w)
%h : f16[1,4,32] = aten.view(%p, [1,4,32])
%y : f16[1,4,32] = aten.mul.Tensor(%h, %v)
return %y
"""
# And back: 4 heads of 32 as one row, which a product sums over. S[h,n,k] with n = 32h + k, then a sum over h.
ROW = """%x : f16[4,1,32] = input
%e : f16[4,1,32] = aten.relu(%x)
%t : f16[1,4,32] = aten.permute(%e, [1,0,2])
%f : f16[1,128] = aten.view(%t, [1,128])
%w : f16[128,64] = parameter
%y : f16[1,64] = aten.mm(%f, %w)
return %y
"""
# Columns 12 to 19 of a product, one value a stick: sum over k of (k == 12 + j ? x[k] : 0), since float32
# rows with the stick on their 64 columns can't be converted.
ALONE = """%x : f16[1,64] = input
%w : f16[64,20] = parameter
%n : f32[8,64] = input
%p : f16[1,20] = aten.mm(%x, %w)
%c : f16[1,8] = aten.slice.Tensor(%p, 1, 12, 20)
%f : f32[1,8] = aten._to_copy(%c, dtype=f32)
%t : f32[8,1] = aten.t(%f)
%y : f32[8,64] = aten.mul.Tensor(%n, %t)
return %y
"""
# A column as the first operand of a product: one element a stick can't be gathered on the device, the loader can lay the
# input out as it is wanted.
COLUMN = """%a : f16[65,1] = input
%b : f16[65,65] = input
%t : f16[1,65] = aten.t(%a)
%y : f16[1,65] = aten.mm(%t, %b)
return %y
"""
# float32 has no conversion: the transposed input is laid out twice.
FLOAT = """%a : f32[128,256] = input
%b : f32[256,128] = input
%t : f32[256,128] = aten.t(%a)
%y : f32[256,128] = aten.add.Tensor(%t, %b)
return %y
"""
# 100 columns are 2 sticks of which 28 lanes are nobody's: where(mask, x, -inf) in front of the search.
SEARCH = """%x : f16[1,100] = input
%n : f16[1,100] = aten.neg(%x)
topk: %v : f16[1,2], %i : i64[1,2] = aten.topk(%n, 2)
return %v
"""
# Rows 60 to 63 and columns 100 to 127 both start inside a stick.
PAD = """%x : f16[60,100] = input
%e : f16[60,100] = aten.relu(%x)
%y : f16[64,128] = aten.constant_pad_nd(%e, [0,28,0,4], 1.5)
return %y
"""
CAT = """%a : f16[1,30] = input
%b : f16[1,50] = input
%m : f16[1,30] = aten.relu(%a)
%n : f16[1,50] = aten.relu(%b)
%y : f16[1,80] = aten.cat([%m, %n], -1)
return %y
"""
# 8 rows by 3 experts: three products and three choices, no gather of 8 matrices.
EXPERTS = """%w : f16[3,128,64] = parameter
%rows : i64[8] = input
%x : f16[8,64] = input
%g : f16[8,128,64] = aten.index.Tensor(%w, [%rows])
%c : f16[8,64,1] = aten.unsqueeze(%x, -1)
%p : f16[8,128,1] = aten.bmm(%g, %c)
%y : f16[8,128] = aten.squeeze.dim(%p, -1)
return %y
"""
# Two rows of 3 experts: the gather is cheaper.
FEW = EXPERTS.replace("[8", "[2")
# The counter is a row number of a cache of 16 rows, so it is one of 0 to 15: row r of the mask's table has r + 1 ones, the
# next position is r + 1, twice.
COUNTER = """%pos : i64[1] = input
%cache : f16[16,64] = input
%k : f16[1,64] = input
%at : i64[16] = aten.arange(16)
%mask : bool[16] = aten.le.Tensor(%at, %pos)
%new : f16[16,64] = aten.index_copy(%cache, 0, %pos, %k)
%zero : f16[16] = aten.full([16], 0.0, dtype=f16)
%one : f16[16] = aten.full([16], 1.0, dtype=f16)
%m : f16[16] = aten.where.self(%mask, %one, %zero)
%next : i64[1] = aten.add.Tensor(%pos, 1)
return %new, %m, %next
"""
# Not a row number of anything: it may be any integer.
FREE = COUNTER.replace("aten.index_copy(%cache, 0, %pos, %k)", "aten.mul.Tensor(%cache, %k)")
FP8 = """%x : f8e4m3[128,256] = input
%w : f8e4m3[128,256] = parameter
%s : f16[] = input
%t : f8e4m3[256,128] = aten.t(%w)
%y : f16[128,128] = aten._scaled_mm(%x, %t, %s, %s, out_dtype=f16)
return %y
"""
# (a + ib)(c + id) = ac - bd + i(ad + bc), on the even and odd columns of 8.
COMPLEX = """%x : f32[4,8] = input
%y : f32[4,8] = input
%a : f32[4,4,2] = aten.view(%x, [4,4,2])
%b : f32[4,4,2] = aten.view(%y, [4,4,2])
%c : c64[4,4] = aten.view_as_complex(%a)
%d : c64[4,4] = aten.view_as_complex(%b)
%z : c64[4,4] = aten.mul.Tensor(%c, %d)
%r : f32[4,4,2] = aten.view_as_real(%z)
return %r
"""
# 16 of 64 filters a group are no whole stick, and no layout of the filters has a group of its own on the stick.
GROUPS = """%x : f16[1,32,8,8] = input
%w : f16[64,8,3,3] = parameter
%y : f16[1,64,6,6] = aten.convolution(%x, %w, None, [1,1], [0,0], [1,1], False, [0,0], 4)
return %y
"""


def lanes(t):
    r, out = best("heads", HEADS, t, [("batchmatmul", 2), ("mul", 1)], ["ReStickifyOpHBM", "identity"])
    ones = [p for n, p in constants(out).items() if n.startswith("selection")]
    check("heads: matrix", numbers(ones[0]), [(32 * h + d) * 128 + 32 * h + d for h in range(4) for d in range(32)])
    r, out = best("row", ROW, t, [("batchmatmul", 2), ("sum", 1)])
    ones = [p for n, p in constants(out).items() if n.startswith("selection")]
    check("row: matrix", numbers(ones[0]), [(128 * h + 32 * h + k) * 32 + k for h in range(4) for k in range(32)])
    r, out = best("alone", ALONE, t, [("where3", 1), ("sum", 1)])
    ones = [p for n, p in constants(out).items() if n.startswith("selection")]
    check("alone: mask", [i for i, b in enumerate(ones[0]) if b], [20 * j + 12 + j for j in range(8)])
    best("groups", GROUPS, t, [("batchmatmul", 2)], host=1)  # the windows are laid out by the host


def inputs(t):
    for what, text in ("column", COLUMN), ("float", FLOAT):
        r, out = best(what, text, t, lacks=["ReStickifyOpHBM"])
        sources = [b["source"] for b in json.loads((out / "manifest.json").read_text())["buffers"]]
        check(what + ": loaded again", (len(sources), sum("laid out a second time" in w for w in r["warnings"])),
              (len(sources), 1))
        _, _, r = compile_(what + "_ts", text, t, "--profile", "torch-spyre")
        check(what + ": torch-spyre", r["status"], "infeasible")


def rows_and_ends(t):
    r, out = best("search", SEARCH, t, [("where3", 1), ("topkvalue", 1)])
    mask = next(p for n, p in constants(out).items() if n.startswith("ends"))
    check("search: mask", mask, bytes([1]) * 100)
    best("pad", PAD, t, [("batchmatmul", 1)])
    best("cat", CAT, t, [("batchmatmul", 2), ("where3", 1)])


def products(t):
    best("experts", EXPERTS, t, [("batchmatmul", 3), ("where3", 3)], host=1)  # which row asks for which expert
    best("few", FEW, t, lacks=["where3"])
    best("complex", COMPLEX, t, [("mul", 4), ("sub", 1), ("add", 1)])
    _, _, r = compile_("complex_sum", COMPLEX.replace("mul.Tensor", "add.Tensor"), t)
    check("complex sum", [f["detail"] for f in r["faults"]], ["aten.add.Tensor: the device has no complex numbers"])
    best("fp8", FP8, t, [("fp8todl16", 2), ("batchmatmul", 1)], ["batchmatmulfp8"])


def look_ups(t):
    _, out = best("counter", COUNTER, t)
    tables = constants(out)
    mask = next(p for n, p in tables.items() if n.startswith("mask"))
    check("counter: mask", mask, b"".join(bytes([1]) * (r + 1) + bytes(15 - r) for r in range(16)))
    following = next(p for n, p in tables.items() if n.startswith("next"))
    check("counter: next", struct.unpack("<32q", following), tuple(r + 1 for r in range(16) for _ in range(2)))
    ranges = {b["source"]: b.get("index_range") for b in json.loads((out / "manifest.json").read_text())["buffers"]}
    check("counter: index_range", ranges["pos"], 16)
    best("free", FREE, t, host=2)


ROTATION = """%x : f16[4,64] = input
%a : f16[4,32] strides=[64,1] = aten.slice.Tensor(%x, 1, 0, 32)
%b : f16[4,32] strides=[64,1] offset=32 = aten.slice.Tensor(%x, 1, 32, 64)
%n : f16[4,32] = aten.neg(%b)
%y : f16[4,64] = aten.cat([%n, %a], 1)
return %y
"""
# Rows of a parameter are finite: the user gives integers alone.
ROTATED_ROWS = """%w : f16[10,64] = parameter
%i : i64[4] = input
%x : f16[4,64] = aten.embedding(%w, %i)
""" + ROTATION.split("\n", 1)[1]


def infinities(t):
    """A product with zeros and ones makes NaN of infinity x 0: such products are named, and precision strict does without."""
    matrices = "selection", "shift", "half_turn"  # of halves: a 1 is 0x3c00; what a where3 chooses by is bool
    by_product = lambda out: any(n.startswith(matrices) and 0x3c in data for n, data in constants(out).items())
    for what, text in ("heads", HEADS), ("pad", PAD), ("cat", CAT), ("rotation", ROTATION):
        for precision, expected in ("device", True), ("strict", False):
            name = f"{what}_{precision}"
            _, out, r = compile_(name, text, t, "--precision", precision)
            check(name + ": status", r["status"], "optimal")
            check(name + ": products", by_product(out), expected)
            check(name + ": warned", any("precision: node" in w and "finite numbers" in w for w in r["warnings"]), expected)
    _, out, r = compile_("rotated_rows", ROTATED_ROWS, t, "--precision", "strict")
    check("rotated rows", (r["status"], by_product(out), r["warnings"]), ("optimal", True, []))
    # Row 1 has an infinity in column 40, which becomes that of column 8 with the other sign.
    x = [[(64 * r + c) % 7 for c in range(64)] for r in range(4)]
    x[1][40] = float("-inf")
    y = [[-v for v in row[32:]] + row[:32] for row in x]
    for name, rows in ("x", x), ("y", y):
        (t / name).write_bytes(struct.pack("<256e", *[v for row in rows for v in row]))
    half = lambda file: {"order": 0, "file": file, "dtype": "float16", "shape": [4, 64], "strides": [64, 1]}
    (t / "rotation.io.json").write_text(json.dumps({
        "name": "rotation", "inputs": [{"name": "x", **half("x")}], "buffers_after": [], "user_inputs_after": [],
        "outputs": [{"graph_dtype": "float16", "atol": 0, "rtol": 0, **half("y")}]}))
    for precision, code, says in ("strict", 0, "agrees"), ("device", 1, "differs in 63 of 256"):
        v = subprocess.run([SW, "verify", t / f"rotation_{precision}", "--model", t / f"rotation_{precision}.graph",
                            "--inputs", t / "rotation.io.json"], capture_output=True, text=True)
        check(f"rotation of an infinity, {precision}", (v.returncode, says in v.stdout), (code, True))


GATHER = """%rows : i64[5] = input
%w : f16[10,64] = input
%y : f16[5,64] = aten.embedding(%w, %rows)
return %y
"""


# x[-1] is the last row; an embedding, whose rows are looked up just so, has no row -1.
INDEXED = GATHER.replace("aten.embedding(%w, %rows)", "aten.index.Tensor(%w, [%rows])")
# The end of a table of 10 rows is not that of one of 20; and numbers that are seen elsewhere stay as they are.
TWO_ENDS = INDEXED.replace("return %y", "%v : f16[20,64] = input\n%z : f16[5,64] = aten.index.Tensor(%v, [%rows])\nreturn %y, %z")
SEEN = INDEXED.replace("return %y", "return %y, %rows")
PUT = """%rows : i64[2] = input
%w : f16[10,64] = input
%u : f16[2,64] = input
%y : f16[10,64] = aten.index_put(%w, [%rows], %u)
return %y
"""
# 0, 1, 4, 9, 6, less 10: row numbers that are known count from the end when they are compiled.
KNOWN = """%w : f16[10,64] = input
%a : i64[5] = aten.arange(5)
%s : i64[5] = aten.mul.Tensor(%a, %a)
%b : i64[5] = aten.remainder.Scalar(%s, 10)
%rows : i64[5] = aten.sub.Tensor(%b, 10)
%y : f16[5,64] = aten.index.Tensor(%w, [%rows])
return %y
"""


def refusals(t):
    for what, text, from_end in (("embedding", GATHER, None), ("indexed", INDEXED, True), ("two_ends", TWO_ENDS, None),
                                 ("seen", SEEN, None), ("put", PUT, True)):
        _, out, _ = compile_(what, text, t)
        rows = next(b for b in json.loads((out / "manifest.json").read_text())["buffers"] if b["source"] == "rows")
        check(what + ": from the end", (rows["index_range"], rows.get("index_from_end")), (10, from_end))
    best("known", KNOWN, t)
    (t / "w").write_bytes(struct.pack("<640e", *[i // 64 for i in range(640)]))  # row r holds r
    entry = lambda n, file, dtype, shape: {"order": n, "file": file, "dtype": dtype, "shape": shape, "strides": [shape[-1], 1][-len(shape):]}
    io = {"name": "gather", "buffers_after": [], "user_inputs_after": [],
          "inputs": [{"name": "rows", **entry(0, "rows", "int64", [5])}, {"name": "w", **entry(1, "w", "float16", [10, 64])}],
          "outputs": [{"graph_dtype": "float16", "atol": 0.001, "rtol": 0.001, **entry(0, "y", "float16", [5, 64])}]}
    (t / "gather.io.json").write_text(json.dumps(io))
    for what, bad, rows in (("embedding", None, [0, 9, 3, 1, 2]), ("embedding", -1, [0, 9, 3, -1, 2]), ("embedding", 10, [0, 10, 3, 1, 2]),
                            ("indexed", None, [0, -10, 3, -1, 2]), ("indexed", 10, [0, 10, 3, 1, 2]), ("indexed", -1, [0, 9, 3, -11, 2])):
        (t / "rows").write_bytes(struct.pack("<5q", *rows))
        (t / "y").write_bytes(struct.pack("<320e", *[r % 10 for r in rows for _ in range(64)]))
        v = subprocess.run([SW, "verify", t / what, "--model", t / f"{what}.graph", "--inputs", t / "gather.io.json"],
                           capture_output=True, text=True)
        said = f"rows holds row number {bad}, and there are rows 0 to 9" in v.stderr
        check(f"{what}: row numbers {rows}", (v.returncode, said), (65, True) if bad is not None else (0, False))


# What a value was made of says nothing any more once somebody has written into it: y reads b, and w(x) * x the new x.
WRITTEN = """%a : f16[4,64] = input
%b : f16[4,64] = input
%w : f16[64,64] = input
%p : f16[4,64] = aten.relu(%a)
%c : f16[4,64] = aten.clone(%p)
%d : f16[4,64] = aten.copy_(%c, %b)
%y : f16[4,64] = aten.mm(%c, %w)
%z : f16[4,64] = aten.mm(%p, %w)
return %y, %z
"""
WRITTEN_BETWEEN = """%h : f16[4,64] = input
%x : f32[4,64] = aten._to_copy(%h, dtype=f32)
%s : f32[4,64] = aten.sigmoid(%x)
%n : f32[4,64] = aten.add_.Scalar(%x, 1.0)
%m : f32[4,64] = aten.mul.Tensor(%x, %s)
%y : f16[4,64] = aten._to_copy(%m, dtype=f16)
return %y
"""
# A step of three over 80 columns has no layout at either end: the host copies it.
STEPS = """%x : f16[4,80] = input
%s : f16[4,27] = aten.slice.Tensor(%x, 1, 0, 80, 3)
%y : f16[4,27] = aten.add.Scalar(%s, 1.0)
return %y
"""


# 40 row numbers are no whole stick: rounded up to 64, the last 24 would write row 0.
ROWS = """%x : f16[16,COLS] = input
%i : i64[40] = input
%v : f16[1,COLS] = input
%e : f16[40,COLS] = aten.expand(%v, [40, COLS])
%y : f16[16,COLS] = aten.index_put(%x, [%i], %e)
return %y
"""


# A constant of one number leaves as the graph says, [5,2,16] by steps of 16, 80 and 1.
TURNED = """%f : f16[2,5,16] = aten.full([2, 5, 16], 0.5)
%y : f16[5,2,16] strides=[16,80,1] = aten.permute(%f, [1, 0, 2])
return %y
"""


def writes(t):
    _, out = best("turned constant", TURNED, t)
    check("turned constant: strides", json.loads((out / "manifest.json").read_text())["outputs"][0]["stride"], [16, 80, 1])
    best("single elements by number", ROWS.replace("COLS", "1"), t, host=1)
    best("rows by number", ROWS.replace("COLS", "2"), t)
    _, _, r = compile_("rows_ts", ROWS.replace("COLS", "1"), t, "--profile", "torch-spyre")
    check("single elements: torch-spyre", r["status"], "unsupported")
    best("written", WRITTEN, t, [("batchmatmul", 2)])
    best("written between", WRITTEN_BETWEEN, t, [("sigmoid", 1), ("add", 1)], ["silu"])


def host_copies(t):
    r, _ = best("steps", STEPS, t, host=1)
    check("steps: why", [h["why"] for h in r["host_steps"]], ["no layout of x suits y: the host lays it out anew"])
    _, _, r = compile_("steps_ts", STEPS, t, "--profile", "torch-spyre")
    check("steps: torch-spyre", r["status"] in ("infeasible", "unsupported"), True)
    _, _, r = compile_("steps_pinned", STEPS, t, "--pin", "x=order:0,1")
    check("steps: pinned", r["status"], "infeasible")


with tempfile.TemporaryDirectory() as d:
    for test in writes, host_copies, lanes, inputs, rows_and_ends, products, look_ups, infinities, refusals:
        test(pathlib.Path(d))
sys.exit(1 if failed else 0)
