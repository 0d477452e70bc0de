"""Hostile, slow and picky clients: compression both ways with limits, deadlines that no trickle escapes, connections of
one address, the token. A normal client does not notice."""
import ctypes, gzip, json, pathlib, re, resource, socket, subprocess, sys, tempfile, threading, time, zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SLOW, SOURCE, SWD, TEXT, Daemon, check, finish, problem, until


libzstd = ctypes.CDLL("libzstd.so.1")  # the daemon has it too
for f in (libzstd.ZSTD_compress, libzstd.ZSTD_decompress):
    f.restype = ctypes.c_size_t


def zstd_compress(data):
    out = ctypes.create_string_buffer(len(data) + 1000)
    n = libzstd.ZSTD_compress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:n]


def zstd_decompress(data):
    out = ctypes.create_string_buffer(1 << 20)
    n = libzstd.ZSTD_decompress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)))
    return out.raw[:n]


def raw(d, data, source="127.0.0.1"):
    s = socket.create_connection(("127.0.0.1", d.port), timeout=30, source_address=(source, 0))
    s.sendall(data)
    return s


def closed(s, seconds):
    """Whether the other side ends the connection in that time."""
    s.settimeout(seconds)
    try:
        while s.recv(65536):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def answered(s):
    s.settimeout(5)
    try:
        return s.recv(1) == b"H"
    except OSError:
        return False


def trickle(s, data, seconds):
    """Sends a byte every 0.2 s; the seconds until the connection was ended."""
    start = time.monotonic()
    for b in data:
        if time.monotonic() - start > seconds:
            break
        try:
            s.sendall(bytes([b]))
            s.settimeout(0.2)
            if not s.recv(65536):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - start


