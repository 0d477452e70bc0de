"""Section D: data types and sizes."""
from case import REFUSED, Case


def cast(size, of, to):
    return f"""
    %x : {of}[{size}] = input
    %y : {to}[{size}] = aten.to(%x,{to})
    return %y"""


def choice_by(kind):
    return f"""
    %a : {kind}[4,64] = input
    %b : {kind}[4,64] = input
    %c : bool[4,64] = aten.gt.Tensor(%a,%b)
    %y : {kind}[4,64] = aten.where.self(%c,%a,%b)
    return %y"""


def scaled_matmul(k):
    return f"""
    %a : f8e4m3[16,{k}] = input
    %b : f8e4m3[{k},128] = input
    %sa : f32[] = input
    %sb : f32[] = input
    %y : f16[16,128] = aten._scaled_mm(%a,%b,%sa,%sb,out_dtype=f16)
    return %y"""


def whole_sticks(run):
    op = next(o for o in run.result["ops"] if "fp32" in o["device_op"])
    return [] if 4 % op["split"][-1] == 0 else [f"4 sticks in {op['split'][-1]} slices"]


F32_TRANSPOSED_ADD = """
    %a : f32[64,64] = input
    %b : f32[64,64] = input
    %t : f32[64,64] = aten.t(%a)
    %y : f32[64,64] = aten.add.Tensor(%t,%b)
    return %y"""

CASES = [
    Case("BR-29", "f16 and f32 over one loop: slices are whole sticks of both", """
         %x : f16[4,256] = input
         %f : f32[4,256] = aten.to(%x, f32)
         %y : f32[4,256] = aten.mul.Scalar(%f,2.0)
         return %y""", status="optimal", layouts={"f": [8, 4, 32]}, check=whole_sticks),
    Case("BR-30", "a converted buffer with a partial last stick: its source's footprint, or refused", """
         %x : f16[2,96] = input
         %f : f32[2,96] = aten.to(%x,f32)
         %g : f32[2,96] = aten.add.Scalar(%f,0.0)
         %y : f16[2,96] = aten.to(%g,f16)
         return %y""", status="optimal|unsupported", check=lambda r: [] if r.status == "unsupported" and "multiple of 64" in r.said()
         or r.device_size("f") == [4, 2, 32] else [f"f is {r.device_size('f')}: {r.said()}"]),
    # The device casts pairs of f32 sticks: one stick alone is cast by the host (profile best) or refused (torch-spyre).
    Case("BR-31", "half a stick of f32 becomes one of f16, not none", cast("4,32", "f32", "f16"), status="optimal"),
    Case("BR-31", "half a stick in three dims, and a reader on the device", cast("2,4,32", "f32", "f16").replace("return %y", """
         %z : f16[2,4,32] = aten.neg(%y)
         return %z"""), status="optimal", layouts={"y": [4, 1, 2, 64], "z": [4, 1, 2, 64]}),
    Case("BR-31", "half a stick is loaded in one tile", cast("4,32", "f32", "f16"), profile="torch-spyre", status="optimal|unsupported",
         layouts={"x": [1, 4, 32], "y": [1, 4, 64]}),
    Case("BR-31", "two strides equal the stick: the tile dim is found by construction", cast("2,4,32", "f32", "f16"), profile="torch-spyre",
         status="optimal|unsupported", layouts={"x": [4, 1, 2, 32], "y": [4, 1, 2, 64]}, maps={"x": [32, 32, 128, 1]}),
    Case("BR-31", "whole sticks", cast("2,4,64", "f32", "f16"), status="optimal", layouts={"x": [4, 2, 2, 32], "y": [4, 1, 2, 64]}),
    Case("BR-32", "the bool of an f32 comparison has f32's form", choice_by("f32"), status="optimal|unsupported",
         check=lambda r: [] if r.status == "unsupported" or r.device_size("c") == [2, 4, 32] else [f"c is {r.device_size('c')}"]),
    Case("BR-32", "the bool of an f16 comparison has f16's", choice_by("f16"), status="optimal", layouts={"c": [1, 4, 64]}),
    Case("BR-32", "one bool for f32 and f16 readers: converted or refused", choice_by("f32").replace("return %y", """
         %p : f16[4,64] = input
         %z : f16[4,64] = aten.where.self(%c,%p,%p)
         return %y, %z"""), status="optimal|unsupported"),
    Case("BR-33", "comparing integers: right, or refused by name", """
         %i : i64[2,3,1] = input
         %y : bool[2,3,1] = aten.eq.Scalar(%i,1)
         return %y""", status="optimal|unsupported"),
    Case("BR-34", "a scalar tensor of f32 beside f16", """
         %x : f16[64] = input
         %s : f32[] = input
         %y : f16[64] = aten.add.Tensor(%x,%s)
         return %y""", status="optimal", cost=0, check=lambda r: [] if r.manifest()["outputs"][0]["dtype"] == "float16" else ["not f16"]),
    Case("BR-34", "scalar tensors only", """
         %x : f16[] = input
         %s : f16[] = input
         %y : f16[] = aten.add.Tensor(%x,%s)
         return %y""", status="optimal", cost=0, layouts={"x": [1, 64], "y": [1, 64]}, maps={"x": [-1, -1]}),
    Case("BR-35", "no elements at all", """
         %x : f16[1,0,3] = input
         %y : f16[1,0,3] = aten.relu(%x)
         return %y""", status="optimal|unsupported"),
    Case("BR-35", "seven dims", """
         %x : f16[2,2,2,2,2,2,64] = input
         %y : f16[2,2,2,2,2,2,64] = aten.relu(%x)
         return %y""", status="optimal|unsupported"),
    # An f8 operand that is loaded has sticks of 128, the matrix unit wants 2 x 64: refused whatever K is, and with K's multiple.
    # Profile best multiplies in 16 bits what the matrix unit can't take as it was loaded.
    Case("BR-36", "f8, K = 64: K must be a multiple of 128", scaled_matmul(64), profile="torch-spyre", status=REFUSED,
         says=["b -> ", "128", "2 x 64"]),
    Case("BR-36", "f8, K = 128: a loaded operand has another arrangement than the matrix unit's", scaled_matmul(128),
         profile="torch-spyre", status=REFUSED, says=["b -> ", "2 x 64"]),
    Case("BR-36", "f8, K = 64, in 16 bits", scaled_matmul(64), status="optimal"),
    Case("BR-36", "f8, K = 128, in 16 bits", scaled_matmul(128), status="optimal"),
    Case("BR-37", "f32 has no conversion: the layout stage says so", F32_TRANSPOSED_ADD, profile="torch-spyre", status="infeasible",
         says=["FP32"]),
    Case("BR-37", "f32 has no conversion: the loader lays the input out twice", F32_TRANSPOSED_ADD, status="optimal",
         cost=4096, says=["laid out a second time"]),
]
