#!/usr/bin/env python3
"""Wrong plans: `verify` must report every one that is not a plan any more, and no other.

  plan_mutations.py [--count N] [--seed S] [--show]

A few graphs are compiled; then one decision of the plan is changed at a time, in all files that repeat it: where a buffer lies in
the scratchpads or in the pool (an address, or the place of another buffer), when it lives (the order of two ops), how an op
is cut over the cores, which core does which slice, who owns the parts of a relayout, how much memory there is, how often a loop runs and
how far it moves on; two buffers change places. Whether the result is still a plan is judged here, by brute force and from the
files alone: stick by stick, what each core of each op makes of what. The results must be made of the same things in the same
way as before, nothing may lie outside its memory, and no op may write what it still reads."""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

SW = os.environ["SW"]

GRAPHS = {
    # a relayout between matmul and bias, LX and pool side by side
    "linear": ("%x : f16[64,256] = input\n%w : f16[512,256] = input\n%b : f16[512] = input\n"
               "%l : f16[64,512] = aten.linear.default(%x, %w, %b)\n%y : f16[64,512] = aten.relu.default(%l)\nreturn %y\n",
               ["--profile", "torch-spyre", "--cores", "8"]),
    # with the difference as a second result: a softmax alone hides a wrong shift
    "softmax": ("%x : f16[64,256] = input\n%m : f16[64,1] = aten.amax.default(%x, [-1], True)\n%s : f16[64,256] = aten.sub.Tensor(%x, %m)\n"
                "%e : f16[64,256] = aten.exp.default(%s)\n%u : f16[64,1] = aten.sum.dim_IntList(%e, [-1], True)\n"
                "%y : f16[64,256] = aten.div.Tensor(%e, %u)\nreturn %y, %s\n", ["--cores", "4"]),
    # no scratchpad: all of it in the pool
    "pool": ("%x : f16[64,256] = input\n%a : f16[64,256] = aten.exp.default(%x)\n%s : f16[64,1] = aten.sum.dim_IntList(%a, [1], True)\n"
             "%d : f16[64,256] = aten.div.Tensor(%a, %s)\n%n : f16[64,256] = aten.neg.default(%d)\n"
             "%y : f16[64,256] = aten.mul.Tensor(%n, %a)\nreturn %y\n", ["--cores", "4", "--lx", "off"]),
    "two products": ("%x : f16[64,128] = input\n%w : f16[128,256] = input\n%v : f16[256,64] = input\n%h : f16[64,256] = aten.mm.default(%x, %w)\n"
                     "%g : f16[64,256] = aten.silu.default(%h)\n%m : f16[64,256] = aten.mul.Tensor(%g, %h)\n"
                     "%y : f16[64,64] = aten.mm.default(%m, %v)\nreturn %y\n", ["--cores", "8"]),
    "turned": ("%a : f16[128,192] = input\n%b : f16[192,128] = input\n%t : f16[192,128] strides=[1,192] = aten.t.default(%a)\n"
               "%s : f16[192,128] = aten.add.Tensor(%t, %b)\n%e : f16[192,128] = aten.exp.default(%s)\n"
               "%y : f16[192,128] = aten.mul.Tensor(%e, %s)\nreturn %y\n", ["--cores", "4"]),
}
# two loops, one in the other: an accumulator outside, a buffer in the scratchpads that each turn has anew
LOOPS = {
    "loops": ("%x : f16[64,128] = input\n%w : f16[128,128] = input\n%v : f16[128,64] = input\n%h : f16[64,128] = aten.mm.default(%x, %w)\n"
              "%r : f16[64,128] = aten.relu.default(%h)\n%y : f16[64,64] = aten.mm.default(%r, %v)\nreturn %y\n",
              ["--tile", "x:0=2", "--tile", "w:1=2", "--cores", "4"]),
    "copied": ("%x : f16[64,256] = input\n%z : f16[64,256] = input\n%s : f16[64,256] = aten.add.Tensor(%x, %z)\n"
               "%y : f16[64,256] = aten.mul.Tensor(%s, %x)\nreturn %y\n", ["--tile", "x:0=4", "--cores", "2", "--profile", "torch-spyre"]),
    # a loop over columns around a part of the program: what it reads and writes outside in slices of sticks
    "columns": ("%x : f16[64,256] = input\n%m : f16[64,1] = input\n%a : f16[256,512] = input\n%b : f16[256,512] = input\n%d : f16[512,64] = input\n"
                "%p : f16[64,512] = aten.mm.default(%x, %a)\n%q : f16[64,512] = aten.mm.default(%x, %b)\n%r : f16[64,512] = aten.mul.Tensor(%q, %m)\n"
                "%s : f16[64,512] = aten.add.Tensor(%p, %r)\n%y : f16[64,64] = aten.mm.default(%s, %d)\nreturn %y\n",
                ["--cores", "4", "--lx-bytes", "16384", "--constant", "spill_area=1024"]),
}


