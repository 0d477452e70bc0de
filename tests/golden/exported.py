#!/usr/bin/env python3
"""Small programs exported by PyTorch (tests/exported/make.py): each compiles in profile best, is executed on the simulated card, and
gives what PyTorch computed. In profile torch-spyre it does the same, is refused, or is different as a warning has said.

exported.py [NAME...]"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

SW = os.environ["SW"]
ARCHIVE = pathlib.Path(os.environ["SW_SOURCE"]) / "tests" / "data" / "exported.tar.xz"


def judge(program, profile):
    out = program.with_name(f"{program.name}.{profile}")
    r = subprocess.run([SW, "compile", program, "-o", out, "--json", "--verify=never", "--profile", profile], capture_output=True)
    result = json.loads(r.stdout)
    if result["status"] not in ("optimal", "feasible"):
        refused = profile == "torch-spyre" and result["status"] in ("unsupported", "infeasible", "limit")
        return "refused" if refused else f"{result['status']}: " + "; ".join(f["detail"] for f in result["faults"][:3])
    io = program.with_name(program.name.split(".")[0] + ".io.json")
    v = subprocess.run([SW, "verify", out, "--model", program, "--inputs", io], capture_output=True, text=True)
    if v.returncode == 0:
        return "right"
    warned = v.returncode == 1 and any(w.startswith("precision: ") for w in result["warnings"])
    if profile == "torch-spyre" and (warned or v.returncode == 65):  # 65: the loader refuses row numbers below 0
        return "warned" if warned else "refused"
    return (v.stdout + v.stderr).strip()[-300:]


def main():
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        with tarfile.open(ARCHIVE) as a:
            a.extractall(folder, filter="data")
        names = sys.argv[1:]
        todo = [(p, profile) for p in sorted(folder.glob("*.pt2")) if not names or p.name.split(".")[0] in names
                for profile in ("best", "torch-spyre")]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            verdicts = list(pool.map(lambda t: judge(*t), todo))
    wrong = [(p.name, profile, v) for (p, profile), v in zip(todo, verdicts) if v not in ("right", "refused", "warned")]
    for name, profile, v in wrong:
        print(f"{name}, {profile}: {v}")
    print(f"{len(todo)} compiles: {verdicts.count('right')} right, {verdicts.count('refused')} refused and "
          f"{verdicts.count('warned')} warned of in torch-spyre, {len(wrong)} not as they must be")
    return len(wrong) > 0


sys.exit(main())
