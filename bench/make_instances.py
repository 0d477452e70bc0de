#!/usr/bin/env python3
"""Seeded generator of assignment instances (format: docs/solver.md). Standard library only.

  make_instances.py FAMILY --size N [--seed S] [--mode per-edge|shared] [-o FILE[.gz]]   one instance (default stdout)
  make_instances.py --list                                                            families, with what they show
  make_instances.py --suite DIR [--seed S] [--sizes tiny,100,400,1500,6000]           one of every family per size

Same arguments, same bytes, on every machine. --size counts variables, approximately: a family rounds to whole layers.
The seed changes sizes, costs, wiring and label orders, never the shape of a family. Sizes up to 1,000,000 work in a
few tens of seconds.

Labels are stick classes ("k": stick on the hidden dimension, "s": on the sequence, "sp": one element a stick, ...).
A conversion costs the padded elements of the source, always a multiple of 64.
"""
import argparse, gzip, io, json, random, sys

SWAP = {"k": "s", "s": "k", "a": "b", "b": "a"}


class G:
    """Builder. A read is (producer, reader, class wanted under each label of the reader)."""

    def __init__(self, name, mode="per-edge"):
        self.name, self.mode = name, mode
        self.domains, self.dom_id = [], {}
        self.tables, self.tab_id = [], {}
        self.vars = []                       # (name, domain id, cost or None)
        self.size = []                       # conversion cost of a variable: int, or list per label
        self.hard = []                       # None or set of (label, class) that cannot be converted
        self.edges = []
        self.reads = {}                      # producer -> [(reader, wants)]

    def lab(self, v):
        return self.domains[self.vars[v][1]]

    def var(self, labels, size=0, cost=None, hard=None, name=None):
        key = tuple(labels)
        d = self.dom_id.setdefault(key, len(self.domains))
        if d == len(self.domains):
            self.domains.append(list(key))
        v = len(self.vars)
        self.vars.append((name or f"v{v}", d, cost if cost and any(cost) else None))
        self.size.append(size); self.hard.append(hard)
        return v

    def tab(self, rows):
        key = tuple(map(tuple, rows))
        t = self.tab_id.setdefault(key, len(self.tables))
        if t == len(self.tables):
            self.tables.append([list(r) for r in key])
        return t

    def edge(self, a, b, rows):
        self.edges.append((a, b, self.tab(rows)))

    def read(self, p, r, wants):
        self.reads.setdefault(p, []).append((r, wants))

    # ---- ops of a tensor graph ----
    def pointwise(self, ins, size, labels=None, extra=()):
        """ins: [(producer, transposed?)]. Default labels: those of the operands, leftmost first, as the peer does."""
        if labels is None:
            labels = []
            for p, t in ins:
                for l in self.lab(p):
                    l = SWAP.get(l, l) if t else l
                    if l not in labels and l in ("k", "s", "h", "a", "b"):
                        labels.append(l)
            labels = labels or ["k"]
        labels = list(labels) + [l for l in extra if l not in labels]
        v = self.var(labels, size)
        for p, t in ins:
            self.read(p, v, [SWAP.get(l, l) if t else l for l in labels])
        return v

    def reduce(self, p, size):
        """Over the hidden dimension: stick there -> one element a stick ("sp"); elsewhere the stick stays."""
        labels = ["sp" if l == "k" else l for l in self.lab(p)]
        v = self.var(labels, size, hard={("sp", l) for l in "sh"} | {(l, "sp") for l in "sh"})
        self.read(p, v, ["k" if l == "sp" else l for l in labels])
        return v

    def unary(self, p, size):
        v = self.var(self.lab(p), size, hard=self.hard[p])
        self.read(p, v, list(self.lab(p)))
        return v

    def bcast(self, p, stat, size):
        """p (op) statistic: the hidden-stick result needs the sparse statistic, others the dense one."""
        labels = [l for l in self.lab(p) if ("sp" if l == "k" else l) in self.lab(stat)]
        v = self.var(labels, size)
        self.read(p, v, list(labels))
        self.read(stat, v, ["sp" if l == "k" else l for l in labels])
        return v

    def matmul(self, x, w, size, xneed="k", wneed="n"):
        v = self.var(["k"], size)
        self.read(x, v, [xneed]); self.read(w, v, [wneed])
        return v

    # ---- writing ----
    def sharing(self):
        for p in sorted(self.reads):
            rs = self.reads[p]
            classes = []
            for _, ws in rs:
                for w in ws:
                    if w is not None and w not in classes:
                        classes.append(w)
            pos = {c: i for i, c in enumerate(classes)}
            sz, hard, conv = self.size[p], self.hard[p] or (), []
            for i, l in enumerate(self.lab(p)):
                s = sz[i] if isinstance(sz, (list, tuple)) else sz
                conv.append([0 if c == l else "inf" if (l, c) in hard else s for c in classes])
            yield p, classes, self.tab(conv), [[r, [None if w is None else pos[w] for w in ws]] for r, ws in rs]

    def write(self, f):
        groups = list(self.sharing())
        J = lambda x: json.dumps(x, separators=(",", ":"))
        f.write('{"format":"stickwright.assign/1",\n"name":%s,\n"mode":%s,\n"domains":%s,\n"tables":[' %
                (J(self.name), J(self.mode), J(self.domains)))
        f.write(",\n".join(J(t) for t in self.tables))
        f.write('],\n"variables":[\n')
        f.write(",\n".join(('{"name":"%s","domain":%d' % (n, d)) + ("" if c is None else ',"cost":' + J(c)) + "}"
                           for n, d, c in self.vars))
        f.write('],\n"edges":[\n')
        f.write(",\n".join("[%d,%d,%d]" % e for e in self.edges))
        f.write('],\n"sharing":[\n')
        f.write(",\n".join('{"producer":%d,"classes":%s,"conv":%d,"readers":%s}' % (p, J(c), t, J(r))
                           for p, c, t, r in groups))
        f.write("]}\n")


