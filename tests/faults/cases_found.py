"""What random graphs found in stickwright itself (tests/property), shrunk."""
from case import Case, REFUSED

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
    Case("SW-04", "one element by its row number: no loop names the index, and the files could not be read", """
         %x : f16[2,1] = input
         %i : i32[1] = input
         %y : f16[1,1] = aten.index.Tensor(%x, [%i])
         return %y""", status="unsupported", says=["y", "row number"]),
    Case("SW-05", "a conflict between several readers names them", """
         %b : f32[64,64] = input
         %c : f32[64,64] = input
         %x : f32[64,64] = input
         %v : f32[64,64] = aten.relu(%x)
         %t : f32[64,64] = aten.t(%v)
         %y1 : f32[64,64] = aten.add.Tensor(%v, %b)
         %y2 : f32[64,64] = aten.add.Tensor(%t, %c)
         return %y1, %y2""", profile="torch-spyre", status="infeasible", says=["v -> y2", "c -> y2"]),
    Case("SW-05", "every second row of a softmax's operand, lane by lane", """
         %x0 : f16[65] = input
         %x1 : f16[65] = input
         %v2 : f16[65] = aten.maximum(%x1, %x0)
         %v3 : f16[65] = aten.sub.Tensor(%v2, %x1)
         %v4 : f16[10] strides=[2] = aten.slice.Tensor(%v3, 0, 1, 21, 2)
         %v8 : f16[10] = aten._softmax(%v4, 0, False)
         return %v8""", status="optimal"),
    Case("SW-06", "writing into a constant: the write was lost, the output had no storage", """
         %v1 : f16[65] = input
         %v6 : f16[65] = aten.full([65], 1.0)
         %v9 : f16[65] = aten.clone(%v6)
         %v10 : f16[65] = aten.copy_(%v9, %v1)
         return %v10, %v6""", status="optimal"),
    Case("SW-06", "writing into a slice of a constant", """
         %v1 : f16[64,3] = input
         %f : f16[128,3] = aten.full([128,3], 1.0)
         %v6 : f16[128,3] = aten.mul.Tensor(%f, 2)
         %s : f16[64,3] = aten.slice.Tensor(%v6, 0, 64, 128)
         %v10 : f16[64,3] = aten.copy_(%s, %v1)
         return %v6""", status="optimal"),
    Case("SW-07", "layer norm of what came through float32: its result was taken for one in float32's order of lanes", """
         %x0 : f16[1,64] = input
         %v3 : f32[1,64] = aten._to_copy(%x0, dtype=f32)
         %v4 : f32[1,64] = aten.mul.Tensor(%v3, 1.5)
         %v5 : f16[1,64] = aten._to_copy(%v4, dtype=f16)
         %v8 : f16[1,64] = aten.layer_norm(%v5, [64], None, None, 1.0)
         return %v8""", status="optimal"),
    Case("SW-08", "a weight read as rows of 4 cut from 40: lanes behind a row were the next row", """
         %x3 : f16[3,40] = parameter("p")
         %v6 : f16[3,10,4] = aten.view(%x3, [3, 10, 4])
         %x5 : f16[3,4,128] = input
         %v13 : f16[3,10,128] = aten.bmm(%v6, %x5)
         return %v13"""),
    Case("SW-09", "a roll by nothing and an index that is a view are tensors of their own where somebody writes", """
         %x : f16[5,64] = input
         %z : f16[5,64] = input
         %i : i64[5] = aten.arange.start_step(0, 5)
         %y : f16[5,64] = aten.index.Tensor(%x, [%i])
         %c : f16[5,64] = aten.copy_(%x, %z)
         %v1 : f16[5,64] = aten.exp(%z)
         %v2 : f16[5,64] = aten.roll(%v1, [0], [0])
         %v4 : f16[5,64] = aten.mul_.Tensor(%v1, 2)
         return %y, %v2, %v4""", status="optimal"),
    Case("SW-10", "a view of an input that is given back shows what the run made of the input", """
         %x0 : f16[130,65,64] = input
         %x1 : f16[130,66,64] = input
         %v3 : f16[130,66,64] = aten.slice_scatter(%x1, %x0, 1, 0, 65)
         %v4 : f16[65,2,66,64] = aten.view(%x1, [65, 2, 66, 64])
         mutate %x1 = %v3
         return %v4""", status="optimal"),
    Case("SW-30", "the best of one row that ends inside a stick: the padding was ranked too", """
         %x : f16[1,130] = input
         %v : f16[1,2], %i : i64[1,2] = aten.topk.default(%x, 2)
         return %v"""),
    Case("SW-31", "exp of a short row in the order of a cast: a mask at its end would hit elements", """
         %x : f16[8,40] = input
         %u : f32[8,40] = aten.to.dtype(%x, f32)
         %e : f32[8,40] = aten.exp.default(%u)
         %y : f16[8,40] = aten.to.dtype(%e, f16)
         return %y""", status="optimal", one_profile=True),
    Case("SW-32", "part of a row in the order of a cast that begins inside a pair of sticks", """
         %x : f16[8,256] = input
         %u : f32[8,256] = aten.to.dtype(%x, f32)
         %p : f32[8,64] = aten.slice.Tensor(%u, 1, 32, 96)
         %y : f16[8,64] = aten.to.dtype(%p, f16)
         return %y"""),
    Case("SW-33", "layer norm of a fill: no row to sum, and nothing was written", """
         %v : f16[5,128,64] = aten.full([5, 128, 64], -2.5)
         %w : f16[64] = input
         %y : f16[5,128,64] = aten.layer_norm(%v, [64], %w, None, 1.0)
         return %y""", status="optimal"),
    Case("SW-33", "layer norm of rows that are one number each", """
         %x : f16[128,1] = input
         %e : f16[128,64] strides=[1,0] = aten.expand(%x, [128, 64])
         %y : f16[128,64] = aten.layer_norm(%e, [64], None, None, 1.0)
         return %y""", status="optimal"),
    Case("SW-34", "a sum over rows that are one number each: its operand has no stick, its result has", """
         %x : f16[96,5,1] = input
         %e : f16[96,5,16] strides=[5,1,0] = aten.expand(%x, [96, 5, 16])
         %y : f16[96,16] = aten.sum.dim_IntList(%e, [1], False)
         %z : f16[96,1,16] = aten.amax(%e, [1], True)
         return %y, %z""", status="optimal"),
    Case("SW-34", "the same along two dims, and of one number for all", """
         %x : f16[96,5,1,1] = input
         %e : f16[96,5,3,16] strides=[5,1,0,0] = aten.expand(%x, [96, 5, 3, 16])
         %y : f16[96,3,16] = aten.sum.dim_IntList(%e, [1], False)
         %s : f16[] = input
         %f : f16[5,16] strides=[0,0] = aten.expand(%s, [5, 16])
         %z : f16[16] = aten.sum.dim_IntList(%f, [0], False)
         return %y, %z""", status="optimal"),
    Case("SW-35", "a copy of an input that is changed afterwards keeps what it copied", """
         %x : f16[64,5] = input
         %z : f16[64,5] = input
         %y : f16[64,5] = aten.copy_(%x, %z)
         %s : f16[51,5] = aten.slice.Tensor(%z, 0, 0, 51)
         %m : f16[51,5] = aten.mul_.Tensor(%s, 0.5)
         return %y""", status="optimal"),
    Case("SW-36", "rows of a table that are one number each along a dim: looked up once, then spread", """
         %x : f16[130,3,1] = input
         %e : f16[130,3,16] strides=[3,1,0] = aten.expand(%x, [130, 3, 16])
         %i : i32[40] = input
         %y : f16[40,3,16] = aten.index.Tensor(%e, [%i])
         %u : f16[130,1] = input
         %f : f16[130,16] strides=[1,0] = aten.expand(%u, [130, 16])
         %z : f16[40,16] = aten.index.Tensor(%f, [%i])
         return %y, %z""", status="optimal"),
    Case("SW-36", "the same in the middle, in front, and along two dims", """
         %x : f16[130,1,64] = input
         %e : f16[130,16,64] strides=[64,0,1] = aten.expand(%x, [130, 16, 64])
         %i : i32[40] = input
         %y : f16[40,16,64] = aten.index.Tensor(%e, [%i])
         %u : f16[1,130,1] = input
         %f : f16[5,130,16] strides=[0,1,0] = aten.expand(%u, [5, 130, 16])
         %z : f16[5,40,16] = aten.index_select(%f, 1, %i)
         return %y, %z""", status="optimal"),
    Case("SW-36", "row numbers that repeat along a dim", """
         %x : f16[130,64] = input
         %i : i32[40,1] = input
         %e : i32[40,16] strides=[1,0] = aten.expand(%i, [40, 16])
         %y : f16[40,16,64] = aten.index.Tensor(%x, [%e])
         return %y""", status="optimal"),
    Case("SW-37", "a copy to other cores of what was written in the order of its reader: its loops had other names", """
         %v : f16[1,65,65] = aten.full([1, 65, 65], 1.0)
         %p : f16[65,65,1] strides=[1,65,4225] = aten.permute(%v, [2, 1, 0])
         %x : f16[65,65,1] = input
         %y : f16[65,65,1] = aten.add.Tensor(%p, %x)
         return %y""", status="optimal"),
    Case("SW-38", "a norm of rows of large numbers: the squares leave fp16 and not the card's own format", """
         %x : f16[4,128] = input
         %w : f16[128] = input
         %y : f16[4,128] = aten.mul.Tensor(%x, 1000)
         %z : f16[4,128] = aten.rms_norm.default(%y, [128], %w, 1e-05)
         return %z""", status="optimal"),
    Case("SW-39", "rows of single float32 elements, from a cast: half pairs of sticks must be outermost, and so must the rows", """
         %x : f16[1,100] = input
         %f : f32[1,100] = aten._to_copy.default(%x, dtype=f32)
         %r : i64[102] = input
         %i : f32[1,102] = aten.index.Tensor(%f, [None, %r])
         %y : f16[1,102] = aten._to_copy.default(%i, dtype=f16)
         return %y""", status=REFUSED, says=["take the rows first and cast them then"]),
    Case("SW-40", "rows written into the middle of a cache: torch-spyre copies it with its rows outermost, writes, and copies it back", """
         %c : f16[1,4,96,64] = input
         %i : i64[1] = input
         %u : f16[1,4,1,64] = input
         %y : f16[1,4,96,64] = aten.index_copy_(%c, 2, %i, %u)
         %z : f16[1,4,96,64] = aten.relu(%y)
         return %z""", profile="torch-spyre", status="optimal"),
    Case("SW-40", "the same into a new tensor, two rows", """
         %c : f16[4,96,64] = input
         %i : i64[2] = constant("rows")
         %u : f16[4,2,64] = input
         %y : f16[4,96,64] = aten.index_copy(%c, 1, %i, %u)
         return %y""", profile="torch-spyre", status="optimal"),
    Case("SW-41", "rows that all become a number", """
         %x : f16[13,8,64] = input
         %i : i64[6] = input
         %u : f16[1,1,1] = input
         %e : f16[6,8,64] strides=[0,0,0] = aten.expand(%u, [6,8,64])
         %y : f16[13,8,64] = aten.index_put(%x, [%i], %e)
         return %y""", status="optimal|feasible"),
    Case("SW-41", "rows that all become a row, whole sticks", """
         %x : f16[13,8,64] = input
         %i : i64[6] = input
         %u : f16[1,8,64] = input
         %e : f16[6,8,64] strides=[0,64,1] = aten.expand(%u, [6,8,64])
         %y : f16[13,8,64] = aten.index_put(%x, [%i], %e)
         return %y""", status="optimal|feasible"),
    Case("SW-41", "rows that all become a column", """
         %x : f16[13,8,64] = input
         %i : i64[6] = input
         %u : f16[1,8,1] = input
         %e : f16[6,8,64] strides=[0,1,0] = aten.expand(%u, [6,8,64])
         %y : f16[13,8,64] = aten.index_put(%x, [%i], %e)
         return %y""", status="optimal|feasible"),
    Case("SW-41", "x[rows] = -1 in place", """
         %x : f16[13,128,64] = input
         %i : i64[6] = input
         %s : f16[] = aten.scalar_tensor(-1.0, dtype=f16)
         %y : f16[13,128,64] = aten.index_put_(%x, [%i], %s)
         return""", status="optimal|feasible"),
    Case("SW-42", "experts in one grouped product: how to export them", """
         %x : f16[4,64] = input
         %w : f16[2,64,32] = parameter
         %o : i32[2] = input
         %y : f16[4,32] = transformers.grouped_mm_fallback.default(%x, %w, %o)
         return %y""", status="unsupported", says=["y", "outside ATen", "experts_implementation", "batched_mm"]),
    Case("SW-42", "an operator nobody knows", """
         %x : f16[4,64] = input
         %y : f16[4,64] = torchvision.deform_conv2d.default(%x)
         return %y""", status="unsupported", says=["y", "outside ATen", "grid_sample"]),
    Case("SW-42", "max of two tensors has the size they broadcast to", """
         %x : f16[4,64] = input
         %z : f16[4,1] = input
         %y : f16[4,64] = aten.max.other(%x, %z)
         return %y""", status="optimal"),
    Case("SW-42", "windows that overlap have no layout: each is copied", """
         %x : f16[4,64] = input
         %y : f16[4,31,4] = aten.unfold(%x, 1, 4, 2)
         %z : f16[4,31] = aten.sum.dim_IntList(%y, [2])
         return %z""", status="optimal"),
    Case("SW-42", "an order of norm that the device has no root for", """
         %x : f16[4,64] = input
         %y : f16[4] = aten.norm.ScalarOpt_dim(%x, 3, [1])
         return %y""", status="unsupported", says=["y", "order 3"]),
    Case("SW-45", "the half turn of a vector", """
         %x : f16[200] = input
         %a : f16[100] offset=100 = aten.slice.Tensor(%x, 0, 100, 200)
         %n : f16[100] = aten.neg(%a)
         %b : f16[100] = aten.slice.Tensor(%x, 0, 0, 100)
         %y : f16[200] = aten.cat([%n, %b])
         return %y""", status="optimal"),
    Case("SW-43", "the largest of one", """
         %x : f16[32,16,1] = input
         topk: %v : f16[32,16,1], _ = aten.topk(%x, 1, 2)
         %y : f16[32,16,1] = aten.relu(%v)
         return %y""", status="optimal"),
    Case("SW-43", "and where it is", """
         %x : f16[32,16,1] = input
         topk: %v : f16[32,16,1], %i : i64[32,16,1] = aten.topk(%x, 1, 2)
         return %v, %i""", status="optimal|feasible"),
    Case("SW-43", "of a number", """
         %x : f16[] = input
         topk: %v : f16[], _ = aten.topk(%x, 1)
         return %v""", status="optimal|feasible"),
    Case("SW-44", "the two largest where one lane a stick counts: their dim was taken for the stick", """
         %x : f16[5,7,15,1] = input
         topk: %v : f16[2,7,15,1], _ = aten.topk(%x, 2, 0)
         return %v""", status="optimal|feasible"),
    Case("SW-44", "the largest of each", """
         %x : f16[5,15,192,1] = input
         topk: %v : f16[1,15,192,1], _ = aten.topk(%x, 1, 0)
         return %v""", status="optimal|feasible"),
    Case("SW-46", "the sum of an expanded tensor, over what was expanded too", """
         %x : f16[8,1] = input
         %e : f16[8,8] strides=[1,0] = aten.expand(%x, [8, 8])
         %y : f16[] = aten.sum.default(%e)
         return %y""", status="optimal"),
    Case("SW-46", "its mean", """
         %x : f16[8,1] = input
         %e : f16[8,8] strides=[1,0] = aten.expand(%x, [8, 8])
         %y : f16[] = aten.mean.default(%e)
         return %y""", status="optimal"),
    Case("SW-46", "its largest along the expanded dim alone", """
         %x : f16[8,1] = input
         %e : f16[8,8] strides=[1,0] = aten.expand(%x, [8, 8])
         %y : f16[8,1] = aten.amax(%e, [1], True)
         return %y""", status="optimal"),
    Case("SW-46", "a sum of more equal numbers than fp16 counts", """
         %x : f16[2,1] = input
         %h : f16[2,1] = aten.mul.Tensor(%x, 0.0001)
         %e : f16[2,2049] strides=[1,0] = aten.expand(%h, [2, 2049])
         %y : f16[] = aten.sum.default(%e)
         return %y""", status="optimal"),
    Case("SW-46", "the variance", """
         %x : f16[8,1] = input
         %e : f16[8,8] strides=[1,0] = aten.expand(%x, [8, 8])
         %y : f16[] = aten.var.correction(%e)
         return %y""", status="optimal"),
    Case("SW-47", "an overload nobody knows that changes an input by its name", """
         %w : f16[16,16] = input
         %i : i64[4] = input
         %d : f16[16,16] = aten.detach(%w)
         %r : f16[16,16] = aten.embedding_renorm_.default(%d, %i, 1.0, 2.0)
         %y : f16[4,16] = aten.embedding(%w, %i)
         return %y""", status="unsupported", says=["embedding_renorm_"]),
    Case("SW-47", "one whose result, perhaps a view, is written into", """
         %x : f16[16,16] = input
         %d : f16[16] = aten.linalg_diagonal.default(%x)
         %r : f16[16] = aten.add_.Tensor(%d, 1)
         return %x""", status="unsupported", says=["linalg_diagonal"]),
    Case("SW-47", "one that nobody reads and that has no effect is no matter", """
         %x : f16[16,16] = input
         %d : f16[16] = aten.special_entr.default(%x)
         %r : f16[16,16] = aten.add.Tensor(%x, 1)
         return %r""", status="optimal", execute=False, one_profile=True),
    Case("SW-47", "an instance norm that moves running statistics", """
         %x : f16[2,3,8] = input
         %m : f16[3] = buffer
         %v : f16[3] = buffer
         %y : f16[2,3,8] = aten.instance_norm.default(%x, None, None, %m, %v, True, 0.1, 1e-05, True)
         return %y""", status="unsupported", says=["statistics"]),
    Case("SW-48", "a norm of no rows", """
         %x : f16[0,6] = input
         %w : f16[6] = input
         %y : f16[0,6] = aten.layer_norm.default(%x, [6], %w, %w)
         return %y""", status="optimal"),
    Case("SW-49", "row numbers that lie the other way round", """
         %x : f16[16,64] = input
         %i : i64[4,6] = input
         %t : i64[6,4] strides=[1,6] = aten.t(%i)
         %y : f16[6,4,64] = aten.embedding(%x, %t)
         return %y""", status="optimal|feasible"),
    Case("SW-49", "a few of each row", """
         %x : f16[16,64] = input
         %i : i64[2,6] = input
         %t : i64[2,2] strides=[6,1] offset=3 = aten.slice.Tensor(%i, 1, 3, 5)
         %y : f16[2,2,64] = aten.embedding(%x, %t)
         return %y""", status="optimal|feasible"),
    Case("SW-49", "from the middle of a stick, to write by", """
         %x : f16[16,64] = input
         %i : i64[19] = input
         %s : f16[16,64] = input
         %n : i64[2] offset=3 = aten.slice.Tensor(%i, 0, 3, 5)
         %p : f16[2,64] = aten.slice.Tensor(%s, 0, 0, 2)
         %y : f16[16,64] = aten.index_copy.default(%x, 0, %n, %p)
         return %y""", status="optimal|feasible", execute=False),
    Case("SW-50", "bounds that cross: the upper one counts", """
         %x : f16[4,64] = input
         %y : f16[4,64] = aten.clamp.default(%x, 0.5, 0.25)
         return %y""", status="optimal"),
    Case("SW-50", "one bound leaves infinity alone", """
         %x : f16[4,64] = input
         %i : f16[4,64] = aten.div.Tensor(%x, 0.0)
         %y : f16[4,64] = aten.clamp_min.default(%i, 0)
         %z : f16[4,64] = aten.mul.Tensor(%y, 0.0)
         return %z""", status="optimal"),
    Case("SW-50", "logit between bounds that cross", """
         %x : f16[4,64] = input
         %y : f16[4,64] = aten.logit.default(%x, 0.6)
         return %y""", status="unsupported", says=["eps"]),
    Case("SW-50", "the size of complex numbers is no fault of the graph", """
         %x : f32[4,64] = input
         %c : c64[4,33] = aten._fft_r2c.default(%x, [1], 0, True)
         %y : f32[4,33] = aten.abs.default(%c)
         return %y""", status="unsupported", says=["_fft_r2c"]),
    Case("SW-50", "a long vector turned round", """
         %x : f16[4096] = input
         %y : f16[4096] = aten.flip.default(%x, [0])
         return %y""", status="optimal|feasible"),
    Case("SW-51", "twice a bool is 2", """
         %x : f16[4,64] = input
         %b : bool[4,64] = input
         %y : f16[4,64] = aten.add.Tensor(%x, %b, alpha=2)
         return %y""", status="optimal"),
    Case("SW-51", "so it is in float32, and subtracted", """
         %x : f32[4,64] = input
         %b : bool[4,64] = input
         %y : f32[4,64] = aten.sub.Tensor(%x, %b, alpha=3)
         return %y""", status="optimal|feasible"),
    Case("SW-51", "and among products", """
         %x : f16[4,64] = input
         %b : bool[4,64] = input
         %y : f16[4,64] = aten.addcmul.default(%x, %b, %x, value=3)
         %z : f16[4,64] = aten.lerp.Scalar(%y, %x, 0.25)
         return %z""", status="optimal|feasible"),
    Case("SW-52", "the largest of an expanded tensor", """
         %x : f16[3,65] = input
         %u : f16[3,65,1] strides=[65,1,1] = aten.unsqueeze(%x, 2)
         %e : f16[3,65,64] strides=[65,1,0] = aten.expand(%u, [3, 65, 64])
         topk: %v : f16[3,2,64], _ = aten.topk(%e, 2, 1)
         return %v""", status="optimal|feasible"),
    Case("SW-52", "whether all of float32 numbers are not 0, as a number", """
         %x : f32[3] = input
         %a : bool[1] = aten.all.dim(%x, -1, True)
         %y : f32[1] = aten.reciprocal.default(%a)
         return %y""", status="optimal|feasible"),
    *[Case("SW-53", f"attention whose {what}: PyTorch runs none such", f"""
         %q : f16[1,{q},64,64] = input
         %k : f16[1,{k},64,64] = input
         %v : f16[1,{v},64,64] = input
         %y : f16[1,{q},64,64] = aten.scaled_dot_product_attention(%q, %k, %v)
         return %y""", status="unsupported", profile=profile, one_profile=True, says=["y", f"{q} heads of queries for {k} of keys and {v} of values"])
      for what, q, k, v in (("values have no heads", 2, 2, 0), ("keys have none", 2, 0, 0), ("values have fewer than keys", 6, 6, 3),
                            ("heads of queries don't come in groups", 6, 4, 4)) for profile in ("best", "torch-spyre")],
    *[Case("SW-53", "attention with keys of one dim", """
         %q : f16[1,1,64,64] = input
         %k : f16[164] = input
         %v : f16[1,2,6,464] = input
         %y : f16[1,2,64,64] = aten.scaled_dot_product_attention(%q, %k, %v)
         return %y""", status="unsupported", profile=profile, one_profile=True, says=["y", "rank 4, 1 and 4"])
      for profile in ("best", "torch-spyre")],
]
