#!/usr/bin/env python3
"""Single faults in emitted files: `verify` must report them.

  mutations.py [--count N] [--seed S] [--show]

A few small graphs are compiled; then one thing in one file is changed at a time: a size, a gap, an order, a scale, a
core's slot, an address, an offset or bound in bundle.mlir, a mask, a constant, an op, an operand, a layout or a step of the
manifest. A fault counts as missed when verify says that all is well. Those that can't matter are named in HARMLESS, with
the reason."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

SW, SOURCE = os.environ["SW"], pathlib.Path(os.environ["SW_SOURCE"])

GRAPHS = {
    "mm_odd": ("%a : f16[65,100] = input\n%b : f16[100,70] = input\n%y : f16[65,70] = aten.mm.default(%a, %b)\nreturn %y\n", ["--cores", "4"]),
    # as softmax, with the difference as a second result: softmax itself hides a wrong shift
    "softmax": ("%a : f16[8,100] = input\n%m : f16[8,1] = aten.amax.default(%a, [-1], True)\n%s : f16[8,100] = aten.sub.Tensor(%a, %m)\n"
                "%e : f16[8,100] = aten.exp.default(%s)\n%u : f16[8,1] = aten.sum.dim_IntList(%e, [-1], True)\n"
                "%y : f16[8,100] = aten.div.Tensor(%e, %u)\nreturn %y, %s\n", ["--cores", "4"]),
    "slice": ("%a : f16[64,256] = input\n%s : f16[16,256] = aten.slice.Tensor(%a, 0, 8, 24)\n%e : f16[16,256] = aten.abs.default(%s)\n"
              "%t : f16[256,16] = aten.t.default(%e)\n%y : f16[256,16] = aten.sub.Tensor(%t, 0.5)\nreturn %y\n", ["--cores", "4"]),
    "chain": ("%a : f16[64,128] = input\n%b : f16[128,64] = input\n%t : f16[128,64] = aten.t.default(%a)\n%u : f16[128,64] = aten.add.Tensor(%t, %b)\n"
              "%r : f16[64,64] = aten.mm.default(%a, %u)\n%y : f16[64] = aten.sum.dim_IntList(%r, [1])\nreturn %r, %y\n", ["--cores", "8"]),
    # small values, so that eps counts
    "norm": ("%x : f16[16,256] = input\n%z : f16[16,256] = aten.mul.Tensor(%x, 0.004)\n"
             "%y : f16[16,256] = aten.layer_norm.default(%z, [256])\nreturn %y\n", ["--cores", "4"]),
    "host": ("%x : f16[16,128] = input\n%e : f16[16,128] = aten.exp.default(%x)\n%c : f16[16,128] = aten.cumsum.default(%e, 0)\n"
             "%y : f16[16,128] = aten.sub.Tensor(%c, %x)\nreturn %y\n", ["--cores", "2"]),
}
MODELS = ["add_transpose", "softmax_block"]
COMMUTES = {"add", "mul", "maximum", "minimum", "equal", "notequal"}
OTHER = {"add": "sub", "sub": "add", "mul": "add", "realdiv": "mul", "exp": "neg", "neg": "abs", "abs": "neg", "max": "min", "sum": "max",
         "maxnonstick": "minnonstick", "sumnonstick": "maxnonstick", "batchmatmul": "add", "identity": "ReStickifyOpHBM",
         "ReStickifyOpHBM": "identity", "exx2": "sum", "layernormscale": "layernormnorm", "layernormnorm": "where3", "mean": "max"}


def body(j):
    top = next(iter(j.values()))
    return top, next(iter(top["dscs_"][0].values()))


def bump(r, n):
    """A different number near n."""
    return n + r.choice([1, -1, 2, 64, -64, n or 3])


def size(r, j):
    _, b = body(j)
    d = r.choice([k for k, v in b["N_"].items() if isinstance(v, int)])
    b["N_"][d] = max(1, bump(r, b["N_"][d]))


def slices(r, j):
    top, b = body(j)
    where = r.choice([b["dataStageParam_"]["0"]["ss_"], b["dataStageParam_"]["0"]["el_"], top["numWkSlicesPerDim_"]])
    d = r.choice([k for k, v in where.items() if isinstance(v, int)])
    where[d] = max(1, bump(r, where[d]))


def both_slices(r, j):
    """The same wrong slice wherever it is printed, and the size with it."""
    top, b = body(j)
    d = r.choice(list(top["numWkSlicesPerDim_"]))
    n = max(1, bump(r, b["dataStageParam_"]["0"]["ss_"][d + "_"]))
    for s in ("ss_", "el_"):
        b["dataStageParam_"]["0"][s][d + "_"] = n
    b["N_"][d + "_"] = n * top["numWkSlicesPerDim_"][d]


def gap(r, j):
    _, b = body(j)
    hbm = [t for t in b["scheduleTree_"] if t["component_"] == "hbm"]
    if not hbm:
        return
    t = r.choice(hbm)
    old = t.get("backGapCore_")
    if old:
        d = r.choice(list(old))
        old[d]["-1"] = str(max(0, bump(r, int(old[d]["-1"]))))
    else:
        t["backGapCore_"] = {r.choice(t["layoutDimOrder_"]): {"-1": str(r.choice([1, 8, 64, 128]))}}


def core_map(r, j):
    top, _ = body(j)
    c = r.choice(list(top["coreIdToWkSlice_"].values()))
    d = r.choice(list(c))
    c[d] = max(0, c[d] + r.choice([1, -1, 2]))


def swap_cores(r, j):
    top, _ = body(j)
    m = top["coreIdToWkSlice_"]
    if len(m) < 2:
        return
    a, b = r.sample(list(m), 2)
    m[a], m[b] = m[b], m[a]


def address(r, j):
    _, b = body(j)
    data = r.choice(b["scheduleTree_"])["startAddressCoreCorelet_"]["data_"]
    c = r.choice(list(data))
    data[c] = str(bump(r, int(data[c])) if not data[c].startswith("-") else int(data[c]) - r.choice([1, -1, 2]))


def order(r, j):
    _, b = body(j)
    t = r.choice(b["scheduleTree_"])["layoutDimOrder_"]
    if len(t) > 1:
        a, c = r.sample(range(len(t)), 2)
        t[a], t[c] = t[c], t[a]


def label_order(r, j):
    _, b = body(j)
    p = r.choice(list(b["primaryDsInfo_"].values()))
    if r.random() < 0.5 and len(p["layoutDimOrder_"]) > 1:
        p["layoutDimOrder_"].reverse()
    else:
        p["stickDimOrder_"] = [r.choice([d for d in p["layoutDimOrder_"] if d not in p["stickDimOrder_"]] or ["none"])]


def stick_size(r, j):
    _, b = body(j)
    p = r.choice(list(b["primaryDsInfo_"].values()))
    p["stickSize_"] = [p["stickSize_"][0] * r.choice([2, 4]) // r.choice([1, 4])]


def scale(r, j):
    _, b = body(j)
    s = r.choice(b["labeledDs_"])["scale_"]
    i = r.randrange(len(s))
    s[i] = r.choice([v for v in (1, -1, -2, 2) if v != s[i]])


def label(r, j):
    _, b = body(j)
    t = r.choice(b["labeledDs_"])
    t["dsType_"] = r.choice([x for x in ("OUTPUT", "INPUT", "KERNEL") if x != t["dsType_"]])


def number_format(r, j):
    _, b = body(j)
    t = r.choice(b["labeledDs_"])
    t["dataFormat_"] = r.choice([f for f in ("SEN169_FP16", "IEEE_FP32", "IEEE_INT32", "SEN143_FP8") if f != t["dataFormat_"]])


def component(r, j):
    _, b = body(j)
    t = r.choice(b["scheduleTree_"])
    t["component_"] = "lx" if t["component_"] == "hbm" else "hbm"


def mask(r, j):
    _, b = body(j)
    if b["coordinateMasking_"]:
        d = r.choice(list(b["coordinateMasking_"]))
        how = r.randrange(4)
        if how == 0:
            del b["coordinateMasking_"][d]
        elif how == 1:
            b["maskingConstId_"] += r.choice([1, -1, 2])
        else:
            b["coordinateMasking_"][d][0][how - 2] += r.choice([1, -1, 4])
    elif r.random() < 0.5:
        b["maskingConstId_"] = 0
    else:
        d = r.choice([k[:-1] for k, v in b["N_"].items() if isinstance(v, int)])
        n = b["N_"][d + "_"]
        b["coordinateMasking_"][d] = [[max(0, n - 4), min(n, 4)]]


def constant(r, j):
    _, b = body(j)
    if not isinstance(b["constantInfo_"], dict) or not b["constantInfo_"]:
        return
    c = r.choice(list(b["constantInfo_"].values()))["data_"]["data_"]["[0, 0, 0]"]
    c[0] ^= 1 << r.randrange(9, 15)


def op(r, j):
    top, b = body(j)
    fn = b["computeOp_"][0]["opFuncName"]
    new = OTHER.get(fn)
    if not new:
        return
    if r.random() < 0.3:
        b["computeOp_"][0]["opFuncName"] = new
        return
    b["computeOp_"][0]["opFuncName"] = new
    key = next(iter(j))
    top["dscs_"][0] = {new: b}
    j[key.split("_")[0] + "_" + new] = j.pop(key)


def operand(r, j):
    _, b = body(j)
    c = b["computeOp_"][0]
    ins = c["inputLabeledDs"]
    how = r.randrange(3)
    if how == 0 and len(ins) > 1 and c["opFuncName"] not in COMMUTES and c["outputLabeledDs"][0] not in ins:
        ins[0], ins[1] = ins[1], ins[0]
    elif how == 1 and len(ins) > 1 and c["outputLabeledDs"][0] not in ins:
        ins[r.randrange(len(ins))] = c["outputLabeledDs"][0]
    elif how == 2 and c["outputLabeledDs"][0] not in ins:
        c["outputLabeledDs"][0] = ins[0]


def cores(r, j):
    top, b = body(j)
    where = r.choice([(top, "numCoresUsed_"), (b, "numCoresUsed_")])
    where[0][where[1]] += r.choice([1, -1])


def leaf(r, j):
    """Any number of the coordinate description: it only repeats, so it must agree."""
    _, b = body(j)
    t = r.choice(b["scheduleTree_"])
    info = r.choice(list(t["coordinates_"]["coordInfo"].values()))["folds"]
    if r.random() < 0.5:
        f = r.choice([f for f in info["dim_prop_func"] if "Affine" in f])["Affine"]
        f["alpha_"] = f["alpha_"] + r.choice([1, 64])
    else:
        r.choice(info["dim_prop_attr"])["factor_"] += r.choice([1, 2])


JSON = [size, slices, both_slices, gap, core_map, swap_cores, address, order, label_order, stick_size, scale, label, number_format,
        component, mask, constant, op, operand, cores, leaf]


def mlir_number(r, lines):
    """An offset, a pool size or a bound."""
    at = [i for i, l in enumerate(lines) if "arith.constant" in l or "device_mem_allocate" in l]
    if at:
        i = r.choice(at)
        m = re.search(r"(constant|allocate) (\d+)", lines[i])
        n = int(m[2])
        # fewer pool bytes than used; more do no harm
        new = n // 2 if m[1] == "allocate" else max(0, n + r.choice([2, 64, 128, -128, 1024, n or 1]))
        lines[i] = lines[i][:m.start(2)] + str(new) + lines[i][m.end(2):]


def mlir_operand(r, lines):
    at = [i for i, l in enumerate(lines) if "arith.addi" in l]
    if at:
        i = r.choice(at)
        bases = sorted(set(re.findall(r"%(?:arg_\d+|pool)(?=[ ,])", "\n".join(l for l in lines if "extract" in l or "allocate" in l))))
        other = [b for b in bases if f"addi {b}," not in lines[i] and f"addi {b}_" not in lines[i]]
        if other:
            lines[i] = re.sub(r"addi %\w+,", f"addi {r.choice(other)},", lines[i])


def mlir_ids(r, lines):
    at = [i for i, l in enumerate(lines) if "sdsc_execute" in l]
    i = r.choice(at)
    how = r.randrange(4)
    if how == 0:
        del lines[i]
    elif how == 1 and len(at) > 1:
        k = r.choice([k for k in at if k != i])
        lines[i], lines[k] = lines[k], lines[i]
    elif how == 2:
        ids = re.search(r"\[([-\d, ]+)\]", lines[i])
        if ids and "," in ids[1]:
            n = ids[1].split(", ")
            n[0], n[-1] = n[-1], n[0]
            lines[i] = lines[i][:ids.start(1)] + ", ".join(n) + lines[i][ids.end(1):]
    else:
        names = re.findall(r"%\w+", lines[i])
        if len(names) > 1:
            lines[i] = lines[i].replace(names[0] + ",", names[-1] + ",", 1)


MLIR = [mlir_number, mlir_operand, mlir_ids]


def manifest_layout(r, m):
    b = r.choice([b for b in m["buffers"] if b["layout"]])
    l = b["layout"]
    how = r.randrange(4)
    k = r.randrange(len(l["device_size"]))
    if how == 0:
        l["device_size"][k] = max(1, l["device_size"][k] + r.choice([1, -1]))
    elif how == 1:
        l["stride_map"][k] += r.choice([1, 64, -1])
    elif how == 2:
        l["format"] = "IEEE_FP32" if l["format"] == "SEN169_FP16" else "SEN169_FP16"
    else:
        l["device_size"][0], l["device_size"][1] = l["device_size"][1], l["device_size"][0]


def manifest_size(r, m):
    b = r.choice([b for b in m["buffers"] if b["size"]])
    b[r.choice(["size", "stride"])][r.randrange(len(b["size"]))] += r.choice([1, 2])


def manifest_args(r, m):
    s = r.choice([s for s in m["steps"] if "kernel" in s])
    how = r.randrange(3)
    if how == 0 and len(s["args"]) > 1:
        i, k = r.sample(range(len(s["args"])), 2)
        s["args"][i], s["args"][k] = s["args"][k], s["args"][i]
    elif how == 1:
        s["args"].pop(r.randrange(len(s["args"])))
    else:
        s["args"].append(s["args"][0])


def manifest_steps(r, m):
    if len(m["steps"]) > 1 and r.random() < 0.5:
        m["steps"].reverse()
    else:
        m["steps"].pop(r.randrange(len(m["steps"])))


def manifest_output(r, m):
    o = r.choice([o for o in m["outputs"] if "buffer" in o])
    how = r.randrange(3)
    if how == 0:
        others = [b["name"] for b in m["buffers"] if b["name"] != o["buffer"]]
        o["buffer"] = r.choice(others)
    elif how == 1 and o["size"]:
        o["size"][r.randrange(len(o["size"]))] -= 1
    else:
        o["offset"] += 1


MANIFEST = [manifest_layout, manifest_size, manifest_args, manifest_steps, manifest_output]


def strides(b, i):
    """The stride of each dim of tensor i that has more than one step: what section M4 makes of the file."""
    t, lds = b["scheduleTree_"][i], b["labeledDs_"][i]
    info = b["primaryDsInfo_"][lds["dsType_"]]
    scales = dict(zip(info["layoutDimOrder_"], lds["scale_"]))
    out, stride = {}, 1
    for d in t["layoutDimOrder_"]:
        e = info["stickSize_"][0] if d == info["stickDimOrder_"][0] else 1
        n = b["N_"][d + "_"] if t["component_"] == "hbm" else b["dataStageParam_"]["0"]["ss_"][d + "_"]
        if scales[d] == 1 and n > e:
            out[d] = stride
        n += int((t.get("backGapCore_") or {}).get(d, {}).get("-1", 0))
        stride *= -(-n // e) if scales[d] == 1 else 1
    return out


def harmless(model, how, before, after):
    """Why a change can't matter, or None."""
    if model == "softmax_block" and how is order and any(k.endswith("_max") for k in before):
        return "a softmax hides a shift that is another row's"
    if how in (gap, order):
        _, a = body(before)
        _, b = body(after)
        if all(strides(a, i) == strides(b, i) for i in range(len(a["scheduleTree_"]))):
            return "no element moves: its dims have one step, or its gap is outermost"
    if how is swap_cores:
        _, b = body(after)
        slices = body(after)[0]["numWkSlicesPerDim_"]
        if all(t["component_"] == "lx" for t in b["scheduleTree_"]) and all(slices[d] == 1 for d in b["coordinateMasking_"]):
            return "all tensors in scratchpads: a core works on its own, whatever its slot"
    if how is manifest_layout:
        for b, c in zip(before["buffers"], after["buffers"]):
            if b == c or b["layout"]["format"] != c["layout"]["format"]:
                continue
            x, y = ([p for p in zip(l["device_size"], l["stride_map"]) if p[0] > 1] for l in (b["layout"], c["layout"]))
            if x == y:
                return "a device dim of size 1"
            if not b["size"] and b["kind"] == "constant" and b["layout"]["device_size"] == c["layout"]["device_size"]:
                return "the lanes behind a scalar"
    return None


