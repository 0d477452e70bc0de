"""stickwright study: rows equal what compile says, means equal Python's; resumed, sharded, parallel and damaged studies
give the same bytes; limits are rows; baselines; all faults of a spec at once."""
import csv, io, json, math, os, pathlib, pty, signal, subprocess, sys, tempfile, time

SW, SOURCE = os.environ["SW"], pathlib.Path(os.environ["SW_SOURCE"])
found = []


def check(ok, what):
    if not ok:
        found.append(what)


def study(*args):
    return subprocess.run([SW, "study", *map(str, args)], capture_output=True, text=True)


def tables(d):
    return [(d / n).read_bytes() for n in ("study.csv", "study.json", "study.md")]


tmp = tempfile.TemporaryDirectory()
t = pathlib.Path(tmp.name)
(t / "g").mkdir()
for name in ("softmax_block", "attention_math", "add_transpose", "llama_tiny"):
    (t / "g" / f"{name}.pt2").write_bytes((SOURCE / f"data/models/{name}.pt2").read_bytes())
(t / "g" / "odd, \"name\".graph").write_text(
    "%a : f16[64,64] = input\n%b : f16[64,64] = my.op.default(%a)\n%c : f16[64,64] = your.op.default(%a)\nreturn %b, %c\n")
spec = {"format": "stickwright.study/1", "name": "t", "graphs": ["g/*.pt2", "g/[o]*.graph", "g/llama*"],
        "profiles": ["best", "torch-spyre"], "solvers": ["ilp", "greedy"], "options": [{}, {"cores": 16, "lx": False}]}
(t / "s.json").write_text(json.dumps(spec))

p = study(t / "s.json", "-o", t / "a", "--jobs", 1)
check(p.returncode == 0 and p.stderr == "", f"exit {p.returncode}: {p.stderr}")
check(p.stdout.encode() == tables(t / "a")[2], "stdout is study.md")
rows = list(csv.DictReader(io.StringIO((t / "a/study.csv").read_text())))
runs = json.loads((t / "a/study.json").read_text())["runs"]
check(len(rows) == len(runs) == 5 * 8, "5 graphs x 8 configurations")
for row, run in zip(rows, runs):
    where = f"{row['graph']} {row['profile']} {row['solver']} {row['options']}"
    options = [x for kv in row["options"].split() for x in ("--" + kv.split("=")[0], kv.split("=")[1])]
    r = json.loads(subprocess.run([SW, "compile", t / "g" / row["graph"], "--json", "--profile", row["profile"], "--solver",
                                   row["solver"], *options], capture_output=True, text=True).stdout)
    check(row["status"] == run["status"] == r["status"], where)
    if row["predicted_ns"]:
        check(int(row["value"]) == run["value"] == r["objective"]["value"], f"{where}: cost")
        check(float(row["predicted_ns"]) == run["predicted_ns"] == r["objective"]["predicted_ns"], f"{where}: time")
        check(run["ops"] == len(r["ops"]) and run["conversions"] == r["objective"]["conversions"], f"{where}: numbers")
        check(r["status"] in ("optimal", "feasible"), f"{where}: a plan of a failed compile")
    else:
        check(len(run["faults"]) == len(r["faults"]) > 0, f"{where}: faults")
odd = [r for r in rows if r["graph"] == 'odd, "name".graph']
check(len(odd) == 8 and all(r["faults"] == "2" for r in odd), "a name that needs quotes; both faults")

# the first line of "Who wins", worked out again
shared = [g for g in {r["graph"] for r in rows} if all(r["predicted_ns"] for r in rows if r["graph"] == g)]
mine = {r["graph"]: r for r in rows if (r["profile"], r["solver"], r["options"]) == ("best", "ilp", "")}
us = math.exp(sum(math.log(float(mine[g]["predicted_ns"])) for g in shared) / len(shared)) / 1e3
elements = math.exp(sum(math.log(1 + int(mine[g]["conversion_elements"])) for g in shared) / len(shared)) - 1
check(f"\n| best, ilp | 4 | 4 | {us:.2f} | {elements:.0f} | " in p.stdout, "geometric means")

# "Where they differ", worked out again
rows_of = {}
for r in rows:
    rows_of.setdefault(r["graph"], []).append(r)
