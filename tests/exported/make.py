"""Makes tests/data/exported.tar.xz: small programs exported by PyTorch, and what PyTorch computed with them.

    python3 tests/exported/make.py [NAME...]

Needs torch, transformers and numpy (written with 2.14, 5.24 and 2.4); the tests need the archive only. Every case is exported in both
dialects, NAME.pt2 and NAME.core.pt2. NAME.io.json lists inputs and outputs: a case runs once in its own dtype and once in
float32 with the same weights and inputs; the second run is the truth, and four times the first one's error is the
tolerance, as in the io.json files that `stickwright verify --inputs` reads.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings
import zlib

import torch
import torch.utils._pytree as pytree
from cases import CASES

HERE = pathlib.Path(__file__).resolve().parent
F16, F32 = torch.float16, torch.float32
ULP = {torch.float16: 2**-10, torch.bfloat16: 2**-7}


def spread(module):
    """Weights of about 1 / sqrt(fan in), norm weights near 1, small biases: activations stay of order one."""
    with torch.no_grad():
        for name, p in module.named_parameters():
            if not p.dtype.is_floating_point or not p.numel():
                continue
            noise = torch.randn(p.shape)
            if p.dim() >= 2:
                noise = noise if "emb" in name else noise * p[0].numel() ** -0.5
            else:
                noise = 1 + 0.1 * noise if name.endswith("weight") else 0.1 * noise
            p.copy_(noise.to(p.dtype))
        for name, b in module.named_buffers():
            if name.endswith("running_mean"):
                b.copy_(0.1 * torch.randn(b.shape))
            elif name.endswith("running_var"):
                b.copy_(0.5 + torch.rand(b.shape))


def build(name, dtype):
    torch.manual_seed(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    module, args = CASES[name](dtype)
    module = module.to(dtype) if not getattr(module, "keeps_dtypes", False) else module
    spread(module.eval())
    return module, args


def upcast(x):
    return x.float() if isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x


def copied(args):
    return pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, args)


def state(module):
    return {k: v.detach().clone() for k, v in [*module.named_parameters(), *module.named_buffers()]}


def run(module, args):
    with torch.no_grad():
        return pytree.tree_leaves(module(*args)), state(module)


def facts(t):
    return {"dtype": str(t.dtype).replace("torch.", ""), "shape": list(t.shape), "strides": list(t.stride())}


def write(path, t):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(t.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b"")


def compared(folder, file, got, truth, **head):
    write(folder / file, truth)
    entry = {**head, "file": file, "graph_dtype": facts(got)["dtype"], **facts(truth)}
    if not truth.dtype.is_floating_point:
        return {**entry, "atol": 0, "rtol": 0}
    error = float((got.double() - truth.double()).nan_to_num(0, 0, 0).abs().max()) if truth.numel() else 0
    finite = truth[torch.isfinite(truth)]
    most, ulp = float(finite.abs().max()) if finite.numel() else 0, ULP.get(got.dtype, 2**-20)
    return {**entry, "atol": max(4 * error, 2 * ulp * most), "rtol": 2 * ulp}


def slim(program):
    """Traces hold the paths of this machine; one line of the model's own code is enough."""
    for node in program.graph.nodes:
        for key in ("from_node", "torch_fn", "nn_module_stack"):
            node.meta.pop(key, None)
        trace = node.meta.get("stack_trace")
        if trace:
            node.meta["stack_trace"] = re.sub(r'File "[^"]*/', 'File "/', "".join(re.split(r"(?=^ *File )", trace, flags=re.M)[-1:]))


def make(name, folder):
    dtype = getattr(CASES[name], "dtype", F16)
    module, args = build(name, dtype)
    before = state(module)
    with torch.no_grad():
        program = torch.export.export(module, args, strict=False)
        core = program.run_decompositions()
    core._example_inputs = None
    for p, file in (program, f"{name}.pt2"), (core, f"{name}.core.pt2"):
        slim(p)
        torch.export.save(p, folder / file)
    io = {"name": name, "inputs": [], "outputs": [], "buffers_after": [], "user_inputs_after": []}
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    for i, (n, x) in enumerate(zip(names, pytree.tree_leaves(args), strict=True)):
        write(folder / f"{name}.inputs" / f"{i:02d}.bin", x)
        io["inputs"].append({"order": i, "name": n, "file": f"{name}.inputs/{i:02d}.bin", **facts(x)})
    own, own_after = run(module, copied(args))
    reference, _ = build(name, F32)
    for k, v in [*reference.named_parameters(), *reference.named_buffers()]:
        v.data.copy_(before[k])
    truth, truth_after = run(reference, pytree.tree_map(upcast, copied(args)))
    for i, (got, want) in enumerate(zip(own, truth)):
        io["outputs"].append(compared(folder, f"{name}.outputs/{i:02d}.bin", got, want, order=i))
    for k, v in before.items():
        if not torch.equal(v, own_after[k]):
            file = f"{name}.outputs/{k.replace('.', '_')}.bin"
            io["buffers_after"].append(compared(folder, file, own_after[k], truth_after[k], buffer=k))
    (folder / f"{name}.io.json").write_text(json.dumps(io, indent=1) + "\n")


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    failed = []
    with tempfile.TemporaryDirectory() as d:
        for name in sys.argv[1:] or CASES:
            try:
                make(name, pathlib.Path(d))
            except Exception as e:  # one that can't be exported must not stop the others
                failed.append(name)
                print(f"{name}: {type(e).__name__}: {str(e)[:300]}")
        archive = HERE.parent / "data" / "exported.tar.xz"
        subprocess.run(["tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "-cf", f"{d}.tar", "-C", d, "."], check=True)
        subprocess.run(f"xz -9e -T1 -c {d}.tar > {archive} && rm {d}.tar", shell=True, check=True)
    print(f"{len(CASES) - len(failed)} cases, {archive.stat().st_size} bytes")
    return len(failed) > 0


sys.exit(main())
