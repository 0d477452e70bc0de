#!/usr/bin/env python3
"""Recorded programs of the reference compiler, run on the simulated card with made-up data, against the evaluator on the
same graph. A manifest.json is written for each from its recorded host program; `verify` does the rest. Programs that are
known to be wrong must be reported.

  simulate_reference.py [--all] [--only PATTERN] [--limit N] [--show]

The cases lie in $SW_SHARED/reference/graphs (or shared/ beside the source); without that folder all are skipped."""
import argparse
import ast
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time

SW, SOURCE = os.environ["SW"], pathlib.Path(os.environ["SW_SOURCE"])

# Wrong in the record (the reference's graphs.md section 9), and a word of what the simulator must say.
WRONG = {
    "042": "stick is not the summed dim", "116": "stick on different dims",
    "093": "differs",
    "121": "its extents span", "122": "its extents span", "123": "its extents span", "124": "its extents span",
    "167": "its extents span", "168": "its extents span", "200": "its extents span", "199": "never written",
    "103": "never written", "114": "never written",  # need scratchpads that survive from one kernel to the next
    "108": "of the pool is written by one core", "109": "of the pool is written by one core",
    "110": "of the pool is written by one core", "111": "of the pool is written by one core",
}
# Over the memory that a run may use: the simulator says so.
TOO_LARGE = {"174", "175"}
# Arguments that were one tensor: graph.pt2 has merged them.
ONE_TENSOR = {"002", "107", "113", "179"}
# A fixed sample for the short run: one of each kind, all small.
SAMPLE = ("001 004 009 011 016 027 031 036 039 042 047 061 064 067 070 075 076 082 085 093 097 103 108 114 116 129 132 "
          "134 138 140 143 178").split()

DTYPE = {"float16": "SEN169_FP16", "float32": "IEEE_FP32", "int64": "IEEE_INT32", "int32": "IEEE_INT32", "bool": "SEN169_FP16"}


class Skip(Exception):
    pass


def row_major(size):
    stride, n = [], 1
    for s in reversed(size):
        stride.insert(0, n)
        n *= max(s, 1)
    return stride


def device_bytes(layout):
    n = 128
    for d in layout["device_size"][:-1]:
        n *= d
    return n


