"""Random text graphs: each op leaves a legal graph, and numbers stay so small that fp16 can hold them."""
import random

SIZES = [1, 2, 3, 5, 16, 32, 40, 64, 65, 96, 100, 128, 130, 192]
UNARY = {"relu": 0, "neg": 0, "sigmoid": 1, "tanh": 1, "abs": 0, "silu": 0, "gelu": 0}  # largest result, 0: that of the operand
BINARY = ["add.Tensor", "sub.Tensor", "mul.Tensor", "maximum", "minimum"]
STEPS = {"unary": 2, "binary": 4, "broadcast": 3, "permute": 4, "slice": 3, "view": 3, "reduce": 3, "matmul": 4, "softmax": 2, "cat": 2,
         "clone": 1, "unsqueeze": 2, "squeeze": 1, "scalar": 2, "exp": 1, "select": 1, "expand": 1, "pad": 1, "where": 2, "stack": 1,
         "compare": 1, "layer_norm": 1, "linear": 2, "copy_into": 1, "overwrite": 2, "same": 1, "scatter": 1, "gather": 1, "single": 1, "host": 1, "flip": 1,
         "clamp": 1, "attention": 1, "full": 1, "transposed_pair": 2, "embedding": 1, "addmm": 1, "repeat": 1, "norm": 1, "update": 2,
         "put_rows": 1, "half_turn": 1, "largest": 1, "masked": 1}
LARGEST = 300000  # elements of a value
BOUND = 2000      # magnitude of a value


def dense(size):
    out, n = [], 1
    for s in reversed(size):
        out.insert(0, n)
        n *= s
    return out


def prod(size):
    n = 1
    for s in size:
        n *= s
    return n


class Value:
    def __init__(self, size, stride, bound, dtype="f16", writable=False):
        self.size, self.stride, self.bound, self.dtype, self.writable = list(size), stride, bound, dtype, writable

    def contiguous(self):
        return self.stride == dense(self.size)


