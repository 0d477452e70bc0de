#!/usr/bin/env python3
"""One small graph per overload, with what PyTorch computes for it (tests/data/overload_values.json.gz): the evaluator agrees, and so
does the compiled program on the simulated card. Arguments: overloads, to run only those.

Each case holds a text graph in float16, its inputs, and the outputs of the same overload on the same numbers in float32."""
import concurrent.futures, gzip, json, os, pathlib, struct, subprocess, sys, tempfile

SW = os.environ["SW"]
SOURCE = pathlib.Path(os.environ["SW_SOURCE"])
FORMATS = {"float16": "e", "float32": "f", "int64": "q", "int32": "i", "bool": "?"}


def strides(shape):
    step, out = 1, []
    for n in reversed(shape):
        out.append(step)
        step *= n
    return out[::-1]


def write_tensor(folder, name, t):
    (folder / name).write_bytes(struct.pack("<%d%s" % (len(t["values"]), FORMATS[t["dtype"]]),
                                            *(float(v) if isinstance(v, str) else v for v in t["values"])))
    return dict(file=name, dtype=t["dtype"], shape=t["shape"], strides=strides(t["shape"]))


def write_case(case, folder):
    (folder / "graph.txt").write_text(case["text"] + "\n")
    io = dict(name="case", inputs=[], outputs=[], buffers_after=[], user_inputs_after=[])
    for i, t in enumerate(case["inputs"]):
        io["inputs"].append(dict(order=i, name="a%d" % i, **write_tensor(folder, "in%d" % i, t)))
    for i, t in enumerate(case["outputs"]):
        numbers = [abs(float(v)) for v in t["values"]]
        largest = max([v for v in numbers if v == v and v != float("inf")], default=0)
        real, step = t["dtype"].startswith("float"), 2.0 ** (-10 if t["half"] else -20)
        io["outputs"].append(dict(order=i, graph_dtype="float16" if t["half"] else t["dtype"], atol=8 * step * largest if real else 0,
                                  rtol=4 * step if real else 0, **write_tensor(folder, "out%d" % i, t)))
    (folder / "io.json").write_text(json.dumps(io))


def complaint(*command):
    done = subprocess.run([SW, *map(str, command)], capture_output=True, text=True, timeout=120)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "agrees" not in line and line.strip()]
    return None if done.returncode == 0 else " ".join([command[0], *lines[-2:]])[:400]


def run(case):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_case(case, folder)
        graph, io, result = folder / "graph.txt", folder / "io.json", folder / "result"
        return (complaint("verify", "--reference", graph, "--inputs", io) or complaint("compile", graph, "-o", result)
                or complaint("verify", result, "--model", graph, "--inputs", io))


cases = json.loads(gzip.open(SOURCE / "tests/data/overload_values.json.gz").read())
if sys.argv[1:]:
    cases = [c for c in cases if c["name"] in sys.argv[1:]]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    found = list(pool.map(run, cases))
for case, fault in zip(cases, found):
    if fault:
        print("%s: %s\n%s\n" % (case["name"], fault, case["text"]))
print("%d cases of %d overloads, %d fail" % (len(cases), len({c["name"] for c in cases}), sum(1 for f in found if f)))
sys.exit(1 if any(found) or not cases else 0)