wanted = []
for g, of in rows_of.items():
    ns = [float(r["predicted_ns"]) if r["predicted_ns"] else None for r in of]
    least = min((x for x in ns if x is not None), default=None)
    name = lambda r: f"{r['profile']}, {r['solver']}" + (f", {r['options']}" if r["options"] else "")
    first = [name(r) for r, x in zip(of, ns) if x is not None and x <= least * (1 + 1e-9)]
    rest = [name(r) + (f": {r['status']}" if x is None else f" +{100 * (x / least - 1):.1f} %")
            for r, x in zip(of, ns) if least is not None and not (x is not None and x <= least * (1 + 1e-9))]
    if rest:
        wanted.append(f"| {g} | {'; '.join(first)} | {least / 1e3:.2f} | {'; '.join(rest)} |")
part = p.stdout.split("## Where they differ")[1].split("\n## ")[0]
check(wanted and [s for s in part.splitlines() if s.startswith("| ")][1:] == wanted, "where they differ")

# the same bytes: in parallel; after a kill; from shards; with a damaged row
study(t / "s.json", "-o", t / "b", "--jobs", 3)
check(tables(t / "a") == tables(t / "b"), "parallel")
for how, jobs in ((signal.SIGKILL, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1)):
    d = t / f"c{int(how)}"
    q = subprocess.Popen([SW, "study", t / "s.json", "-o", d, "--jobs", str(jobs)], stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, text=True)
    while q.poll() is None and len(list(d.glob("runs/*.json"))) < 3:
        time.sleep(0.001)
    q.send_signal(how)
    said = q.communicate()[1]
    check(not (d / "study.csv").exists(), f"ended by {how.name} before the end")
    check(q.returncode == (-9 if how == signal.SIGKILL else 128 + how), f"{how.name}: exit code {q.returncode}")
    check(how == signal.SIGKILL or "runs are done; the same command goes on" in said, f"{how.name} says {said}")
    left = {p.name for p in d.glob("runs/*.json")}
    check(all(json.loads((d / "runs" / n).read_text())["key"] + ".json" == n for n in left), "rows are whole")
    before = {n: (d / "runs" / n).stat().st_mtime_ns for n in left}
    study(t / "s.json", "-o", d)
    check(tables(t / "a") == tables(d), f"resumed after {how.name}")
    check(before == {n: (d / "runs" / n).stat().st_mtime_ns for n in left}, "what was there was not done again")
for k in (1, 2, 3):
    p = study(t / "s.json", "-o", t / "d", "--merge")
    check(p.returncode == 66 and "of 40 runs are not in" in p.stderr, f"merging before shard {k}: {p.stderr}")
    check(study(t / "s.json", "-o", t / "d", "--shard", f"{k}/3").stdout == "", "a shard has no tables")
n = len(list((t / "d").glob("runs/*.json")))
check(n == 40, f"3 shards have {n} rows")
check(study(t / "s.json", "-o", t / "d", "--merge").returncode == 0 and tables(t / "a") == tables(t / "d"), "merged")
victim = sorted((t / "d/runs").iterdir())[7]
victim.write_bytes(victim.read_bytes()[:40])
study(t / "s.json", "-o", t / "d")
check(tables(t / "a") == tables(t / "d"), "from shards, one row damaged")

# graphs in the spec itself are as good as files
texts = {n: (t / "g" / n).read_text() for n in ['odd, "name".graph']}
(t / "inline.json").write_text(json.dumps({**spec, "graphs": texts}))
study(t / "inline.json", "-o", t / "i")
mine = list(csv.DictReader(io.StringIO((t / "i/study.csv").read_text())))
check(mine == odd, "graphs in the spec")

# a bar on a terminal, and only there
master, slave = pty.openpty()
q = subprocess.Popen([SW, "study", t / "s.json", "-o", t / "i2"], stdout=subprocess.DEVNULL, stderr=slave)
os.close(slave)
bar = b""
try:
    while piece := os.read(master, 65536):
        bar += piece
except OSError:  # how a terminal ends
    pass
q.wait()
check(bar.startswith(b"\r[") and bar.rstrip().endswith(b"==] 40 of 40 runs") and bar.count(b"\n") == 1, f"the bar: {bar[-100:]}")

# the script for Slurm: what it runs, from names that need care
(t / "it's 5%").mkdir()
p = study(t / "s.json", "-o", t / "it's 5%" / "s", "--jobs", 3, "--memory", 1000, "--shards", 4, "--slurm-script")
script = pathlib.Path(p.stdout.strip())
text = script.read_text()
check(p.returncode == 0 and "#SBATCH --array=1-4\n" in text and "#SBATCH --mem=3768M\n" in text
      and "#SBATCH --cpus-per-task=3\n" in text and "5%% /" not in text and "it's 5%%/s/slurm-%a.log" in text, f"script: {text}")
