"""Random graphs: compiled in both profiles, executed on the simulated card, compared with the graph's own meaning.

    random_graphs.py [--seed N] [--count N] [--keep DIR] [--options "--cores 4"]

A graph may be refused with a reason, or infeasible; it must never be wrong, crash or contradict itself. A wrong one is
shrunk (fewer nodes) and kept. Prints what was refused most, and one line per finding. Standard library only."""
import argparse, collections, concurrent.futures, json, os, pathlib, random, shutil, subprocess, sys, tempfile

SW = os.environ["SW"]
SIZES = [1, 2, 3, 5, 16, 32, 40, 64, 65, 96, 100, 128, 130, 192]
UNARY = ["exp", "relu", "neg", "sigmoid", "tanh", "abs", "silu"]
BINARY = ["add.Tensor", "sub.Tensor", "mul.Tensor", "maximum"]


def dense(size):
    out, n = [], 1
    for s in reversed(size):
        out.insert(0, n)
        n *= s
    return out


class Graph:
    """Lines of text, and for every value its size and strides."""

    def __init__(self, rng):
        self.rng, self.lines, self.values, self.n_inputs = rng, [], {}, 0
        for _ in range(rng.randint(1, 3)):
            self.input()
        for _ in range(rng.randint(1, 9)):
            self.step()
        read = " ".join(self.lines)
        unread = [v for v in self.values if read.count(v + ",") + read.count(v + ")") + read.count(v + "]") == 0]
        self.outputs = unread[-3:] or [list(self.values)[-1]]

    def text(self):
        return "\n".join(self.lines + ["return " + ", ".join(self.outputs)]) + "\n"

    def add(self, op, args, size, stride=None):
        name = f"%v{len(self.values)}"
        given = "" if stride is None or stride == dense(size) else f" strides=[{','.join(map(str, stride))}]"
        self.lines.append(f"{name} : f16[{','.join(map(str, size))}]{given} = aten.{op}({args})")
        self.values[name] = (size, stride or dense(size))
        return name

    def input(self, size=None):
        if size is None:
            size = [self.rng.choice(SIZES) for _ in range(self.rng.randint(1, 4))]
            while len(size) > 1 and prod(size) > 300000:
                size[size.index(max(size))] = self.rng.choice([2, 3, 16])
        name = f"%x{self.n_inputs}"
        self.n_inputs += 1
        kind = self.rng.choice(["input", "input", "input", f'parameter("p{self.n_inputs}")'] if False else ["input"])
        self.lines.append(f"{name} : f16[{','.join(map(str, size))}] = {kind}")
        self.values[name] = (size, dense(size))
        return name

    def pick(self):
        return self.rng.choice(list(self.values)[-6:])

    def step(self):
        getattr(self, self.rng.choice(["unary", "binary", "binary", "broadcast", "permute", "permute", "slice", "view", "reduce",
                                       "matmul", "matmul", "softmax", "cat", "clone", "unsqueeze", "scalar"]))()

    def unary(self):
        v = self.pick()
        size, stride = self.values[v]
        self.add(self.rng.choice(UNARY), v, size)

    def scalar(self):
        v = self.pick()
        self.add(self.rng.choice(["mul.Tensor", "add.Tensor"]), f"{v}, {self.rng.choice([0.5, 2, 1.25])}", self.values[v][0])

    def binary(self):
        v = self.pick()
        size = self.values[v][0]
        same = [w for w in self.values if self.values[w][0] == size]
        w = self.rng.choice(same) if len(same) > 1 and self.rng.random() < .7 else self.input(list(size))
        a, b = (v, w) if self.rng.random() < .5 else (w, v)
        self.add(self.rng.choice(BINARY), f"{a}, {b}", size)

    def broadcast(self):
        v = self.pick()
        size = self.values[v][0]
        other = [s if self.rng.random() < .5 else 1 for s in size][self.rng.randint(0, len(size) - 1):]
        self.add(self.rng.choice(BINARY), f"{v}, {self.input(other)}", size)

    def permute(self):
        v = self.pick()
        size, stride = self.values[v]
        order = list(range(len(size)))
        self.rng.shuffle(order)
        self.add("permute", f"{v}, {order}", [size[i] for i in order], [stride[i] for i in order])

    def slice(self):
        v = self.pick()
        size, stride = self.values[v]
        d = self.rng.randrange(len(size))
        if size[d] < 2:
            return
        start = self.rng.choice([0, 1, size[d] // 2, min(64, size[d] - 1)])
        end = self.rng.randint(start + 1, size[d])
        self.add("slice.Tensor", f"{v}, {d}, {start}, {end}", [end - start if i == d else s for i, s in enumerate(size)], stride)

    def view(self):
        v = self.pick()
        size, stride = self.values[v]
        if stride != dense(size):
            v = self.add("clone", v + ", memory_format=None" if False else v, size)
        d = self.rng.randrange(len(size))
        parts = [f for f in (2, 4, 32, 64) if size[d] % f == 0 and size[d] > f]
        if parts and len(size) < 4:
            f = self.rng.choice(parts)
            new = size[:d] + [size[d] // f, f] + size[d + 1:]
        elif len(size) > 1:
            d = min(d, len(size) - 2)
            new = size[:d] + [size[d] * size[d + 1]] + size[d + 2:]
        else:
            return
        self.add("view", f"{v}, {new}", new)

    def reduce(self):
        v = self.pick()
        size = self.values[v][0]
        d, keep = self.rng.randrange(len(size)), self.rng.random() < .5
        new = [1 if i == d else s for i, s in enumerate(size)] if keep else size[:d] + size[d + 1:]
        if new:
            self.add(self.rng.choice(["sum.dim_IntList", "mean.dim", "amax"]), f"{v}, [{d}], {keep}", new)

    def matmul(self):
        v = self.pick()
        size = self.values[v][0]
        if not 2 <= len(size) <= 3 or size[-1] == 1:
            return
        n = self.rng.choice(SIZES)
        w = self.input(size[:-2] + [size[-1], n])
        if self.rng.random() < .4:
            w = self.input(size[:-2] + [n, size[-1]])
            s = self.values[w]
            order = list(range(len(size) - 2)) + [len(size) - 1, len(size) - 2]
            w = self.add("permute", f"{w}, {order}", [s[0][i] for i in order], [s[1][i] for i in order])
        self.add("mm" if len(size) == 2 else "bmm", f"{v}, {w}", size[:-1] + [n])

    def softmax(self):
        v = self.pick()
        size = self.values[v][0]
        self.add("_softmax", f"{v}, {self.rng.randrange(len(size))}, False", size)

    def cat(self):
        v = self.pick()
        size = self.values[v][0]
        d = self.rng.randrange(len(size))
        w = self.input([self.rng.choice(SIZES) if i == d else s for i, s in enumerate(size)])
        other = self.values[w][0]
        self.add("cat", f"[{v}, {w}], {d}", [s + other[d] if i == d else s for i, s in enumerate(size)])

    def clone(self):
        v = self.pick()
        self.add("clone", v, self.values[v][0])

    def unsqueeze(self):
        v = self.pick()
        size, stride = self.values[v]
        if len(size) < 4:
            d = self.rng.randint(0, len(size))
            step = size[d] * stride[d] if d < len(size) else 1
            self.add("unsqueeze", f"{v}, {d}", size[:d] + [1] + size[d:], stride[:d] + [step] + stride[d:])


def prod(size):
    n = 1
    for s in size:
        n *= s
    return n


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
        if r["status"] in ("unsupported", "infeasible", "limit"):
            return "refused", r["faults"][0]["detail"] if r["faults"] else "WITHOUT A REASON"
        if r["status"] != "optimal":
            return "WRONG", f"{r['status']}: {r['faults'][:1]}"
        try:
            p = subprocess.run([SW, "verify", t + "/o", "--model", f], capture_output=True, timeout=300)
        except subprocess.TimeoutExpired:
            return "WRONG", "verify takes more than 300 s"
        if p.returncode:
            return "WRONG", (p.stdout + p.stderr).decode(errors="replace").strip()[-300:]
        return "right", ""


def shrink(graph, profile, options, why):
    """Drops outputs and trailing lines while the graph stays wrong."""
    lines, outputs = graph.lines, graph.outputs
    changed = True
    while changed:
        changed = False
        for i in range(len(lines) - 1, -1, -1):
            name = lines[i].split()[0]
            rest = lines[:i] + lines[i + 1:]
            if any(name + c in " ".join(rest) for c in (",", ")", "]")):
                continue
            out = [o for o in outputs if o != name] or [rest[-1].split()[0]] if rest else []
            if not rest or out[0] not in "".join(rest):
                continue
            verdict, w = judge("\n".join(rest + ["return " + ", ".join(out)]) + "\n", profile, options)
            if verdict == "WRONG":
                lines, outputs, why, changed = rest, out, w, True
                break
    return "\n".join(lines + ["return " + ", ".join(outputs)]) + "\n", why


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--seed", type=int, default=int(os.environ.get("SW_SEED", "1")))
    a.add_argument("--count", type=int, default=60)
    a.add_argument("--keep", type=pathlib.Path)
    a.add_argument("--options", default="")
    a.add_argument("--profiles", default="best,torch-spyre")
    a.add_argument("--jobs", type=int, default=2)
    o = a.parse_args()
    options = o.options.split()
    reasons, verdicts, findings = collections.Counter(), collections.Counter(), 0

    def one(seed):
        g = Graph(random.Random(seed))
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
