#!/usr/bin/env python3
"""Copies within the scratchpads that hand a buffer to other cores, as the reference compiler's recorded plans have them,
and where profile best makes them; the written bundles are executed on the simulated card.

With $SW_SHARED (or shared/ beside the source) the bundles of graphs 052, 053 and 117 are compared byte for byte too."""
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

SW, SOURCE = os.environ["SW"], pathlib.Path(os.environ["SW_SOURCE"])
SHARED = pathlib.Path(os.environ.get("SW_SHARED", SOURCE.parent / "shared"))
failed = []


def check(what, got, want):
    if got != want:
        failed.append(what)
        print(f"{what}: {got}, expected {want}")


def compile_(graph, out, *options):
    r = subprocess.run([SW, "compile", graph, "-o", out, "--json", *options], capture_output=True)
    assert r.returncode == 0, r.stderr.decode() + r.stdout.decode()[-2000:]
    return json.loads(r.stdout)


def agrees(what, graph, out):
    r = subprocess.run([SW, "verify", out, "--model", graph], capture_output=True)
    check(what + ": verify", (r.returncode, r.stdout.decode() if r.returncode else ""), (0, ""))


def shuffles(out):
    """op specs with a work division, as recorded plans print them: slices and core of each tensor."""
    specs = json.loads((out / "bundle_0/opspec.json").read_text())["specs"]
    return [[(a["allocation"], a["work_division"]["work_slices"], a["work_division"]["core_id_to_work_slice"]) for a in s["args"]]
            for s in specs if any("work_division" in a for a in s["args"])]


LINEAR = """%x : f16[64,256] = input
%w : f16[512,256] = input
%b : f16[512] = input
%l : f16[64,512] = aten.linear.default(%x, %w, %b)
%y : f16[64,512] = aten.relu.default(%l)
return %y
"""
# Heads: the copy's first reader goes over heads (8), then rows (128), and so does the copy; its own loops are rows, heads.
HEADS = """%x : f16[128,256] = input
%w : f16[512,256] = input
%l : f16[128,512] = aten.linear.default(%x, %w)
%v : f16[128,8,64] = aten.view.default(%l, [128, 8, 64])
%t : f16[8,128,64] strides=[64,512,1] = aten.permute.default(%v, [1, 0, 2])
%c : f16[8,128,64] = aten.clone.default(%t, memory_format=torch.contiguous_format)
%y : f16[8,128,64] = aten.mul.Tensor(%c, 2.0)
return %y
"""
# The same buffer read as it lies, too: its own cut for mul, a copy for the sum over rows (graph 059 has no such copy: the
# reference makes none for a reduction).
SOFTMAX = """%x : f16[128,256] = input
%y : f16[128,256] = aten._softmax.default(%x, 0, False)
return %y
"""


def recorded(t):
    """graphs/052: plan.json, buf0 at 0, its copy at 2048, the sum over it at 0 again."""
    graph, out = t / "linear.graph", t / "linear"
    graph.write_text(LINEAR)
    r = compile_(graph, out, "--profile", "torch-spyre")
    lx = {s["name"]: s["place"]["lx"] for s in r["storages"] if "lx" in s["place"]}
    check("places of linear", lx, {"l:1": 0, "l:1:relayout": 2048, "l": 0})
    check("split of the copy", [o["split"] for o in r["ops"] if o["name"] == "l:1:relayout"], [[32, 1]])
    check("work division", shuffles(out), [[
        ({"lx": 0}, {"c1": 8, "c0": 4}, {"c1": "Mod(floor(core_id/4), 8)", "c0": "Mod(core_id, 4)"}),
        ({"lx": 2048}, {"c0": 32}, {"c0": "Mod(core_id, 32)"})]])
    agrees("linear", graph, out)
    # too small a scratchpad for both: then neither is there, only the sum
    r = compile_(graph, t / "small", "--profile", "torch-spyre", "--lx-bytes", "3968")
    check("no room", [s["name"] for s in r["storages"] if "lx" in s["place"]], ["l"])
    agrees("no room", graph, t / "small")
    # only the greedy placer makes them (scratchpad.md section 9)
    r = compile_(graph, t / "firstfit", "--profile", "torch-spyre", "--lx-placer", "firstfit")
    check("first-fit", [s["name"] for s in r["storages"] if ":relayout" in s["name"]], [])


def heads(t):
    """The matmul is cut into 4 x 32 rows and 8 x 64 columns: core c has rows c mod 4, head c div 4; its readers by rows."""
    graph, out = t / "heads.graph", t / "heads"
    graph.write_text(HEADS)
    compile_(graph, out, "--profile", "torch-spyre")
    check("work division of heads", shuffles(out), [[
        ({"lx": 0}, {"c0": 8, "c1": 4}, {"c0": "Mod(floor(core_id/4), 8)", "c1": "Mod(core_id, 4)"}),
        ({"lx": 4096}, {"c1": 32}, {"c1": "Mod(core_id, 32)"})]])
    agrees("heads", graph, out)


def best(t):
    graph, out = t / "softmax.graph", t / "softmax"
    graph.write_text(SOFTMAX)
    r = compile_(graph, out)
    check("copies of softmax", len(shuffles(out)) > 0, True)
    agrees("softmax", graph, out)
    r = compile_(graph, t / "reference", "--profile", "torch-spyre")
    check("none by the reference's rule", [s["name"] for s in r["storages"] if ":relayout" in s["name"]], [])


def strip(x):
    if isinstance(x, dict):
        return {k: strip(v) for k, v in x.items() if k != "debug_handle_"}
    return [strip(v) for v in x] if isinstance(x, list) else x


def whole_bundles(t):
    n = 0
    for name in ("052_linear_relu_default_weight", "053_linear_relu_loaded_weight", "117_mod_mlp"):
        d = SHARED / "reference/graphs" / name
        if not d.exists():
            continue
        plan = json.loads((d / "plan.json").read_text())["graphs"][0]
        r = subprocess.run([SW, "inspect", d / "graph.pt2", "--json"], capture_output=True)
        users = [i["name"] for i in json.loads(r.stdout)["inputs"] if i["kind"] == "user_input"]
        pins = {}
        for i in plan["inputs"]:  # arg0, arg1: the arguments in order; else a parameter's name
            b = i["binding"]
            pins[users[int(b[3:])] if b[:3] == "arg" and b[3:].isdigit() else b] = {k: i["layout"][k] for k in ("device_size", "stride_map")}
        (t / "pins.json").write_text(json.dumps(pins))
        compile_(d / "graph.pt2", t / name, "--profile", "torch-spyre", "--objective", "elements", "--solver", "beam", "--pin-file", t / "pins.json")
        with tarfile.open(d / "bundle.tar.xz") as tar:
            files = [m for m in tar.getmembers() if m.isfile()]
            for m in files:
                got, want = (t / name / "bundle_0" / pathlib.Path(m.name).name).read_text(), tar.extractfile(m).read().decode()
                same = strip(json.loads(got)) == strip(json.loads(want)) if m.name.endswith(".json") else got == want
                check(f"{name}/{pathlib.Path(m.name).name}", same, True)
                n += 1
        agrees(name, d / "graph.pt2", t / name)
    return n


with tempfile.TemporaryDirectory() as t:
    recorded(pathlib.Path(t))
    heads(pathlib.Path(t))
    best(pathlib.Path(t))
    n = whole_bundles(pathlib.Path(t))
print(f"relayouts: {n} recorded files compared" if n else "relayouts: 3 recorded bundles are not here, skipped")
sys.exit(1 if failed else 0)