# ---------------------------------------------------------------------------------------------------------------
FAMILIES = {}


def family(name, what):
    def deco(fn):
        FAMILIES[name] = (fn, what)
        return fn
    return deco


SHAPES = [(512, 4096, 12800, 32), (512, 2048, 8192, 32), (1024, 4096, 14336, 32), (128, 768, 3072, 12), (256, 1024, 4096, 16)]


def decoder_layer(g, h, rnd, shape, rich, weights=None, transposes=True):
    """One pre-norm decoder block, 38 ops or a few more. rich: labels every pointwise op offers besides its operands'."""
    S, D, F, H = shape
    x, f, sc, st = S * D, S * F, H * S * S, S * 64
    W = weights or (lambda key, a, b: g.var(["n"] if rnd.random() < .75 else ["k"], a * b))
    def pw(ins, size):                                     # rich: candidates in the order of the dims, not of the operands
        return g.pointwise(ins, size, rnd.sample(rich, len(rich)) if rich else None)

    def norm(h):
        sq = pw([(h, 0)], x); ms = g.reduce(sq, st); rs = g.unary(ms, st); hn = g.bcast(h, rs, x)
        return pw([(hn, 0)], x)
    n = norm(h)
    q, k, v = (g.matmul(n, W(w, D, D), x) for w in "qkv")

    def rope(t):
        a = pw([(t, 0)], x); b = pw([(t, 0)], x); c = pw([(b, 0)], x)
        return pw([(a, 0), (c, 0)], x)
    q, k = rope(q), rope(k)
    s = g.matmul(q, k, sc, "k", "s")                       # q k^T: k wanted with its stick on the sequence
    s = pw([(s, 0)], sc); s = pw([(s, 0)], sc)
    mx = g.reduce(s, H * S * 64); e = g.bcast(s, mx, sc); e = pw([(e, 0)], sc)
    sm = g.reduce(e, H * S * 64); p = g.bcast(e, sm, sc)
    c = g.matmul(p, v, x, "k", "k")
    c = pw([(c, 0)], x)
    o = g.matmul(c, W("o", D, D), x)
    r = pw([(h, 0), (o, 0)], x)
    if transposes and rnd.random() < .5:                     # a relative-position bias or adapter kept transposed
        b = g.var(["k"], x); r = pw([(r, 0), (b, 1)], x)
    n = norm(r)
    ga, up = g.matmul(n, W("g", D, F), f), g.matmul(n, W("u", D, F), f)
    sg = pw([(ga, 0)], f); sl = pw([(ga, 0), (sg, 0)], f); m = pw([(sl, 0), (up, 0)], f)
    d = g.matmul(m, W("d", F, D), x)
    return pw([(r, 0), (d, 0)], x)


