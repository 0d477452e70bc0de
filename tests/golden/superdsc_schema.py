#!/usr/bin/env python3
"""docs/superdsc.schema.json: all recorded SuperDSC files obey it, and all that we write for the models here; the program's
own validator (`verify --structure`) agrees with it on files whose form was spoilt.

  superdsc_schema.py [--count N] [--seed S]"""
import argparse
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile

SW, SOURCE = os.environ["SW"], pathlib.Path(os.environ["SW_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests"))
from json_schema import faults  # noqa: E402

SCHEMA = json.loads((SOURCE / "docs/superdsc.schema.json").read_text())
# Recorded files of the right form that the structure rules refuse: the wrong mask constant, a gap in LX.
REFUSED = {"36_mean_stick_padded": "not neutral", "52_lx_backgap": "a gap in LX"}


def structure(path):
    """Exit code and what `verify --structure` says."""
    p = subprocess.run([SW, "verify", "--structure", path], capture_output=True, text=True)
    return p.returncode, p.stderr


def every_part(v, path=()):
    """Paths of all values in a document."""
    yield path
    for k, x in v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, list) else ():
        yield from every_part(x, path + (k,))


def spoil(r, document):
    """A copy with one change of form, and the path of the place."""
    j = copy.deepcopy(document)
    while True:
        path = r.choice(PARTS[id(document)])
        if not path:
            continue
        at = j
        for k in path[:-1]:
            at = at[k]
        v = at[path[-1]]
        how = r.randrange(6)
        if how == 0:
            del at[path[-1]]
        elif how == 1 and isinstance(v, dict):
            v[r.choice(["new_", "mb", "7", "Const", ""])] = r.choice([0, 1, {}, "x"])
        elif how == 2:
            at[path[-1]] = r.choice([x for x in ("text", -3, 1000, None, [], {}, 1.5, True) if x != v])
        elif how == 3 and isinstance(v, list):
            v.append(copy.deepcopy(v[0]) if v and r.random() < 0.5 else r.choice([7, "x", {}]))
        elif how == 4 and isinstance(v, str):
            at[path[-1]] = r.choice([v + "_", v.upper(), "", "-" + v])
        elif how == 5 and isinstance(v, int) and not isinstance(v, bool):
            at[path[-1]] = r.choice([-v - 1, v + 1, 10**12])
        else:
            continue
        return j, "/" + "/".join(map(str, path))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--count", type=int, default=300)
    a.add_argument("--seed", type=int, default=5)
    o = a.parse_args()
    bad, documents = [], []
    with tempfile.TemporaryDirectory() as d:
        tmp = pathlib.Path(d)
        with tarfile.open(SOURCE / "tests/data/superdsc_examples.tar.xz") as t:
            t.extractall(tmp)
        bundles = sorted((tmp / "superdsc_examples").iterdir())
        for m in sorted((SOURCE / "data/models").glob("*.pt2")):
            for profile in ("best", "torch-spyre"):
                to = tmp / f"{m.stem}.{profile}"
                if subprocess.run([SW, "compile", m, "--profile", profile, "-o", to], capture_output=True).returncode == 0:
                    bundles += sorted(to.glob("bundle_*"))
        n = 0
        for b in bundles:
            for f in sorted(b.glob("sdsc_*.json")):
                j = json.loads(f.read_text())
                n += 1
                bad += [f"{b.name}/{f.name}{x}" for x in faults(j, SCHEMA, SCHEMA)]
                documents += [j] if len(documents) < 300 else []
            code, said = structure(b)
            word = REFUSED.get(b.name)
            if (code == 1 and word in said) if word else code == 0:
                continue
            bad.append(f"{b.name}: exit {code}: {said[:200]}")
        print(f"{n} files of {len(bundles)} bundles")
        r = random.Random(o.seed)
        by_form = 0
        global PARTS
        PARTS = {id(j): list(every_part(j)) for j in documents}
        for i in range(o.count):
            j, where = spoil(r, r.choice(documents))
            found = list(faults(j, SCHEMA, SCHEMA))
            (tmp / "sdsc_0.json").write_text(json.dumps(j))
            code, said = structure(tmp / "sdsc_0.json")
            by_form += bool(found)
            if code not in (0, 1, 65) or bool(found) != ("(schema: " in said) or (found and code == 0):
                bad.append(f"{where}: schema says {found[:1]}, the program exit {code}: {said[:300]}")
        print(f"{o.count} files with one change: {by_form} have another form, found by both")
    print("\n".join(bad[:40]))
    return bool(bad) or by_form < o.count // 3


sys.exit(main())