class Program:
    """A host program, read line by line into the steps of a manifest."""

    def __init__(self, case, graph, inputs):
        self.case, self.graph = case, graph
        self.buffers, self.steps, self.names, self.kernels = [], [], {}, []
        self.users = [i["name"] for i in inputs if i["kind"] in ("user_input", "constant_input")]
        self.changed = {}
        self.layouts = {o["buffer"]: o["out"] for o in graph["ops"] if "out" in o}
        for i in graph["inputs"]:
            self.input(i)

    def input(self, i):
        b = i.get("binding")
        if not b:
            raise Skip("a size as input")
        n = int(b[3:]) if re.fullmatch(r"arg\d+", b) else None
        if n is not None and (self.case[:3] in ONE_TENSOR):
            n = len(self.users) - 1
        kind, source = ("input", self.users[n]) if n is not None else ("parameter", b)
        self.changed[i["name"]] = source
        self.buffer(i["name"], kind, i, source)

    def buffer(self, name, kind, t, source=None, fill=None):
        layout = t.get("layout")
        if layout:
            layout = dict(layout, element_arrangement="STANDARD")
        if any(not isinstance(s, int) for s in t["size"]):
            raise Skip("a symbolic size")
        self.names[name] = name
        self.buffers.append({"name": name, "kind": kind, "source": source, "dtype": t["dtype"], "size": t["size"],
                             "stride": t["stride"], "layout": layout, "fill": fill,
                             "bytes": device_bytes(layout) if layout else 0})

    def operand(self, text):
        """A buffer or a view of one, as an argument of a host step or an output."""
        text = text.strip()
        m = re.fullmatch(r"reinterpret_tensor\((\w+), (\(.*?\)), (\(.*?\)), (\d+)\)", text)
        if m:
            return {"buffer": self.names[m[1]], "size": list(ast.literal_eval(m[2])), "stride": list(ast.literal_eval(m[3])),
                    "offset": int(m[4])}
        m = re.fullmatch(r"(\w+)\[(\d+)\]", text)
        return {"buffer": self.names[text]}

    def split(self, text):
        """At the commas outside brackets."""
        out, depth = [""], 0
        for c in text:
            depth += (c in "([") - (c in ")]")
            if c == "," and not depth:
                out.append("")
            else:
                out[-1] += c
        return [x.strip() for x in out if x.strip()]

    def host(self, name, target, text):
        """`name` stands for the tuple or tensor; its layout is that of the alias that follows."""
        out = next((o["buffer"] for o in self.graph["ops"] if o["kind"] == "host-output" and o["reads"][0]["buffer"] == name), name)
        t = self.layouts[out]
        self.buffer(name, "intermediate", t)
        args = self.split(text)
        kwargs = {}
        if target == "spyre.to_dtype_cpu.default":
            target, kwargs = "aten._to_copy.default", {"dtype": {"dtype": t["dtype"]}}
            inputs = [self.operand(args[0])]
        elif target == "spyre.reshape_via_cpu.default":
            target, inputs = "aten.view.default", [self.operand(args[0]), ast.literal_eval(args[1])]
        elif target == "spyre.unfold.default":
            target, inputs = "aten.im2col.default", [self.operand(args[0]), *map(ast.literal_eval, args[1:])]
        elif target == "spyre.causal_mask.default":
            n = t["size"][-1]
            self.buffers[-1].update(kind="constant", source=name + ".bin")
            self.constants = {name + ".bin": b"".join(b"\0\0" if j <= i else b"\0\xfc" for i in range(n) for j in range(n))}
            return
        elif target.startswith("aten."):
            inputs = []
            for a in args:
                if "=" in a and not a.startswith("reinterpret"):
                    k, v = a.split("=")
                    kwargs[k] = ast.literal_eval(v)
                elif re.match(r"(arg|buf)\d|reinterpret", a):
                    inputs.append(self.operand(a))
                else:
                    inputs.append(ast.literal_eval(a))
        else:
            raise Skip("host step " + target)
        outputs = [{"buffer": name}] + [None] * 8 if target.endswith("overrideable.default") else [{"buffer": name}]
        self.steps.append({"host": target, "inputs": inputs, "kwargs": kwargs, "outputs": outputs, "why": "recorded"})

    def line(self, s):
        if re.match(r"del |args\.clear|assert_|\w+(, \w+)*,? = args$", s):
            return
        m = re.match(r"(\w+) = spyre_constant_tensor\((.*?), torch\.device\(.*\), torch\.(\w+)\)", s)
        if m:
            value = m[2].replace("inf", "1e300")  # rounds to infinity
            fill = float({"True": 1, "False": 0}.get(value, value))
            layout = {"device_size": [1, 128 // (4 if DTYPE[m[3]][:4] == "IEEE" else 2)], "stride_map": [-1, -1], "format": DTYPE[m[3]]}
            return self.buffer(m[1], "constant", {"dtype": m[3], "size": [], "stride": [], "layout": layout}, None, fill)
        m = re.match(r"(\w+) = spyre_empty_with_layout\((\(.*?\)), (\(.*?\)), torch\.(\w+), SpyreTensorLayout\(device_size=(\[.*?\]), "
                     r"stride_map =(\[.*?\]), device_dtype=DataFormats\.(\w+)", s)
        if m:
            try:
                size, stride = list(ast.literal_eval(m[2])), list(ast.literal_eval(m[3]))
            except ValueError:
                raise Skip("a symbolic size")
            layout = {"device_size": ast.literal_eval(m[5]), "stride_map": ast.literal_eval(m[6]), "format": m[7]}
            return self.buffer(m[1], "intermediate", {"dtype": m[4], "size": size, "stride": stride, "layout": layout})
        m = re.match(r"(\w+)\.run\((.*)\)$", s)
        if m:
            args = self.split(m[2])
            # a buffer that is read and written is passed twice and has one parameter
            self.kernels.append((m[1], [self.operand(a)["buffer"] for a in args]))
            self.steps.append({"kernel": m[1], "args": [self.operand(a)["buffer"] for a in args], "symbols": {}})
            return
        m = re.match(r"(\w+) = torch\.ops\.([\w.]+)\((.*)\)$", s)
        if m:
            return self.host(m[1], m[2], m[3])
        m = re.match(r"(\w+) = (\w+)(\[0\])?$", s)
        if m and m[2] in self.names:
            self.names[m[1]] = self.names[m[2]]
            return
        m = re.match(r"return \((.*)\)$", s)
        if m:
            self.returned = [self.operand(x) for x in self.split(m[1])]
            return
        raise Skip("line " + s[:60])

    def outputs(self, mutated):
        of = {b["name"]: b for b in self.buffers}
        out = []
        for i, o in enumerate(self.returned):
            b = of[o["buffer"]]
            out.append({"name": f"out{i}", "buffer": b["name"], "dtype": b["dtype"], "size": o.get("size", b["size"]),
                        "stride": o.get("stride", b["stride"]), "offset": o.get("offset", 0), "mutates": None})
        for name in mutated:
            b = next(b for b in self.buffers if b["kind"] != "intermediate" and b["source"] == name)
            out.append({"name": name, "buffer": b["name"], "dtype": b["dtype"], "size": b["size"], "stride": b["stride"],
                        "offset": 0, "mutates": name})
        return out


def unpack(case, to):
    if (case / "bundle.tar.xz").exists():
        with tarfile.open(case / "bundle.tar.xz") as t:
            t.extractall(to)
        return to / "bundle" if (to / "bundle").exists() else to
    return case / "bundle"


def build(case, tmp):
    """Writes a result directory for a recorded case."""
    plan = json.loads((case / "plan.json").read_text())
    graphs = [g for g in plan["graphs"] or [] if g.get("host_program")]
    if len(graphs) != 1:
        raise Skip(f"{len(graphs)} graphs")
    run = subprocess.run([SW, "inspect", case / "graph.pt2", "--json"], capture_output=True, text=True)
    inspected = json.loads(run.stdout)
    p = Program(case.name, graphs[0], inspected["inputs"])
    for line in "\n".join(graphs[0]["host_program"]).split("\n"):
        p.line(line.strip())
    where = unpack(case, tmp)
    for step in p.steps:
        if "kernel" not in step:
            continue
        bundle = where / step["kernel"]
        (tmp / step["kernel"]).symlink_to(bundle) if bundle.parent != tmp else None
        head = re.search(r"@sdsc_bundle\((.*)\)", (bundle / "bundle.mlir").read_text())[1]
        passed = [int(x) for x in re.findall(r"%arg_(\d+)_base_addr:", head)]
        if re.search(r"%sym_", head):
            raise Skip("a symbolic size")
        step["args"] = [step["args"][n] for n in passed] if len(passed) != len(step["args"]) else step["args"]
    # an output that is an input is not part of the compiled graph
    for i, o in enumerate(inspected["outputs"]):
        if o["name"] in p.users and len(p.returned) < len(inspected["outputs"]):
            p.returned.insert(i, {"buffer": next(b["name"] for b in p.buffers if b["source"] == o["name"])})
    written = {o.get("mutates") for o in graphs[0]["ops"]}
    mutated = [source for name, source in p.changed.items() if name in written]
    manifest = {"format": "stickwright.manifest/1", "buffers": p.buffers, "steps": p.steps, "outputs": p.outputs(mutated)}
    (tmp / "constants").mkdir()
    for name, data in getattr(p, "constants", {}).items():
        (tmp / "constants" / name).write_bytes(data)
    (tmp / "manifest.json").write_text(json.dumps(manifest, indent=1))


def check(case, show):
    """(verdict, what verify said): verdict right, reported, skipped."""
    with tempfile.TemporaryDirectory() as d:
        tmp = pathlib.Path(d)
        try:
            build(case, tmp)
        except Skip as e:
            return "skipped", str(e)
        run = subprocess.run([SW, "verify", tmp, "--model", case / "graph.pt2"], capture_output=True, text=True, timeout=600)
        said = (run.stderr + run.stdout).strip()
        return ("right" if run.returncode == 0 else "reported" if run.returncode == 1 else f"exit {run.returncode}"), said


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--all", action="store_true")
    a.add_argument("--only", default="*")
    a.add_argument("--limit", type=int)
    a.add_argument("--show", action="store_true")
    o = a.parse_args()
    root = pathlib.Path(os.environ.get("SW_SHARED", SOURCE.parent / "shared")) / "reference/graphs"
    if not root.is_dir():
        print("no recorded graphs here: all skipped")
        return 0
    cases = [c for c in sorted(root.iterdir()) if (c / "graph.pt2").exists() and ((c / "bundle").exists() or (c / "bundle.tar.xz").exists())
             and fnmatch.fnmatch(c.name, o.only) and (o.all or o.only != "*" or c.name[:3] in SAMPLE)][:o.limit]
    counts, bad = {}, []
    for c in cases:
        start = time.time()
        verdict, said = check(c, o.show)
        wanted = "reported" if c.name[:3] in WRONG else "exit 4" if c.name[:3] in TOO_LARGE else "right"
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict == "reported" and WRONG.get(c.name[:3], "") not in said:
            verdict = "reported otherwise"
        if verdict != wanted and verdict != "skipped":
            bad.append(c.name)
        if o.show or (verdict != wanted and verdict != "skipped"):
            print(f"{c.name}: {verdict}, {wanted} expected, {time.time() - start:.1f} s: {said[:300]}", flush=True)
    print(f"{len(cases)} recorded programs: " + ", ".join(f"{n} {v}" for v, n in sorted(counts.items())), f"{len(bad)} not as they should be:", " ".join(bad))
    return bool(bad)


sys.exit(main())
