#!/usr/bin/env python3
"""Infeasible assignment problems: the conflict that `solve` names can't be met, and leaving out any one of its terms it can. Judged by
a search of our own over the problem documents, which shares nothing with the solvers.

  conflicts.py [--seed N] [--count N]

Problems of 10 to 60 variables: pairs that forbid labels, copies that can't be made, pinned variables (one label left), equal costs
everywhere so that only feasibility counts. Standard library only."""
import argparse, json, os, random, subprocess, sys

SW = os.environ["SW"]
INF = "inf"


def some_problem(seed):
    rng = random.Random(seed)
    n = rng.randint(10, 60)
    labels = [rng.randint(1, 3) for _ in range(n)]
    hard = rng.choice([.1, .2, .3, .5])

    def table(rows, cols):
        if rows == cols and rng.random() < .3:  # equal, or shifted: a chain of them forces what is far away
            shift = rng.randrange(rows)
            return [[7 if (i + shift) % rows == j else INF for j in range(cols)] for i in range(rows)]
        return [[INF if rng.random() < hard else 7 for _ in range(cols)] for _ in range(rows)]

    def near(v):
        return rng.choice([u for u in range(max(0, v - 6), min(n, v + 7)) if u != v])
    variables = [{"name": f"x{v}", "labels": [str(i) for i in range(k)]} for v, k in enumerate(labels)]
    for v, k in enumerate(labels):
        if k > 1 and rng.random() < .1:  # a pin
            keep = rng.randrange(k)
            variables[v]["cost"] = [0 if i == keep else INF for i in range(k)]
    edges = []
    for _ in range(rng.randint(n // 2, 2 * n)):
        a = rng.randrange(n)
        b = near(a)
        edges.append([a, b, table(labels[a], labels[b])])
    sharing = []
    for _ in range(rng.randint(0, n // 4)):
        p, classes = rng.randrange(n), rng.randint(1, 3)
        readers = [[near(p), None] for _ in range(rng.randint(1, 4))]
        sharing.append({"producer": p, "classes": [f"c{t}" for t in range(classes)], "conv": table(labels[p], classes),
                        "readers": [[r, [rng.choice([None, *range(classes)]) for _ in range(labels[r])]] for r, _ in readers]})
    return {"format": "stickwright.assign/1", "name": f"seed {seed}", "mode": rng.choice(["shared", "per-edge"]), "variables": variables,
            "edges": edges, "sharing": sharing}


def feasible(problem, edges, groups):
    """Whether these terms can be met: labels by search, values of least choice first."""
    pairs = {}

    def forbid(a, b, allowed):
        pairs.setdefault(a, []).append((b, allowed))
        pairs.setdefault(b, []).append((a, lambda j, i: allowed(i, j)))
    for e in edges:
        a, b, t = problem["edges"][e]
        forbid(a, b, lambda i, j, t=t: t[i][j] != INF)
    for g in groups:
        s = problem["sharing"][g]
        for reader, wants in s["readers"]:
            forbid(s["producer"], reader, lambda i, j, w=wants, c=s["conv"]: w[j] is None or c[i][w[j]] != INF)
    costs = [v.get("cost") or [0] * len(v["labels"]) for v in problem["variables"]]
    domain = {v: [i for i, c in enumerate(costs[v]) if c != INF] for v in pairs}

    def search(domain):
        domain, queue = dict(domain), list(domain)
        while queue:  # what has no partner goes
            v = queue.pop()
            for u, allowed in pairs[v]:
                left = [j for j in domain[u] if any(allowed(i, j) for i in domain[v])]
                if len(left) < len(domain[u]):
                    domain[u] = left
                    queue.append(u)
        if not all(domain.values()):
            return False
        v = min((v for v in domain if len(domain[v]) > 1), key=lambda v: len(domain[v]), default=None)
        return v is None or any(search({**domain, v: [i]}) for i in domain[v])
    return search(domain)


def judge(seed):
    """(status, what is wrong)"""
    problem = some_problem(seed)
    p = subprocess.run([SW, "solve", "-", "--json"], input=json.dumps(problem), capture_output=True, text=True)
    r = json.loads(p.stdout)
    every = feasible(problem, range(len(problem["edges"])), range(len(problem["sharing"])))
    possible = all(any(c != INF for c in v.get("cost", [0])) for v in problem["variables"])
    if (r["status"] == "optimal") != (every and possible):
        return r["status"], f"{r['status']}, but a search says feasible: {every}"
    if r["status"] != "infeasible":
        return r["status"], "" if r["status"] == "optimal" else r["status"]
    edges, groups = r["conflict"]["edges"], r["conflict"]["groups"]
    if feasible(problem, edges, groups):
        return r["status"], f"the conflict {edges} {groups} can be met"
    for k in range(len(edges) + len(groups)):
        e, g = edges[:k] + edges[k + 1:], groups if k < len(edges) else groups[:k - len(edges)] + groups[k - len(edges) + 1:]
        if not feasible(problem, e, g):
            return r["status"], f"the conflict {edges} {groups} is not minimal: without term {k} it can't be met either"
    return r["status"], ""


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=150)
    o = a.parse_args()
    n, wrong = {}, 0
    for seed in range(o.seed, o.seed + o.count):
        status, why = judge(seed)
        n[status] = n.get(status, 0) + 1
        if why:
            wrong += 1
            print(f"seed {seed}: {why}")
    print(", ".join(f"{k} {v}" for k, v in sorted(n.items())) + f", {wrong} wrong")
    sys.exit(wrong > 0)


main()
