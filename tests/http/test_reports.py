"""Reports on services around a solver (BR-62 to BR-71: what went wrong elsewhere), each as a test of this one. Where a report
wants 400 for a body, ours is 422: the request is well formed, what the body says is not."""
import json, os, pathlib, signal, socket, subprocess, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SLOW, TEXT, Daemon, check, finish, problem, until

JSON = {"Content_Type": "application/json"}


def assign(**more):
    return json.dumps({"format": "stickwright.assign/1", "variables": [], **more}).encode()


def frustrated(n):
    """Every neighbour wants to differ, and three labels are not enough for all."""
    return assign(variables=[{"labels": ["a", "b", "c"]} for _ in range(n)], edges=[
        [i, j, [[7, 0, 1], [2, 5, 0], [0, 3, 9]]] for i in range(n) for j in range(i + 1, n) if (i * j + i + j) % 3])


def chunked(d, body, sizes):
    """The answer to a body in chunks of those sizes, again and again."""
    c = d.connect()
    c.putrequest("POST", "/compile")
    c.putheader("Content-Type", "text/plain")
    c.putheader("Transfer-Encoding", "chunked")
    c.endheaders()
    at, k = 0, 0
    while at < len(body):
        piece = body[at:at + sizes[k % len(sizes)]]
        c.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        at, k = at + len(piece), k + 1
    c.send(b"0\r\n\r\n")
    r = c.getresponse()
    answer = r.status, r.read()
    c.close()
    return answer


