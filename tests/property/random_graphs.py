"""Random graphs: compiled in both profiles, executed on the simulated card, compared with the graph's own meaning.

    random_graphs.py [--seed N] [--count N] [--keep DIR] [--options "--cores 4"]

A graph may be refused with a reason, or infeasible; it must never be wrong, crash or contradict itself. A wrong one is
shrunk (fewer nodes) and kept. Prints what was refused most, and one line per finding. Standard library only."""
import argparse, collections, concurrent.futures, json, os, pathlib, subprocess, sys, tempfile

SW = os.environ["SW"]
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from graphs import Graph  # noqa: E402
from invariants import complaints_about  # noqa: E402


def wrong_strides(graph, out):
    """What the caller sees lies as the graph says. Not asked of strides with 0 or gaps."""
    want = json.loads(subprocess.run([SW, "inspect", graph, "--json"], capture_output=True).stdout)["outputs"]
    got = [o for o in json.loads((out / "manifest.json").read_text())["outputs"] if not o.get("mutates") and "stride" in o]
    for w, g in zip(want, got):
        dims = sorted((s, n) for s, n in zip(w["strides"], w["shape"]) if n > 1)
        dense, step = True, 1
        for s, n in dims:
            dense, step = dense and s == step, step * n
        if dense and [s for s, n in zip(g["stride"], g["size"]) if n > 1] != [s for s, n in zip(w["strides"], w["shape"]) if n > 1]:
            return f"output {w['name']} has strides {g['stride']}, the graph says {w['strides']}"
    return ""


def judge(text, profile, options):
    """("right" | "refused" | "WRONG", why)"""
    with tempfile.TemporaryDirectory() as t:
        f = pathlib.Path(t, "g.graph")
        f.write_text(text)
        try:
            p = subprocess.run([SW, "compile", f, "-o", t + "/o", "--json", "--profile", profile, *options], capture_output=True,
                               timeout=120)
        except subprocess.TimeoutExpired:
            return "WRONG", "compile takes more than 120 s"
        try:
            r = json.loads(p.stdout)
        except ValueError:
            return "WRONG", f"no result, exit {p.returncode}: {p.stderr[-200:].decode(errors='replace')}"
        out = pathlib.Path(t, "o")
        complaints = complaints_about(r, out if out.exists() else None)
        if complaints:
            return "WRONG", complaints[0]
        if r["status"] in ("unsupported", "infeasible", "limit"):
            return "refused", r["faults"][0]["detail"]
        if r["status"] not in ("optimal", "feasible"):
            return "WRONG", f"{r['status']}: {r['faults'][:1]}"
        try:
            p = subprocess.run([SW, "verify", t + "/o", "--model", f], capture_output=True, timeout=300)
        except subprocess.TimeoutExpired:
            return "WRONG", "verify takes more than 300 s"
        if p.returncode:
            return "WRONG", (p.stdout + p.stderr).decode(errors="replace").strip()[-300:]
        return ("WRONG", wrong_strides(f, out)) if wrong_strides(f, out) else ("right", "")


def shrink(graph, profile, options, why):
    """Drops outputs and trailing lines while the graph stays wrong."""
    lines, outputs = graph.lines, graph.outputs
    changed = True
    while changed:
        changed = False
        for i in range(len(lines) - 1, -1, -1):
            name = lines[i].split()[0]
            rest = lines[:i] + lines[i + 1:]
            if any(name + c in " ".join(rest) for c in (",", ")", "]")) or any(m.endswith(name) for m in graph.mutations):
                continue
            out = [o for o in outputs if o != name] or [rest[-1].split()[0]] if rest else []
            if not rest or out[0] not in "".join(rest):
                continue
            verdict, w = judge("\n".join(rest + graph.mutations + ["return " + ", ".join(out)]) + "\n", profile, options)
            if verdict == "WRONG" and not w.startswith("bad-input"):
                lines, outputs, why, changed = rest, out, w, True
                break
    return "\n".join(lines + graph.mutations + ["return " + ", ".join(outputs)]) + "\n", why


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--seed", type=int, default=int(os.environ.get("SW_SEED", "1")))
    a.add_argument("--count", type=int, default=40)
    a.add_argument("--keep", type=pathlib.Path)
    a.add_argument("--options", default="")
    a.add_argument("--profiles", default="best,torch-spyre")
    a.add_argument("--jobs", type=int, default=2)
    o = a.parse_args()
    options = o.options.split()
    reasons, verdicts, findings = collections.Counter(), collections.Counter(), 0

    def one(seed):
        g = Graph(seed)
        return seed, g, [(p, *judge(g.text(), p, options)) for p in o.profiles.split(",")]
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for seed, g, results in pool.map(one, range(o.seed, o.seed + o.count)):
            for profile, verdict, why in results:
                verdicts[profile + " " + verdict] += 1
                if verdict == "refused":
                    reasons[profile + ": " + " ".join(why.split(": ")[-1].split()[:9])] += 1
                if verdict == "WRONG":
                    findings += 1
                    text, why = shrink(g, profile, options, why)
                    print(f"FAIL seed {seed} profile {profile}: {why}\n{text}", flush=True)
                    if o.keep:
                        o.keep.mkdir(parents=True, exist_ok=True)
                        (o.keep / f"{seed}.{profile}.graph").write_text(text)
    for k, v in sorted(verdicts.items()):
        print(f"{v:6} {k}")
    for k, v in reasons.most_common(12):
        print(f"{v:6} refused, {k}")
    sys.exit(findings != 0)


if __name__ == "__main__":
    main()
