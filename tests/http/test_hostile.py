"""All kinds of hostile clients at once, each again and again, beside an ordinary one that must not notice: every answer it
gets is there and right, and in the end nothing is left of the others. SW_ROUNDS sets how long the ordinary one goes on."""
import gzip, io, json, os, pathlib, resource, socket, sys, tempfile, threading, time, zipfile, zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SANITIZED, SLOW, TEXT, Daemon, chain, check, finish, until

ROUNDS = int(os.environ.get("SW_ROUNDS", 60))
HOST = b"Host: localhost\r\n"
resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)


def bombs():
    """(path, type, coding, body): small to send, large to open."""
    pt2 = io.BytesIO()
    with zipfile.ZipFile(pt2, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        for name in ("m/archive_format", "m/version", "m/models/model.json"):
            with z.open(name, "w", force_zip64=True) as f:
                for _ in range(100 if "json" in name else 1):
                    f.write(bytes(1 << 20))
    z = zlib.compressobj(9, wbits=31)
    squeezed = z.compress(bytes(64 << 20)) + z.flush()
    table = {"rows": 1 << 20, "cols": 64, "default": 1, "entries": []}
    yield "/compile", "application/zip", None, pt2.getvalue()
    yield "/compile", "text/plain", "gzip", squeezed
    yield "/compile", "text/plain", "zstd", bytes.fromhex("28b52ffd0038") + 900 * bytes.fromhex("02001000")
    yield "/compile", "application/json", None, b'{"a":' * 100000
    yield "/compile", "application/json", None, b'{"graph_module":[' + b"[]," * 1000000 + b"1]}"
    yield "/solve", "application/json", None, json.dumps({"format": "stickwright.assign/1", "tables": [table] * 9, "variables": []}).encode()
    yield "/place", "text/csv", None, b"id,lower,upper,size\n" + b"a,0,1,1\n" * 200000
    yield "/compile", "text/plain", None, b"%a : f16[64] = aten.exp.default(" + b"(" * 500000


BOMBS = list(bombs())
done = {}
done_lock = threading.Lock()
stop = threading.Event()


def again(name, address, what, *args):
    """What one hostile client does until the end; errors on its own side are its own business."""
    while not stop.is_set():
        try:
            with socket.create_connection(("127.0.0.1", d.port), timeout=10 * SLOW, source_address=(address, 0)) as s:
                what(s, *args)
        except OSError:
            pass
        with done_lock:
            done[name] = done.get(name, 0) + 1
        stop.wait(0.1)


def until_closed(s, piece, pause):
    while not stop.is_set():
        s.sendall(piece)
        if pause:
            time.sleep(pause)


def slow_body(s):
    s.sendall(b"POST /compile HTTP/1.1\r\n" + HOST + b"Content-Length: 100000\r\n\r\n")
    until_closed(s, b"x", 1)


def slow_headers(s):
    s.sendall(b"POST /compile HTTP/1.1\r\n")
    until_closed(s, b"X", 1)


def declared(s):
    s.sendall(b"POST /compile HTTP/1.1\r\n" + HOST + b"Content-Length: 5368709120\r\n\r\n")
    if s.recv(12) != b"HTTP/1.1 413":
        done["5 GiB were not refused"] = 1


def sent(s, limit):
    """Chunks up to 5 GiB, whatever is said."""
    s.sendall(b"POST /compile HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n")
    n = 0
    try:
        while n < 5 << 30 and not stop.is_set():
            s.sendall(b"100000\r\n" + bytes(1 << 20) + b"\r\n")
            n += 1 << 20
    finally:
        done["most bytes taken"] = max(n, done.get("most bytes taken", 0))


def header_flood(s):
    s.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST)
    until_closed(s, b"X-Flood: " + b"y" * 1000 + b"\r\n", 0)


def many_lines(s):
    s.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"a:b\r\n" * 100000 + b"\r\n")
    s.recv(100)


def aborted(s):
    s.sendall(b"POST /compile HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000\r\n\r\n" + bytes(500000))


def garbage(s):
    s.sendall(bytes(range(256)) * 100 + b"\r\n\r\n")
    s.recv(100)


