"""Many at once: 200 different small graphs, all answered right; and memory that stays flat over repeats.
SW_REPEATS=100000 for the long run."""
import http.client, os, pathlib, sys, threading

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import SANITIZED, SLOW, TEXT, Daemon, check, finish

REPEATS = int(os.environ.get("SW_REPEATS", 6000))


def graph(k):
    return b"%%a : f16[%d,64] = input\n%%b : f16[%d,64] = aten.relu.default(%%a)\nreturn %%b\n" % (k, k)


def memory(d):
    """Resident kilobytes."""
    for line in open(f"/proc/{d.process.pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])


with Daemon() as d:
    answers = {}
    threads = [threading.Thread(target=lambda k=k: answers.update({k: d.ask("POST", "/compile", graph(k), **TEXT)}))
               for k in range(1, 201)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("all are answered", sorted(k for k in answers if answers[k][0] == 200), list(range(1, 201)))
    check("each with its own", [k for k in answers if b'"size": [%d, 64]' % k not in answers[k][2].replace(b",64", b", 64")], [])

    def repeat(n):
        c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=60 * SLOW)
        for _ in range(n):
            c.request("POST", "/compile", graph(7), {"Content-Type": "text/plain"})
            r = c.getresponse()
            if r.read() != answers[7][2]:
                check("a repeat", r.status, 200)
        c.close()

    before = None
    for part in range(4):
        threads = [threading.Thread(target=repeat, args=(REPEATS // 16,)) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        before = before or memory(d)
    check(f"memory after {REPEATS} repeats", SANITIZED or memory(d) < before + 2048, True)
    print(f"{REPEATS} repeats, {before} kB after a quarter of them, {memory(d)} kB after all")
    check("exit code", d.stop(), 0)
finish()