class Graph:
    """Lines of text, and a Value for every name."""

    def __init__(self, seed, most=9):
        self.rng, self.lines, self.values, self.mutations = random.Random(seed), [], {}, []
        self.n_inputs = 0
        for _ in range(self.rng.randint(1, 3)):
            self.input()
        names, weights = list(STEPS), list(STEPS.values())
        for _ in range(self.rng.randint(1, most)):
            getattr(self, self.rng.choices(names, weights)[0])()
        read = " ".join(self.lines)
        unread = [v for v in self.values if not any(v + c in read for c in ",)]") and self.values[v].dtype != "i32"]
        self.outputs = unread[-3:] or [list(self.values)[-1]]
        if self.rng.random() < .2:  # something else is seen from outside, too
            more = self.rng.choice(list(self.values))
            if more not in self.outputs:
                self.outputs.append(more)

    def text(self):
        return "\n".join(self.lines + self.mutations + ["return " + ", ".join(self.outputs)]) + "\n"

    # -- making values

    def add(self, op, args, size, stride=None, bound=1.0, dtype="f16"):
        name = f"%v{len(self.values)}"
        given = "" if stride is None or stride == dense(size) else f" strides=[{','.join(map(str, stride))}]"
        self.lines.append(f"{name} : {dtype}[{','.join(map(str, size))}]{given} = aten.{op}({args})")
        self.values[name] = Value(size, stride or dense(size), bound, dtype)
        return name

    def input(self, size=None, dtype="f16", kind=None):
        rng = self.rng
        if size is None:
            size = [rng.choice(SIZES) for _ in range(rng.randint(1, 4))]
            while len(size) > 1 and prod(size) > LARGEST:
                size[size.index(max(size))] = rng.choice([2, 3, 16])
        name = f"%x{self.n_inputs}"
        self.n_inputs += 1
        if kind is None:
            kind = rng.choice(["input", "input", "input", f'parameter("p{self.n_inputs}")'])
        self.lines.append(f"{name} : {dtype}[{','.join(map(str, size))}] = {kind}")
        self.values[name] = Value(size, dense(size), 1.0, dtype, kind == "input")
        return name

    def pick(self, test=lambda v: True):
        names = [n for n, v in self.values.items() if v.dtype == "f16" and test(v)]
        return self.rng.choice(names[-6:]) if names else None

    def mate(self, size):
        """Another operand of that size."""
        same = [w for w, x in self.values.items() if x.size == size and x.dtype == "f16"]
        return self.rng.choice(same) if len(same) > 1 and self.rng.random() < .7 else self.input(list(size))

    def elementwise(self, op, a, b, size):
        x, y = self.values[a].bound, self.values[b].bound
        bound = x * y if op == "mul.Tensor" else x + y if op in ("add.Tensor", "sub.Tensor") else max(x, y)
        if bound <= BOUND:
            self.add(op, f"{a}, {b}", size, bound=bound)

    # -- steps

    def unary(self):
        v = self.pick()
        op = self.rng.choice(list(UNARY))
        self.add(op, v, self.values[v].size, bound=UNARY[op] or self.values[v].bound)

    def exp(self):
        v = self.pick(lambda x: x.bound <= 4)
        if v:
            self.add("exp", v, self.values[v].size, bound=2.72 ** self.values[v].bound)

    def clamp(self):
        v = self.pick()
        self.add("clamp", f"{v}, -0.5, 0.75", self.values[v].size, bound=min(self.values[v].bound, .75))

    def scalar(self):
        v = self.pick()
        op, n = self.rng.choice([("mul.Tensor", .5), ("mul.Tensor", 2), ("add.Tensor", 1.25), ("div.Tensor", 4), ("sub.Tensor", 2)])
        bound = self.values[v].bound
        self.add(op, f"{v}, {n}", self.values[v].size, bound=bound * 2 if "mul" in op else bound + 2)

    def binary(self):
        v = self.pick()
        w = self.mate(self.values[v].size)
        a, b = (v, w) if self.rng.random() < .5 else (w, v)
        self.elementwise(self.rng.choice(BINARY), a, b, self.values[v].size)

    def broadcast(self):
        v = self.pick()
        size = self.values[v].size
        if not size:
            return
        other = [s if self.rng.random() < .5 else 1 for s in size][self.rng.randint(0, len(size) - 1):]
        fitting = [w for w, x in self.values.items() if x.dtype == "f16" and x.size == other]
        w = self.rng.choice(fitting) if fitting and self.rng.random() < .5 else self.input(other)
        self.elementwise(self.rng.choice(BINARY), v, w, size)

    def permute(self):
        v = self.pick()
        x = self.values[v]
        order = list(range(len(x.size)))
        self.rng.shuffle(order)
        return self.add("permute", f"{v}, {order}", [x.size[i] for i in order], [x.stride[i] for i in order], x.bound)

    def transposed_pair(self):
        """Sum of a transposed and a plain matrix: a conflict of sticks."""
        v = self.permute()
        self.elementwise("add.Tensor", v, self.mate(self.values[v].size), self.values[v].size)

    def slice(self):
        v = self.pick()
        x = self.values[v]
        if not x.size:
            return
        d = self.rng.randrange(len(x.size))
        if x.size[d] < 2:
            return
        start = self.rng.choice([0, 1, x.size[d] // 2, min(64, x.size[d] - 1)])
        end = self.rng.randint(start + 1, x.size[d])
        step = self.rng.choice([1, 1, 1, 2])
        n = (end - start + step - 1) // step
        stride = [s * step if i == d else s for i, s in enumerate(x.stride)]
        self.add("slice.Tensor", f"{v}, {d}, {start}, {end}, {step}", [n if i == d else s for i, s in enumerate(x.size)], stride, x.bound)

    def select(self):
        v = self.pick(lambda x: len(x.size) > 1)
        if v:
            x = self.values[v]
            d = self.rng.randrange(len(x.size))
            self.add("select.int", f"{v}, {d}, {self.rng.randrange(x.size[d])}", x.size[:d] + x.size[d + 1:], x.stride[:d] + x.stride[d + 1:],
                     x.bound)

    def expand(self):
        v = self.pick(lambda x: 1 in x.size and prod(x.size) < 2000)
        if v:
            x = self.values[v]
            size = [s if s > 1 or self.rng.random() < .3 else self.rng.choice([2, 16, 64, 65]) for s in x.size]
            self.add("expand", f"{v}, {size}", size, [st if s == o else 0 for s, o, st in zip(size, x.size, x.stride)], x.bound)

    def view(self):
        v = self.pick()
        x = self.values[v]
        if not x.size:
            return
        if not x.contiguous():
            v = self.add("clone", v, x.size, bound=x.bound)
        d = self.rng.randrange(len(x.size))
        parts = [f for f in (2, 4, 32, 64) if x.size[d] % f == 0 and x.size[d] > f]
        if parts and len(x.size) < 4:
            f = self.rng.choice(parts)
            new = x.size[:d] + [x.size[d] // f, f] + x.size[d + 1:]
        elif len(x.size) > 1:
            d = min(d, len(x.size) - 2)
            new = x.size[:d] + [x.size[d] * x.size[d + 1]] + x.size[d + 2:]
        else:
            return
        self.add("view", f"{v}, {new}", new, bound=x.bound)

    def unsqueeze(self):
        v = self.pick(lambda x: len(x.size) < 4)
        if v:
            x = self.values[v]
            d = self.rng.randint(0, len(x.size))
            step = x.size[d] * x.stride[d] if d < len(x.size) else 1
            self.add("unsqueeze", f"{v}, {d}", x.size[:d] + [1] + x.size[d:], x.stride[:d] + [step] + x.stride[d:], x.bound)

    def squeeze(self):
        v = self.pick(lambda x: 1 in x.size and len(x.size) > 1)
        if v:
            x = self.values[v]
            d = x.size.index(1)
            self.add("squeeze.dim", f"{v}, {d}", x.size[:d] + x.size[d + 1:], x.stride[:d] + x.stride[d + 1:], x.bound)

    def reduce(self):
        v = self.pick(lambda x: x.size)
        x = self.values[v] if v else None
        if not x:
            return
        dims = sorted(self.rng.sample(range(len(x.size)), self.rng.choice([1, 1, 1, min(2, len(x.size))])))
        keep = self.rng.random() < .5
        new = [1 if i in dims else s for i, s in enumerate(x.size) if keep or i not in dims]
        op = self.rng.choice(["sum.dim_IntList", "mean.dim", "amax", "amin"])
        bound = x.bound * (prod(x.size[d] for d in dims) if op[:3] == "sum" else 1)
        if new and bound <= BOUND:
            self.add(op, f"{v}, {dims}, {keep}", new, bound=bound)

    def matmul(self):
        v = self.pick(lambda x: 2 <= len(x.size) <= 3 and x.size[-1] > 1)
        if not v:
            return
        size, n = self.values[v].size, self.rng.choice(SIZES)
        bound = self.values[v].bound * size[-1]
        if bound > BOUND or prod(size[:-2]) * size[-1] * n > LARGEST:
            return
        w = self.input(size[:-2] + [size[-1], n])
        if self.rng.random() < .4:
            w = self.input(size[:-2] + [n, size[-1]])
            x = self.values[w]
            order = list(range(len(size) - 2)) + [len(size) - 1, len(size) - 2]
            w = self.add("permute", f"{w}, {order}", [x.size[i] for i in order], [x.stride[i] for i in order])
        self.add("mm" if len(size) == 2 else "bmm", f"{v}, {w}", size[:-1] + [n], bound=bound)

    def linear(self):
        v = self.pick(lambda x: len(x.size) >= 2 and x.size[-1] > 1)
        if not v:
            return
        x, n = self.values[v], self.rng.choice(SIZES)
        if x.bound * x.size[-1] + 1 > BOUND or prod(x.size[:-1]) * n > LARGEST:
            return
        w = self.input([n, x.size[-1]], kind=f'parameter("w{self.n_inputs}")')
        b = ", " + self.input([n], kind=f'parameter("b{self.n_inputs}")') if self.rng.random() < .5 else ""
        self.add("linear", f"{v}, {w}{b}", x.size[:-1] + [n], bound=x.bound * x.size[-1] + 1)

    def addmm(self):
        v = self.pick(lambda x: len(x.size) == 2 and x.size[1] > 1 and x.bound * x.size[1] < BOUND)
        if v:
            x, n = self.values[v], self.rng.choice(SIZES)
            self.add("addmm", f"{self.input([n])}, {v}, {self.input([x.size[1], n])}", [x.size[0], n], bound=x.bound * x.size[1] + 1)

    def attention(self):
        b, length, dim, values = (self.rng.choice(s) for s in ([1, 2, 4], [3, 64, 65], [32, 64, 128], [64, 128]))
        q, k, v = self.input([b, length, dim], kind="input"), self.input([b, length, dim], kind="input"), self.input([b, length, values], kind="input")
        x = self.values[k]
        t = self.add("permute", f"{k}, [0, 2, 1]", [b, dim, length], [x.stride[0], x.stride[2], x.stride[1]])
        s = self.add("bmm", f"{q}, {t}", [b, length, length], bound=dim)
        s = self.add("mul.Tensor", f"{s}, {dim ** -.5}", [b, length, length], bound=dim ** .5)
        p = self.add("_softmax", f"{s}, -1, False", [b, length, length])
        self.add("bmm", f"{p}, {v}", [b, length, values], bound=2)

    def softmax(self):
        v = self.pick(lambda x: x.size and x.bound <= 64)
        if v:
            self.add("_softmax", f"{v}, {self.rng.randrange(len(self.values[v].size))}, False", self.values[v].size)

    def layer_norm(self):
        v = self.pick(lambda x: len(x.size) > 1 and x.size[-1] >= 16)  # of a few equal numbers only rounding is left
        if not v:
            return
        n = self.values[v].size[-1]
        w = self.input([n], kind=f'parameter("w{self.n_inputs}")') if self.rng.random() < .7 else "None"
        self.add("layer_norm", f"{v}, [{n}], {w}, None, 1.0", self.values[v].size, bound=2 * self.values[v].bound)

    def norm(self):
        """x / sqrt(mean(x^2) + eps), as exporters write it."""
        v = self.pick(lambda x: x.size and x.bound <= 40)
        if v:
            x = self.values[v]
            s = self.add("mul.Tensor", f"{v}, {v}", x.size, bound=x.bound ** 2)
            m = self.add("mean.dim", f"{s}, [-1], True", x.size[:-1] + [1], bound=x.bound ** 2)
            e = self.add("add.Tensor", f"{m}, 0.25", self.values[m].size, bound=x.bound ** 2 + 1)
            r = self.add("rsqrt", e, self.values[m].size, bound=2)
            self.add("mul.Tensor", f"{v}, {r}", x.size, bound=2 * x.bound)

    def cat(self):
        v = self.pick(lambda x: x.size)
        size = self.values[v].size
        d = self.rng.randrange(len(size))
        other = [self.rng.choice(SIZES) if i == d else s for i, s in enumerate(size)]
        if prod(other) > LARGEST:
            return
        fitting = [w for w, x in self.values.items() if x.dtype == "f16" and len(x.size) == len(size) and
                   all(a == b for i, (a, b) in enumerate(zip(x.size, size)) if i != d)]
        w = self.rng.choice(fitting) if self.rng.random() < .4 else self.input(other)
        other = self.values[w].size
        self.add("cat", f"[{v}, {w}], {d}", [s + other[d] if i == d else s for i, s in enumerate(size)],
                 bound=max(self.values[v].bound, self.values[w].bound))

    def stack(self):
        v = self.pick(lambda x: len(x.size) < 4)
        if v:
            size = self.values[v].size
            w, d = self.mate(size), self.rng.randint(0, len(size))
            self.add("stack", f"[{v}, {w}], {d}", size[:d] + [2] + size[d:], bound=max(self.values[v].bound, self.values[w].bound))

    def repeat(self):
        v = self.pick(lambda x: x.size and prod(x.size) < 20000)
        if v:
            times = [self.rng.choice([1, 1, 2, 3]) for _ in self.values[v].size]
            self.add("repeat", f"{v}, {times}", [s * t for s, t in zip(self.values[v].size, times)], bound=self.values[v].bound)

    def pad(self):
        v = self.pick(lambda x: x.size)
        size, before, after = self.values[v].size, self.rng.choice([0, 0, 1, 64]), self.rng.choice([0, 1, 32, 64])
        self.add("constant_pad_nd", f"{v}, [{before}, {after}], 0.5", size[:-1] + [size[-1] + before + after], bound=self.values[v].bound)

    def full(self):
        v = self.pick()
        c = self.add("full", f"{self.values[v].size}, {self.rng.choice([0.0, 1.0, -2.5])}", self.values[v].size, bound=2.5)
        self.elementwise(self.rng.choice(BINARY), v, c, self.values[v].size)

    def clone(self):
        v = self.pick()
        self.add("clone", v, self.values[v].size, bound=self.values[v].bound)

    def same(self):
        """Ops that change nothing, but make a tensor of their own."""
        v = self.pick(lambda x: x.size)
        x = self.values[v]
        ones = [1] * len(x.size)
        op, args = self.rng.choice([("clone", ""), ("repeat", f", {ones}"), ("_to_copy", ", dtype=f16"), ("constant_pad_nd", ", [0, 0], 0.0"),
                                    ("mul.Tensor", ", 1"), ("add.Tensor", ", 0"), ("clamp", ", -1e4, 1e4"), ("roll", ", [0], [0]"),
                                    ("index_select", f", 0, %rows{len(self.lines)}")])
        if op == "index_select":
            self.lines.append(f"%rows{len(self.lines)} : i64[{x.size[0]}] = aten.arange.start_step(0, {x.size[0]})")
        self.add(op, v + args, x.size, bound=x.bound)

    def flip(self):
        v = self.pick(lambda x: x.size)
        self.add("flip", f"{v}, [{self.rng.randrange(len(self.values[v].size))}]", self.values[v].size, bound=self.values[v].bound)

    def host(self):
        v = self.pick(lambda x: x.size and x.bound * max(x.size) <= BOUND)
        if v:
            d = self.rng.randrange(len(self.values[v].size))
            self.add("cumsum", f"{v}, {d}", self.values[v].size, bound=self.values[v].bound * self.values[v].size[d])

    def compare(self):
        """A mask from one value chooses between two others."""
        v = self.pick()
        size = self.values[v].size
        c = self.add(self.rng.choice(["gt.Scalar", "le.Scalar"]), f"{v}, 10000.0", size, dtype="bool")  # never close to the border
        w = self.mate(size)
        self.add("where.self", f"{c}, {v}, {w}", size, bound=max(self.values[v].bound, self.values[w].bound))

    def where(self):
        v = self.pick()
        size = self.values[v].size
        c = self.input(size if self.rng.random() < .5 else [s if self.rng.random() < .5 else 1 for s in size], "bool", "input")
        w = self.mate(size)
        self.add("where.self", f"{c}, {v}, {w}", size, bound=max(self.values[v].bound, self.values[w].bound))

    def gather(self):
        v = self.pick(lambda x: len(x.size) > 1 and x.size[0] > 1)
        if v:
            x, n = self.values[v], self.rng.choice([1, 5, 32, 40])
            if n * prod(x.size[1:]) <= LARGEST:
                i = self.input([n], "i32", "input")
                self.add("index.Tensor", f"{v}, [{i}]", [n] + x.size[1:], bound=x.bound)

    def put_rows(self):
        """Rows of a value, or of an input in place, all become one row or one number, so that equal row numbers do no harm."""
        v = self.pick(lambda x: len(x.size) > 1 and x.size[0] > 1 and x.bound >= 1 and x.contiguous())
        if not v:
            return
        x, n = self.values[v], self.rng.choice([1, 3, 40])
        if n * prod(x.size[1:]) > LARGEST:
            return
        i, row = self.input([n], "i64", "input"), [1] + [s if self.rng.random() < .5 else 1 for s in x.size[1:]]
        size = [n] + x.size[1:]
        steps = [t if s > 1 or s == new else 0 for s, t, new in zip(row, dense(row), size)]
        e = self.add("expand", f"{self.input(row)}, {size}", size, steps)
        in_place = x.writable and self.rng.random() < .5
        self.add("index_put_" if in_place else "index_put", f"{v}, [{i}], {e}", x.size, bound=x.bound)

    def half_turn(self):
        v = self.pick(lambda x: x.size and x.size[-1] % 2 == 0)
        if v:
            x = self.values[v]
            d, h, half = len(x.size) - 1, x.size[-1] // 2, x.size[:-1] + [x.size[-1] // 2]
            high = self.add("slice.Tensor", f"{v}, {d}, {h}, {2 * h}", half, x.stride, x.bound)
            low = self.add("slice.Tensor", f"{v}, {d}, 0, {h}", half, x.stride, x.bound)
            self.add("cat", f"[{self.add('neg', high, half, bound=x.bound)}, {low}], {d}", x.size, bound=x.bound)

    def largest(self):
        v = self.pick(lambda x: x.size)
        if v:
            x, name = self.values[v], f"%v{len(self.values)}"
            d = self.rng.randrange(len(x.size))
            size = [min(s, 2) if i == d else s for i, s in enumerate(x.size)]
            self.lines.append(f"{name} : f16[{','.join(map(str, size))}], _ = aten.topk({v}, {size[d]}, {d})")
            self.values[name] = Value(size, dense(size), x.bound)

    def masked(self):
        """The later half of every row is hidden from a softmax."""
        v = self.pick(lambda x: x.size and x.bound <= 64)
        if v:
            x, at, n = self.values[v], f"%at{len(self.lines)}", self.values[v].size[-1]
            self.lines.append(f"{at} : i64[{n}] = aten.arange({n})")
            m = self.add("gt.Scalar", f"{at}, {n // 2}", [n], dtype="bool")
            f = self.add("masked_fill.Scalar", f"{v}, {m}, -inf", x.size, bound=x.bound)
            self.add("softmax.int", f"{f}, {len(x.size) - 1}", x.size)
            self.values[f].dtype = "f16 with infinities"  # for the softmax alone

    def embedding(self):
        n, rows, dim = (self.rng.choice(s) for s in ([1, 5, 40], [2, 20, 100], [16, 64, 100, 256]))
        table, i = self.input([rows, dim], kind=f'parameter("e{self.n_inputs}")'), self.input([2, n], "i64", "input")
        self.add("embedding", f"{table}, {i}", [2, n, dim])

    def single(self):
        """Through float32 and back."""
        v = self.pick()
        x = self.values[v]
        f = self.add("_to_copy", f"{v}, dtype=f32", x.size, bound=x.bound, dtype="f32")
        if self.rng.random() < .5:
            f = self.add(self.rng.choice(["mul.Tensor", "add.Tensor"]), f"{f}, 1.5", x.size, bound=x.bound * 1.5 + 1.5, dtype="f32")
        self.add("_to_copy", f"{f}, dtype=f16", x.size, bound=x.bound * 1.5 + 1.5)

    def copy_into(self):
        """In place: into an intermediate that may have been read before."""
        v = self.pick(lambda x: x.size)
        x = self.values[v]
        c = self.add("clone", v, x.size, bound=x.bound)
        w = self.mate(x.size)
        self.add("copy_", f"{c}, {w}", x.size, bound=self.values[w].bound)

    def overwrite(self):
        """In place, into whatever was there before, whole or a slice of it: earlier results must not change."""
        v = self.pick(lambda x: x.size and x.contiguous() and x.bound >= 1)
        if not v or any(v in line and "parameter" in line.split("=")[1] for line in self.lines if line.startswith(v + " ")):
            return
        x, target = self.values[v], v
        if self.rng.random() < .5:
            d = self.rng.randrange(len(x.size))
            n = self.rng.randint(1, x.size[d])
            at = self.rng.choice([0, x.size[d] - n])
            target = self.add("slice.Tensor", f"{v}, {d}, {at}, {at + n}", [n if i == d else s for i, s in enumerate(x.size)], x.stride, x.bound)
        size = self.values[target].size
        kind = self.rng.choice(["copy_", "copy_", "mul_.Tensor", "fill_.Scalar", "relu_"])
        args = {"copy_": lambda: target + ", " + self.input(size), "mul_.Tensor": lambda: target + ", 0.5",
                "fill_.Scalar": lambda: target + ", 0.25", "relu_": lambda: target}[kind]()
        self.add(kind, args, size, self.values[target].stride, x.bound)

    def update(self):
        """An input takes new contents that were computed, from its own old ones or not; it may be read before and after."""
        inputs = [n for n, x in self.values.items() if x.writable and x.size and x.dtype == "f16" and x.contiguous()]
        if not inputs:
            return
        v = self.rng.choice(inputs)
        size, before = self.values[v].size, len(self.lines)
        a, b = (self.mate(size) for _ in "ab")
        if len(size) == 2 and size[0] == size[1] and self.rng.random() < .4 and size[0] * self.values[a].bound * self.values[b].bound < BOUND:
            self.add("mm", f"{a}, {b}", size, bound=size[0] * self.values[a].bound * self.values[b].bound)
        else:
            self.elementwise(self.rng.choice(BINARY), self.rng.choice([v, a]), b, size)
        made = self.lines[-1].split()[0]
        if len(self.lines) > before and made in self.values and made not in inputs and not self.values[made].writable:
            self.add("copy_", f"{v}, {made}", size, bound=max(self.values[v].bound, self.values[made].bound))

    def scatter(self):
        """A slice of a buffer is replaced; sometimes the buffer is an input that is changed."""
        v = self.pick(lambda x: x.size and prod(x.size) < 50000)
        if not v:
            return
        x = self.values[v]
        d = self.rng.randrange(len(x.size))
        at, n = self.rng.choice([0, 1, 3, 64]), x.size[d]
        base = self.input([s if i != d else at + n + self.rng.choice([0, 1, 60]) for i, s in enumerate(x.size)], kind="input")
        u = self.add("slice_scatter", f"{base}, {v}, {d}, {at}, {at + n}", self.values[base].size, bound=max(1, x.bound))
        if self.rng.random() < .5:
            self.mutations.append(f"mutate {base} = {u}")
