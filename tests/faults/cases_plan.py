"""Sections E to H: work division, tiles, memory, descriptors and the solver as a product."""
import json, os, re, subprocess

from case import Case, inputs, leaves, same_files
from cases_layout import TIE, pairs_and_tree
from cases_views import COPY_INTO

SPAN = 65535 * 4096


def add(size):
    return inputs("a b", size) + f"%y : f16[{size}] = aten.add.Tensor(%a,%b)\nreturn %y"


def slices_of(run, op, loop):
    return next(o for o in run.result["ops"] if o["name"] == op)["split"][loop]


def columns_in_quarters(run):
    """Every slice of the 64 column tiles is at most 64 / 4 of 12544000 bytes each."""
    specs = [s for s in run.specs() if s["op"] == "add"]
    bad = []
    for s in specs:
        column = s["iteration_space"][-1]
        tiles = column["range"] // 64 // column["split"]
        if tiles * 98000 * 64 * 2 > SPAN:
            bad.append(f"{tiles} column tiles are {tiles * 98000 * 128} bytes")
    return bad


def counts_fit(run):
    """No loop of a kernel is longer than its field, and all sticks are covered."""
    bad, sticks = [], 0
    for b in sorted(run.dir.glob("bundle_*")):
        for f in sorted(b.glob("sdsc_*.json")):
            bad += [f"{f.name}: {k} is {n}" for k, n in numbers(json.loads(f.read_text()), "") if k.startswith("loopCount") and n > 65535]
    for s in run.specs():
        n = 1
        for i in s["iteration_space"]:
            n *= i["range"]
        sticks += s["turns"] * n // 64
    return bad + ([] if sticks == 12582912 else [f"{sticks} of 12582912 sticks"])


def numbers(x, key):
    if isinstance(x, dict):
        for k, v in x.items():
            yield from numbers(v, k)
    elif isinstance(x, list):
        for v in x:
            yield from numbers(v, key)
    elif isinstance(x, int):
        yield key, x


def lx_fits(run):
    """No LX interval ends beyond the bound; s may be there."""
    bad = []
    for s in run.result["storages"]:
        p = s["place"] or {}
        if "lx" in p and p["lx"] + p["bytes"] > 1625344:
            bad.append(f"{s['name']} ends at {p['lx'] + p['bytes']}")
    return bad


def place_of(run, name):
    return next(iter(run.storage(name)["place"]))


ACROSS = """
    %h : f16[64,128] = input
    %w : f16[128,128] = input
    %r : f16[64,128] = aten.mul.Scalar(%h,1.5)
    %t : f16[64,128] = aten.mm(%h,%w)
    STEP
    %y : f16[64,128] = aten.add.Tensor(%o,%r)
    return %y"""


def pools(run):
    """A pool as large as what is in it, and none where nothing is."""
    bad = []
    for b in sorted(run.dir.glob("bundle_*")):
        doc = json.loads((b / "opspec.json").read_text())
        ends = [a["allocation"]["hbm_pool"] for s in leaves(doc["specs"]) for a in s["args"] if "hbm_pool" in a["allocation"]]
        if bool(ends) != bool(doc["pool_size"]) or any(e >= doc["pool_size"] for e in ends):
            bad.append(f"{b.name}: pool of {doc['pool_size']}, addresses {ends}")
    return bad


def moves(run, steps, turns):
    """Bytes that the tensors of the ops in loops move on by in a turn, in order."""
    inside = [s for s in run.specs() if s["turns"] > 1]
    found = [2 * sum(int(k) for k in re.findall(r"floor\((\d+)\*", a.get("device_tile_advance_expr") or "")) for s in inside for a in s["args"]]
    return ([] if found == steps else [f"bytes per turn {found}, expected {steps}"]) + \
        ([] if {s["turns"] for s in inside} == {turns} else ["other turns"])


def stands_alone(run):
    return pools(run) + ([] if place_of(run, "c") == "hbm" else ["c is written in one kernel and read in another, but lies in the pool"])


def decoder(n):
    """n decoder layers of 64 tokens and 128 channels: two norms, four projections, attention, a gated MLP."""
    head, body, x = ["%x : f16[64,128] = input"], [], "x"
    for i in range(n):
        for name, size in (("q", "128,128"), ("k", "128,128"), ("v", "128,128"), ("o", "128,128"), ("g", "128,256"), ("u", "128,256"), ("d", "256,128")):
            head.append(f'%w{name}{i} : f16[{size}] = parameter("{i}.{name}")')
        mm = lambda out, a, w, width: f"%{out}{i} : f16[64,{width}] = aten.mm(%{a}, %{w})"
        body += [f"%n{i} : f16[64,128] = aten.rms_norm(%{x}, [128])",
                 *[mm(k, f"n{i}", f"w{k}{i}", 128) for k in "qkv"],
                 f"%kt{i} : f16[128,64] strides=[1,128] = aten.t(%k{i})", mm("s", f"q{i}", f"kt{i}", 64),
                 f"%p{i} : f16[64,64] = aten._softmax(%s{i}, -1, False)", mm("a", f"p{i}", f"v{i}", 128), mm("o", f"a{i}", f"wo{i}", 128),
                 f"%h{i} : f16[64,128] = aten.add.Tensor(%{x}, %o{i})", f"%m{i} : f16[64,128] = aten.rms_norm(%h{i}, [128])",
                 mm("g", f"m{i}", f"wg{i}", 256), mm("u", f"m{i}", f"wu{i}", 256), f"%z{i} : f16[64,256] = aten.silu(%g{i})",
                 f"%y{i} : f16[64,256] = aten.mul.Tensor(%z{i}, %u{i})", mm("d", f"y{i}", f"wd{i}", 128),
                 f"%x{i} : f16[64,128] = aten.add.Tensor(%h{i}, %d{i})"]
        x = f"x{i}"
    return "\n".join(head + body + [f"return %{x}"]) + "\n"