with Daemon("--body-mb", "1", "--header-seconds", "2", "--body-seconds", "3", "--connections", "200",
            "--address-connections", "80") as d:
    plain = d.ask("POST", "/compile", GOOD, **TEXT)

    # compression, both ways
    for name, pack, unpack in (("gzip", gzip.compress, gzip.decompress), ("zstd", zstd_compress, zstd_decompress)):
        packed = d.ask("POST", "/compile", pack(GOOD), Content_Encoding=name, **TEXT)
        check(name + ": the same work", (packed[0], packed[1]["Location"]), (200, plain[1]["Location"]))
        got = d.ask("GET", plain[1]["Location"], Accept_Encoding=name)
        check(name + ": an answer", (got[1]["Content-Encoding"], unpack(got[2]) == plain[2], got[1]["Vary"]),
              (name, True, "Accept-Encoding"))
        known = d.ask("GET", plain[1]["Location"], Accept_Encoding=name, If_None_Match=got[1]["ETag"])
        check(name + ": what has not changed has the same headers", [(known[0], known[2])] + [known[1][h] for h in ("ETag", "Vary", "Cache-Control")],
              [(304, b"")] + [got[1][h] for h in ("ETag", "Vary", "Cache-Control")])
        check(name + ": smaller", len(got[2]) < len(plain[2]) / 2, True)
        check(name + ": its tag", (got[1]["ETag"] != plain[1]["ETag"],
                                   d.ask("GET", plain[1]["Location"], If_None_Match=got[1]["ETag"])[0]), (True, 304))
        text = d.ask("GET", "/openapi.yaml", Accept_Encoding=name)
        check(name + ": a text", (text[1]["Content-Encoding"], unpack(text[2])),
              (name, (SOURCE / "docs/openapi.yaml").read_bytes()))
        for what, body in (("none of it", GOOD), ("half of it", pack(GOOD)[:-9]), ("more than it", pack(GOOD) + b"x"), ("nothing", b"")):
            problem(f"{name}: {what}", d.ask("POST", "/compile", body, Content_Encoding=name, **TEXT), 400, "usage")
        check(name + ": two parts are one" if name == "zstd" else name,
              d.ask("POST", "/compile", pack(GOOD[:50]) + pack(GOOD[50:]), Content_Encoding=name, **TEXT)[0],
              200 if name == "zstd" else 400)
    for accept, want in (("gzip;q=0", None), ("gzip, zstd", "zstd"), ("zstd;q=0.5, gzip", "gzip"), ("*", "zstd"), ("*;q=0", None),
                         ("br, *;q=0.1, zstd;q=0", "gzip"), ("gzipped", None), ("GZIP ; q=1.0", "gzip"), ("identity", None)):
        check("Accept-Encoding: " + accept, d.ask("GET", plain[1]["Location"], Accept_Encoding=accept)[1]["Content-Encoding"], want)
    refused = d.ask("POST", "/compile", GOOD, Content_Encoding="br", **TEXT)
    problem("another encoding", refused, 415, "encoding")
    check("which ones", refused[1]["Accept-Encoding"], "gzip, zstd")
    problem("two encodings", d.ask("POST", "/compile", GOOD, Content_Encoding="gzip, zstd", **TEXT), 415, "encoding")
    bomb = zlib.compressobj(9, wbits=31)
    bomb = bomb.compress(bytes(300 << 20)) + bomb.flush()
    frame = bytes.fromhex("28b52ffd0038")  # window 128 kB; blocks are last | kind << 1 | size << 3
    for name, body in (("gzip", bomb), ("zstd", frame + 2400 * bytes.fromhex("02001000")),  # each 128 kB of one byte
                       ("zstd", frame + 400000 * bytes(3))):  # blocks of nothing, 1.2 MB
        problem(f"{name}: a bomb", d.ask("POST", "/compile", body, Content_Encoding=name, **TEXT), 413, "limit")
    problem("zstd: a window of 2 GB", d.ask("POST", "/compile", bytes.fromhex("28b52ffd00a8010000"), Content_Encoding="zstd", **TEXT),
            400, "usage")

    # bodies
    head = b"POST /compile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    s = raw(d, b"POST /compile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5368709120\r\n\r\n")
    check("5 GiB announced", s.recv(12), b"HTTP/1.1 413")
    s.close()
    s = raw(d, b"POST /compile HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        for _ in range(64):
            s.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
    except OSError:
        pass
    check("4 MiB in pieces, limit 1", closed(s, 5), True)
    s = raw(d, b"POST /compile HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
    check("Expect: 100-continue", s.recv(25), b"HTTP/1.1 100 Continue\r\n\r\n")
    s.close()
    for what, lines, status in (("too large", b"Content-Length: 9999999", 413), ("media type", b"Content-Length: 9\r\nContent-Type: a/b", 415),
                                ("encoding", b"Content-Length: 9\r\nContent-Encoding: br", 415)):
        s = raw(d, b"POST /compile HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n" + lines + b"\r\n\r\n")
        check(f"Expect: 100-continue, {what}", s.recv(12), b"HTTP/1.1 %d" % status)
        s.close()
    for host, status in ((b"Host: localhost:99", 200), (b"Host: 127.0.0.2:99", 200), (b"Host: 128.0.0.1", 421), (b"Host: 127.0.0.1.evil.example", 421), (b"host: [::1]", 200), (b"Host: localhost.evil.example", 421), (b"Host:", 421),
                         (b"Host: localhost\r\nHost: evil.example", 421), (b"Host: localhost\r\nHost: localhost", 421)):
        s = raw(d, b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n\r\n")
        check(f"{host}", s.recv(12), b"HTTP/1.1 %d" % status)
        s.close()
    s = raw(d, b"POST /compile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n" + bytes(10))
    s.close()  # an upload that ends early
    start = time.monotonic()
    for part in (b"GET /healthz HTTP/1.1\r\nHost: loc", head + b"half"):
        s = raw(d, part)
        s.shutdown(socket.SHUT_WR)
        check("half a request of a client who has gone", (closed(s, 10), time.monotonic() - start < 3.8), (True, True))
        s.close()
    s = raw(d, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + 200000 * b"y" + b"\r\n\r\n")
    check("too many headers", s.recv(12) in (b"HTTP/1.1 431", b"HTTP/1.1 413", b"HTTP/1.1 414", b""), True)
    s.close()

    # slow ones, all at the same time, while somebody else asks
    lines = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + bytes(1000)
    took = {}
    threads = [threading.Thread(target=lambda: took.update(headers=trickle(raw(d, b"", "127.0.0.3"), lines, 20))),
               threading.Thread(target=lambda: took.update(body=trickle(raw(d, head, "127.0.0.3"), 1000 * b"x", 20)))]
    for t in threads:
        t.start()
    silent = [raw(d, b"", "127.0.0.2") for _ in range(100)]
    times = []
    while any(t.is_alive() for t in threads):
        start = time.monotonic()
        check("another client", d.ask("POST", "/compile", GOOD, **TEXT)[2], plain[2])
        times.append(time.monotonic() - start)
        time.sleep(0.05)
    check("slow headers end", 1.5 < took["headers"] < 8, True)
    check("a slow body ends", 2.5 < took["body"] < 9, True)
    check("silent connections end", all(closed(s, 10) for s in silent), True)
    check("nobody noticed", sorted(times)[len(times) * 9 // 10] < 1, True)
    check("all gone", until("connections are closed", lambda: d.metric("connections") <= 1), True)
    many = [raw(d, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "127.0.0.2") for _ in range(100)]
    served = sum(answered(s) for s in many)
    check("connections of one address", served, 80)
    for s in many:
        s.close()

    doc = d.ask("GET", "/metrics")[2].decode()
    check("metrics name the route", 'http_requests_total{route="POST /compile",status="413"} 5' in doc, True)
    check("exit code", d.stop(), 0)

# What is no HTTP: some of it libmicrohttpd answers itself, with a page of its own (docs/http-api.md); the rest is ours.
with Daemon() as d:
    def first_answer(data):
        """(status, Content-Type) of what comes back until the other side closes; (None, None) when nothing does."""
        s, got = raw(d, data), b""
        with s:
            try:
                s.shutdown(socket.SHUT_WR)
                while piece := s.recv(65536):
                    got += piece
            except OSError:
                pass  # it was closed already
        kind = re.search(rb"\r\nContent-Type: (\S+)", got.partition(b"<html>")[0])
        return (int(got[9:12]), kind and kind.group(1).decode()) if got.startswith(b"HTTP/1.1 ") else (None, None)
    post, get, host = b"POST /compile HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\n", b"Host: localhost\r\n"
    ours = "application/problem+json"
    for what, data, want in (
            ("no version", b"GET /healthz\r\n\r\n", (400, None)),
            ("a header without a colon", get + host + b"colon\r\n\r\n", (400, None)),
            ("a length that is none", post + host + b"Content-Length: abc\r\n\r\n", (400, None)),
            ("a chunk that is none", post + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", (400, None)),
            ("a length of 77 bits", post + host + b"Content-Length: 99999999999999999999999\r\n\r\n", (413, None)),
            ("a long path", b"GET /" + 40000 * b"a" + b" HTTP/1.1\r\n" + host + b"\r\n", (414, None)),
            ("a long header", get + host + b"X: " + 40000 * b"y" + b"\r\n\r\n", (431, None)),
            ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505, None)),
            ("noise", b"\x01\x02\x03\r\n\r\n", (None, None)),
            ("two lengths", post + host + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", (400, ours)),
            ("a length beside chunks", post + host + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n", (400, ours)),
            ("another transfer coding", post + host + b"Transfer-Encoding: gzip\r\n\r\n", (400, ours)),
            ("a blank before the colon", post + host + b"Content-Length : 3\r\n\r\nabc", (400, ours)),
            ("a coding with a blank", post + host + b"Content-Length: 3\r\nTransfer-Encoding : chunked\r\n\r\nabc", (400, ours)),
            ("a folded header", get + host + b"X: a\r\n Y: b\r\n\r\n", (400, ours)),
            ("a header first that begins with a blank", get + b" X: y\r\n" + host + b"\r\n", (400, ours)),
            ("a header with a control character", get + host + b"X\x01Y: 1\r\n\r\n", (400, ours)),
            ("a carriage return alone", get + host + b"X: a\rContent-Length: 3\r\n\r\n", (400, ours)),
            ("chunks in HTTP/1.0", b"POST /compile HTTP/1.0\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (400, ours)),
            ("370 parameters", post.replace(b" H", b"?" + 370 * b"&" + b" H") + host + b"Content-Length: 3\r\n\r\nabc", (400, ours)),
            ("700 parameters", get.replace(b" H", b"?" + 700 * b"&" + b" H") + host + b"\r\n", (414, ours)),
            ("7,000 parameters", get.replace(b" H", b"?" + 7000 * b"a=b&" + b" H") + host + b"\r\n", (414, ours)),
            ("a long query", get.replace(b" H", b"?name=" + 26000 * b"a" + b" H") + host + b"\r\n", (414, ours)),
            ("a path that is nearly too long", b"GET /" + 26000 * b"a" + b" HTTP/1.1\r\n" + host + b"\r\n", (414, ours)),
            ("no host", get + b"\r\n", (400, ours)),
            ("two hosts", get + host + host + b"\r\n", (421, ours)),
            ("no length", post + host + b"\r\n", (400, ours)),
            ("a method that is none", b"FOO /healthz HTTP/1.1\r\n" + host + b"\r\n", (405, ours)),
            ("HTTP/1.0 without a host", b"GET /healthz HTTP/1.0\r\n\r\n", (200, "text/plain"))):
        got = first_answer(data)
        for _ in range(9):  # who is still sending when the other side closes may lose the answer
            got = got if got[0] or not want[0] else first_answer(data)
        check(what, got, want)
    for what, lines in (("two lengths", b"Content-Length: 3\r\nContent-Length: 40"), ("a length with a blank", b"Content-Length : 40")):
        check("nothing comes after " + what, raw(d, post + host + lines + b"\r\n\r\nabc" + get + host + b"\r\n").makefile("rb").read().count(b"HTTP/1.1 "), 1)
    check("exit code", d.stop(), 0)

# the bodies of all together: 16 MB are for one that comes in zstd
with Daemon("--bodies-mb", "20", "--idle-seconds", str(600 * SLOW), "--body-seconds", str(600 * SLOW)) as d:
    large = 5 << 20
    body = b"#" * (large - len(GOOD) - 1) + b"\n" + GOOD
    check("there is room", d.ask("POST", "/compile", body, **TEXT)[0], 200)
    def squeezed():
        return d.ask("POST", "/compile", zstd_compress(GOOD), Content_Encoding="zstd", **TEXT)[0]

    def held():
        """A connection whose body has its room; None: it was refused, since a question about it took the room first."""
        until("what was answered gave its room back", lambda: squeezed() == 200)
        s = raw(d, b"POST /compile HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: zstd\r\nContent-Length: 1000\r\n\r\n")
        if any(squeezed() == 503 for _ in range(20)):
            return s
        s.close()

    s = next((s for s in (held() for _ in range(20)) if s), None)
    check("its headers were read", s is not None, True)
    crowded = d.ask("POST", "/compile", body, **TEXT)
    problem("there is none", crowded, 503, "busy")
    check("it may come back", crowded[1]["Retry-After"], "5")
    check("a small one finds some", d.ask("POST", "/compile", GOOD, **TEXT)[0], 200)
    s.close()
    until("there is room again", lambda: d.ask("POST", "/compile", body, **TEXT)[0] == 200)
    until("for the others too", lambda: squeezed() == 200)
    problem("a body of another size than all may have", d.ask("POST", "/compile", bytes(21 << 20), **TEXT), 503, "busy")
    check("exit code", d.stop(), 0)

# no file may grow beyond 300 kB: what a full disk does to bodies
with Daemon(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300 << 10, 300 << 10))) as d:
    problem("a body that can't be kept", d.ask("POST", "/compile", b"#" * (1 << 20) + b"\n" + GOOD, **TEXT), 503, "io")
    check("a small one can", d.ask("POST", "/compile", GOOD, **TEXT)[0], 200)

# what curl sends when it is not told the type
for form in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
    with Daemon() as d:
        detail = problem(form, d.ask("POST", "/compile", GOOD, Content_Type=form), 415, "media-type")["detail"]
        check("it says what was found and what is expected", [x in detail for x in (form, "text/plain", "as it is")], [True] * 3)

# two thousand silent connections from the address of the one who works
with Daemon() as d:
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    silent = [raw(d, b"") for _ in range(2000)]
    check("another client beside 2,000 silent ones", [d.ask("POST", "/compile", GOOD, **TEXT)[0] for _ in range(20)], [200] * 20)
    check("they are there", d.metric("connections") > 2000, True)
    for s in silent:
        s.close()
    check("exit code", d.stop(), 0)

with tempfile.NamedTemporaryFile("w") as f:
    f.write("a-token-of-more-than-16\n")
    f.flush()
    with Daemon("--token-file", f.name) as d:
        problem("no token", d.ask("GET", "/version"), 401, "token")
        check("which kind", d.ask("GET", "/version")[1]["WWW-Authenticate"], "Bearer")
        problem("another token", d.ask("GET", "/version", Authorization="Bearer a-token-of-more-than-17"), 401, "token")
        check("the token", d.ask("GET", "/version", Authorization="Bearer a-token-of-more-than-16")[0], 200)
        check("probes need none", (d.ask("GET", "/healthz")[0], d.ask("GET", "/readyz")[0]), (200, 200))
    f.seek(0)
    f.truncate()
    f.write("short\n")
    f.flush()
    run = subprocess.run([SWD, "--listen", "127.0.0.1:0", "--token-file", f.name], capture_output=True, timeout=60)
    check("a token that is too short", run.returncode, 66)

finish()
