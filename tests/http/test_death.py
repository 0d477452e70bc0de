"""A worker that dies: a problem document, a note that reproduces it, and a daemon that goes on. What a worker may not do."""
import json, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, threading

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SANITIZED, SLOW, TEXT, Daemon, chain, check, finish, problem, until

LONG = chain(30000)

with tempfile.TemporaryDirectory() as t, Daemon("--workers", "1", "--store", t + "/s.db", "--memory-mb", "600") as d:
    bug = signal.SIGABRT if SANITIZED else signal.SIGSEGV  # a sanitizer would report the latter
    for how in (bug, signal.SIGKILL):
        answers = []
        asks = threading.Thread(target=lambda: answers.append(
            d.ask("POST", f"/compile?cores={int(how)}", LONG, X_Client="one", **TEXT)))
        asks.start()
        (worker,) = until("a worker runs", d.children)
        if how == bug:
            status = pathlib.Path(f"/proc/{worker}/status").read_text
            until("the worker has limits", lambda: "NoNewPrivs:\t1" in status())
            if not SANITIZED:
                until("and a filter", lambda: "Seccomp:\t2" in status())
                check("nothing is open but 0, 1, 2", sorted(os.listdir(f"/proc/{worker}/fd")), ["0", "1", "2"])
                limits = pathlib.Path(f"/proc/{worker}/limits").read_text()
                check("address space", re.search(r"Max address space\s+(\d+)", limits).group(1), str(856 << 20))
        os.kill(worker, how)
        asks.join(60 * SLOW)
        problem(f"killed by {how.name}", answers[0], 500, "internal")
        notes = [json.loads(p.read_text()) for p in pathlib.Path(t, "s.db.aside").glob("*.json")]
        (note,) = [n for n in notes if n.get("signal", int(how)) == how and f"cores={int(how)}" in n["parameters"]]
        check("what it was", (note["verb"], note["parameters"]), ("compile", [f"cores={int(how)}"]))
        check("its body", pathlib.Path(t, "s.db.aside", note["id"] + ".body").read_bytes() == LONG, True)
        check("the daemon goes on", d.ask("POST", "/compile", GOOD, **TEXT)[0], 200)
    check("deaths are counted", d.metric("worker_deaths_total"), 2)
    check("a job whose worker dies", d.wait(d.job("/compile?cores=3", LONG, **TEXT), "running")["state"], "running")
    os.kill(until("a worker runs", d.children)[0], signal.SIGKILL)
    until("the third death", lambda: d.metric("worker_deaths_total") == 3)
    check("exit code", d.stop(), 0)

# an interrupt at a terminal goes to all of a group of processes: the daemon lets its work end
with Daemon("--workers", "1", "--drain-seconds", str(60 * SLOW), before=os.setsid) as d:
    answers = []
    asks = threading.Thread(target=lambda: answers.append(d.ask("POST", "/compile", chain(5000), **TEXT)[0]))
    asks.start()
    until("a worker runs", d.children)
    os.killpg(d.process.pid, signal.SIGINT)
    check("exit code", d.process.wait(60 * SLOW), 0)
    asks.join(60 * SLOW)
    check("who waited is answered", answers, [200])

# no more notes than may be
with tempfile.TemporaryDirectory() as t, Daemon("--workers", "1", "--notes", "2", "--aside", t) as d:
    for n in range(1, 5):
        job = d.job(f"/compile?cores={n}", LONG, **TEXT)
        os.kill(until("a worker runs", d.children)[0], signal.SIGKILL)
        check("a job whose worker dies", d.wait(job, "failed")["problem"]["status"], 500)
    check("two notes of four", (len(os.listdir(t)), d.words().count('"worker_died"'), d.words().count("this one is not kept")), (4, 4, 2))

if not SANITIZED:
    # one that writes a whole answer and then fails: a library that ends workers with 9 behind main's return
    code = 'void _exit(int); static int worker; __attribute__((constructor)) static void start(int n, char **v)' \
           '{ worker = n > 1 && v[1][0] == \'-\' && v[1][2] == \'w\'; } __attribute__((destructor)) static void end(void) { if (worker) _exit(9); }'
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    with tempfile.TemporaryDirectory() as t:
        if compiler:
            subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-o", t + "/late.so", "-"], input=code.encode(), check=True)
            os.environ["LD_PRELOAD"] = t + "/late.so"
            with Daemon() as d:
                problem("a worker that fails behind its answer", d.ask("POST", "/compile", GOOD, **TEXT), 500, "internal")
                check("it is counted", d.metric("worker_deaths_total"), 1)
            del os.environ["LD_PRELOAD"]
            # one that ends its answer, and then never ends
            subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-o", t + "/never.so", "-"], check=True,
                           input=code.replace("_exit(int)", "close(int)").replace("_exit(9)", "{ close(1); for (;;) ; }").encode())
            os.environ["LD_PRELOAD"] = t + "/never.so"
            with Daemon("--compile-seconds", "2") as d:
                problem("a worker that hangs behind its answer", d.ask("POST", "/compile", GOOD, **TEXT), 504, "deadline")
                check("nothing of it is left", until("it is killed", lambda: not d.children()), True)
            del os.environ["LD_PRELOAD"]
        else:
            print("no C compiler: a worker that fails behind its answer was not tried")
    with Daemon("--memory-mb", "1") as d:
        problem("not enough memory", d.ask("POST", "/compile", chain(2000), **TEXT), 413, "limit")
    with Daemon("--compile-seconds", "1") as d:
        problem("not enough time", d.ask("POST", "/compile", LONG + b"\n", **TEXT), 504, "deadline")
finish()
