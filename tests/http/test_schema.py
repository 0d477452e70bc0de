"""What openapi.yaml forbids is refused, what it allows is accepted: what schemathesis found once, and schemathesis itself
where it is installed (SW_SCHEMATHESIS names the program, SW_EXAMPLES how many requests a route)."""
import json, os, pathlib, re, shutil, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SLOW, SOURCE, TEXT, Daemon, check, finish, problem

JSON, CSV, ZIP = {"Content_Type": "application/json"}, {"Content_Type": "text/csv"}, {"Content_Type": "application/zip"}
PLACE = {"capacity": 10, "buffers": [{"name": "u", "size": 6, "start": 0, "end": 2, "value": 7}]}
ASSIGN = {"format": "stickwright.assign/1", "variables": [{"labels": ["a", "b"], "cost": [0, 5]}]}
MODEL = (SOURCE / "data/models/softmax_block.pt2").read_bytes()


def post(d, path, body, **headers):
    return d.ask("POST", path, json.dumps(body).encode() if isinstance(body, (dict, list)) else body, **headers)


with Daemon("--compile-seconds", str(20 * SLOW)) as d:
    # a body is what its type says
    for path, body, kind in (("/compile", [None], JSON), ("/compile", GOOD, JSON), ("/compile", MODEL, JSON),
                             ("/compile", MODEL, TEXT), ("/compile", {}, TEXT), ("/compile", GOOD, ZIP),
                             ("/compare", [None, None], JSON), ("/solve", [], JSON), ("/place", 'x', JSON), ("/place", PLACE, CSV)):
        problem(f"{path} {kind} {str(body)[:20]}", post(d, path, body, **kind), 415, "media-type")
    check("bytes are what they are", [d.ask("POST", "/compile", b, Content_Type="application/octet-stream")[0] for b in (MODEL, GOOD)],
          [200, 200])
    check("leading blanks", post(d, "/place", b" \n\t" + json.dumps(PLACE).encode(), **JSON)[0], 200)
    problem("no run of a comparison can read it", post(d, "/compare", {}, **JSON), 422, "bad-input")

    # what a body says
    for wrong in ({"format": {}}, {"format": "stickwright.place/1\0"}, {"name": "a\0b"}, {"buffers": {}}):
        problem(f"place {wrong}", post(d, "/place", PLACE | wrong, **JSON), 422, "bad-input")
    for wrong in ({"format": "x"}, {"name": "a\0b"}, {"domains": [["a\0b"]]}, {"variables": [{"labels": ["a\0b"]}]}):
        problem(f"solve {wrong}", post(d, "/solve", ASSIGN | wrong, **JSON), 422, "bad-input")

    # parameters
    for query in ("cores=%2B5", "cores=%205", "cores=5%20", "cores=0x5", "cores=", "cores=33", "cores=4&cores=4", "lx=on&lx=off",
                  "budget=9223372036854775808", "beam-width=1e3", "pin=", "pin==", "pin=a", "pin=a=", "pin==b", "pin=a==",
                  "program=a%00b", "program=%ff", "program=%ed%a0%80", "pin=a%00=b", "colour=red", "%00=1", "=1",
                  "deadline=0.5", "deadline=0", "deadline=-1", "deadline=nan", "deadline=inf", "deadline=%205", "deadline=5s",
                  "deadline=0x9", "deadline=86401", "deadline=", "deadline=5&deadline=6"):
        problem("compile?" + query, d.ask("POST", "/compile?" + query, GOOD, **TEXT), 400, "usage")
    nine = ",".join(9 * ["best"])
    for path, kind in (("/compare?profile=" + nine, TEXT), ("/compare?solver=ilp,", TEXT), ("/place?placer%20capacity=x", JSON),
                       ("/place?format=csv", JSON), ("/solve?mode=shared&mode=shared", JSON)):
        problem(path, d.ask("POST", path, GOOD if kind is TEXT else json.dumps(PLACE).encode(), **kind), 400, "usage")
    for query in ("deadline=1e1", "deadline=86400", "deadline=19.5", "cores=05", "program=%c3%bc", "program="):
        check("compile?" + query, d.ask("POST", "/compile?" + query, GOOD, **TEXT)[0], 200)
    check("lists may come again", d.ask("POST", "/compile?pin=a=order:1,0&pin=b=order:1,0", GOOD, **TEXT)[0], 200)
    problem("a parameter that this graph has no use for", d.ask("POST", "/compile?dim-max=s0=5", GOOD, **TEXT), 422, "usage")
    check("what the others may be", d.ask("POST", "/compare?profile=best,best&solver=greedy", GOOD, **TEXT)[0], 200)

    # a NUL does not end a path
    for path in ("/version%00", "/version%00/x", "/jobs/%00", "/openapi.yaml%00?x"):
        problem(path, d.ask("GET", path), 404, "not-found")
    check("in a query of a GET it is nothing", d.ask("GET", "/version?%00")[0], 200)
    check("exit code", d.stop(), 0)

program = os.environ.get("SW_SCHEMATHESIS") or shutil.which("schemathesis")
if program:
    with Daemon("--compile-seconds", str(20 * SLOW)) as d:
        base = f"http://127.0.0.1:{d.port}"
        run = subprocess.run([program, "--config-file", SOURCE / "schemathesis.toml", "run", base + "/openapi.yaml", "-u", base,
                              "--seed", "1", "--request-timeout", str(60 * SLOW), "--continue-on-failure",
                              "-n", os.environ.get("SW_EXAMPLES", "20")], capture_output=True, text=True)
        check("findings of schemathesis", run.stdout[-8000:] if run.returncode else "", "")
        print("schemathesis:", *re.findall(r"\d+ generated.*", run.stdout))
else:
    print("schemathesis is not installed: skipped")
finish()