for k in range(1, 5):
    subprocess.run(["sh", script], env={**os.environ, "SLURM_ARRAY_TASK_ID": str(k)}, check=True)
check(study(t / "s.json", "-o", script.parent, "--memory", 1000, "--merge").returncode == 0
      and tables(script.parent) == tables(t / "a"), "the tasks of the script, merged")
p = subprocess.run([SW, "study", t / "s.json", "-o", t / "e1", "--slurm"], capture_output=True, text=True, env={"PATH": "/none"})
check(p.returncode == 74 and "sbatch can't be started" in p.stderr and "study.sbatch is written" in p.stderr, f"no sbatch: {p.stderr}")

# a run over its limit is a row
p = study(t / "s.json", "-o", t / "a", "--memory", 1)
status = {r["status"] for r in csv.DictReader(io.StringIO((t / "a/study.csv").read_text())) if r["graph"] == "llama_tiny.pt2"}
check(p.returncode == 0 and status == {"limit"}, f"memory limit: {p.returncode} {status}")

# baselines
base = json.loads((t / "b/study.json").read_text())
p = study(t / "s.json", "-o", t / "b", "--baseline", t / "b/study.json")
check(p.returncode == 0 and p.stderr == "", "its own baseline")
planned = [i for i, r in enumerate(base["runs"]) if r["status"] == "optimal" and r["value"] > 0]
base["runs"][planned[0]]["value"] -= 1
base["runs"][planned[0]]["predicted_ns"] *= 0.99
base["runs"][planned[1]]["predicted_ns"] *= 0.99
base["runs"][planned[2]]["value"] += 1
refused = next(r for r in base["runs"] if r["status"] == "unsupported")
refused.update(unit="ns", value=1, predicted_ns=1.0)
base["runs"][planned[3]]["options"] = "cores=7"
(t / "base.json").write_text(json.dumps(base))
p = study(t / "s.json", "-o", t / "b", "--baseline", t / "base.json")
lines = [s for s in p.stderr.splitlines() if s.startswith("worse: ")]
check(p.returncode == 1 and len(lines) == 3, f"three worse: {p.returncode} {p.stderr}")
check(any(" before, " in s and "cost" in s for s in lines) and any(" us before, " in s for s in lines)
      and any("compiled before, now unsupported" in s for s in lines), "each says how")
check(sum("cost" in s and " us now" in s for s in lines) == 1, "both reasons of a run")
check("1 of 40 runs are not in the baseline" in p.stderr and "1 of 40 runs of the baseline are not in this study" in p.stderr,
      "runs without a counterpart are said")

# all faults of a spec at once
bad = {"format": "x", "name": "a/b", "graphs": ["g/none*", 7], "profiles": ["best", "worst", "best"], "solvers": [],
       "options": [{"cores": 99}, {"color": "red"}, {"profile": "best"}, {"lx": 1.5}, 3], "more": 1}
(t / "bad.json").write_text(json.dumps(bad))
p = study(t / "bad.json", "-o", t / "e")
check(p.returncode == 64 and not (t / "e").exists(), f"usage: {p.returncode}")
for where in ("/format", "/name", "/graphs/0", "/graphs/1", "/profiles/1", "/profiles/2", "/solvers", "/options/0", "/options/1",
              "/options/2", "/options/3/lx", "/options/4", "/more"):
    check(f"{where}:" in p.stderr or f"{where} " in p.stderr or f"{where};" in p.stderr, f"{where} not named: {p.stderr}")
(t / "many.json").write_text(json.dumps({**spec, "options": [{"budget": n} for n in range(1, 90001)]}))
p = study(t / "many.json", "-o", t / "e")
check(p.returncode == 4 and "are 1800000 runs, limit 1000000" in p.stderr, f"too many runs: {p.stderr}")
for args in (["--merge", "--shard", "1/2"], ["--slurm", "--merge"], ["--shard", "4/3"], ["--shard", "0/3"], ["--jobs", "0"], ["--seconds", "x"], ["--color", "red"]):
    check(study(t / "s.json", "-o", t / "e", *args).returncode == 64, f"{args}")
check(study(t / "none.json").returncode == 66, "no spec")

for f in found:
    print("study:", f)
sys.exit(bool(found))