def tiny_block(g, rnd, rich):
    """A decoder block in miniature, brute-forceable."""
    h = g.var(["k"], 4096); b = g.var(["k"], 4096); w = g.var(["n"], 8192)
    sq = g.pointwise([(h, 0), (b, 1)], 4096, extra=rich); ms = g.reduce(sq, 512); hn = g.bcast(sq, ms, 4096)
    q = g.matmul(hn, w, 4096); k = g.pointwise([(hn, 0)], 64 * rnd.randint(16, 96), extra=rich)
    s = g.matmul(q, k, 4096, "k", "s"); e = g.pointwise([(s, 0), (b, rnd.random() < .5)], 2048, extra=rich)
    o = g.pointwise([(e, 0), (hn, rnd.random() < .5)], 4096, extra=rich)
    return g.matmul(o, w, 4096)


def layers_for(n, per):
    return max(1, round(n / per))


@family("f1-decoder", "decoder stack with the candidates the peer offers; expect greedy = beam = optimum on most")
def f1(n, rnd, g):
    if n < 40:
        return tiny_block(g, rnd, ())
    shape = rnd.choice(SHAPES); h = g.var(["k"], shape[0] * shape[1])
    for _ in range(layers_for(n, 48)):
        h = decoder_layer(g, h, rnd, shape, ())


@family("f2-deep", "the same, every pointwise op may stick on either dimension: the peer's bound overflows with depth")
def f2(n, rnd, g):
    if n < 40:
        return tiny_block(g, rnd, "ks")
    shape = rnd.choice(SHAPES); h = g.var(["k"], shape[0] * shape[1])
    for _ in range(layers_for(n, 48)):
        h = decoder_layer(g, h, rnd, shape, "ks")


@family("f2-deep3", "three sticks per pointwise op")
def f2c(n, rnd, g):
    if n < 40:
        return tiny_block(g, rnd, "hks")
    shape = rnd.choice(SHAPES); h = g.var(["k"], shape[0] * shape[1])
    for _ in range(layers_for(n, 48)):
        h = decoder_layer(g, h, rnd, shape, "hks")


