"""Studies over HTTP: the tables are the bytes of `stickwright study`; runs are the work of POST /compile; progress, cancel,
limits; after a restart and after kill -9 they go on."""
import csv, io, json, os, pathlib, re, signal, subprocess, sys, tempfile, threading, zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SLOW, SOURCE, SW, TEXT, Daemon, chain, check, finish, problem, until

TABLES = {"study.csv": "text/csv", "study.json": "application/json", "study.md": "text/markdown"}
ZIP, JSON = {"Content_Type": "application/zip"}, {"Content_Type": "application/json"}
BAD = "%a : f16[64,64] = input\n%b : f16[64,64] = my.op.default(%a)\n%c : f16[64,64] = your.op.default(%a)\nreturn %b, %c\n"
SPEC = {"format": "stickwright.study/1", "name": "t", "graphs": ["g/*.pt2", 'g/odd*'], "profiles": ["best", "torch-spyre"],
        "solvers": ["ilp", "greedy"], "options": [{}, {"cores": 16, "lx": False, "pin": ["args_0=order:0,1,2"]}]}
GRAPHS = {f"g/{n}.pt2": (SOURCE / f"data/models/{n}.pt2").read_bytes()
          for n in ("softmax_block", "attention_math", "add_transpose", "llama_tiny")} | {'g/odd, "name" [1].graph': BAD.encode()}