def cases(tmp):
    for name, (text, options) in GRAPHS.items():
        f = tmp / (name + ".graph")
        f.write_text(text)
        yield f, options
    for m in MODELS:
        yield SOURCE / f"data/models/{m}.pt2", []


def verify(d, model, io):
    run = subprocess.run([SW, "verify", d, "--model", model, *io], capture_output=True, text=True, timeout=120)
    return run.returncode, (run.stderr + run.stdout).strip()


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--count", type=int, default=150)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--show", action="store_true")
    a.add_argument("--keep", help="a folder for the directories whose fault was missed")
    a.add_argument("--kind", help="only this kind of change")
    o = a.parse_args()
    r = random.Random(o.seed)
    with tempfile.TemporaryDirectory() as t:
        tmp = pathlib.Path(t)
        built = []
        for model, options in cases(tmp):
            out = tmp / ("out_" + model.stem)
            run = subprocess.run([SW, "compile", model, "-o", out, *options], capture_output=True, text=True)
            io = model.with_name(model.stem + ".io.json")
            io = ["--inputs", io] if io.exists() else []
            rc, said = verify(out, model, io) if run.returncode == 0 else (run.returncode, run.stderr)
            if rc:
                print(f"{model.stem}: not right to begin with: {said}")
                return 1
            built.append((model, out, io))
        made = missed = 0
        by_harmless, kinds = {}, {}
        for _ in range(o.count * (100 if o.kind else 5)):
            if made == o.count:
                break
            model, out, io = r.choice(built)
            group = r.choice([JSON, JSON, JSON, MLIR, MANIFEST])
            how = r.choice(group)
            if o.kind and how.__name__ != o.kind:
                continue
            f = r.choice(sorted(out.glob("bundle_*/sdsc_*.json" if group is JSON else "bundle_*/bundle.mlir" if group is MLIR else "manifest.json")))
            text = f.read_text()
            before = text.split("\n") if group is MLIR else json.loads(text)
            after = text.split("\n") if group is MLIR else json.loads(text)
            how(r, after)
            if after == before:
                continue
            why = harmless(model.stem, how, before, after)
            if why:
                by_harmless[why] = by_harmless.get(why, 0) + 1
                continue
            f.write_text("\n".join(after) if group is MLIR else json.dumps(after, indent=2))
            try:
                rc, said = verify(out, model, io)
            except subprocess.TimeoutExpired:
                rc, said = -1, "more than 120 s"
            made += 1
            k = kinds.setdefault(how.__name__, [0, 0])
            k[0] += 1
            if rc not in (1, 65):
                missed += 1
                k[1] += 1
                print(f"MISSED {model.stem} {f.relative_to(out)} {how.__name__}: exit {rc} {said[:200] if rc else ''}")
                show(before, after)
                if o.keep:
                    shutil.copytree(out, pathlib.Path(o.keep) / f"{made}_{how.__name__}")
            elif o.show:
                print(f"{how.__name__}: {said[:160]}")
            f.write_text(text)
    for name, (n, m) in sorted(kinds.items()):
        print(f"  {name}: {n} made" + (f", {m} missed" if m else ""))
    print(f"{made} faults, {missed} missed; harmless ones left out: {by_harmless}")
    return made != o.count or missed > made * 0.005


def show(before, after):
    a = before if isinstance(before, list) else json.dumps(before, indent=1).split("\n")
    b = after if isinstance(after, list) else json.dumps(after, indent=1).split("\n")
    for x, y in zip(a, b):
        if x != y:
            print("   ", x.strip(), "->", y.strip())
            break


sys.exit(main())