def grows_gently(run):
    """Ten times the layers take at most twelve times as long (processor time of the process, the better of two), and memory stays
    below 512 MB; a sanitizer's shadow and kept memory come on top."""
    with open(os.environ["SW"], "rb") as f:
        most = 1024 if b"__asan_init" in f.read() else 512
    def cost(layers):
        found = []
        for _ in range(2):
            model = run.model.with_name(f"{layers}.graph")
            model.write_text(decoder(layers))
            p = subprocess.Popen([os.environ["SW"], "compile", model, "--json", "--verify=never"], stdout=subprocess.PIPE)
            status = json.load(p.stdout)["status"]
            _, _, used = os.wait4(p.pid, 0)
            if status != "optimal":
                return None, status
            found.append(used.ru_utime + used.ru_stime)
        return min(found), used.ru_maxrss / 1024
    small, large = cost(10), cost(100)
    if small[0] is None or large[0] is None:
        return [f"10 layers: {small}, 100 layers: {large}"]
    return [f"{small[0]:.2f} s for 10 layers, {large[0]:.2f} s for 100"] * (large[0] > 12 * small[0]) + \
           [f"100 layers take {large[1]:.0f} MB"] * (large[1] > most)


CASES = [
    Case("BR-38", "98000 x 4096 on one core: in pieces, or refused", add("98000,4096"), "--cores", "1", execute=False,
         status="optimal|infeasible|unsupported", check=lambda r: columns_in_quarters(r) if r.dir.exists() else []),
    Case("BR-38", "98000 x 4096 on 32 cores: at least four slices of the columns", add("98000,4096"), execute=False, status="optimal",
         check=columns_in_quarters),
    Case("BR-39", "805306368 elements on 4 cores: counts fit their field and cover all", add("1,1,1,805306368"), "--cores", "4", execute=False,
         status="optimal", check=counts_fit),
    Case("BR-40", "tiles of one row", add("1,20,16,64"), status="optimal", layouts={"a": [20, 16, 1, 1, 64]}),
    Case("BR-41", "a minimum over eight sticks", """
         %x : f16[64,512] = input
         %y : f16[64] = aten.amin(%x,[-1])
         return %y""", status="optimal", layouts={"x": [8, 64, 64]}),
    Case("BR-42", "blocks of rows with 64 sticks each: distances are the whole tensor's", """
         %x : f16[1024,4096] = input
         %y : f16[1024,4096] = aten.relu(%x)
         return %y""", "--split", "y=2,1", execute=False, one_profile=True, status="optimal", layouts={"x": [64, 1024, 64]},
         check=lambda r: [] if "65536" in r.bundle() else ["no block starts at byte 65536"]),
    Case("BR-43", "a maximum without, and a matmul with the key dim", """
         %s : f16[2,64,256] = input
         %v : f16[2,256,64] = input
         %m : f16[2,64]     = aten.amax(%s,[-1])
         %o : f16[2,64,64]  = aten.bmm(%s,%v)
         return %m,%o""", status="optimal", cost=0),
    Case("BR-39", "and in two tiles", add("1,1,1,805306368"), "--cores", "4", "--tile", "a:3=2", execute=False, one_profile=True, status="optimal",
         check=counts_fit),
    Case("BR-40", "in a loop of 20 tiles, each 1024 elements further on", add("1,20,16,64"), "--tile", "a:1=20", one_profile=True, status="optimal",
         check=lambda r: moves(r, [2048, 2048, 2048], 20)),
    Case("BR-41", "in tiles of two sticks: only the input moves", """
         %x : f16[64,512] = input
         %y : f16[64] = aten.amin(%x,[-1])
         return %y""", "--tile", "x:1=4", one_profile=True, status="optimal",
         check=lambda r: moves(r, [16384, 0, 0, 0, 0], 4)),
    Case("BR-42", "two blocks of rows in a loop: the second one starts at byte 65536", """
         %x : f16[1024,4096] = input
         %y : f16[1024,4096] = aten.relu(%x)
         return %y""", "--tile", "x:0=2", execute=False, one_profile=True, status="optimal",
         check=lambda r: moves(r, [65536, 65536], 2) + ([] if r.specs()[0]["args"][0]["device_size"] == [64, 1024, 64] else ["the buffer shrank"])),
    Case("BR-43", "in four tiles of the key dim, each reduction with its own accumulator", """
         %s : f16[2,64,256] = input
         %v : f16[2,256,64] = input
         %m : f16[2,64]     = aten.amax(%s,[-1])
         %o : f16[2,64,64]  = aten.bmm(%s,%v)
         return %m,%o""", "--tile", "s:2=4", one_profile=True, status="optimal",
         check=lambda r: [] if sum(s["turns"] == 4 for s in r.specs()) == 4 else ["the loop has not two reductions and two combinations"]),
    Case("BR-40", "a dim that is no tensor's is refused, not passed over", add("1,20,16,64"), "--tile", "1=20", one_profile=True,
         status="usage", says=["tile"]),
    Case("BR-44", "LX holds what one core has of a tensor: 1 MiB of 32", """
         %x : f16[4096,4096] = input
         %r : f16[4096,4096] = aten.relu(%x)
         %y : f16[4096,4096] = aten.neg(%r)
         return %y""", execute=False, status="optimal",
         check=lambda r: [] if r.storage("r")["place"].get("bytes") == 1048576 and place_of(r, "r") == "lx" else [f"r: {r.storage('r')['place']}"]),
    Case("BR-45", "1589248 bytes on one core fit", """
         %x : f16[32,24832] = input
         %s : f16[32,24832] = aten.mul.Tensor(%x,%x)
         %y : f16[32] = aten.mean.dim(%s,[-1])
         return %y""", "--cores", "1", execute=False, status="optimal", check=lx_fits),
    Case("BR-45", "1638400 bytes on one core do not", """
         %x : f16[32,25600] = input
         %s : f16[32,25600] = aten.mul.Tensor(%x,%x)
         %y : f16[32] = aten.mean.dim(%s,[-1])
         return %y""", "--cores", "1", profile="torch-spyre", execute=False, status="optimal",
         check=lambda r: lx_fits(r) + (["s is in LX"] if place_of(r, "s") == "lx" else [])),
    Case("BR-46", "nothing lies in LX across a host step", ACROSS.replace("STEP", "%o : f16[64,128] = aten.cumsum(%t, 0)"), status="optimal",
         check=lambda r: (["r is in LX"] if place_of(r, "r") == "lx" else []) + ([] if r.storage("r")["not_in_lx"] else ["no reason given"])),
    Case("BR-46", "an op that only fills is no barrier", ACROSS.replace("STEP", """
         %e : f16[64,128] = aten.empty([64,128])
         %f : f16[64,128] = aten.fill.Scalar(%e, 2.0)
         %o : f16[64,128] = aten.add.Tensor(%f,%t)"""), status="optimal",
         check=lambda r: [] if place_of(r, "r") == "lx" else [f"r: {r.storage('r')['place']}, {r.storage('r')['not_in_lx']}"]),
    Case("BR-47", "written in one kernel, read in the next: no place in the pool", COPY_INTO.replace("return %e, %m", """
         %o : f16[128,128] = aten.cumsum(%m, 0)
         %z : f16[128,128] = aten.add.Tensor(%o, %m)
         return %e, %z"""), status="optimal", check=stands_alone),
    Case("BR-48", "ten inputs in one program", "".join(f"%x{i} : f16[64,64] = input\n" for i in range(10)) +
         "%s1 : f16[64,64] = aten.add.Tensor(%x0,%x1)\n" +
         "".join(f"%s{i} : f16[64,64] = aten.add.Tensor(%s{i - 1},%x{i})\n" for i in range(2, 10)) + "return %s9", status="optimal",
         check=lambda r: [] if all(len(set(s["args"])) == len(s["args"]) for s in r.manifest()["steps"]) else ["an argument twice"]),
    Case("BR-49", "attention with values of another size than queries", """
         %q : f16[4,64,128] = input
         %k : f16[4,64,128] = input
         %v : f16[4,64,64] = input
         %t : f16[4,128,64] = aten.transpose(%k,1,2)
         %s : f16[4,64,64] = aten.bmm(%q, %t)
         %p : f16[4,64,64] = aten._softmax(%s,-1,False)
         %o : f16[4,64,64] = aten.bmm(%p,%v)
         return %o""", status="optimal", cost=32768, converted="k"),
    Case("BR-50", "no work left for the solver: there is a plan all the same, and it says how good", pairs_and_tree(40), "--budget", "1",
         execute=False, status="feasible|optimal"),
    Case("BR-51", "the same bytes again", pairs_and_tree(8), status="optimal", twice=same_files),
    Case("BR-52", "compile time grows with the graph, not with its square", decoder(1), execute=False, one_profile=True, status="optimal",
         check=grows_gently),
    Case("BR-53", "the result names the method that ran", TIE, "--solver", "greedy", status="feasible",
         check=lambda r: [] if r.result["solver"]["name"] == "greedy" else [r.result["solver"]["name"]]),
]
