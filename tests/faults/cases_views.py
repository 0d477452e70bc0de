"""Sections B and C: views, slices and padding; writes into buffers that exist."""
import re

from case import REFUSED, Case, inputs


def rows(start, stop, step, size, n):
    return f"""
    %x : f16[{size}] = input
    %s : f16[{n}] = aten.slice(%x, 0, {start}, {stop}, {step})
    %y : f16[{n}] = aten.add.Tensor(%s,%s)
    return %y"""


def flip(size, dim):
    return f"""
    %x : f16[{size}] = input
    %y : f16[{size}] = aten.flip(%x,[{dim}])
    return %y"""


def narrow_view(size, new):
    return f"""
    %x : f16[{size}] = input
    %v : f16[{new}] = aten.view(%x,[{new}])
    %y : f16[{new}] = aten.mul.Scalar(%v, 2.0)
    return %y"""


def starts_at(offset):
    """A slice of the bundle starts at that byte of its tensor."""
    return lambda r: [] if re.search(rf"slice_offset_{offset}\b", r.bundle()) else [f"no tensor starts at byte {offset}"]


def clean_sticks(run):
    """Every access of every spec: the stick is one variable from lane 0, or constant 0."""
    bad = []
    for s in run.specs():
        for a in s.get("args", []):
            stick = a["device_coordinates"][-1]
            if not re.fullmatch(r"0|\w+|Mod\(\w+, \d+\)", stick):
                bad.append(f"{s['op']}: stick {stick}")
    return bad


PADDED_K = """
    %x : f16[55,2] = input
    %w : f16[2,99] = input
    %y : f16[55,99] = aten.mm(%x,%w)
    return %y"""


def padded_k_after(lines):
    return inputs("a b", "55,2") + f"""
    {lines}
    %w : f16[2,99] = input
    %y : f16[55,99] = aten.mm(%x,%w)
    return %y"""


PAD_32 = """
    %x : f16[1,24608] = input
    %y : f16[1,24640] = aten.constant_pad_nd(%x,[0,32],0.0)
    return %y"""

COPY_INTO = inputs("a b d", "128,128") + """
    %tb : f16[128,128] = aten.t(%b)
    %c : f16[128,128] = aten.add.Tensor(%a, %tb)
    %e : f16[128,128] = aten.mul.Scalar(%c, 2.0)
    %td : f16[128,128] = aten.t(%d)
    %m : f16[128,128] = aten.copy_(%c, %td)
    return %e, %m"""

CACHE = """
    %h : f16[1,512] = input
    %w : f16[512,512] = input
    %cache : f16[1,8,256,64] = input
    %k : f16[1,512] = aten.mm(%h,%w)
    %v : f16[1,1,8,64] = aten.view(%k,[1,1,8,64])
    %t : f16[1,8,1,64] = aten.transpose(%v,1,2)
    %u : f16[1,8,256,64] = aten.slice_scatter(%cache, %t, 2, 65, 66)
    mutate %cache = %u
    return %u"""


def zero_rows(run):
    copy = next((s for s in run.result["storages"] if s["name"] == "w:padded"), None)
    return [] if copy and copy["layout"]["device_size"] == [2, 64, 64] and copy["size"] == [64, 99] else [f"the copy of w: {copy}"]


