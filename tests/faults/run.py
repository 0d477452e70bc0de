"""Public fault reports as tests: what went wrong elsewhere must come out right here.

    run.py [BR-07 ...] [--verbose]

cases.py holds the table, one entry a graph. Each is compiled, its result compared with what the report's entry asks for
(status, conversions, cost in padded elements, layouts, text of the refusal) and with invariants of every result; what
compiles is executed on the simulated card and compared with the graph's own meaning, in profile torch-spyre too, where
a refusal must have a reason. An entry with `xfail` is a known failure: counted and printed, and an error once it passes.
Standard library only; the binary is SW."""
import concurrent.futures, json, os, pathlib, subprocess, sys, tempfile

SW = os.environ["SW"]
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))
from case import leaves  # noqa: E402
from invariants import complaints_about  # noqa: E402


class Run:
    """One compile: result.json, the directory it wrote, and the files in it."""

    def __init__(self, graph, options, at, environment=None):
        self.model, self.dir = at / "model.graph", at / "out"
        self.model.write_text(graph)
        p = subprocess.run([SW, "compile", self.model, "-o", self.dir, "--json", *options], capture_output=True, timeout=300,
                           env={**os.environ, **(environment or {})})
        self.exit, self.stderr = p.returncode, p.stderr.decode(errors="replace")
        self.result = json.loads(p.stdout) if p.stdout else {"status": "none", "faults": [], "conversions": [], "storages": []}
        self.status = self.result["status"]

    def storage(self, name):
        return next((s for s in self.result["storages"] if s["name"] == name), None)

    def device_size(self, name):
        s = self.storage(name)
        return s and s["layout"] and s["layout"]["device_size"]

    def manifest(self):
        return json.loads((self.dir / "manifest.json").read_text())

    def specs(self):
        """Every op spec, in launch order."""
        return [s for b in sorted(self.dir.glob("bundle_*"), key=lambda b: int(b.name[7:]))
                for s in leaves(json.loads((b / "opspec.json").read_text())["specs"])]

    def bundle(self, k=0):
        return (self.dir / f"bundle_{k}" / "bundle.mlir").read_text()

    def files(self):
        return {f.relative_to(self.dir).as_posix(): f.read_bytes() for f in sorted(self.dir.rglob("*"))
                if f.is_file() and f.name != "stats.json"}

    def said(self):
        return " / ".join(str(f[k]) for f in self.result["faults"] for k in ("node", "tensor", "detail", "advice")) + self.stderr

    def verify(self):
        p = subprocess.run([SW, "verify", self.dir, "--model", self.model], capture_output=True, timeout=300)
        return [] if p.returncode == 0 else ["verify: " + (p.stdout + p.stderr).decode(errors="replace").strip()[-300:]]


def differences(run, want):
    """What of the expectation does not hold."""
    bad = []

    def check(what, got, expected):
        if got != expected:
            bad.append(f"{what}: {got}, expected {expected}")
    o = run.result.get("objective") or {}
    if "status" in want:
        allowed = want["status"].split("|")
        if run.status not in allowed:
            bad.append(f"status {run.status}, expected {want['status']}: {run.said()[:300]}")
    if "cost" in want:
        check("cost", o.get("value"), want["cost"])
    if "conversions" in want:
        check("conversions", o.get("conversions"), want["conversions"])
    if "converted" in want:
        check("converted", sorted(c["storage"] for c in run.result["conversions"]), sorted(want["converted"].split()))
    for name, size in want.get("layouts", {}).items():
        check(f"device size of {name}", run.device_size(name), size)
    for name, steps in want.get("maps", {}).items():
        check(f"stride map of {name}", run.storage(name) and run.storage(name)["layout"]["stride_map"], steps)
    if "strides" in want:
        check("strides of the outputs", [x["stride"] for x in run.manifest()["outputs"]] if run.dir.exists() else None, want["strides"])
    for text in want.get("says", []):
        if text not in run.said():
            bad.append(f"no word of {text!r} in: {run.said()[:400]}")
    if "check" in want and not bad:
        bad += want["check"](run)
    return bad


def judge(case):
    """What is wrong with this case, and how many directories were executed."""
    bad, executed = [], 0
    with tempfile.TemporaryDirectory() as t:
        at = pathlib.Path(t)
        for profile in (case.profile, {"best": "torch-spyre", "torch-spyre": "best"}[case.profile]):
            (at / profile).mkdir()
            options = ["--objective", "elements", "--profile", profile, *case.options]
            run = Run(case.graph, options, at / profile)
            found = differences(run, case.want) if profile == case.profile else []
            found += complaints_about(run.result, run.dir if run.dir.exists() else None)
            if run.status in ("optimal", "feasible") and case.execute:
                found += run.verify()
                executed += 1
            if profile == case.profile and case.twice:
                again = Run(case.graph, options, at / profile)
                found += case.twice(run, again)
            bad += found if profile == case.profile else [f"profile {profile}: {f}" for f in found]
            if profile == case.profile and case.one_profile:
                break
    return bad, executed


def main():
    from cases import CASES, SKIPPED
    wanted = [a for a in sys.argv[1:] if not a.startswith("--")]
    verbose = "--verbose" in sys.argv
    cases = [c for c in CASES if not wanted or c.number in wanted]
    n = {"green": 0, "wrong": 0, "known failure": 0}
    executed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (bad, runs) in zip(cases, pool.map(judge, cases)):
            executed += runs
            if case.xfail:
                kind = "known failure" if bad else "wrong"
                print(f"{'known failure' if bad else 'PASSES, but is marked as a known failure'}: {case.number} {case.why}\n    {case.xfail}")
                if verbose:
                    print("    " + "\n    ".join(bad))
            else:
                kind = "wrong" if bad else "green"
                if bad or verbose:
                    print(f"{kind}: {case.number} {case.why}" + "".join(f"\n    {b}" for b in bad))
            n[kind] += 1
    for number, why in SKIPPED.items() if not wanted else []:
        print(f"skipped: {number}: {why}")
    print(f"{n['green']} cases right, {n['wrong']} wrong, {n['known failure']} known failures, {len(SKIPPED)} reports skipped; "
          f"{executed} result directories executed")
    sys.exit(n["wrong"] != 0)


if __name__ == "__main__":
    main()
