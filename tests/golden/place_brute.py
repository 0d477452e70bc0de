"""`stickwright place` against brute force: 300 seeded tiny problems with in-place edges, aliases, pinned, barred and
required buffers, own alignments and sizes that are no multiples of them. Value, then peak, must be the best there is,
and the plan legal."""
import itertools, json, os, random, subprocess, sys, tempfile

SW = os.environ["SW"]
SEED = os.environ.get("SW_SEED", "1")
N = int(os.environ.get("SW_CASES", "300"))


def problem(rnd):
    align = rnd.choice([1, 1, 2, 3, 4])
    capacity = rnd.randint(3, 9)
    buffers = []
    for i in range(rnd.randint(1, 6)):
        start = rnd.randrange(5)
        b = {"name": f"b{i}", "size": rnd.randint(1, 5), "start": start, "end": start + rnd.randint(1, 4),
             "value": rnd.randint(0, 6)}
        if rnd.random() < .1:
            b["alignment"] = 2
        if rnd.random() < .1:
            b["barred"] = "because"
        elif rnd.random() < .12:
            b["required"] = True
        if rnd.random() < .1:
            a = rnd.randrange(0, capacity)
            if a % align == 0 and a % b.get("alignment", 1) == 0 and a + b["size"] <= capacity:
                b["address"] = a
        if rnd.random() < .12:
            b["alias"] = "g"
        buffers.append(b)
    for x in buffers:
        for y in buffers:
            if x is not y and x["end"] == y["start"] + 1 and y["size"] <= x["size"] and rnd.random() < .7:
                y.setdefault("parents", []).append(x["name"])
    return {"format": "stickwright.place/1", "capacity": capacity, "alignment": align, "buffers": buffers}


def legal(p, addr):
    b, name = p["buffers"], {x["name"]: i for i, x in enumerate(p["buffers"])}
    kids, folks, alias = {}, {}, {}
    for x, a in zip(b, addr):
        if "alias" in x and alias.setdefault(x["alias"], a) != a:
            return False
    for i, j in itertools.combinations(range(len(b)), 2):
        x, y, a, c = b[i], b[j], addr[i], addr[j]
        if a is None or c is None or x["start"] >= y["end"] or y["start"] >= x["end"]:
            continue
        if a >= c + y["size"] or c >= a + x["size"]:
            continue
        if a == c and "alias" in x and x.get("alias") == y.get("alias"):
            continue
        child, parent = (i, j) if y["name"] in x.get("parents", []) else (j, i)
        if a != c or b[parent]["name"] not in b[child].get("parents", []):
            return False
        if parent in kids or child in folks:
            return False
        kids[parent] = child
        folks[child] = parent
    return True


def can_go_on(p, addr):
    """False when the last address overlaps an earlier one in a way that no in-place edge or alias allows."""
    b, j = p["buffers"], len(addr) - 1
    y, c = b[j], addr[j]
    for i in range(j):
        x, a = b[i], addr[i]
        if a is None or c is None or a == c or x["start"] >= y["end"] or y["start"] >= x["end"]:
            continue
        if a < c + y["size"] and c < a + x["size"]:
            return False
    return True


def best(p):
    """(value, -peak) of the best plan, or None."""
    choices = []
    for x in p["buffers"]:
        places = [a for a in range(0, p["capacity"] - x["size"] + 1)
                  if a % p["alignment"] == 0 and a % x.get("alignment", 1) == 0 and a == x.get("address", a)]
        choices.append(([] if x.get("required") else [None]) + ([] if "barred" in x else places))
    found = None

    def go(i, addr, value, peak):
        nonlocal found
        if i == len(choices):
            if (found is None or (value, -peak) > found) and legal(p, addr):
                found = (value, -peak)
            return
        if found and value + sum(y["value"] for y in p["buffers"][i:]) < found[0]:
            return
        x = p["buffers"][i]
        for a in choices[i]:
            addr.append(a)
            if can_go_on(p, addr):
                go(i + 1, addr, value + (0 if a is None else x["value"]), peak if a is None else max(peak, a + x["size"]))
            addr.pop()

    go(0, [], 0, 0)
    return found


def sound(path, p, want, budget):
    """With a spent budget: a legal plan or none, and bounds that hold."""
    run = subprocess.run([SW, "place", path, "--json", "--budget", str(budget)], capture_output=True, text=True)
    r = json.loads(run.stdout)
    bound = r["bound"] is None or r["bound"] >= want[0]
    if r["addresses"] is None:
        return r["status"] == "unknown" and run.returncode == 4 and bound
    below = r["peak_bound"] is None or r["value"] < want[0] or r["peak_bound"] <= -want[1]
    return bound and below and legal(p, r["addresses"]) and (r["value"], -r["peak"]) <= want and \
        (r["status"] != "optimal" or r["value"] == want[0])


def main():
    rnd = random.Random(SEED)
    wrong = 0
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "p.json")
        for k in range(N):
            p = problem(rnd)
            with open(path, "w") as f:
                json.dump(p, f)
            run = subprocess.run([SW, "place", path, "--json"], capture_output=True, text=True)
            want = best(p)
            try:
                r = json.loads(run.stdout)
            except ValueError:
                print(f"case {k}: {run.stderr.strip()}\n{json.dumps(p)}")
                wrong += 1
                continue
            if want is None:
                good = r["status"] == "infeasible" and run.returncode == 3 and r.get("conflict")
            else:
                a = r["addresses"]
                good = r["status"] == r["peak_status"] == "optimal" and (r["value"], -r["peak"]) == want and \
                    r["bound"] == r["value"] and legal(p, a) and \
                    sum(x["value"] for x, at in zip(p["buffers"], a) if at is not None) == r["value"]
            if good and want and k % 3 == 0:
                good = sound(path, p, want, rnd.choice([0, 1, 20, 100, 300, 1000]))
            if not good:
                wrong += 1
                print(f"case {k}: want {want}, got {r['status']} {r['value']} {r['peak_status']} {r['peak']}\n{json.dumps(p)}")
    print(f"{N - wrong}/{N} problems, seed {SEED}")
    sys.exit(wrong > 0)


main()