CASES = [
    Case("BR-15", "a slice of rows starts at a stick although 100 is no multiple of 64", rows(1, 4, 1, "4,100", "3,100"), status="optimal",
         cost=0, layouts={"x": [2, 4, 64]}, check=starts_at(128)),
    Case("BR-16", "a slice of columns at a stick's border: its tile counts", """
         %x : f16[2,128] = input
         %s : f16[2,64] = aten.slice(%x, 1, 64, 128)
         %y : f16[2,64] = aten.mul.Scalar(%s, 1.0)
         return %y""", status="optimal", cost=0, layouts={"x": [2, 2, 64]}, check=starts_at(256)),
    Case("BR-17", "a slice inside a stick: the stick moves to another dim", """
         %x : f16[128,128] = input
         %y : f16[128,64]  = input
         %s : f16[128,64]  = aten.slice(%x, 1, 32, 96)
         %z : f16[128,64] = aten.add.Tensor(%s,%y)
         return %z""", profile="torch-spyre", status="optimal", conversions=2, cost=24576, converted="x y",
         maps={"z": [4096, 1, 64]}, check=clean_sticks),
    Case("BR-17", "profile best is no dearer", """
         %x : f16[128,128] = input
         %y : f16[128,64]  = input
         %s : f16[128,64]  = aten.slice(%x, 1, 32, 96)
         %z : f16[128,64] = aten.add.Tensor(%s,%y)
         return %z""", status="optimal", cost=24576, check=clean_sticks),
    Case("BR-17", "such a slice into a matmul: refused", """
         %x : f16[128,128] = input
         %y : f16[64,128]  = input
         %s : f16[128,64]  = aten.slice(%x, 1, 32, 96)
         %z : f16[128,128] = aten.mm(%s,%y)
         return %z""", profile="torch-spyre", status="unsupported", says=["x"]),
    Case("BR-18", "padding from lane 32 with nothing else to carry the stick: refused with the lane", PAD_32, profile="torch-spyre",
         status=REFUSED, says=["lane 32", "no other dim"]),
    Case("BR-18", "padding from lane 32: every access starts at lane 0", PAD_32, status="optimal", check=clean_sticks),
    Case("BR-18", "halves of a stick joined: every access starts at lane 0, or it is refused", """
         %a : f16[2,32] = input
         %b : f16[2,32] = input
         %y : f16[2,64] = aten.cat([%a,%b], 1)
         return %y""", status="optimal|" + REFUSED, check=lambda r: clean_sticks(r) if r.dir.exists() else []),
    Case("BR-18", "the control: padding from a stick's border", """
         %x : f16[1,24576] = input
         %y : f16[1,24640] = aten.constant_pad_nd(%x,[0,64],0.0)
         return %y""", status="optimal"),
    Case("BR-19", "rows of 32 in a stick of 64: refused, and told why", narrow_view("8,1024", "8,32,32"), profile="torch-spyre", status=REFUSED,
         says=["mixes"]),
    Case("BR-19", "profile best moves the stick first", narrow_view("8,1024", "8,32,32"), status="optimal", cost=8192, converted="x"),
    Case("BR-19", "the same graph with the stick on dim 0: fine", narrow_view("8,1024", "8,32,32"), "--pin", "x=order:1,0", status="optimal", cost=0),
    Case("BR-20", "rotary halves of 32: refused, and told why", """
         %x : f16[1,8,4,64] = input
         %v : f16[1,8,4,2,32] = aten.view(%x,[1,8,4,2,32])
         %y : f16[1,8,4,2,32] = aten.neg(%v)
         return %y""", profile="torch-spyre", status=REFUSED, says=["mixes"]),
    Case("BR-20", "rotary halves of 64: free", """
         %x : f16[1,8,4,128] = input
         %v : f16[1,8,4,2,64] = aten.view(%x,[1,8,4,2,64])
         %y : f16[1,8,4,2,64] = aten.neg(%v)
         return %y""", status="optimal", cost=0),
    Case("BR-21", "rows 1, 3, 5, 7 of nine: offset and step both count", rows(1, 9, 2, "9,128", "4,128"), status="optimal", cost=0,
         layouts={"x": [2, 9, 64]}),
    Case("BR-21", "rows 1, 3, 5, 7 of eight", rows(1, 8, 2, "8,128", "4,128"), status="optimal", cost=0),
    *[Case("BR-22", f"reversing dim {d} of [{s}] is right or refused, in every case", flip(s, d), status="optimal|" + REFUSED)
      for s, d in (("4,64", 0), ("4,64", 1), ("64", 0), ("64,64", 0), ("64,64", 1))],
    Case("BR-23", "constant, sparse and dense operands; both tiles get the mean", """
         %x : f16[1,3,128] = input
         %y : f16[1,3,128] = input
         %m : f16[1,3,1] = aten.mean.dim(%x,[-1],True)
         %z : f16[1,3,128] = aten.full([1,3,128],0.0)
         %s : f16[1,3,128] = aten.add.Tensor(%m,%z)
         %o : f16[1,3,128] = aten.add.Tensor(%s,%y)
         return %o""", status="optimal", cost=0, layouts={"x": [3, 2, 1, 64], "y": [3, 2, 1, 64], "o": [3, 2, 1, 64]},
         maps={"x": [128, 64, -1, 1]}),
    Case("BR-24", "K = 2: the second operand gets rows of zeros, the first stays", PADDED_K, status="optimal", layouts={"x": [1, 55, 64]},
         check=zero_rows),
    Case("BR-24", "what exp leaves behind K is masked", padded_k_after("%x : f16[55,2] = aten.exp(%a)"), status="optimal"),
    Case("BR-24", "what a division leaves behind K is masked", padded_k_after("%x : f16[55,2] = aten.div.Tensor(%a,%b)"), status="optimal"),
    Case("BR-24", "what a fill with -inf leaves behind K is masked", padded_k_after(
         "%i : f16[55,2] = aten.full([55,2], -inf)\n%x : f16[55,2] = aten.maximum(%a,%i)"), status="optimal"),
    Case("BR-25", "one query row, K = 128: one conversion, no padding, no warning", """
         %q : f16[32,1,128] = input
         %k : f16[32,1024,128] = input
         %t : f16[32,128,1024] = aten.transpose(%k,1,2)
         %y : f16[32,1,1024] = aten.bmm(%q, %t)
         return %y""", status="optimal", cost=4194304, converted="k", layouts={"k": [1024, 2, 32, 64], "k:stick1": [128, 16, 32, 64]},
         check=lambda r: [f"warning: {w}" for w in r.result["warnings"]] + (["padded"] if len(r.result["ops"]) != 2 else [])),
    Case("BR-26", "the compiler itself puts the indexed dim outermost", """
         %x : f16[20,256] = input
         %i : i32[5] = input
         %y : f16[5,256] = aten.index.Tensor(%x,[%i])
         return %y""", status="optimal", cost=5120, converted="x", layouts={"x": [4, 20, 64], "x:stick1": [20, 4, 64]},
         maps={"x": [64, 256, 1], "x:stick1": [256, 64, 1]},
         check=lambda r: [] if "5120" in str(r.result["conversions"][0].get("advice")) else ["no advice"]),
    Case("BR-27", "a write and its target are one layout: only a is converted", COPY_INTO, status="optimal", cost=16384, converted="a"),
    Case("BR-28", "one slot of a cache is written, from a reshaped value", CACHE, status="optimal", layouts={"cache": [8, 256, 1, 1, 64]},
         check=starts_at(8320)),
]