with Daemon("--workers", "2", "--body-mb", "64") as d:
    # BR-62: a solver that aborts takes one request with it, no more; what it can't digest does not reach it
    job = d.job("/solve?solver=ilp-full", frustrated(60), **JSON)
    d.wait(job, "running")
    os.kill(until("a worker runs", d.children)[0], signal.SIGABRT)
    p = d.wait(job, "failed", "done")["problem"]
    check("BR-62: an abort", (p["status"], p["type"]), (500, "/problems/internal"))
    check("BR-62: the next request", d.ask("POST", "/compile", GOOD, **TEXT)[0], 200)
    empty = d.ask("POST", "/solve", assign(), **JSON)
    check("BR-62: no variables", (empty[0], json.loads(empty[2])["status"], json.loads(empty[2])["cost"]), (200, "optimal", 0))
    problem("BR-62: no labels", d.ask("POST", "/solve", assign(variables=[{"labels": []}]), **JSON), 422, "bad-input")
    for number in ("NaN", "Infinity", "-1e999", "1e999", "1.5"):
        body = b'{"format":"stickwright.assign/1","variables":[{"labels":["a","b"],"cost":[0,%s]}]}' % number.encode()
        problem("BR-62: cost " + number, d.ask("POST", "/solve", body, **JSON), 422, "bad-input")

    # BR-63: a limit is a count or has its unit in the name, and what was not solved has no values
    for solver in ("ilp", "ilp-full"):
        status, _, data = d.ask("POST", f"/solve?budget=1&solver={solver}", frustrated(24), **JSON)
        doc = json.loads(data)
        check(f"BR-63: {solver}, no budget", (status, doc["status"] in ("feasible", "unknown"), doc["status"] == "feasible" or doc.get("cost") is None,
              doc.get("cost") is None or doc["bound"] <= doc["cost"]), (200, True, True, True))
    check("BR-63: seconds", "--compile-seconds" in subprocess.run([os.environ["SWD"], "--help"], capture_output=True, text=True).stdout, True)

    # BR-64: a deadline that holds whatever the solver does
    start = time.monotonic()
    problem("BR-64: one second", d.ask("POST", "/solve?deadline=1&solver=ilp-full", frustrated(61), **JSON), 504, "deadline")
    check("BR-64: answered within two", time.monotonic() - start < 2 * SLOW, True)
    until("BR-64: and its worker is gone", lambda: not d.children())

    # BR-65: the same answer, however the body comes
    for n in (1, 16383, 16384, 16385, 1 << 20, 64 << 20):
        body = b"#" * (n - len(GOOD) - 1) + b"\n" + GOOD if n > len(GOOD) else b"#"
        whole = d.ask("POST", "/compile", body, **TEXT)
        check(f"BR-65: {n} bytes", whole[0], 200 if n > 1 else 422)
        for sizes in ((1,), (1440, 1), (16384,)) if n <= 16385 else ((1440, 65536, 16384), (1 << 20,)):
            got = chunked(d, body, sizes)
            same = got[1] == whole[2] if n > 1 else json.loads(got[1])["errors"] == json.loads(whole[2])["errors"]
            check(f"BR-65: {n} bytes in chunks of {sizes}", (got[0], same), (whole[0], True))
    c = d.connect()
    c.putrequest("POST", "/compile")
    c.putheader("Content-Length", str((64 << 20) + 1))
    c.endheaders()
    check("BR-65: one byte too many, said at once", c.getresponse().status, 413)
    c.close()

    # BR-66: idle sockets; the rest (deadlines, caps, a full queue) is in test_manners.py and test_jobs.py
    idle = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(200)]
    check("BR-66: beside 200 idle sockets", d.ask("GET", "/healthz")[0], 200)
    for s in idle:
        s.close()

    # BR-68: depth of JSON, and of a graph
    deep = problem("BR-68: 100,000 brackets", d.ask("POST", "/compile", b'{"a":' + 100000 * b"[", **JSON), 413, "limit")
    check("BR-68: where", "depth" in deep["detail"] or "deep" in deep["detail"] or "nest" in deep["detail"], True)
    n = 200000
    long = "%x0 : f16[64] = input\n" + "".join(f"%x{i + 1} : f16[64] = aten.exp.default(%x{i})\n" for i in range(n))
    long += f"%y : f16[64] = my.op.default(%x{n})\nreturn %y\n"  # so that it is read and lowered, but not planned
    problem("BR-68: a chain of 200,000 nodes", d.ask("POST", "/compile", long.encode(), **TEXT), 422, "unsupported")

    # BR-69: numbers
    for shape in ("9223372036854775808", "4611686018427387904,4", "-1", "1e3", "NaN"):
        problem("BR-69: shape " + shape, d.ask("POST", "/compile", f"%a : f16[{shape}] = input\nreturn %a\n".encode(), **TEXT), 422, "bad-input")
    for size in ("9223372036854775808", "1e400", "NaN", "-1", "1.5"):
        body = b'{"capacity":10,"buffers":[{"size":%s,"start":0,"end":1}]}' % size.encode()
        problem("BR-69: size " + size, d.ask("POST", "/place", body, **JSON), 422, "bad-input")
    for scalar, status in (("1e-320", 200), ("-inf", 200), ("0x10", 422)):
        text = f"%a : f16[64,64] = input\n%b : f16[64,64] = aten.add.Scalar(%a, {scalar})\nreturn %b\n"
        check("BR-69: scalar " + scalar, d.ask("POST", "/compile", text.encode(), **TEXT)[0], status)

    # keys twice
    problem("duplicate keys", d.ask("POST", "/solve", b'{"format":"stickwright.assign/1","variables":[],"variables":[]}', **JSON), 422, "bad-input")
    twice = b"%a : f16[64] = input\n%a : f16[64] = input\nreturn %a\n"
    problem("two nodes of one name", d.ask("POST", "/compile", twice, **TEXT), 422, "bad-input")

    # BR-71: a failure says what, where and why; a success how much of it there is
    bad = b"%a : f16[64,64] = input\n%b : f16[64,64] = my.op.default(%a)\nreturn %b\n"
    (e,) = problem("BR-71: a failure", d.ask("POST", "/compile", bad, **TEXT), 422, "unsupported")["errors"]
    check("BR-71: it names", (e["code"], e["node"], "my.op" in e["detail"]), ("unsupported", "b", True))
    doc = json.loads(d.ask("POST", "/compile", GOOD, **TEXT)[2])
    check("BR-71: a success", (doc["input"]["nodes"], len(doc["ops"]) > 0, len(doc["storages"]) >= 3), (2, True, True))
    plain = d.ask("POST", "/compile?cores=7", GOOD, **TEXT)[2]
    check("exit code", d.stop(), 0)

# BR-67: SIGTERM while a solver works
with Daemon("--drain-seconds", "1") as d:
    busy = d.job("/solve?solver=ilp-full", frustrated(62), **JSON)
    d.wait(busy, "running")
    start = time.monotonic()
    check("BR-67: exit code", d.stop(), 0)
    check("BR-67: in the stated time", time.monotonic() - start < 8 * SLOW, True)

# BR-70: a decimal comma
commas = [n for n in subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split() if n[:2] in ("de", "fr", "es", "it")]
if commas:
    with Daemon(environment={"LC_ALL": commas[0]}) as d:
        check(f"BR-70: {commas[0]}", d.ask("POST", "/compile?cores=7", GOOD, **TEXT)[2], plain)
        check("BR-70: metrics", "," in d.ask("GET", "/metrics")[2].decode().split("_sum")[1].splitlines()[0].split("}")[1], False)
        check("exit code", d.stop(), 0)
else:
    print("BR-70: no locale with a decimal comma is installed: skipped")
finish()
