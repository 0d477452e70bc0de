"""What random graphs found in stickwright itself (tests/property), shrunk."""
from case import Case

CASES = [
    Case("SW-01", "a fill is an operand of a matmul: it is written out first", """
         %v : f16[2,5,256] = aten.full([2, 5, 256], 0.5)
         %x : f16[2,256,3] = input
         %y : f16[2,5,3] = aten.bmm(%v, %x)
         return %y""", status="optimal"),
    Case("SW-01", "operands of a matmul that are one number along K, M or N", """
         %x : f16[3,128,1] = input
         %e : f16[3,128,16] = aten.expand(%x, [3,128,16])
         %w : f16[3,16,70] = input
         %y : f16[3,128,70] = aten.bmm(%e, %w)
         %z : f16[1,16,1] = input
         %f : f16[3,16,70] = aten.expand(%z, [3,16,70])
         %u : f16[3,128,70] = aten.bmm(%e, %f)
         return %y, %u""", status="optimal"),
    Case("SW-02", "rows of a dim of size 1: the op had lost its table of row numbers", """
         %x : f16[1,64] = input
         %y : f16[1,64] = aten.flip(%x, [0])
         %w : f16[192,1] = input
         %z : f16[192,1] = aten.flip(%w, [1])
         return %y, %z""", status="optimal"),
    Case("SW-03", "a gather of rows of one element each", """
         %x : f16[65,40,1] = input
         %i : i32[32] = input
         %y : f16[32,40,1] = aten.index.Tensor(%x, [%i])
         return %y""", status="optimal"),
    Case("SW-04", "rows of a fill", """
         %v : f16[130,2,192,5] = aten.full([130, 2, 192, 5], 0.25)
         %i : i32[5] = input
         %y : f16[5,2,192,5] = aten.index.Tensor(%v, [%i])
         return %y""", status="optimal"),
    Case("SW-05", "a conflict between several readers names them", """
         %x0 : f16[65] = input
         %x1 : f16[65] = input
         %v2 : f16[65] = aten.maximum(%x1, %x0)
         %v3 : f16[65] = aten.sub.Tensor(%v2, %x1)
         %v4 : f16[10] strides=[2] = aten.slice.Tensor(%v3, 0, 1, 21, 2)
         %v8 : f16[10] = aten._softmax(%v4, 0, False)
         return %v8""", status="infeasible", says=["x1 -> v2", "x1 -> v3"]),
]
