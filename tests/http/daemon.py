"""A daemon on a free port, and what the tests beside this file share."""
import http.client, json, os, pathlib, re, signal, subprocess, sys, tempfile, time

SOURCE = pathlib.Path(os.environ["SW_SOURCE"])
SW, SWD = os.environ["SW"], os.environ["SWD"]
GOOD = b"%a : f16[128,256] = input\n%t : f16[256,128] = aten.t.default(%a)\n%b : f16[256,128] = input\n" \
       b"%y : f16[256,128] = aten.add.Tensor(%t, %b)\nreturn %y\n"
# A sanitizer's run-time opens files of its own, so such a build has no filter; it keeps freed memory for a while; and workers
# are slower. What a test waits for at most, and what a daemon allows its workers, is SLOW times as long (SW_SLOW on a busy machine).
PROGRAM = pathlib.Path(SWD).read_bytes()
SANITIZED = b"__asan_init" in PROGRAM or b"__tsan_init" in PROGRAM
THREADS = b"__tsan_init" in PROGRAM
SLOW = int(os.environ.get("SW_SLOW", 20 if THREADS else 4 if SANITIZED else 1))
TEXT = {"Content_Type": "text/plain"}
failed = 0


def check(what, got, want):
    global failed
    if got != want:
        print(f"FAIL {what}: {got!r} expected {want!r}")
        failed += 1


def finish():
    sys.exit(failed != 0)


def problem(what, answer, status, slug):
    """The answer is a problem document of that kind; gives it back."""
    check(what, answer[0], status)
    check(what + ", type", answer[1]["Content-Type"], "application/problem+json")
    doc = json.loads(answer[2])
    check(what + ", slug", doc["type"], "/problems/" + slug)
    check(what + ", status", doc["status"], status)
    check(what + ", id", doc["request_id"], answer[1]["X-Request-Id"])
    return doc


def chain(n, seed=0):
    """A text graph of n nodes in a row; a few ten thousand keep a worker busy for seconds. With the sanitizer of threads, of
    which a worker has one, an eighth of them does."""
    n = n // 8 if THREADS and n > 1000 else n
    lines = [f"%x0 : f16[{64 + seed},128] = input"]
    lines += [f"%x{i + 1} : f16[{64 + seed},128] = aten.exp.default(%x{i})" for i in range(n)]
    return ("\n".join(lines) + f"\nreturn %x{n}\n").encode()


def until(what, holds, seconds=60):
    """Waits until holds() is true; what it gave."""
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end:
        got = holds()
        if got:
            return got
        time.sleep(0.02)
    check(what, "did not happen", "to happen")


class Daemon:
    def __init__(self, *options, before=None, environment=None):
        """before: called in the new process, for limits."""
        self.log = tempfile.TemporaryFile()
        slow = [] if SLOW == 1 or {"--compile-seconds", "--config"} & set(options) else ["--compile-seconds", str(300 * SLOW)]
        self.process = subprocess.Popen([SWD, "--listen", "127.0.0.1:0", *slow, *options], stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, preexec_fn=before,
                                        env={**os.environ, **(environment or {})})
        self.port = int(re.search(r"port (\d+)", self.process.stdout.readline()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        words = self.words()
        for sign in ("Sanitizer", "runtime error"):
            check("log without " + sign, sign in words and words[-4000:], False)
        self.log.close()

    def words(self):
        """What it has written to standard error."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def connect(self, timeout=120 * SLOW, source=None):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout, source_address=source)

    def ask(self, method, path, body=None, **headers):
        """(status, headers, body)"""
        c = self.connect()
        try:
            c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        except (BrokenPipeError, ConnectionResetError):
            pass  # the answer came before all of the body was sent
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, r.headers, data

    def job(self, path, body, **headers):
        """Path of a new job."""
        status, head, data = self.ask("POST", path, body, Prefer="respond-async", **headers)
        check("accepted " + path, status, 202)
        return head["Location"]

    def state(self, job):
        return json.loads(self.ask("GET", job)[2])

    def wait(self, job, *states):
        """The job, once it is in one of the states."""
        def there():
            j = self.state(job)
            return j["state"] in states and j
        return until(f"{job} becomes {states}", there)

    def metric(self, name):
        text = self.ask("GET", "/metrics")[2].decode()
        return float(re.search(r"^stickwright_" + re.escape(name) + r" (\S+)$", text, re.M).group(1))

    def children(self):
        """Process ids of its workers."""
        path = f"/proc/{self.process.pid}/task"
        return [int(p) for t in os.listdir(path) for p in open(f"{path}/{t}/children").read().split()]

    def stop(self):
        """Exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30 * SLOW)
