#!/usr/bin/env python3
"""Models with recorded values, compiled in every way and executed on the simulated card: each output must be PyTorch's.

    random_matrix.py [--sample N] [--seed S] [--all] [--only PATTERN] [--jobs N] [--list FILE]

The ways are profiles x solvers x cores x scratchpad: 2 x 3 x 3 x 2. Without --all a fixed sample of N runs over the models of
data/models; with it every model with a NAME.io.json in $SW_SHARED/models (or shared/ beside the source), if it is there. Two
ways that write the same files are executed once. A model may be refused; it must never be wrong. Standard library only."""
import argparse, collections, concurrent.futures, fnmatch, hashlib, itertools, json, os, pathlib, random, re, subprocess, sys, tempfile

SW, SOURCE = os.environ["SW"], pathlib.Path(os.environ["SW_SOURCE"])
WAYS = list(itertools.product(("best", "torch-spyre"), ("ilp", "beam", "greedy"), ("1", "4", "32"), ("on", "off")))


def run(args, seconds):
    try:
        p = subprocess.run(args, capture_output=True, timeout=seconds)
        return p.returncode, (p.stdout + p.stderr).decode(errors="replace")
    except subprocess.TimeoutExpired:
        return -1, f"more than {seconds} s"


def digest(directory):
    """Of all that an execution reads."""
    h = hashlib.sha256()
    for f in sorted(directory.rglob("*")):
        if f.is_file() and f.name not in ("result.json", "stats.json", "layout_problem.json", "weights.json"):
            h.update(str(f.relative_to(directory)).encode() + b"\0" + f.read_bytes())
    return h.hexdigest()


def sizes(model, io):
    """--dim-max for the sizes of the sample, where a dim is dynamic."""
    code, text = run([SW, "inspect", model, "--json"], 60)
    if code:
        return []
    known, out = json.loads(text), {}
    given = {i["name"]: i.get("shape", []) for i in json.loads(io.read_text())["inputs"] if "name" in i}
    for i in known["inputs"]:
        for size, n in zip(i.get("shape", []), given.get(i["name"], [])):
            m = re.fullmatch(r"(?:(\d+)\*)?(s\d+)", str(size))
            if m:
                out[m[2]] = n // int(m[1] or 1)
    return [x for s, n in out.items() for x in ("--dim-max", f"{s}={n}")]


def judge(model, way, seen):
    """(verdict, why): right, same (as one that was right), refused, skipped, WRONG."""
    profile, solver, cores, lx = way
    io = model.with_name(model.name.replace(".core.pt2", "").replace(".pt2", "") + ".io.json")
    with tempfile.TemporaryDirectory() as t:
        out = pathlib.Path(t, "o")
        options = ["--profile", profile, "--solver", solver, "--cores", cores, "--lx", lx, "--verify", "never", *sizes(model, io)]
        code, said = run([SW, "compile", model, "-o", out, *options], 300)
        if code in (3, 4, 65):
            return "refused", said.strip()[-200:]
        if code:
            return "WRONG", f"compile: exit {code}: {said.strip()[-300:]}"
        key = (model.name, digest(out))
        if key in seen:
            return "same", ""
        code, said = run([SW, "verify", out, "--model", model, "--inputs", io], 600)
        if code in (-1, 4):
            return "skipped", said.strip()[-200:]
        if code:
            return "WRONG", f"verify: exit {code}: {said.strip()[-300:]}"
        seen.add(key)
        return "right", ""


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--sample", type=int, default=30)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--all", action="store_true")
    a.add_argument("--only", default="*")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("--list", type=pathlib.Path, help="one line a run, as they end")
    o = a.parse_args()
    folder = SOURCE / "data/models"
    shared = pathlib.Path(os.environ.get("SW_SHARED", SOURCE.parent / "shared")) / "models"
    if o.all and not shared.is_dir():
        print(f"no {shared}: the models of data/models alone")
    elif o.all:
        folder = shared
    models = [m for m in sorted(folder.glob("*.pt2")) if fnmatch.fnmatch(m.name, o.only)
              and m.with_name(m.name.replace(".core.pt2", "").replace(".pt2", "") + ".io.json").exists()]
    runs = [(m, w) for w in WAYS for m in models]
    random.Random(o.seed).shuffle(runs)
    runs = runs if o.all and o.sample == 30 else runs[:o.sample]
    verdicts, bad, seen = collections.Counter(), [], set()
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for (m, w), (verdict, why) in zip(runs, pool.map(lambda r: judge(*r, seen), runs)):
            verdicts[verdict] += 1
            line = f"{m.name} {' '.join(w)}: {verdict} {why}"
            if o.list:
                with o.list.open("a") as f:
                    f.write(line.replace("\n", " ") + "\n")
            if verdict == "WRONG":
                bad.append(line)
                print(line, flush=True)
    print(f"{len(models)} models, {len(runs)} runs: " + ", ".join(f"{n} {v}" for v, n in sorted(verdicts.items())))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
