"""Jobs: accepted, told of, cancelled; equal work done once; deadlines; a queue that is fair and has an end."""
import json, os, pathlib, re, signal, sys, threading

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SANITIZED, SLOW, TEXT, Daemon, chain, check, finish, problem, until

LONG = chain(30000)
TEXT_HEADER = {"Content-Type": "text/plain"}

with Daemon("--workers", "1", "--queue", "3", "--drain-seconds", "1") as d:
    # a job from its beginning to its end
    job = d.job("/compile?solver=greedy", GOOD, **TEXT)
    done = d.wait(job, "done", "failed")
    check("state", (done["state"], done["verb"], done["pass"], done["problem"]), ("done", "compile", "verify", None))
    sync = d.ask("POST", "/compile?solver=greedy", GOOD, **TEXT)
    check("a job's result", d.ask("GET", done["result"])[2], sync[2])
    check("its address", done["result"], sync[1]["Location"])
    status, head, events = d.ask("GET", job + "/events")
    check("events", (status, head["Content-Type"]), (200, "text/event-stream"))
    check("all of them", [e for e in re.findall(r'data: (.*)\n\n', events.decode()) if "solver" not in e],
          ['{"state":"queued"}', '{"state":"running"}'] + ['{"pass":"%s"}' % p for p in "read lower choose plan emit verify".split()]
          + ['{"state":"done"}'])
    told = [json.loads(e) for e in re.findall(r'event: solver\ndata: (.*)\n\n', events.decode())]
    cost = json.loads(sync[2])["objective"]["value"]
    check("the solver's end", [(e["part"], e["value"]) for e in told if e["solver"] == "assign"][-1:], [(0, cost)])
    check("and in the job", done["solver"], told[-1])
    # a frustrated problem: every neighbour wants to differ, and three labels are not enough for all
    n = 30
    grid = {"format": "stickwright.assign/1", "variables": [{"labels": ["a", "b", "c"]} for _ in range(n)],
            "edges": [[i, j, [[7, 0, 1], [2, 5, 0], [0, 3, 9]]] for i in range(n) for j in range(i + 1, n) if (i * j + i + j) % 3]}
    job = d.job("/solve?budget=3000", json.dumps(grid).encode(), Content_Type="application/json")
    told = [json.loads(e) for e in re.findall(r'event: solver\ndata: (.*)\n\n', d.ask("GET", job + "/events")[2].decode())]
    answer = json.loads(d.ask("GET", d.wait(job, "done")["result"])[2])
    last = told[-1]
    check("what a solver could not prove", (answer["status"], last["part"], last["value"], last["bound"]),
          ("feasible", 0, answer["cost"], answer["bound"]))
    check("its gap", abs(last["gap"] - (answer["cost"] - answer["bound"]) / answer["cost"]) < 1e-3, True)
    known = d.job("/compile?solver=greedy", GOOD, **TEXT)
    check("known work", d.state(known)["state"], "done")
    check("cancelling what has ended", json.loads(d.ask("DELETE", job)[2])["state"], "done")

    bad = d.wait(d.job("/compile", b"%a : f16[64] = my.op.default()\nreturn %a\n", **TEXT), "failed", "done")
    check("a failed job", (bad["state"], bad["problem"]["status"], bad["result"]), ("failed", 422, None))
    check("its errors", [e["node"] for e in bad["problem"]["errors"]], ["a"])
    for path in ("/jobs/" + 32 * "0", "/jobs/x", "/jobs/" + 32 * "0" + "/events"):
        problem("no job " + path, d.ask("GET", path), 404, "not-found")
    problem("no job to delete", d.ask("DELETE", "/jobs/" + 32 * "0"), 404, "not-found")
    check("allow", d.ask("POST", job)[1]["Allow"], "GET, HEAD, DELETE")

    # the one worker is busy: order, deadline, end of the queue
    busy = d.job("/compile", LONG, **TEXT)
    d.wait(busy, "running")
    told = []
    reader = threading.Thread(target=lambda: told.append(d.ask("GET", busy + "/events")[2]))
    reader.start()
    problem("deadline while waiting", d.ask("POST", "/compile?deadline=1&cores=2", GOOD, **TEXT), 504, "deadline")
    problem("no deadline", d.ask("POST", "/compile?deadline=never", GOOD, **TEXT), 400, "usage")
    check("who leaves takes the work along", until("queue is empty", lambda: d.metric("queue_waiting") == 0), True)
    waiting = [d.job(f"/compile?cores={n}", GOOD, **TEXT) for n in (4, 5, 6)]
    full = d.ask("POST", "/compile?cores=7", GOOD, **TEXT)
    problem("full queue", full, 503, "busy")
    check("Retry-After", full[1]["Retry-After"], "5")
    problem("full queue, as a job", d.ask("POST", "/compile?cores=7", GOOD, Prefer="respond-async", **TEXT), 503, "busy")
    same = d.job("/compile?cores=4", GOOD, **TEXT)
    check("equal work joins, even when the queue is full", d.metric("queue_waiting"), 3)
    check("cancel what waits", json.loads(d.ask("DELETE", waiting[0])[2])["state"], "cancelled")
    check("the other still waits for it", (d.state(same)["state"], d.metric("queue_waiting")), ("queued", 3))
    check("cancel again", json.loads(d.ask("DELETE", waiting[0])[2])["state"], "cancelled")
    check("cancel what runs", json.loads(d.ask("DELETE", busy)[2])["state"], "cancelled")
    reader.join(60 * SLOW)
    check("a listener hears of it", told[0].decode().endswith('{"state":"cancelled"}\n\n'), True)
    for j in waiting[1:] + [same]:
        check("the rest runs", d.wait(j, "done", "failed")["state"], "done")

    # who goes away takes the work along, unless somebody else waits for it
    clients = [d.connect() for _ in range(3)]
    for c, cores in zip(clients, (20, 21, 21)):
        c.request("POST", f"/compile?cores={cores}", LONG, TEXT_HEADER)
    until("one runs, one waits", lambda: (d.metric("queue_running"), d.metric("queue_waiting")) == (1, 1))
    clients[0].close()
    clients[1].close()
    until("the second runs", lambda: (d.metric("queue_running"), d.metric("queue_waiting")) == (1, 0))
    third = d.job("/compile?cores=21", LONG, **TEXT)
    check("it is in work for the third", d.wait(third, "running")["state"], "running")
    clients[2].close()
    d.ask("DELETE", third)
    until("nobody is left", lambda: d.metric("queue_running") == 0)

    # one client may not take all places
    with Daemon("--workers", "1", "--client-queue", "2", "--drain-seconds", "1") as small:
        small.wait(small.job("/compile", LONG, X_Client="one", **TEXT), "running")
        for n in (1, 2):
            small.job(f"/compile?cores={n}", GOOD, X_Client="one", **TEXT)
        problem("its third", small.ask("POST", "/compile?cores=3", GOOD, X_Client="one", Prefer="respond-async", **TEXT), 503, "busy")
        check("another's first", small.ask("POST", "/compile?cores=4", GOOD, X_Client="two", Prefer="respond-async", **TEXT)[0], 202)

    # more equal work than jobs are kept: each takes a place
    with Daemon("--workers", "1", "--jobs", "3", "--drain-seconds", "1") as small:
        equal = [small.job("/compile", LONG, **TEXT) for _ in range(3)]
        problem("a fourth equal one", small.ask("POST", "/compile", LONG, Prefer="respond-async", **TEXT), 503, "busy")
        small.ask("DELETE", equal[0])
        check("when one has ended there is room", small.job("/compile", LONG, **TEXT) not in equal, True)

    # done once
    misses = d.metric('solver_results_total{status="optimal"}')
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(d.ask("POST", "/compile", chain(3000), **TEXT))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("eight equal answers", [(a[0], a[2] == answers[0][2]) for a in answers], [(200, True)] * 8)
    check("one computation", d.metric('solver_results_total{status="optimal"}') - misses, 1)

    # fair: after many of one client comes one of another, and is served before most of them
    busy = d.job("/compile?cores=3", LONG, **TEXT)
    d.wait(busy, "running")
    many = [d.job(f"/compile?cores={n}", chain(2000), X_Client="many", **TEXT) for n in (8, 9)]
    one = d.job("/compile?cores=10", chain(2000), X_Client="one", **TEXT)
    d.ask("DELETE", busy)
    d.wait(one, "done")
    check("the last of many is behind the one", d.state(many[1])["state"] != "done", True)
    d.wait(many[1], "done")

    # stopping: whoever waits hears of it
    busy = d.job("/compile?cores=11", LONG, **TEXT)
    d.wait(busy, "running")
    stopped = []
    waiter = threading.Thread(target=lambda: stopped.append(d.ask("POST", "/compile?cores=12", GOOD, **TEXT)))
    listener = threading.Thread(target=lambda: stopped.append(d.ask("GET", busy + "/events")))
    waiter.start()
    listener.start()
    until("it waits", lambda: d.metric("queue_waiting") == 1)
    until("it listens", lambda: d.metric("connections") >= 3)  # the waiting one, this and who asks
    check("exit code", d.stop(), 0)
    waiter.join(30 * SLOW)
    listener.join(30 * SLOW)
    check("answers at the end", sorted(s[0] for s in stopped), [200, 503])

# without a deadline work may wait longer than a worker may run: both before it are stopped, and so take all of their time
if not SANITIZED:
    with Daemon("--workers", "1", "--compile-seconds", str(4 * SLOW)) as d:
        blocking = [d.job(f"/compile?cores={n}", LONG, **TEXT) for n in (1, 2)]
        behind = d.job("/compile", GOOD, **TEXT)
        for j in blocking:
            d.wait(j, "running")
            os.kill(until("its worker", d.children)[0], signal.SIGSTOP)
            check("a worker's time", d.wait(j, "failed")["problem"]["type"], "/problems/deadline")
        check("who waited is served", (d.wait(behind, "done", "failed")["state"], d.state(behind)["seconds"]["queued"] > 4 * SLOW), ("done", True))

finish()
