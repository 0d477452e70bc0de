"""Sections A and I: one layout for every tensor of a graph, and the same kinds of fault in other compilers."""
import json

from case import Case, inputs, same_files

TIE = """
    %a : f16[128,256] = input
    %x : f16[256,128] = input
    %t : f16[256,128] = aten.t(%a)
    %y : f16[256,128] = aten.add.Tensor(%t, %x)
    return %y"""


def pairs_and_tree(n):
    """n sums of a transposed and a plain matrix, added up by a balanced tree."""
    lines = [f"%{k}{i} : f16[128,128] = input" for i in range(n) for k in "ab"]
    for i in range(n):
        lines += [f"%t{i} : f16[128,128] = aten.t(%a{i})", f"%s{i} : f16[128,128] = aten.add.Tensor(%t{i}, %b{i})"]
    row, k = [f"s{i}" for i in range(n)], 0
    while len(row) > 1:
        above = row[len(row) // 2 * 2:]
        for left, right in zip(row[::2], row[1::2]):
            lines.append(f"%r{k} : f16[128,128] = aten.add.Tensor(%{left}, %{right})")
            above.insert(len(above) - len(row) % 2, f"r{k}")
            k += 1
        row = above
    return "\n".join(lines + [f"return %{row[0]}"])


CHAIN = inputs("a x b", "128,128") + """
    %ta : f16[128,128] = aten.t(%a)
    %n1 : f16[128,128] = aten.add.Tensor(%ta, %x)
    %tb : f16[128,128] = aten.t(%b)
    %n2 : f16[128,128] = aten.add.Tensor(%n1, %tb)
    return %n2"""

FOLDED_CONSTANT = """
    %x : f16[128,96] = input
    %c : f16[96,128] = aten.full([96,128], 1.0)
    %t : f16[96,128] = aten.t(%x)
    %y : f16[96,128] = aten.add.Tensor(%c, %t)
    return %y"""

ROW_MINIMUM = """
    %a : f16[128,128,128] = input
    %b : f16[128,128] = input
    %m : f16[128,128] = aten.amin(%a,[-1])
    %y : f16[128,128] = aten.add.Tensor(%m,%b)
    return %y"""

THERE_AND_BACK = inputs("a b c", "128,128") + """
    %ta : f16[128,128] = aten.t(%a)
    %u : f16[128,128] = aten.add.Tensor(%ta, %b)
    %tu : f16[128,128] = aten.t(%u)
    %y : f16[128,128] = aten.add.Tensor(%tu, %c)
    return """

LANGUAGE_HEAD = """
    %x : f16[1,4096] = input
    %w : f16[51200,4096] = parameter
    %t : f16[4096,51200] = aten.t(%w)
    %y : f16[1,51200] = aten.mm(%x, %t)
    return %y"""

TWO_INPUTS = """
    %a : f16[128,256] = input
    %b : f16[128,256] = input
    %y : f16[128,256] = aten.add.Tensor(%a, %b)
    return %y"""

def one_host_step(r):
    return [] if [h["name"] for h in r.result["host_steps"]] == ["o"] else ["no host step"]


HOST_STEP = """
    %x : f16[128,128] = input
    %o : f16[128,128] = aten.cumsum(%x, 0)
    %t : f16[128,128] = aten.t(%x)
    %y : f16[128,128] = aten.add.Tensor(%o, %t)
    return %y"""

MATMUL_TRANSPOSED_MATMUL = inputs("a w1 w2", "128,128") + """
    %p : f16[128,128] = aten.mm(%a,%w1)
    %q : f16[128,128] = aten.t(%p)
    %y : f16[128,128] = aten.mm(%q,%w2)
    return %y"""

WEIGHT_AND_OPERAND = inputs("x y", "128,128") + """
    %w : f16[128,128] = parameter
    %tw : f16[128,128] = aten.t(%w)
    %m : f16[128,128] = aten.mm(%x, %tw)
    %ty : f16[128,128] = aten.t(%y)
    %o : f16[128,128] = aten.add.Tensor(%ty, %m)
    return %o"""

WEIGHT_TWICE = """
    %w : f16[128,128] = parameter
    %x : f16[128,128] = input
    %p : f16[128,128] = aten.mm(%x,%w)
    %tw : f16[128,128] = aten.t(%w)
    %q : f16[128,128] = aten.mm(%x, %tw)
    return %p,%q"""


def add(size, other):
    return f"""
    %x : f16[{size}] = input
    %s : f16[{other}] = input
    %y : f16[{size}] = aten.add.Tensor(%x,%s)
    return %y"""


def two_operands(run):
    """The descriptor of the matmul has both, although they are one buffer."""
    matmul = run.specs()[-1]
    return [] if len(matmul["args"]) == 3 else [f"the matmul has {len(matmul['args'])} tensors"]


def original_and_copy(run):
    """The matmul reads the original and a converted copy."""
    a, b = run.specs()[-1]["args"][:2]
    return [] if a["allocation"] != b["allocation"] else ["both operands of the matmul are the same memory"]


def drops(storage, stick, reason):
    """dropped.json has a layout of the storage with this stick, for this reason."""
    def check(run):
        all_of_it = [(d["stick"], d["reason"]) for d in json.loads((run.dir / "dropped.json").read_text())["dropped"]
                     if d["storage"] == storage]
        return [] if (stick, reason) in all_of_it else [f"dropped of {storage}: {all_of_it}"]
    return check


def advises(storage, saving):
    def check(run):
        c = next((c for c in run.result["conversions"] if c["storage"] == storage), {})
        text = f"{c.get('advice')}"
        return [] if storage in text and saving in text else [f"no advice for {storage} with {saving} in {text!r}"]
    return check


def pruned(run):
    n = run.result["solver"]["pruned"] if "pruned" in run.result["solver"] else None
    return [] if n else [f"{n} states pruned"]


CASES = [
    Case("BR-01", "a conflict is repaired, not rejected, and a tie falls the same way every time", TIE, status="optimal", cost=32768,
         conversions=1, layouts={"a": [4, 128, 64], "x": [2, 256, 64]}, strides=[[128, 1]], twice=same_files),
    Case("BR-02", "the exact method finds the state a beam may drop", pairs_and_tree(8), status="optimal", cost=131072, conversions=8),
    *[Case("BR-02", f"beam of width {w}: a valid plan, and it says that it pruned", pairs_and_tree(8), "--solver", "beam", "--beam-width",
           str(w), status="feasible", check=lambda r: pruned(r) + ([] if r.result["objective"]["value"] >= 131072 else ["cheaper than the optimum"]))
      for w in (1, 2, 64, 200)],
    Case("BR-03", "the whole chain is decided at once: one conversion", CHAIN, status="optimal", cost=16384, converted="x"),
    Case("BR-03", "greedy, one step after the other, pays twice", CHAIN, "--solver", "greedy", status="feasible", cost=32768),
    Case("BR-04", "compatible is not equal: a reduced column beside dense rows", """
         %x : f16[128,128] = input
         %m : f16[128,1]   = aten.amax(%x, [-1], keepdim=True)
         %y : f16[128,128] = aten.sub.Tensor(%x, %m)
         return %y""", status="optimal", cost=0, conversions=0),
    Case("BR-05", "two sparse operands agree, the result is sparse", """
         %t : f16[1,32,128,256] = input
         %f : f16[1,32,128,256] = aten.full([1,32,128,256], -inf)
         %p : f16[1,32,128] = aten.amax(%f,[-1])
         %q : f16[1,32,128] = aten.amax(%t,[-1])
         %r : f16[1,32,128] = aten.maximum(%p,%q)
         return %r""", status="optimal", cost=0,
         check=lambda r: [] if r.storage("r")["layout"]["stride_map"][-1] == -1 else ["the result is not sparse"]),
    Case("BR-06", "a fill has only layouts of whole sticks, and is what gets converted", FOLDED_CONSTANT, profile="torch-spyre", status="optimal",
         cost=12288, converted="c", layouts={"c": [2, 96, 64]}),
    Case("BR-06", "profile best has no tensor for the constant", FOLDED_CONSTANT, status="optimal", cost=0),
    Case("BR-07", "a conversion that can't be built ends here, with names", ROW_MINIMUM, profile="torch-spyre", status="infeasible",
         says=["m -> y", "gather elements from multiple sticks into single stick"]),
    Case("BR-07", "beam: the same verdict", ROW_MINIMUM, "--solver", "beam", profile="torch-spyre", status="infeasible", says=["m -> y"]),
    Case("BR-07", "greedy: the same verdict", ROW_MINIMUM, "--solver", "greedy", profile="torch-spyre", status="infeasible", says=["m -> y"]),
    Case("BR-07", "profile best converts before the reduction", ROW_MINIMUM, status="optimal", cost=2097152, converted="a"),
    Case("BR-07", "beam finds that too", ROW_MINIMUM, "--solver", "beam", status="feasible", cost=2097152),
    Case("BR-07", "greedy agrees that there is a plan", ROW_MINIMUM, "--solver", "greedy", status="feasible"),
    Case("BR-08", "a stick that no operand has can be right", inputs("a b", "128,128") + """
         %r : f16[128] = aten.sum.dim_IntList(%a,[1])
         %y : f16[128,128] = aten.add.Tensor(%r,%b)
         return %y""", status="optimal", cost=16384, converted="b"),
    Case("BR-09", "one candidate that can't be written down is dropped, not fatal", """
         %p : f16[64,4096] = input
         %v : f16[64,32,128] = aten.view(%p,[64,32,128])
         %q : f16[32,64,128] = aten.permute(%v,[1,0,2])
         %y : f16[32,64,128] = aten.mul.Scalar(%q, 0.5)
         return %y""", status="optimal", cost=0, check=drops("y", -1, "scatter-sticks")),
    Case("BR-09", "read as rows: the candidate with the heads on the stick is dropped with its reason", """
         %a : f16[64,64,128] = input
         %b : f16[64,64,128] = input
         %h : f16[64,64,128] = aten.add.Tensor(%a, %b)
         %v : f16[64,8192] = aten.view(%h,[64,8192])
         %y : f16[64,8192] = aten.mul.Scalar(%v, 0.5)
         return %y""", profile="torch-spyre", execute=False, status="optimal", cost=0, check=drops("h", 1, "not-one-loop")),
    Case("BR-09", "when none is left, the refusal goes through all of them", """
         %x : f16[8,1024] = input
         %v : f16[8,32,32] = aten.view(%x,[8,32,32])
         %y : f16[8,32,32] = aten.mul.Scalar(%v, 2.0)
         return %y""", profile="torch-spyre", status="unsupported",
         says=["all 1 candidates of operand 0 (x) unreadable", "32*Mod(d1,2) + d2"]),
    Case("BR-10", "a conversion is judged by the read that uses it", THERE_AND_BACK + "%y", status="optimal", cost=16384, conversions=1),
    Case("BR-11", "N = 1: roles come from argument positions", """
         %x : f16[64,128] = input
         %w : f16[128,1] = input
         %y : f16[64,1] = aten.mm(%x,%w)
         return %y""", status="optimal|unsupported"),
    Case("BR-11", "both operands are one buffer", """
         %x : f16[128,128] = input
         %y : f16[128,128] = aten.mm(%x,%x)
         return %y""", status="optimal", cost=0, check=two_operands),
    Case("BR-11", "one role reads a converted copy, the other the original", """
         %x : f16[128,128] = input
         %t : f16[128,128] = aten.t(%x)
         %y : f16[128,128] = aten.mm(%x,%t)
         return %y""", status="optimal", cost=16384, check=original_and_copy),
    Case("BR-12", "a pinned weight is converted on every call: the user is told", LANGUAGE_HEAD, "--pin", "w=order:0,1", execute=False,
         status="optimal", cost=209715200, layouts={"w": [64, 51200, 64], "w:stick0": [800, 4096, 64]},
         check=advises("w", "209715200")),
    Case("BR-12", "a free weight is loaded as it is needed", LANGUAGE_HEAD, execute=False, status="optimal", cost=0,
         layouts={"w": [800, 4096, 64]}, maps={"w": [262144, 1, 4096]}),
    Case("BR-13", "a layout for a tensor that is not there", TWO_INPUTS, "--pin", "c=order:1,0", one_profile=True, status="bad-input", says=["c"]),
    Case("BR-13", "a layout of rank 4 for a matrix", TWO_INPUTS, "--pin", "a=order:3,2,1,0", one_profile=True, status="bad-input", says=["a"]),
    Case("BR-13", "a device layout that does not fit the tensor", TWO_INPUTS.replace("[128,256] = input",
         "[128,256] = input(device_size=[2,3,5,64], stride_map=[64,128,256,1])", 1), one_profile=True, status="bad-input", says=["a"]),
    Case("BR-14", "an op from outside is refused by name", HOST_STEP.replace("aten.cumsum(%x, 0)", "custom.opaque(%x)"),
         status="unsupported", says=["custom.opaque"]),
    Case("BR-14", "a host step's result has a layout of its own, agreed with its reader", HOST_STEP, profile="torch-spyre",
         status="optimal", cost=16384, layouts={"o": [2, 128, 64]}, check=one_host_step),
    Case("BR-14", "the host writes its result in the layout that the reader wants", HOST_STEP, status="optimal", cost=0,
         layouts={"o": [2, 128, 64]}, maps={"o": [8192, 1, 128]}, check=one_host_step),
    Case("BR-54", "layouts of different rank meet: the order of device dims may differ", """
         %a : f16[1,64,128] = input
         %b : f16[64,128] = input
         %s : f16[64,128] = aten.squeeze(%a,0)
         %y : f16[64,128] = aten.add.Tensor(%s,%b)
         return %y""", status="optimal", cost=0, layouts={"a": [64, 2, 1, 64], "b": [2, 64, 64]}),
    Case("BR-55", "a transpose is not free where a matmul follows", MATMUL_TRANSPOSED_MATMUL, status="optimal", cost=16384, converted="p"),
    Case("BR-55", "the user's pin on what the second matmul writes is honoured", MATMUL_TRANSPOSED_MATMUL, "--pin", "y=order:0,1",
         status="optimal", cost=16384),
    Case("BR-55", "a pin that contradicts the matrix unit is named", MATMUL_TRANSPOSED_MATMUL, "--pin", "p=order:1,0", status="infeasible",
         says=["p", "pinned"]),
    Case("BR-56", "a scalar takes no conversion", add("128,64", ""), status="optimal", cost=0),
    Case("BR-56", "a vector of one stick is no broadcast", add("128,64", "64"), status="optimal", cost=0),
    Case("BR-56", "a column of size 1", add("128,64", "128,1"), status="optimal", cost=0, layouts={"s": [1, 128, 64]}, maps={"s": [-1, 1, -1]}),
    Case("BR-56", "a reduced column", """
         %x : f16[128,64] = input
         %s : f16[128,1] = aten.amax(%x,[-1],True)
         %y : f16[128,64] = aten.add.Tensor(%x,%s)
         return %y""", status="optimal", cost=0),
    Case("BR-57", "two matmul results meet, one of them transposed", inputs("a b c d", "128,128") + """
         %p : f16[128,128] = aten.mm(%a,%b)
         %r : f16[128,128] = aten.mm(%c,%d)
         %q : f16[128,128] = aten.t(%r)
         %y : f16[128,128] = aten.add.Tensor(%p,%q)
         return %y""", status="optimal", cost=16384, conversions=1),
    Case("BR-58", "concatenation at a stick's border: written in place", inputs("a b", "64,128") + """
         %p : f16[64,128] = aten.relu(%a)
         %q : f16[64,128] = aten.relu(%b)
         %y : f16[64,256] = aten.cat([%p,%q],1)
         return %y""", status="optimal", cost=0, layouts={"y": [4, 64, 64]},
         check=lambda r: [] if "16384" in r.bundle() else ["no piece starts at byte 16384"]),
    Case("BR-58", "concatenation inside a stick: the stick lies on the other dim", inputs("a b", "64,96") + """
         %p : f16[64,96] = aten.relu(%a)
         %q : f16[64,96] = aten.relu(%b)
         %y : f16[64,192] = aten.cat([%p,%q],1)
         return %y""", status="optimal", layouts={"y": [1, 192, 64]}),
    Case("BR-59", "sizes that are no multiple of a stick: padding is counted, the copy has its own", """
         %a : f16[70,100] = input
         %x : f16[100,70] = input
         %t : f16[100,70] = aten.t(%a)
         %y : f16[100,70] = aten.add.Tensor(%t,%x)
         return %y""", status="optimal", cost=8960, converted="a",
         layouts={"a": [2, 70, 64], "x": [2, 100, 64], "a:stick0": [2, 100, 64]},
         check=lambda r: [] if r.storage("a:stick0")["place"]["bytes"] == 25600 else ["the copy is not 25600 bytes"]),
    Case("BR-60", "all operands count; a pinned weight costs", WEIGHT_AND_OPERAND, "--pin", "w=order:0,1", status="optimal", cost=32768, conversions=2),
    Case("BR-60", "all operands count; a free weight does not", WEIGHT_AND_OPERAND, status="optimal", cost=16384, conversions=1),
    Case("BR-61", "a weight with two readers: one of them reads a copy", WEIGHT_TWICE, "--free-weights", "off", status="optimal", cost=16384, conversions=1),
    Case("BR-61", "a free weight is loaded twice, once for each reader, and nothing is converted", WEIGHT_TWICE, status="optimal", conversions=0),
    Case("BR-61", "raw strides hold for the host's order of the base", """
         %x : f16[128,128] = input
         %p : f16[128,128] = aten.relu(%x)
         %y : f16[128,128] strides=[1,128] = aten.as_strided(%p,[128,128],[1,128],0)
         %z : f16[128,128] = aten.exp(%y)
         return %z""", status="optimal|unsupported"),
    Case("BR-72", "strides of outputs are the graph's; an alias of an input stays one", THERE_AND_BACK + "%tu, %y, %ta", status="optimal",
         cost=16384, conversions=1, strides=[[1, 128], [128, 1], [1, 128]],
         check=lambda r: [] if r.manifest()["outputs"][2]["buffer"] == "a" else ["the alias became a copy"]),
    Case("BR-72", "a contiguous copy of a transposed input is no view of it", """
         %a : f16[128,256] = input
         %t : f16[256,128] strides=[1,256] = aten.t(%a)
         %y : f16[256,128] = aten.contiguous(%t)
         return %y""", strides=[[128, 1]],
         check=lambda r: [] if r.manifest()["outputs"][0]["buffer"] != "a" else ["the copy became an alias"]),
    Case("BR-72", "repeated rows leave as rows of their own", """
         %a : f16[3,64] = input
         %u : f16[1,3,64] = aten.unsqueeze(%a,0)
         %y : f16[2,3,64] = aten.repeat(%u,[2,1,1])
         return %y""", strides=[[192, 64, 1]]),
    Case("BR-72", "a convolution's result is channels first, whatever its lanes are", """
         %x : f16[1,64,8,8] = input
         %w : f16[128,64,1,1] = parameter
         %y : f16[1,128,8,8] = aten.conv2d.default(%x,%w)
         return %y""", strides=[[8192, 64, 8, 1]]),
]