# -- what a bundle does, from its files (superdsc.md section 16) --

class Op:
    """One sdsc file."""
    def __init__(self, text):
        self.json = json.loads(text)
        top = next(iter(self.json.values()))
        self.top, self.body = top, next(iter(top["dscs_"][0].values()))
        b = self.body
        self.fn = b["computeOp_"][0]["opFuncName"]
        self.dims = [k[:-1] for k, v in b["N_"].items() if isinstance(v, int)]
        self.size = {d: b["N_"][d + "_"] for d in self.dims}
        self.slice = {d: b["dataStageParam_"]["0"]["ss_"][d + "_"] for d in self.dims}
        self.cores = top["numCoresUsed_"]
        self.slot = [top["coreIdToWkSlice_"][str(c)] for c in range(self.cores)]
        self.out = int(b["computeOp_"][0]["outputLabeledDs"][0].split("idx")[1])
        self.tensors = [Tensor(self, i) for i in range(len(b["scheduleTree_"]))]
        self.reduced = [d for d in self.dims if self.tensors[self.out].scale.get(d, -1) < 0]
        self.inputs = [i for i in range(len(self.tensors)) if i != self.out]


class Tensor:
    def __init__(self, op, i):
        node, lds = op.body["scheduleTree_"][i], op.body["labeledDs_"][i]
        label = op.body["primaryDsInfo_"][lds["dsType_"]]
        self.scale = dict(zip(label["layoutDimOrder_"], lds["scale_"]))
        self.order = node["layoutDimOrder_"]
        self.max_dim = dict(zip(self.order, node["maxDimSizes_"]))
        self.stick, self.e = label["stickDimOrder_"][0], label["stickSize_"][0]
        self.is_lx = node["component_"] == "lx"
        self.gap = {d: int(g["-1"]) for d, g in node.get("backGapCore_", {}).items()}
        self.start = [int(node["startAddressCoreCorelet_"]["data_"][f"[{c}, 0, 0]"]) for c in range(op.cores)]
        self.own = [node["coordinates_"]["coreIdToWkSlice_"].get(str(c)) for c in range(op.cores)]
        self.split = {d: op.size[d] // op.slice[d] for d in op.dims}
        if self.own[0] is not None:
            self.split = {d: 1 + max(o.get(d, 0) for o in self.own) for d in op.dims}


def sticks(op, t, core):
    """(stick of the tensor, byte offset from the core's start) of all that a core touches."""
    part = {d: op.size[d] // t.split[d] for d in op.dims}
    slot = op.slot[core] if t.own[0] is None else t.own[core]
    out, stride = [((), 0)], 128
    for d in t.order:
        step = t.e if d == t.stick else 1
        n, extent = part[d], part[d] if t.is_lx else op.size[d] + t.gap.get(d, 0)
        if t.max_dim[d] > 0:
            extent = t.max_dim[d]
        if t.scale[d] != 1:
            n, extent = step, 1
        first = slot.get(d, 0) * part[d] if t.scale[d] == 1 else 0
        out = [(g + ((first + k) // step,), o + k // step * stride) for g, o in out for k in range(0, n, step)]
        stride *= -(-extent // step)
    return out


GEOMETRY = {}  # of a file, its start addresses apart: what every core touches does not depend on where that lies


def geometry(op, text):
    """[(tensor, core, [(stick, offset, what is made of it)])]: inputs, then the output."""
    key = re.sub(r'"\[\d+, 0, 0\]": "-?\d+"', "", text)
    if key not in GEOMETRY:
        GEOMETRY[key] = [(i, c, [(s, o, feeds(op, op.tensors[i], c, s) if i != op.out else None) for s, o in sticks(op, op.tensors[i], c)])
                         for i in op.inputs + [op.out] for c in range(op.cores)]
    return GEOMETRY[key]


class Bundle:
    def __init__(self, folder, lx_bytes, arg_bytes):
        self.folder, self.lx_bytes, self.arg_bytes = folder, lx_bytes, arg_bytes
        self.lines = (folder / "bundle.mlir").read_text().splitlines()
        self.value, self.pool, self.runs, self.calls, self.ops = {}, 0, [], {}, {}
        self.maps = dict(m for line in self.lines for m in re.findall(r"^(#\w+) = affine_map<.*-> \((.*)\)>", line))
        self.block(0)

    def block(self, i):
        """Runs the lines from here to the brace that closes; gives the line behind it."""
        while i < len(self.lines) and self.lines[i].strip() != "}":
            line = self.lines[i].strip()
            if m := re.match(r"scf.for (%\w+) = (%\w+) to (%\w+) step (%\w+) \{", line):
                begin, end, step = (self.value[v][1] for v in m.groups()[1:])
                for turn in range(begin, end, step):
                    self.value[m[1]] = (None, turn)
                    behind = self.block(i + 1)
                i = behind
                continue
            self.statement(line)
            i += 1
        return i + 1

    def statement(self, s):
        if m := re.match(r"(%\w+) = arith.constant (\d+)", s):
            self.value[m[1]] = (None, int(m[2]))
        elif m := re.match(r"(%\w+) = arith.addi (%\w+), (%\w+)", s):
            base, offset = self.value[m[2]], self.value[m[3]][1]
            self.value[m[1]] = (base[0], base[1] + offset)
        elif m := re.match(r"(%\w+) = affine.apply (#\w+)\((.*)\)\[(%\w+)\]", s):
            base, turns = self.value[m[4]], [self.value[v][1] for v in m[3].split(", ")]
            terms = re.findall(r"(?:(\d+)\*)?d(\d)", self.maps[m[2]])
            self.value[m[1]] = (base[0], base[1] + sum(int(n or 1) * turns[int(d)] for n, d in terms))
        elif m := re.match(r"(%pool) = sdscbundle.device_mem_allocate (\d+)", s):
            self.value[m[1]], self.pool = ("pool", 0), int(m[2])
        elif m := re.match(r"(%arg_(\d+)) = sdscbundle.input_arg_extract", s):
            self.value[m[1]] = (int(m[2]), 0)
        elif m := re.match(r'sdscbundle.sdsc_execute \((.*)\) \{sdsc_filename="(.*)", "symbol_ids"=\[(.*)\]\}', s):
            names, ids = (re.findall(p, x) for p, x in ((r"%\w+", m[1]), (r"-\d+", m[3])))
            self.calls[m[2]] = dict(zip(map(int, ids), names))
            self.runs.append((m[2], {i: self.value[n] for i, n in self.calls[m[2]].items()}))

    def op(self, name):
        if name not in self.ops:
            text = (self.folder / name).read_text()
            self.ops[name] = Op(text)
            self.ops[name].geometry = geometry(self.ops[name], text)
        return self.ops[name]

    def place(self, op, t, core, symbols):
        """(memory, first byte) of a core's part."""
        return (("lx", core), t.start[core]) if t.is_lx else symbols[t.start[core]]

    def run(self):
        """What lies in the arguments afterwards, or why it is no plan. The value of a stick is a name: of the op and of all
        that went into it, so that equal names are equal values whoever computed them, and where."""
        memory, size = {}, {"pool": self.pool, **dict(enumerate(self.arg_bytes))}
        for name, names in self.runs:
            op, made, writers, reads = self.op(name), {}, {}, {}
            moves = op.tensors[op.out].own[0] is not None  # a relayout: what one core writes another one read
            for i, c, touched in op.geometry:
                t = op.tensors[i]
                where, start = self.place(op, t, c, names)
                limit = self.lx_bytes if t.is_lx else size[where]
                for stick, offset, feeds_ in touched:
                    at = start + offset
                    if at % 128 or at < 0 or at + 128 > limit:
                        return None, f"{name}: byte {at} of {where}, {limit} bytes"
                    if i == op.out:
                        writers.setdefault((where, at), set()).add((c, stick))
                        continue
                    value = memory.get((where, at), f"{where} {at}" if isinstance(where, int) else "nothing")
                    for o, part in feeds_:
                        made.setdefault((None if moves else c, o), set()).add((i, part, value))
                        reads.setdefault((where, at), set()).add((c, o))
            after = {}
            for at, who in writers.items():
                if len({o for _, o in who}) > 1 or (len(who) > 1 and not op.reduced and op.fn != "batchmatmul"):
                    return None, f"{name}: {at} is written by {sorted(who)[:3]}"
                if at in reads and (op.reduced or op.fn == "batchmatmul" or reads[at] != who):
                    return None, f"{name}: {at} is written while it is read"
                parts = sorted(set().union(*(made.get((None if moves else c, o), set()) for c, o in who)))
                after[at] = hashlib.sha256(repr((op.fn, parts)).encode()).hexdigest()[:16]
            memory.update(after)
        return {k: v for k, v in memory.items() if isinstance(k[0], int)}, ""


def feeds(op, t, core, stick):
    """(stick of the output, in which part) for all that a core makes of a stick that it reads."""
    out, at = op.tensors[op.out], dict(zip(t.order, stick))
    summed = tuple((d, at[d]) for d in t.order if t.scale[d] == 1 and out.scale.get(d, 0) != 1)
    found = [((), summed)]
    for d in out.order:
        step = out.e if d == out.stick else 1
        first, n = (0, op.size[d]) if out.own[0] is not None else (op.slot[core][d] * op.slice[d], op.slice[d])
        if out.scale[d] != 1:
            steps = [(0, ())]
        elif t.scale.get(d, 0) != 1:
            steps = [((first + k) // step, ()) for k in range(0, n, step)]  # it is the same for all of them
        else:
            own = t.e if d == t.stick else 1
            begin = at[d] * own
            steps = [(k, (d, k * step - begin)) for k in range(begin // step, -(-(begin + own) // step))]
        found = [(o + (k,), p + q) for o, p in found for k, q in steps]
    return found


def judge(before, after):
    """Why the second is no plan for what the first does; "" when it is."""
    result, why = after.run()
    if why:
        return why
    wrong = [k for k in before.result if before.result[k] != result.get(k)]
    return f"{len(wrong)} sticks of the arguments get another value, the first at {wrong[0]}" if wrong else ""


# -- changes --

class Plan:
    """A compiled graph: its only bundle, and the buffers inside it: one write of an op and all reads of it."""
    def __init__(self, folder):
        self.folder = folder
        manifest = json.loads((folder / "manifest.json").read_text())
        size = {b["name"]: b["bytes"] for b in manifest["buffers"]}
        self.arg_bytes = [size[a] for a in manifest["steps"][0]["args"]]
        self.lx_bytes = manifest["lx_bytes"]
        assert len(manifest["steps"]) == 1
        self.bundle = self.read(folder)
        self.bundle.result, why = self.bundle.run()
        assert not why, why
        self.buffers = self.find_buffers()

    def read(self, folder):
        return Bundle(folder / "bundle_0", self.lx_bytes, self.arg_bytes)

    def find_buffers(self):
        """{writer: [memory kind, offset, bytes, {(file, tensor)}]}: an op writes one buffer, others read it until it is gone."""
        out, last = {}, {}
        for name, names in self.bundle.runs:
            op = self.bundle.op(name)
            for i, c, touched in op.geometry:
                t = op.tensors[i]
                where, start = self.bundle.place(op, t, c, names)
                if where != "pool" and not t.is_lx:
                    continue
                for _, offset, _ in touched:
                    if i != op.out:
                        if (where, start + offset) in last:
                            out[last[where, start + offset]][3].add((name, i))
                    else:
                        last[where, start + offset] = name
                        b = out.setdefault(name, ["lx" if t.is_lx else "pool", start, 0, {(name, i)}])
                        b[2] = max(b[2], start + offset + 128 - b[1])
        return out


def move(folder, bundle, uses, by, kind):
    """Adds `by` to every start address of these tensors."""
    lines = (folder / "bundle_0/bundle.mlir").read_text().splitlines()
    for name, i in sorted(uses):
        path = folder / "bundle_0" / name
        j = json.loads(path.read_text())
        node = next(iter(next(iter(j.values()))["dscs_"][0].values()))["scheduleTree_"][i]
        data = node["startAddressCoreCorelet_"]["data_"]
        if kind == "lx":
            for k in data:
                data[k] = str(int(data[k]) + by)
            path.write_text(json.dumps(j, indent=2))
            continue
        at = next(n for n, l in enumerate(lines) if f'"{name}"' in l)
        names = bundle.calls[name]
        new = {}
        for text in set(data.values()):
            value = bundle.value[names[int(text)]][1] + by
            new[names[int(text)]] = f"%moved_{name[5:-5]}_{i}_{max(value, 0)}"
            lines[at:at] = [f"\t\t{new[names[int(text)]]}_offset = arith.constant {max(value, 0)} : index",
                            f"\t\t{new[names[int(text)]]} = arith.addi %pool, {new[names[int(text)]]}_offset : index"]
            at += 2
        # one symbol may stand for several tensors of the op: those move too, as they name the same place
        lines[at] = re.sub(r"%\w+", lambda m: new.get(m.group(), m.group()), lines[at])
    (folder / "bundle_0/bundle.mlir").write_text("\n".join(lines) + "\n")


def address(r, plan, folder):
    """A buffer somewhere else: a few sticks away, off its alignment, at the end of memory, or in the place of another."""
    name = r.choice(sorted(plan.buffers))
    kind, start, size, uses = plan.buffers[name]
    limit = plan.lx_bytes if kind == "lx" else plan.bundle.pool
    others = [b[1] for n, b in plan.buffers.items() if b[0] == kind and n != name] or [0]
    to = r.choice([start + 128 * r.choice([1, -1, 2, 4, 8, 64]), start + r.choice([2, 64, -64]), start + size, start - size, limit - size, limit - size + 128, limit,
                   r.choice(others), r.choice(others) + 128 * r.randrange(-4, 5), 128 * r.randrange(0, limit // 128)])
    if to < 0 or to == start:
        return None
    move(folder, plan.bundle, uses, to - start, kind)
    return f"{kind} of {name} {start} -> {to}"


def swap(r, plan, folder):
    """Two buffers of equal size change places."""
    names = sorted(plan.buffers)
    pairs = [(a, b) for a in names for b in names if a < b and plan.buffers[a][0] == plan.buffers[b][0] and
             plan.buffers[a][2] == plan.buffers[b][2] and plan.buffers[a][1] != plan.buffers[b][1]]
    if not pairs:
        return None
    a, b = r.choice(pairs)
    (kind, first, size, uses), (_, second, _, others) = plan.buffers[a], plan.buffers[b]
    if kind == "pool" and {n for n, _ in uses} & {n for n, _ in others}:
        return None  # a symbol may stand for both, and `move` knows one place of it
    move(folder, plan.bundle, uses, second - first, kind)
    move(folder, plan.bundle if kind == "lx" else plan.read(folder), others, first - second, kind)
    return f"{kind} of {a} and {b}, {size} bytes at {first} and {second}, swapped"


def body(path):
    j = json.loads(path.read_text())
    top = next(iter(j.values()))
    return j, top, next(iter(top["dscs_"][0].values()))


def cores(r, plan, folder):
    """Other cores do the slices of an op: with the addresses that go with them, so that only what stays on a core is wrong, or without."""
    name = r.choice(plan.bundle.runs)[0]
    j, top, dsc = body(folder / "bundle_0" / name)
    n = top["numCoresUsed_"]
    if n < 2:
        return None
    to = list(range(n))
    if r.random() < 0.5:
        a, b = r.sample(to, 2)
        to[a], to[b] = b, a
    else:
        by = r.randrange(1, n)
        to = to[by:] + to[:by]
    apart = any(len(set(x["startAddressCoreCorelet_"]["data_"].values())) > 1 for x in dsc["scheduleTree_"] if x["component_"] != "lx")
    moved = r.random() < 0.7 or not apart  # in LX and in what all cores read there is nothing to move
    top["coreIdToWkSlice_"] = {str(c): top["coreIdToWkSlice_"][str(to[c])] for c in range(n)}
    for node in dsc["scheduleTree_"] if moved else []:
        data, own = node["startAddressCoreCorelet_"]["data_"], node["coordinates_"].get("coreIdToWkSlice_")
        if node["component_"] != "lx":
            node["startAddressCoreCorelet_"]["data_"] = {f"[{c}, 0, 0]": data[f"[{to[c]}, 0, 0]"] for c in range(n)}
        if own:
            node["coordinates_"]["coreIdToWkSlice_"] = {str(c): own[str(to[c])] for c in range(n)}
    (folder / "bundle_0" / name).write_text(json.dumps(j, indent=2))
    return f"{name}: cores {to}{'' if moved else ', addresses as they were'}"


def owners(r, plan, folder):
    """One side of a relayout belongs to other cores."""
    names = sorted({n for n, _ in plan.bundle.runs if any(t.own[0] is not None for t in plan.bundle.op(n).tensors)})
    if not names:
        return None
    name = r.choice(names)
    j, top, dsc = body(folder / "bundle_0" / name)
    node = r.choice([x for x in dsc["scheduleTree_"] if x["coordinates_"].get("coreIdToWkSlice_")])
    own, n = node["coordinates_"]["coreIdToWkSlice_"], top["numCoresUsed_"]
    a, b = r.sample(range(n), 2)
    if r.random() < 0.5:
        own[str(a)], own[str(b)] = own[str(b)], own[str(a)]
        what = f"cores {a} and {b} swapped"
    else:
        own[str(a)] = dict(own[str(b)])
        what = f"core {a} has what {b} has"
    if own[str(a)] == own[str(b)] and "swapped" in what:
        return None
    (folder / "bundle_0" / name).write_text(json.dumps(j, indent=2))
    return f"{name}: owners, {what}"


def lifetime(r, plan, folder):
    """Two ops in the other order, or one op later."""
    path = folder / "bundle_0/bundle.mlir"
    lines = path.read_text().splitlines()
    at = [i for i, l in enumerate(lines) if "sdsc_execute" in l]
    if len(at) < 2:
        return None
    i, k = sorted(r.sample(range(len(at)), 2))
    if r.random() < 0.5:
        lines[at[i]], lines[at[k]] = lines[at[k]], lines[at[i]]
        what = f"ops {i} and {k} swapped"
    else:
        line = lines.pop(at[i])
        lines.insert(at[k], line)
        what = f"op {i} behind {k}"
    path.write_text("\n".join(lines) + "\n")
    return what


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def split(r, plan, folder):
    """One op cut otherwise. The op alone is written anew by `emit`, which then can't know what its neighbours do."""
    specs = json.loads((folder / "bundle_0/opspec.json").read_text())
    k = r.randrange(len(specs["specs"]))
    spec, name = specs["specs"][k], plan.bundle.runs[k][0]
    if any("work_division" in a for a in spec["args"]):
        division = r.choice(spec["args"])["work_division"]  # the owners of one side of a relayout
        d = r.choice(sorted(division["work_slices"]))
        cores, other = 1, [s["symbol"] for s in spec["iteration_space"]]
        for n in division["work_slices"].values():
            cores *= n
        to = r.choice([s for s in other if s != d] or other)
        new = {to: cores} if r.random() < 0.5 else {d: cores}
        if new == division["work_slices"]:
            return None
        division["work_slices"] = new
        division["core_id_to_work_slice"] = {s: f"Mod(core_id, {n})" for s, n in new.items()}
        what = f"owners in {name}: {new}"
    else:
        new = []
        for s in spec["iteration_space"]:
            new.append(r.choice([d for d in divisors(s["range"] if s["range"] % 64 else s["range"] // 64 * r.choice([1, 1, 64])) if d <= 8]))
        old = [s["split"] for s in spec["iteration_space"]]
        product = 1
        for n in new:
            product *= n
        if new == old or product > 32:
            return None
        for s, n in zip(spec["iteration_space"], new):
            s["split"] = n
        what = f"{name} cut {new} instead of {old}"
    alone = folder / "alone.json"
    alone.write_text(json.dumps({**specs, "specs": [spec]}))
    run = subprocess.run([SW, "emit", alone, "-o", folder / "alone"], capture_output=True)
    if run.returncode:
        return None  # it has no form: nothing to judge
    number = name[5:-5]
    j = json.loads((folder / "alone/sdsc_0.json").read_text())
    top = j.pop(next(iter(j)))
    j[f"{number}_{next(iter(top['dscs_'][0]))}"] = top
    (folder / "bundle_0" / name).write_text(json.dumps(j, indent=2))
    own = [l for l in (folder / "alone/bundle.mlir").read_text().splitlines() if "arith." in l or "sdsc_execute" in l]
    own = [re.sub(r"%(?!arg_\d+\b(?!_)|pool\b)(\w+)", r"%alone_\1", l).replace("sdsc_0.json", name) for l in own]
    path = folder / "bundle_0/bundle.mlir"
    lines = path.read_text().splitlines()
    at = next(n for n, l in enumerate(lines) if f'"{name}"' in l)
    lines[at:at + 1] = own
    path.write_text("\n".join(lines) + "\n")
    shutil.rmtree(folder / "alone")
    alone.unlink()
    return what


def span(r, plan, folder):
    """Less memory than there was: a smaller pool, smaller scratchpads."""
    top = max((b[1] + b[2] for b in plan.buffers.values() if b[0] == "lx"), default=0)
    if plan.bundle.pool and (not top or r.random() < 0.5):
        path = folder / "bundle_0/bundle.mlir"
        to = r.choice([plan.bundle.pool - 128, plan.bundle.pool // 2, plan.bundle.pool + 128, 128])
        path.write_text(re.sub(r"allocate \d+ bytes", f"allocate {to} bytes", path.read_text()))
        return f"pool of {to} instead of {plan.bundle.pool} bytes"
    if not top:
        return None
    to = r.choice([top, top - 128, top + 128, 128, top // 2 // 128 * 128 or 128])
    path = folder / "manifest.json"
    m = json.loads(path.read_text())
    m["lx_bytes"] = to
    path.write_text(json.dumps(m))
    return f"scratchpads of {to} bytes, {top} used"


def loop(r, plan, folder):
    """A loop runs more or less often, an address moves on by another step, or with another loop."""
    path = folder / "bundle_0/bundle.mlir"
    lines = path.read_text().splitlines()
    what = r.choice(["bound", "step", "step", "variable"])
    at = r.choice([n for n, l in enumerate(lines) if {"bound": "%loop_bound", "step": "affine_map", "variable": "affine.apply"}[what] in l
                   and (what != "bound" or "constant" in l)])
    if what == "variable":
        others = sorted(set(re.findall(r"scf.for (%\w+)", "\n".join(lines))) - set(re.findall(r"%i_\d+", lines[at])))
        if not others or others[0] > max(re.findall(r"%i_\d+", lines[at])):
            return None  # an inner loop's variable is not there yet
        new = re.sub(r"\(%i_\d+\)", f"({others[0]})", lines[at])
    else:
        pattern = r"constant (\d+)" if what == "bound" else r"(\d+)\*"
        old = int(re.search(pattern, lines[at])[1])
        to = r.choice([n for n in ([old - 1, old + 1] if what == "bound" else [0, old // 2, 2 * old, old + 128, max(old - 128, 0), old + 64]) if n != old])
        new = re.sub(pattern, lambda m: m[0].replace(m[1], str(to)), lines[at], count=1)
    old, lines[at] = lines[at].strip(), new
    path.write_text("\n".join(lines) + "\n")
    return f"{old} -> {new.strip()}" if new.strip() != old else None


KINDS = {"address": address, "lifetime": lifetime, "split": split, "span": span, "loop": loop, "swap": swap, "cores": cores, "owners": owners}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--count", type=int, default=150)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--show", action="store_true")
    o = a.parse_args()
    r = random.Random(o.seed)
    tally, wrong = {k: [0, 0] for k in KINDS}, 0
    with tempfile.TemporaryDirectory() as t:
        t = pathlib.Path(t)
        plans, loops = [], []
        for name, (text, options) in {**GRAPHS, **LOOPS}.items():
            graph = t / f"{name}.graph"
            graph.write_text(text)
            run = subprocess.run([SW, "compile", graph, "-o", t / name, *options], capture_output=True)
            assert run.returncode == 0, run.stderr.decode()
            assert subprocess.run([SW, "verify", t / name, "--model", graph], capture_output=True).returncode == 0, name
            (loops if name in LOOPS else plans).append((graph, Plan(t / name)))
        done = 0
        while done < o.count:
            kind = list(KINDS)[done % len(KINDS)]
            graph, plan = r.choice(loops if kind == "loop" else plans + loops if kind in ("address", "span", "swap", "cores") else plans)
            folder = t / "changed"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(plan.folder, folder)
            what = KINDS[kind](r, plan, folder)
            if not what:
                continue
            done += 1
            after = plan.read(folder)
            after.lx_bytes = json.loads((folder / "manifest.json").read_text())["lx_bytes"]
            why = judge(plan.bundle, after)
            if "as they were" in what:
                why = why or "addresses are not those of the slices"
            run = subprocess.run([SW, "verify", folder, "--model", graph], capture_output=True)
            said = (run.stdout + run.stderr).decode().strip().splitlines()
            tally[kind][bool(why)] += 1
            agrees = run.returncode == (1 if why else 0)
            wrong += not agrees
            if o.show or not agrees:
                print(f"{'' if agrees else 'MISSED ' if why else 'FALSE ALARM '}{graph.stem}, {kind}: {what}: {why or 'still legal'}; verify {run.returncode}: {said[-1:]}")
    for k, (legal, caught) in tally.items():
        print(f"{k}: {caught} wrong plans, {legal} still legal")
    print(f"{o.count} changed plans, {wrong} judged otherwise by verify")
    sys.exit(wrong > 0)


main()
