"""Every model with recorded values, evaluated on the host: `stickwright verify --reference`, both dialects.

The small models in tests/data/values are always there; with the folder of the whole corpus (SW_SHARED/models, or
shared/models beside the source folder) all of its models are run too. Arguments: names of models, to run only those;
--round evaluates with rounding to the dtypes of the graph."""
import os
import subprocess
import sys
import time

source = os.environ.get("SW_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
binary = os.environ.get("SW", os.path.join(source, "build", "dev", "stickwright"))
shared = os.environ.get("SW_SHARED", os.path.join(source, "..", "shared"))
folders = [os.path.join(source, "tests", "data", "values"), os.path.join(shared, "models")]
only = [a for a in sys.argv[1:] if not a.startswith("-")]
flags = [a for a in sys.argv[1:] if a.startswith("-")]

runs = failures = 0
slow = []
for folder in folders:
    if not os.path.isdir(folder):
        print("skipped: there is no", folder)
        continue
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".io.json"):
            continue
        name = file[: -len(".io.json")]
        if only and name not in only:
            continue
        for model in (name + ".pt2", name + ".core.pt2"):
            path = os.path.join(folder, model)
            if not os.path.exists(path):
                continue
            start = time.time()
            command = [binary, "verify", "--reference", path, "--inputs", os.path.join(folder, file)] + flags
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            slow.append((time.time() - start, model))
            runs += 1
            if done.returncode != 0:
                failures += 1
                bad = [line for line in done.stdout.splitlines() if "agrees" not in line] + done.stderr.splitlines()
                print("%s: exit %d\n    %s" % (model, done.returncode, "\n    ".join(bad[:6])))
slow.sort(reverse=True)
print("%d programs, %d fail, %.1f s; slowest %s" % (runs, failures, sum(t for t, _ in slow),
      ", ".join("%s %.1f s" % (m, t) for t, m in slow[:3])))
sys.exit(1 if failures or not runs else 0)
