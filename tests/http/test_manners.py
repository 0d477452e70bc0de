"""Hostile, slow and picky clients: compression both ways with limits, deadlines that no trickle escapes, connections of
one address, the token. A normal client does not notice."""
import gzip, json, pathlib, resource, socket, subprocess, sys, tempfile, threading, time, zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SWD, TEXT, Daemon, check, finish, problem, until


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

    # gzip
    packed = d.ask("POST", "/compile", gzip.compress(GOOD), Content_Encoding="gzip", **TEXT)
    check("a compressed body is the same work", (packed[0], packed[1]["Location"]), (200, plain[1]["Location"]))
    got = d.ask("GET", plain[1]["Location"], Accept_Encoding="gzip")
    check("a compressed answer", (got[1]["Content-Encoding"], gzip.decompress(got[2]) == plain[2], got[1]["Vary"]),
          ("gzip", True, "Accept-Encoding"))
    check("smaller", len(got[2]) < len(plain[2]) / 2, True)
    check("its tag", (got[1]["ETag"] != plain[1]["ETag"], d.ask("GET", plain[1]["Location"], If_None_Match=got[1]["ETag"])[0]),
          (True, 304))
    check("declined", d.ask("GET", plain[1]["Location"], Accept_Encoding="gzip;q=0")[1]["Content-Encoding"], None)
    bomb = zlib.compressobj(9, wbits=31)
    bomb = bomb.compress(bytes(300 << 20)) + bomb.flush()
    check("the bomb is small enough to be sent", len(bomb) < 1 << 20, True)
    problem("a bomb", d.ask("POST", "/compile", bomb, Content_Encoding="gzip", **TEXT), 413, "limit")
    for what, body in (("no gzip", GOOD), ("half of it", gzip.compress(GOOD)[:-9]), ("more than it", gzip.compress(GOOD) + b"x")):
        problem(what, d.ask("POST", "/compile", body, Content_Encoding="gzip", **TEXT), 400, "usage")
    problem("another encoding", d.ask("POST", "/compile", GOOD, Content_Encoding="br", **TEXT), 415, "encoding")

    # bodies
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
    s = raw(d, b"POST /compile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n" + bytes(10))
    s.close()  # an upload that ends early
    s = raw(d, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + 200000 * b"y" + b"\r\n\r\n")
    check("too many headers", s.recv(12) in (b"HTTP/1.1 431", b"HTTP/1.1 413", b"HTTP/1.1 414", b""), True)
    s.close()

    # slow ones, all at the same time, while somebody else asks
    lines = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + bytes(1000)
    head = b"POST /compile HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
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
    check("metrics name the route", 'http_requests_total{route="POST /compile",status="413"} 2' in doc, True)
    check("exit code", d.stop(), 0)

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
