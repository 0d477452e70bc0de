"""One case: a graph, how it is compiled, and what must come out. `number` is that of the report in docs/faults.md."""


class Case:
    def __init__(self, number, why, graph, *options, profile="best", execute=True, xfail=None, twice=None, one_profile=False, **want):
        self.number, self.why, self.options, self.profile = number, why, list(options), profile
        self.graph = "\n".join(line.strip() for line in graph.strip().splitlines()) + "\n"
        self.execute, self.xfail, self.twice, self.one_profile, self.want = execute, xfail, twice, one_profile, want


def inputs(names, shape, dtype="f16"):
    return "".join(f"%{n} : {dtype}[{shape}] = input\n" for n in names.split())


def same_files(run, again):
    a, b = run.files(), again.files()
    return [f"{n} differs between two runs" for n in sorted(a.keys() | b.keys()) if a.get(n) != b.get(n)]


REFUSED = "unsupported|infeasible"


def leaves(specs, turns=1):
    """The op specs of a kernel in order, each with the turns of all loops around it."""
    for s in specs:
        if s["kind"] == "loop":
            yield from leaves(s["body"], turns * int(s["count"]))
        else:
            yield {**s, "turns": turns}
