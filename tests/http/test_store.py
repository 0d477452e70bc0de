"""The store's file: results and jobs are there after a restart and after kill -9, what is damaged is not given out,
the limit holds, and one file has one daemon."""
import http.client, json, os, pathlib, random, resource, shutil, signal, sqlite3, subprocess, sys, tempfile, threading

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SLOW, SWD, TEXT, Daemon, chain, check, finish, until

KILLS = int(os.environ.get("SW_KILLS", 8))


def graph(k):
    """Path and body of one of many small pieces of work."""
    return f"/compile?cores={k % 32 + 1}", GOOD.replace(b"128", b"%d" % (64 + k // 32))


with tempfile.TemporaryDirectory() as t:
    store = t + "/store.db"
    with Daemon("--store", store) as d:
        first = d.ask("POST", "/compile", GOOD, **TEXT)
        job = d.job("/compile?solver=beam", GOOD, **TEXT)
        ended = d.wait(job, "done")
        failed_job = d.job("/compile", b"%a : f16[64] = my.op.default()\nreturn %a\n", **TEXT)
        failure = d.wait(failed_job, "failed")
        check("exit code", d.stop(), 0)
    with Daemon("--store", store) as d:
        again = d.ask("POST", "/compile", GOOD, **TEXT)
        check("the same bytes after a restart", (again[0], again[2], again[1]["ETag"]), (200, first[2], first[1]["ETag"]))
        check("without computing", (d.metric("cache_hits_total"), d.metric("cache_misses_total")), (1, 0))
        check("files too", d.ask("GET", first[1]["Location"] + "/files/manifest.json")[0], 200)
        check("an ended job", [d.state(job)[k] for k in ("state", "result")], ["done", ended["result"]])
        check("a failed job", d.state(failed_job)["problem"]["errors"], failure["problem"]["errors"])
        second = subprocess.run([SWD, "--listen", "127.0.0.1:0", "--store", store], capture_output=True, text=True, timeout=60 * SLOW)
        check("one daemon a store", (second.returncode, "another daemon" in second.stderr), (74, True))

    # one bit of a stored file changes
    db = sqlite3.connect(store)
    where = first[1]["Location"].split("/")[2]
    bytes_, = db.execute("SELECT bytes FROM files WHERE result = ? AND path = 'result.json'", (where,)).fetchone()
    db.execute("UPDATE files SET bytes = ? WHERE result = ? AND path = 'result.json'",
               (bytes([bytes_[0] ^ 1]) + bytes_[1:], where))
    db.commit()
    db.close()
    with Daemon("--store", store) as d:
        check("a damaged result is not given out", d.ask("GET", first[1]["Location"])[0], 404)
        check("it is counted", d.metric("store_damaged_total"), 1)
        check("and computed again", d.ask("POST", "/compile", GOOD, **TEXT)[2], first[2])

    # room for a few results only
    small = t + "/small.db"
    with Daemon("--store", small, "--store-mb", "1", "--cache-mb", "1") as d:
        places = [d.ask("POST", *graph(k), **TEXT)[1]["Location"] for k in range(0, 24 * 32, 32)]
        check("the limit holds", 0 < d.metric("store_bytes") <= 1 << 20, True)
        check("the newest is there, the oldest is not", (d.ask("GET", places[-1])[0], d.ask("GET", places[0])[0]), (200, 404))

    # what a daemon finds: jobs of another version, jobs whose body is gone or damaged, and more jobs than it keeps
    store = t + "/found.db"
    with Daemon("--store", store, "--workers", "1") as d:
        busy = d.job("/compile", chain(60000), **TEXT)
        d.wait(busy, "running")
        ended = [d.job("/compile?cores=6", GOOD, **TEXT) for _ in range(3)]
        other, gone, damaged = (d.job(f"/compile?cores={n}", GOOD, **TEXT) for n in (3, 4, 5))
        for j in [busy] + ended:
            d.ask("DELETE", j)
    bodies = pathlib.Path(store + ".bodies")
    (bodies / gone.split("/")[2]).unlink()
    (bodies / damaged.split("/")[2]).write_bytes((bodies / damaged.split("/")[2]).read_bytes().replace(b"[128,256]", b"[256,256]"))
    db = sqlite3.connect(store)
    db.execute("UPDATE jobs SET address = ? WHERE id = ?", (64 * "f", other.split("/")[2]))
    db.commit()
    db.close()
    with Daemon("--store", store, "--jobs", "3") as d:
        wanted = d.ask("POST", "/compile?cores=3", GOOD, **TEXT)[1]["Location"]
        check("the result's address is of this version", d.wait(other, "done", "failed")["result"], wanted)
        for j in gone, damaged:
            p = d.wait(j, "failed", "done")["problem"]
            check("an honest failure", (p["status"], "lost or damaged" in p["detail"]), (500, True))
        check("ended ones beyond the limit went", [d.ask("GET", j)[0] for j in ended], [404] * 3)
        check("exit code", d.stop(), 0)
    with Daemon("--store", store, "--jobs", "3") as d:
        check("it stays so", [d.state(j)["state"] for j in (other, gone, damaged)], ["done", "failed", "failed"])
        check("and took no time", d.state(other)["seconds"], {"queued": 0, "running": 0})
    store = t + "/store.db"

    # a full queue of two clients survives, though each had its own places
    full_queue = ("--store", t + "/queue.db", "--workers", "1", "--queue", "6", "--client-queue", "4")
    with Daemon(*full_queue) as d:
        busy = d.job("/compile", chain(60000), **TEXT)
        d.wait(busy, "running")
        waiting = [d.job(f"/compile?cores={n}", GOOD, X_Client=f"client {n % 2}", **TEXT) for n in range(1, 7)]
        d.process.kill()
        d.process.wait()
    with Daemon(*full_queue) as d:
        d.ask("DELETE", busy)
        check("a full queue after kill -9", [d.wait(j, "done", "failed")["state"] for j in waiting], ["done"] * 6)

    # jobs that can't be read: what they need stays, for whoever mends the file
    store = t + "/unread.db"
    with Daemon("--store", store, "--workers", "1") as d:
        unread = [d.job(f"/compile?cores={n}", chain(60000), **TEXT) for n in (1, 2)]
    db = sqlite3.connect(store)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (page_size,), (page,) = db.execute("PRAGMA page_size").fetchone(), db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'jobs'").fetchone()
    db.close()
    with open(store, "r+b") as f:
        f.seek((page - 1) * page_size)
        f.write(bytes([255]) * 16)
    with Daemon("--store", store) as d:
        check("their bodies stay", sorted(os.listdir(store + ".bodies")), sorted(j.split("/")[2] for j in unread))
        check("work is answered", d.ask("POST", "/compile", GOOD, **TEXT)[0], 200)
        check("and it says so", "can't be read to its end" in d.words(), True)
    store = t + "/store.db"

    # while the file is being written nobody else waits for it
    with Daemon("--store", store) as d:
        d.ask("POST", "/compile", GOOD, **TEXT)
        other = sqlite3.connect(store, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writer = threading.Thread(target=lambda: d.ask("POST", "/compile?cores=31", GOOD, **TEXT))
        writer.start()
        until("a result waits to be written", lambda: d.metric("queue_running") == 1 and not d.children())
        check("others are answered", (d.ask("POST", "/compile", GOOD, **TEXT)[0], d.metric("queue_running")), (200, 1))
        other.execute("COMMIT")
        other.close()
        writer.join()
        check("and it was written", (d.metric("store_failed_writes_total"), d.stop()), (0, 0))

    # a file that can't be
    for path in ("/proc/no/store.db", t):
        run = subprocess.run([SWD, "--listen", "127.0.0.1:0", "--store", path], capture_output=True, text=True, timeout=60 * SLOW)
        check("no store at " + path, (run.returncode, "store" in run.stderr), (74, True))

    # a file that may only be read; root may write everywhere, so it is somebody else who tries
    sealed = pathlib.Path(t, "sealed")
    sealed.mkdir()
    shutil.copy(store, sealed / "store.db")
    program = shutil.copy(SWD, t + "/stickwrightd")
    os.chmod(t, 0o755)
    os.chmod(sealed / "store.db", 0o444)
    os.chmod(sealed, 0o555)
    nobody = (lambda: os.setuid(65534)) if os.getuid() == 0 else None
    for path in (sealed / "store.db", sealed / "new.db"):
        run = subprocess.run([program, "--listen", "127.0.0.1:0", "--store", path], capture_output=True, text=True, timeout=60 * SLOW,
                             preexec_fn=nobody)
        check(f"no writing in {path}", (run.returncode, "store" in run.stderr), (74, True))
    os.chmod(sealed, 0o755)

    # no file may grow beyond 300 kB: what a full disk does to the store
    full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300 << 10, 300 << 10))
    with Daemon("--store", t + "/full.db", before=full) as d:
        answers = [d.ask("POST", *graph(k), **TEXT) for k in range(0, 40 * 9, 9)]
        check("work is answered", {a[0] for a in answers}, {200})
        check("writes failed", d.metric("store_failed_writes_total") > 0, True)
        check("what is in memory is found", d.ask("GET", answers[-1][1]["Location"])[2], answers[-1][2])
        refused = 0
        for k in range(300, 380):
            a = d.ask("POST", *graph(k), Prefer="respond-async", **TEXT)
            refused += a[0] == 503 and json.loads(a[2])["type"] == "/problems/io"
        check("jobs that can't be kept are refused", refused > 0, True)
        check("exit code", d.stop(), 0)
    with Daemon("--store", t + "/full.db") as d:
        check("what was kept is whole", d.ask("GET", answers[0][1]["Location"])[2], answers[0][2])
        check("nothing damaged", d.metric("store_damaged_total"), 0)

    # killed again and again while it works
    store = t + "/killed.db"
    rnd = random.Random(5)
    answers, jobs = {}, {}
    for kill in range(KILLS):
        n_answers = sum(map(len, answers.values()))
        with Daemon("--store", store, "--jobs", "100000") as d:
            def work(seed):
                r = random.Random(seed)
                while True:
                    k = r.randrange(32 * 400)
                    path, body = graph(k)
                    try:
                        if r.random() < .5:
                            a = d.ask("POST", path, body, **TEXT)
                            if a[0] == 200:
                                answers.setdefault(k, set()).add(a[2])
                        else:
                            a = d.ask("POST", path, body, Prefer="respond-async", **TEXT)
                            if a[0] == 202:
                                jobs[a[1]["Location"]] = k
                    except (OSError, http.client.HTTPException):
                        return
            threads = [threading.Thread(target=work, args=(kill * 10 + n,)) for n in range(3)]
            for th in threads:
                th.start()
            if kill % 2:  # in the middle of what comes after an answer; else of the first work
                until("an answer", lambda: sum(map(len, answers.values())) > n_answers)
            threading.Event().wait(rnd.random() * 0.6)
            d.process.send_signal(signal.SIGKILL)
            d.process.wait()
            for th in threads:
                th.join()
    wanted = {}
    with Daemon() as d:
        for k in set(answers) | set(jobs.values()):
            path, body = graph(k)
            wanted[k] = d.ask("POST", path, body, **TEXT)[2]
    check("killed daemons answered rightly", [k for k, a in answers.items() if a != {wanted[k]}], [])
    db = sqlite3.connect(store)
    check("the file is whole", db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
    db.close()
    with Daemon("--store", store, "--jobs", "100000") as d:
        lost = []
        for job, k in jobs.items():
            if d.ask("GET", job)[0] != 200:
                lost.append(job)
                continue
            j = d.wait(job, "done", "failed")
            if j["state"] == "failed":  # after three daemons; then it says so
                check("an honest failure", "service ended" in j["problem"]["detail"], True)
            elif d.ask("GET", j["result"])[2] != wanted[k]:
                lost.append(job)
        check(f"accepted jobs lost of {len(jobs)}", lost, [])
        check("there were some", len(jobs) >= KILLS and len(answers) > 0, True)
        check("nothing damaged", d.metric("store_damaged_total"), 0)
        check("no body left", until("bodies go", lambda: not os.listdir(store + ".bodies")), True)
        check("exit code", d.stop(), 0)
    print(f"{KILLS} kills, {len(jobs)} jobs accepted, {sum(map(len, answers.values()))} answers")

finish()