@family("f3-ladder", "flash attention in K/V chunks, one free constant a chunk created up front; chunks = size/11")
def f3(n, rnd, g):
    chunks = max(2, n // 11) if n >= 40 else 2
    S, C, D = 512, rnd.choice([128, 256]), 128
    cs = [g.var(["a", "b"], S * C) for _ in range(chunks)]
    m = g.var(["b", "a", "c"], S * 64); l = g.var(["b"], S * 64); o = g.var(["b"], S * D); q = g.var(["k"], S * D)
    for c in cs:
        kk = g.var(["k"], C * D)
        s = g.var(["b"], S * C); g.read(q, s, ["k"]); g.read(kk, s, ["s"])      # q k^T, K converted every time
        t = g.pointwise([(s, 0), (c, 0)], S * C, ["a", "b"])                    # + the chunk's constant
        t2 = g.var(["b"], S * C)                                                 # contiguous copy: takes any stick, free
        g.read(t, t2, [None])
        m = g.pointwise([(m, 0), (t2, 0)], S * 64, ["b", "a"])
        e = g.pointwise([(t2, 0), (m, 0)], S * C, ["b", "a"])
        l = g.pointwise([(l, 0), (e, 0)], S * 64, ["b", "a"])
        v = g.var(["n"], C * D)
        pv = g.var(["b"], S * D); g.read(e, pv, ["b"]); g.read(v, pv, ["n"])
        o = g.pointwise([(o, 0), (pv, 0), (m, 0)], S * D, ["b", "a"])
    g.pointwise([(o, 0), (l, 0)], S * D, ["b", "a"])


SUITE4 = ["at_x_bt", "x_at_bt", "abcd_mm", "mm_bcde", "ab_ct_dt", "at_b_t_c", "ones_xt", "two_const_xt", "full_xt",
          "fill_xt", "a_at", "quad"]


@family("f4-transpose", "the x + x.t() suite with constants; optimum 0, one or two tensors of 128 x 128; seed picks the case")
def f4(n, rnd, g):
    N = 128 * 128
    inp = lambda: g.var(["k"], N)
    add = lambda *ins: g.pointwise(list(ins), N)
    const = lambda: g.var(["k", "s"], N)
    cases = max(1, n // 12)
    for ci in range(cases):
        which = SUITE4[(g.seed + ci) % len(SUITE4)] if cases == 1 else rnd.choice(SUITE4)
        if cases == 1:
            g.name += "-" + which
        a, b, c, d = inp(), inp(), inp(), inp()
        if which == "at_x_bt":
            add((add((a, 1), (b, 0)), 0), (c, 1))
        elif which == "x_at_bt":
            add((add((a, 0), (b, 1)), 0), (c, 1))
        elif which == "abcd_mm":
            t = add((add((add((a, 0), (b, 1)), 0), (c, 1)), 0), (d, 1)); g.matmul(t, g.var(["n"], N), N)
        elif which == "mm_bcde":
            t = add((add((add((a, 0), (b, 1)), 0), (c, 1)), 0), (d, 1)); g.matmul(g.var(["k"], N), t, N, "k", "k")
        elif which == "ab_ct_dt":
            t = g.matmul(a, g.var(["n"], N), N); add((add((t, 0), (c, 1)), 0), (d, 1))
        elif which == "at_b_t_c":
            add((add((a, 1), (b, 0)), 1), (c, 0))
        elif which in ("ones_xt", "full_xt", "fill_xt"):
            add((const(), 0), (a, 1))
        elif which == "two_const_xt":
            add((add((const(), 0), (const(), 0)), 0), (a, 1))
        elif which == "a_at":
            add((a, 0), (a, 1))
        else:
            t = add((a, 0), (b, 1)); u = add((t, 0), (t, 1)); add((u, 0), (c, 1))


@family("f5-fanout", "one buffer into 2..64 readers of mixed stick classes: sharing a copy pays, and moves the optimum")
def f5(n, rnd, g):
    h = g.var(["k"], 64 * 1024)
    while len(g.vars) < n - 1:
        x = 64 * rnd.randint(256, 4096)
        b = g.var(["k"], x)
        p = g.pointwise([(h, 0), (b, rnd.random() < .6)], x, ["k", "s"] + (["h"] if rnd.random() < .3 else []))
        m = min(rnd.choice([2, 3, 3, 4, 8, 16, 64]), max(2, (n - len(g.vars)) // 2 if n > 40 else 3))
        outs = []
        for _ in range(m):
            if rnd.random() < .55:
                r = g.var(["k"], x); g.read(p, r, [rnd.choice("kss" if rnd.random() < .9 else "h")])
            else:
                r = g.pointwise([(p, 0)], x, rnd.choice([["k", "s"], ["s", "k"], ["s"], ["k", "s", "h"]]))
            outs.append(r)
        a, b = rnd.sample(outs, 2)
        h = g.pointwise([(a, rnd.random() < .3), (b, 0)], x, ["k", "s"])


def dag(g, rnd, n, K, window, transposed, pinned, hard=0.0):
    L = ["k", "s", "h", "c"][:K]
    plant = [rnd.randrange(K) for _ in range(n)]
    for v in range(n):
        labs = [L[plant[v]]] if rnd.random() < pinned and v else rnd.sample(L, K)
        v = g.var(labs, 64 * rnd.randint(1, 64), hard=None)
        srcs = {rnd.randrange(max(0, v - window), v) for _ in range(rnd.choice([1, 2, 2]))} if v else ()
        for p in sorted(srcs):
            perm = dict(zip(L, L))
            if rnd.random() < transposed:
                q = rnd.sample(L, K); perm = dict(zip(L, q))
            if hard and rnd.random() < hard:                # non-convertible read, satisfied by the planted labels
                want, have = L[plant[v]], L[plant[p]]
                q = [l for l in L if l != have]; rnd.shuffle(q)
                perm = {want: have, **dict(zip([l for l in L if l != want], q))}
                rows = [[0 if perm[b] == a else "inf" for b in labs] for a in g.lab(p)]
                g.edge(p, v, rows)
            else:
                g.read(p, v, [perm[b] for b in labs])


@family("f6-dag", "random data-flow graph, 2 labels, window 10, 30 % transposed reads, 30 % pinned ops")
def f6(n, rnd, g):
    dag(g, rnd, n, 2, 10, .3, .3)


@family("f6-dag3", "the same with 3 labels, window 20, 10 % pinned: the hard end of the sparse graphs")
def f6c(n, rnd, g):
    dag(g, rnd, n, 3, 20, .3, .1)


@family("f7-hard", "40 % of the reads cannot be converted, window 30; a feasible answer is planted; beams report 'infeasible'")
def f7(n, rnd, g):
    dag(g, rnd, n, 2, 30, .3, 0, hard=.4)


def frustrated(rnd):
    c = 64 * rnd.randint(1, 16)
    return [[0, c], [c, 0]] if rnd.random() < .5 else [[c, 0], [0, c]]


@family("f8-grid", "m x m grid, random equal/unequal edges: width m, the LP bound is useless")
def f8(n, rnd, g):
    m = max(3, round(n ** .5))
    for i in range(m * m):
        g.var(["k", "s"], 0, cost=[0, 64 * rnd.randint(0, 3)])
    for i in range(m):
        for j in range(m):
            if j + 1 < m:
                g.edge(i * m + j, i * m + j + 1, frustrated(rnd))
            if i + 1 < m:
                g.edge(i * m + j, i * m + m + j, frustrated(rnd))


@family("f8-regular", "random 4-regular graph: no small separators at all")
def f8r(n, rnd, g):
    n = max(n, 8)                                          # below that hardly any 4-regular graph exists
    for _ in range(n):
        g.var(["k", "s"], 0, cost=[0, 64 * rnd.randint(0, 3)])
    while True:
        st = [v for v in range(n) for _ in range(4)]
        rnd.shuffle(st)
        es, bad = set(), 0
        for a, b in zip(st[::2], st[1::2]):
            e = (min(a, b), max(a, b))
            if a == b or e in es:
                bad += 1
            else:
                es.add(e)
        if bad <= n // 20 + 1:
            break
    for a, b in sorted(es):
        g.edge(a, b, frustrated(rnd))


@family("f9-wide", "3..29 labels an op, resharding-like tables, residual wiring (the shape of the public intra-operator contest)")
def f9(n, rnd, g):
    hi = 29 if n >= 40 else 4
    attr = []
    for v in range(n):
        K = min(hi, rnd.choice([3, 4, 4, 6, 6, 8, 12, 16, 29]))
        A = [(rnd.randrange(4), rnd.randrange(3)) for _ in range(K)]
        attr.append(A)
        g.var([f"p{i}" for i in range(K)], 0, cost=[64 * rnd.randint(0, 40) for _ in range(K)])
        srcs = set()
        if v:
            srcs.add(v - 1)
            if v % 6 == 5 and v >= 6:
                srcs.add(v - 6)                            # the residual of a block of six
            if rnd.random() < .1:
                srcs.add(rnd.randrange(max(0, v - 12), v))
        for p in sorted(srcs):
            w = 64 * rnd.randint(1, 20)
            g.edge(p, v, [[w * ((a[0] != b[0]) * 2 + (a[1] != b[1])) + (64 * rnd.randint(0, 2) if a != b else 0) for b in A]
                          for a in attr[p]])


@family("f11-chain", "one long chain, 3 labels, transposed and pinned links: 1,000,000 ops in linear time")
def f11(n, rnd, g):
    dag(g, rnd, n, 3, 1, .3, .2)


@family("f12-layers", "identical islands cut by single-label ops, a frustrated core in each: memoise, never force equality")
def f12(n, rnd, g):
    per = 40 if n >= 100 else 12
    seed = rnd.randrange(1 << 30)
    h = g.var(["k"], 4096)
    for _ in range(max(1, n // (per + 2))):
        r2 = random.Random(seed)                          # the same island every time
        vs = [h]
        for i in range(per):
            v = g.var(r2.sample(["k", "s", "h"], 3) if per == 40 else ["s", "k"], 64 * r2.randint(1, 64))
            for p in sorted({vs[max(0, len(vs) - 1 - r2.randrange(10))] for _ in range(2)}):
                L = g.lab(v)
                perm = dict(zip(L, r2.sample(L, len(L)))) if r2.random() < .4 else {}
                g.read(p, v, [perm.get(l, l) for l in L])
            vs.append(v)
        w = g.var(["n"], 4096 * 16)
        h = g.matmul(vs[-1], w, 4096)


@family("f13-tied", "weights tied across all layers, free to be laid out either way: hubs whose degree grows with depth")
def f13(n, rnd, g):
    if n < 40:
        ws = [g.var(["n", "k"], 4096, cost=[0, 64]) for _ in range(2)]
        h = g.var(["k"], 2048)
        for _ in range(3):
            x = g.matmul(h, rnd.choice(ws), 2048, "k", rnd.choice("nk")); h = g.pointwise([(x, 0), (h, rnd.random() < .5)], 2048)
        return
    shape = rnd.choice(SHAPES)
    S, D, F, H = shape
    ws = {key: g.var(["k", "n"], (F if key in "gud" else D) * D) for key in "qkvogud"}
    h = g.var(["k"], S * D)

    plain = g.matmul

    def matmul(x, w, size, xneed="k", wneed="n"):          # tied weights are read in either orientation
        return plain(x, w, size, xneed, rnd.choice("nnk") if w in ws.values() else wneed)
    g.matmul = matmul
    for _ in range(layers_for(n, 42)):
        h = decoder_layer(g, h, rnd, shape, "ks" if rnd.random() < .5 else (), weights=lambda key, a, b: ws[key])


SIZES = {"tiny": 12, "100": 100, "400": 400, "1500": 1500, "6000": 6000}


def make(fam, size, seed, mode="per-edge"):
    g = G(f"{fam}-n{size}-s{seed}" + ("-shared" if mode == "shared" else ""), mode)
    g.seed = seed
    FAMILIES[fam][0](size, random.Random(f"{fam}/{size}/{seed}"), g)
    return g


def save(g, path):
    if path == "-":
        return g.write(sys.stdout)
    if path.endswith(".gz"):
        with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as z, io.TextIOWrapper(z, "utf-8") as f:
            g.write(f)
    else:
        with open(path, "w") as f:
            g.write(f)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("family", nargs="?", choices=sorted(FAMILIES))
    ap.add_argument("--size", type=int, default=100)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--mode", default="per-edge", choices=["per-edge", "shared"])
    ap.add_argument("-o", "--output", default="-")
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--suite")
    ap.add_argument("--sizes", default="tiny,100,400,1500,6000")
    a = ap.parse_args()
    if a.list:
        for f in FAMILIES:
            print(f"{f:14} {FAMILIES[f][1]}")
    elif a.suite:
        for f in FAMILIES:
            for s in a.sizes.split(","):
                g = make(f, SIZES.get(s, None) or int(s), a.seed, a.mode)
                save(g, f"{a.suite}/{g.name}.json.gz")
    elif a.family:
        save(make(a.family, a.size, a.seed, a.mode), a.output)
    else:
        ap.error("a family, --list or --suite")


if __name__ == "__main__":
    main()