def archive_of(files):
    b = io.BytesIO()
    with zipfile.ZipFile(b, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return b.getvalue()


def archive(spec, graphs):
    return archive_of(dict(reversed(graphs.items())) | {"study.json": json.dumps(spec)})  # the order does not matter


def cli(t, spec, graphs):
    """The tables that the command line makes of it."""
    for name, data in graphs.items():
        (t / name).parent.mkdir(exist_ok=True)
        (t / name).write_bytes(data)
    (t / "s.json").write_text(json.dumps(spec))
    subprocess.run([SW, "study", t / "s.json", "-o", t / "out"], stdout=subprocess.DEVNULL, check=True)
    return {n: (t / "out" / n).read_bytes() for n in TABLES}


def post(d, body, **headers):
    status, head, data = d.ask("POST", "/studies", body, **headers)
    check("accepted", (status, json.loads(data)["state"] in ("queued", "running", "done")), (202, True))
    check("Location", head["Location"], "/studies/" + json.loads(data)["id"])
    return head["Location"]


def refused(what, d, body, status, slug, **headers):
    return problem(what, d.ask("POST", "/studies", body, **headers), status, slug)


def tables(d, study):
    return {n: d.ask("GET", f"{study}/{n}")[2] for n in TABLES}


with tempfile.TemporaryDirectory() as name:
    t = pathlib.Path(name)
    wanted = cli(t, SPEC, GRAPHS)
    body = archive(SPEC, GRAPHS)
    rows = list(csv.DictReader(io.StringIO(wanted["study.csv"].decode())))
    compiled = sum(r["predicted_ns"] != "" for r in rows)
    check("the study has all kinds", (len(rows), {"optimal", "feasible", "unsupported"} <= {r["status"] for r in rows}), (40, True))
    (t / "s.zip").write_bytes(body)
    subprocess.run([SW, "study", t / "s.zip", "-o", t / "zip"], stdout=subprocess.DEVNULL, check=True)
    check("the command line takes the archive too", {n: (t / "zip" / n).read_bytes() for n in TABLES}, wanted)

    with Daemon("--workers", "2") as d:
        study = post(d, body, **ZIP)
        told = []
        listener = threading.Thread(target=lambda: told.append(d.ask("GET", study + "/events")))
        listener.start()
        done = d.wait(study, "done", "failed")
        check("its state", (done["state"], done["name"], done["problem"]), ("done", "t", None))
        check("its runs", done["runs"], {"total": 40, "done": 40, "compiled": compiled})
        check("its tables", done["tables"], [f"{study}/{n}" for n in TABLES])
        check("the bytes of the command line", tables(d, study), wanted)
        for n, kind in TABLES.items():
            check("kind of " + n, d.ask("GET", f"{study}/{n}")[1]["Content-Type"].split(";")[0], kind)
        listener.join(60 * SLOW)
        events = re.findall(r"event: (\w+)\ndata: (.*)\n\n", told[0][2].decode())
        states = [json.loads(x)["state"] for e, x in events if e == "state"]
        counts = [json.loads(x) for e, x in events if e == "runs"]
        check("states", (told[0][1]["Content-Type"], states), ("text/event-stream", ["queued", "running", "done"]))
        check("progress", ([c["done"] for c in counts], {c["total"] for c in counts}), (list(range(41)), {40}))

        # a run is the work of POST /compile
        misses = d.metric("cache_misses_total")
        a = d.ask("POST", "/compile?profile=best&solver=ilp", GRAPHS["g/llama_tiny.pt2"], **ZIP)
        b = d.ask("POST", "/compile?cores=16&lx=off&profile=torch-spyre&solver=greedy&pin=args_0%3Dorder:0,1,2",
                  GRAPHS["g/softmax_block.pt2"], **ZIP)
        check("it is in the store", (a[0], b[0], d.metric("cache_misses_total") - misses), (200, 200, 0))
        check("with the same numbers", json.loads(a[2])["objective"]["value"],
              next(int(r["value"]) for r in rows if r["graph"] == "llama_tiny.pt2"))
        again = post(d, body, **ZIP)
        d.wait(again, "done")
        check("again", tables(d, again), wanted)
        check("only what failed is tried again", d.metric("cache_misses_total") - misses, 40 - compiled)

        # graphs in the spec itself
        inline = {**SPEC, "graphs": {"add.graph": GOOD.decode(), "bad.graph": BAD, "[x]*?\\.graph": GOOD.decode()}}
        (t / "i.json").write_text(json.dumps(inline))
        subprocess.run([SW, "study", t / "i.json", "-o", t / "i"], stdout=subprocess.DEVNULL, check=True)
        study = post(d, json.dumps(inline).encode(), **JSON)
        check("graphs in the spec", d.wait(study, "done", "failed")["state"], "done")
        check("their tables", tables(d, study), {n: (t / "i" / n).read_bytes() for n in TABLES})

        # faults of the spec, all at once, before it is accepted: the words of the command line
        studies = d.metric("http_requests_total{route=\"POST /studies\",status=\"202\"}")
        wrong = {**inline, "name": "a/b", "profiles": ["worst"], "more": 1, "options": [{"cores": 33}, {"colour": "red"}]}
        p = refused("a wrong spec", d, json.dumps(wrong).encode(), 422, "usage", **JSON)
        details = [e["detail"] for e in p["errors"]]
        check("each field is named", [any(f"/{field}" in x for x in details) for field in ("name", "profiles/0", "more", "options/0", "options/1")],
              [True] * 5)
        (t / "w.json").write_text(json.dumps(wrong))
        run = subprocess.run([SW, "study", t / "w.json", "-o", t / "w"], capture_output=True, text=True)
        check("as on the command line", [x for x in details if x not in run.stderr], [])
        refused("no graphs", d, archive(SPEC, {}), 422, "usage", **ZIP)
        refused("no archive", d, b"PK", 422, "bad-input", **ZIP)
        refused("no spec in it", d, archive_of({"other.json": b"{}"}), 422, "usage", **ZIP)
        refused("no JSON", d, b"{]", 422, "bad-input", **JSON)
        refused("an empty spec", d, b"{}", 422, "usage", **JSON)
        refused("a line break", d, json.dumps({**inline, "graphs": {"a\nb": "x"}}).encode(), 422, "usage", **JSON)
        check("none was accepted", d.metric("http_requests_total{route=\"POST /studies\",status=\"202\"}"), studies)

        # who goes away before his study was read leaves nothing behind
        busy = [d.job(f"/compile?cores={n}", chain(60000), **TEXT) for n in (1, 2)]
        until("both workers are busy", lambda: d.metric("queue_running") == 2)
        c = d.connect()
        c.request("POST", "/studies", body, {"Content-Type": "application/zip"})
        until("it waits to be read", lambda: d.metric("queue_waiting") == 1)
        c.close()
        until("it is forgotten", lambda: d.metric("queue_waiting") == 0)
        for j in busy:
            d.ask("DELETE", j)
        problem("no body", d.ask("POST", "/studies", b"", **JSON), 400, "usage")
        problem("a parameter", d.ask("POST", "/studies?cores=3", b"{}", **JSON), 400, "usage")
        problem("a deadline", d.ask("POST", "/studies?deadline=3", b"{}", **JSON), 400, "usage")
        problem("a type", d.ask("POST", "/studies", GOOD, **TEXT), 415, "media-type")
        nobody = "/studies/" + 32 * "0"
        for method, path in [("GET", nobody), ("DELETE", nobody), ("GET", nobody + "/events")] + [("GET", f"{nobody}/{n}") for n in TABLES]:
            problem(f"{method} {path}", d.ask(method, path), 404, "not-found")
        check("allow", d.ask("POST", study)[1]["Allow"], "GET, HEAD, DELETE")

        # cancelled while it runs; a single compile does not wait for it
        long = {**SPEC, "graphs": {f"{n}.graph": chain(8000, n).decode() for n in range(6)}, "options": [{}]}
        study = post(d, json.dumps(long).encode(), **JSON)
        d.wait(study, "running")
        until("a run is in a worker", lambda: d.metric("queue_running") == 1)
        check("a compile beside it", d.ask("POST", "/compile?cores=3", GOOD, **TEXT)[0], 200)
        check("one worker is free", d.state(study)["state"], "running")
        problem("no table yet", d.ask("GET", study + "/study.csv"), 409, "not-done")
        check("cancel", json.loads(d.ask("DELETE", study)[2])["state"], "cancelled")
        check("cancel again", json.loads(d.ask("DELETE", study)[2])["state"], "cancelled")
        check("its work goes too", until("queue is empty", lambda: d.metric("queue_running") + d.metric("queue_waiting") == 0), True)
        check("events of it", d.ask("GET", study + "/events")[2].decode().endswith('{"state":"cancelled"}\n\n'), True)
        check("exit code", d.stop(), 0)

    # limits
    with Daemon("--workers", "1", "--study-runs", "39", "--study-mb", "3", "--studies", "2") as d:
        p = refused("too many runs", d, body, 413, "limit", **ZIP)
        check("how many", (p["errors"][0]["value"], p["errors"][0]["limit"]), (40, 39))
        padded = {**GRAPHS, "g/softmax_block.pt2": b"\0" * (3 << 20)}
        check("too many bytes", "3 MB" in refused("too many bytes", d, archive(SPEC, padded), 413, "limit", **ZIP)["detail"], True)
        ended = d.wait(post(d, json.dumps({**inline, "graphs": {"add.graph": GOOD.decode()}}).encode(), **JSON), "done")
        two = {**long, "graphs": dict(list(long["graphs"].items())[:2])}
        first, second = (post(d, json.dumps({**two, "name": name}).encode(), **JSON) for name in ("first", "second"))
        refused("no third", d, b"{}", 503, "busy", **JSON)
        check("ended ones went", until("it goes", lambda: d.ask("GET", f"/studies/{ended['id']}")[0] == 404), True)
        for s in (first, second):
            d.ask("DELETE", s)
        check("exit code", d.stop(), 0)

    # a run over its time: it is stopped, so it would never end, and then the time is made shorter
    config = t / "config"
    config.write_text(f"compile-seconds = {300 * SLOW}\n")
    with Daemon("--config", str(config), "--workers", "1") as d:
        slow = {"format": "stickwright.study/1", "name": "slow", "solvers": ["ilp"],
                "graphs": {"good.graph": GOOD.decode(), "slow.graph": chain(30000).decode()}}
        late = post(d, json.dumps(slow).encode(), **JSON)
        until("the first run is done", lambda: d.state(late)["runs"]["done"] == 1)
        os.kill(until("the second is in a worker", d.children)[0], signal.SIGSTOP)
        config.write_text("compile-seconds = 1\n")
        d.process.send_signal(signal.SIGHUP)
        late = d.wait(late, "done", "failed")
        status = [r["status"] for r in csv.DictReader(io.StringIO(d.ask("GET", late["tables"][0])[2].decode()))]
        check("a run over its time is a row", status, ["optimal", "deadline"])

    # a store: ended studies are there after a restart; what runs goes on, also after kill -9
    store = str(t / "store.db")
    with Daemon("--store", store) as d:
        kept = post(d, body, **ZIP)
        d.wait(kept, "done")
        cancelled = post(d, json.dumps(long).encode(), **JSON)
        d.ask("DELETE", cancelled)
        check("exit code", d.stop(), 0)
    with Daemon("--store", store) as d:
        check("a finished study", (d.state(kept)["state"], tables(d, kept)), ("done", wanted))
        check("a cancelled one", d.state(cancelled)["state"], "cancelled")
        check("no body is left", os.listdir(store + ".bodies"), [])
    many = {**SPEC, "graphs": {f"c{n}.graph": chain(200, n).decode() for n in range(6)}, "solvers": ["ilp", "beam", "greedy"]}
    many_wanted = None
    (t / "m.json").write_text(json.dumps(many))
    subprocess.run([SW, "study", t / "m.json", "-o", t / "m"], stdout=subprocess.DEVNULL, check=True)
    many_wanted = {n: (t / "m" / n).read_bytes() for n in TABLES}
    for end in (signal.SIGTERM, signal.SIGKILL):
        store = str(t / f"{end.name}.db")
        ends, seen = 0, 0
        with Daemon("--store", store) as d:
            study = post(d, json.dumps(many).encode(), **JSON)
        while ends < 12:  # more often than a study without progress may fail
            with Daemon("--store", store) as d:
                state = d.state(study)
                if state["state"] in ("done", "failed"):
                    break
                until("it goes on", lambda: d.state(study)["state"] == "done" or d.state(study)["runs"]["done"] >= min(seen + 6, 72))
                seen = d.state(study)["runs"]["done"]
                d.process.send_signal(end)
                d.process.wait()
                ends += 1
        check(f"{end.name}: it was interrupted", ends >= 5, True)
        with Daemon("--store", store) as d:
            check(f"{end.name}: done", d.wait(study, "done", "failed")["state"], "done")
            check(f"{end.name}: the bytes of a study at once", tables(d, study), many_wanted)

    # a daemon that ends three times without a run being done
    store = str(t / "three.db")
    heavy = {**SPEC, "graphs": {"heavy.graph": chain(60000).decode()}, "options": [{}], "solvers": ["ilp"], "profiles": ["best"]}
    with Daemon("--store", store, "--workers", "1") as d:
        study = post(d, json.dumps(heavy).encode(), **JSON)
    for _ in range(2):
        with Daemon("--store", store, "--workers", "1") as d:
            d.wait(study, "running")
    with Daemon("--store", store) as d:
        p = d.wait(study, "failed", "done")["problem"]
        check("an honest failure", (p["status"], "ended three times" in p["detail"]), (500, True))
        check("no body of it is left", os.listdir(store + ".bodies"), [])
    with Daemon("--store", store) as d:
        check("and it stays", d.state(study)["problem"], p)
    # a body that is not what it was
    store = str(t / "damaged.db")
    with Daemon("--store", store, "--workers", "1") as d:
        study = post(d, json.dumps(heavy).encode(), **JSON)
    (kept_body,) = pathlib.Path(store + ".bodies").iterdir()
    kept_body.write_bytes(kept_body.read_bytes().replace(b"heavy.graph", b"other.graph"))
    with Daemon("--store", store) as d:
        check("a damaged body", "damaged" in d.wait(study, "failed", "done")["problem"]["detail"], True)

finish()