def gone_before_the_answer(s, n=iter(range(1, 1 << 30))):
    body = chain(5, next(n))
    s.sendall(b"POST /compile HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def slow_reader(s, path):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    s.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    stop.wait(2)


def bomb(s, k):
    path, kind, coding, body = BOMBS[k]
    s.settimeout(60 * SLOW)
    s.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n".encode()
              + (f"Content-Encoding: {coding}\r\n".encode() if coding else b"") + b"\r\n" + body)
    status = s.recv(12)
    if status[9:] not in (b"413", b"422", b""):  # or its time was over
        done[f"bomb {k} was answered with {status}"] = 1
    stop.wait(0.5)


def descriptors(d):
    return len(os.listdir(f"/proc/{d.process.pid}/fd"))


with tempfile.TemporaryDirectory() as t, \
     Daemon("--store", t + "/s.db", "--body-mb", "8", "--header-seconds", str(4 * SLOW),
            "--body-seconds", str(5 * SLOW), "--memory-mb", "600") as d:
    def ordinary(k):
        """One request of the ordinary client: every fourth is new work."""
        cores = k // 4 % 32 + 1 if k % 4 == 0 else 1
        size = 64 + k // 128 if k % 4 == 0 else 64
        body = GOOD.replace(b"128", b"%d" % size)
        answer = d.ask("POST", f"/compile?cores={cores}", body, **TEXT)
        doc = json.loads(answer[2]) if answer[0] == 200 else {}
        return answer[0] == 200 and doc["options"]["cores"] == cores and any(s["size"] == [256, size] for s in doc["storages"])
    check("alone", [ordinary(k) for k in range(8)], [True] * 8)
    before = descriptors(d)
    job = d.job("/compile?cores=31", chain(500), X_Client="watched", **TEXT)
    hostile = [(f.__name__, f, ()) for f in (slow_body, slow_headers) for _ in range(10)]
    hostile += [(f.__name__, f, ()) for f in (declared, header_flood, many_lines, aborted, garbage, gone_before_the_answer)]
    hostile += [("sent", sent, (8 << 20,))] + [("slow_reader", slow_reader, (job + "/events",)) for _ in range(5)]
    hostile += [(f"bomb {k}", bomb, (k,)) for k in range(len(BOMBS))]
    threads = [threading.Thread(target=again, args=(name, f"127.0.0.{2 + i}", f, *args), daemon=True) for i, (name, f, args) in enumerate(hostile)]
    idle = [socket.create_connection(("127.0.0.1", d.port), source_address=(f"127.0.1.{1 + i % 4}", 0)) for i in range(2000)]
    for th in threads:
        th.start()
    wrong, k = 0, 0
    enough = lambda: len([n for n, f, _ in hostile if done.get(n)]) == len(hostile)
    while k < ROUNDS or (not enough() and k < 100 * ROUNDS):  # until each has had its turn
        wrong += not ordinary(k)
        k += 1
    check("the ordinary client's answers that are not right", wrong, 0)
    stop.set()
    for th in threads:
        th.join()
    for s in idle:
        s.close()
    check("each hostile client had its turn", sorted({n for n, _, _ in hostile} - set(done)), [])
    check("and its answer", [n for n in done if "were not" in n or "answered" in n], [])
    check("nobody could send much more than a body's limit", done["most bytes taken"] < 64 << 20, True)
    check("their work is gone", until("the queue is empty", lambda: d.metric("queue_waiting") + d.metric("queue_running") == 0), True)
    check("their connections too", until("connections end", lambda: d.metric("connections") <= 1), True)
    check("and their descriptors", until("descriptors are closed", lambda: descriptors(d) <= before + 2), True)
    check("the watched job went on", (d.state(job)["state"], d.state(job)["problem"]), ("done", None))
    check("no worker died", d.metric("worker_deaths_total"), 0)
    memory = int(next(x for x in open(f"/proc/{d.process.pid}/status") if x.startswith("VmHWM")).split()[1])
    check("the daemon's own memory", SANITIZED or memory < 200 << 10, True)
    check("exit code", d.stop(), 0)
    print(f"{k} answers, most memory {memory >> 10} MB;", ", ".join(f"{n} {done[n]}" for n in sorted(done)))
finish()
