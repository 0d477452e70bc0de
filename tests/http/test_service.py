"""As a service: a socket that somebody else opened, telling a supervisor, SIGHUP, and SIGTERM while work is in progress."""
import json, os, pathlib, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SLOW, SOURCE, SWD, TEXT, Daemon, chain, check, finish, problem, until

# What systemd does: descriptor 3 is the socket, LISTEN_PID is the process that becomes the daemon.
LAUNCH = """import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])"""


class Passed(Daemon):
    """A daemon on a socket of ours."""
    def __init__(self, listening, *options, n="1", **env):
        self.log = tempfile.TemporaryFile()
        self.port = listening.getsockname()[1]
        self.process = subprocess.Popen([sys.executable, "-c", LAUNCH, str(listening.fileno()), n, SWD, *options],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True, env=dict(os.environ, **env),
                                        pass_fds=[listening.fileno()])
        self.line = self.process.stdout.readline()


def heard(s):
    """The next state that the supervisor was told, but for signs of life."""
    while True:
        text = s.recv(4096).decode()
        if text != "WATCHDOG=1":
            return text


with socket.socket() as listening, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    supervisor.bind("\0stickwright-test-%d" % os.getpid())
    supervisor.settimeout(30 * SLOW)
    notify = "@stickwright-test-%d" % os.getpid()
    with Passed(listening, NOTIFY_SOCKET=notify, WATCHDOG_USEC="600000") as d:
        check("it says where it listens", d.line, f"stickwrightd listens on port {d.port}\n")
        check("ready", heard(supervisor), "READY=1")
        check("it answers there", d.ask("POST", "/compile", GOOD, **TEXT)[0], 200)
        check("on loopback", d.ask("GET", "/healthz", Host="evil.example")[0], 421)
        check("signs of life", [supervisor.recv(99) for _ in range(3)], [b"WATCHDOG=1"] * 3)
        busy = threading.Thread(target=lambda: d.ask("POST", "/compile", chain(2000), **TEXT))
        busy.start()
        (worker,) = until("a worker runs", d.children)
        environment = pathlib.Path(f"/proc/{worker}/environ").read_text()
        check("workers know nothing of it", re.findall("LISTEN_|NOTIFY_|WATCHDOG_", environment), [])
        busy.join()
        d.process.send_signal(signal.SIGHUP)
        check("reloading", (heard(supervisor), heard(supervisor)), ("RELOADING=1", "READY=1"))
        d.process.send_signal(signal.SIGTERM)
        check("stopping", heard(supervisor), "STOPPING=1\nSTATUS=Draining")
        check("exit code", d.process.wait(30 * SLOW), 0)
    # who connects between two daemons waits for the second
    between = socket.create_connection(listening.getsockname())
    between.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    with Passed(listening) as d:
        between.settimeout(30 * SLOW)
        check("the next daemon answers", between.recv(15), b"HTTP/1.1 200 OK")
        between.close()
        check("exit code", d.stop(), 0)
    for what, n, passed in (("two sockets", "2", listening), ("no stream", "1", supervisor), ("none that listens", "1", socket.socket())):
        run = subprocess.run([sys.executable, "-c", LAUNCH, str(passed.fileno()), n, SWD], capture_output=True, text=True,
                             timeout=60 * SLOW, pass_fds=[passed.fileno()])
        check(what, (run.returncode, "one listening TCP socket expected" in run.stderr), (74, True))
    run = subprocess.Popen([SWD, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                           env=dict(os.environ, LISTEN_PID="1", LISTEN_FDS="1"))
    check("a socket for another process", "port" in run.stdout.readline(), True)
    run.terminate()
    check("exit code", run.wait(30 * SLOW), 0)
    run.stdout.close()

with tempfile.TemporaryDirectory() as t:
    # SIGHUP: token, log and limits
    t = pathlib.Path(t)
    config, token, log = t / "config", t / "token", t / "log"
    token.write_text("the-first-token-of-all\n")
    config.write_text(f"# limits\nbody-mb = 1\n\n  compile_seconds={20 * SLOW}\ntoken-file = {token}\nqueue = 7\nlog = {log}\n")
    with Daemon("--config", str(config), "--queue", "9") as d:
        def ask(secret, body=GOOD, **headers):
            return d.ask("POST", "/compile", body, Authorization="Bearer " + secret, **TEXT)
        def reloads():
            return (t / "log").read_text().count('"reload"') if (t / "log").exists() else 0
        def reload():
            n = reloads()
            d.process.send_signal(signal.SIGHUP)
            until("it has read them", lambda: reloads() > n)
        check("the first token", ask("the-first-token-of-all")[0], 200)
        large = b"#" * (1 << 20) + b"\n" + GOOD
        c = d.connect()
        c.putrequest("POST", "/compile")
        for name, value in (("Authorization", "Bearer the-first-token-of-all"), ("Content-Length", str(len(large)))):
            c.putheader(name, value)
        c.endheaders()
        check("a body over the limit", c.getresponse().status, 413)
        c.close()
        token.write_text("the-second-token-of-all\n")
        config.write_text(config.read_text().replace("body-mb = 1", "body-mb = 2"))
        log.rename(t / "old")
        reload()
        check("the old token is no more", ask("the-first-token-of-all")[0], 401)
        check("the new one is", ask("the-second-token-of-all")[0], 200)
        check("the new limit", ask("the-second-token-of-all", large)[0], 200)
        check("the old log has the old lines, the new one the new", [s in (t / name).read_text() for name in ("old", "log")
              for s in ('"status":413', '"status":401')], [True, False, False, True])
        for text in ("body-mb = 1\nbody-mb\n", "body-mb = 1\ncolour = red\n", "body-mb = none\n", f"body-mb = 1\ntoken-file = {t}/none\n"):
            config.write_text(f"log = {log}\n" + text)
            reload()
            check(f"a file with {text!r} changes nothing", (ask("the-second-token-of-all", large)[0], ask("")[0]), (200, 401))
        check("and it says so", log.read_text().count("the old settings hold"), 4)
        config.unlink()
        reload()
        check("nor does none", ask("the-second-token-of-all", large)[0], 200)
        check("exit code", d.stop(), 0)
    for text, code in (("workers = 0", 64), ("workers", 64), ("no = 1", 64), ("listen = nowhere", 74)):
        config.write_text(text + "\n")
        run = subprocess.run([SWD, "--config", str(config)], capture_output=True, timeout=60 * SLOW)
        check("a config file with " + text, run.returncode, code)
    check("no config file", subprocess.run([SWD, "--config", str(t / "none")], capture_output=True, timeout=60 * SLOW).returncode, 66)

# SIGTERM: who waits is answered, who comes is told, and it does not take for ever
with Daemon("--workers", "1", "--drain-seconds", str(600 * SLOW)) as d:
    kept = d.connect()
    kept.request("POST", "/compile", GOOD, {"Content-Type": "text/plain"})
    check("a result", kept.getresponse().read()[:1], b"{")
    answers = []
    for n in (1, 2):
        threading.Thread(target=lambda n=n: answers.append(d.ask("POST", f"/compile?cores={n}", chain(6000), **TEXT)[0])).start()
    until("one runs, one waits", lambda: (d.metric("queue_running"), d.metric("queue_waiting")) == (1, 1))
    (worker,) = until("its worker", d.children)
    os.kill(worker, signal.SIGSTOP)  # until all was asked
    d.process.send_signal(signal.SIGTERM)
    def refused():
        try:
            socket.create_connection(("127.0.0.1", d.port), timeout=5).close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:  # just as the socket is closed, with this connection in its queue
            return False
    until("no new connections", refused)
    kept.request("GET", "/readyz")
    r = kept.getresponse()
    check("not ready, and the connection ends", (r.status, r.headers["Connection"], r.read() != b""), (503, "close", True))
    os.kill(worker, signal.SIGCONT)
    check("exit code", d.process.wait(600 * SLOW), 0)
    check("both were answered", until("answers", lambda: len(answers) == 2 and answers), [200, 200])
with Daemon("--workers", "1", "--drain-seconds", str(600 * SLOW)) as d:
    d.wait(d.job("/compile", chain(30000), **TEXT), "running")
    d.process.send_signal(signal.SIGTERM)
    until("no new connections", refused)
    start = time.monotonic()
    d.process.send_signal(signal.SIGTERM)
    check("a second signal ends the patience", (d.process.wait(30 * SLOW), time.monotonic() - start < 15 * SLOW), (0, True))

analyze = shutil.which("systemd-analyze")
if analyze:
    with tempfile.TemporaryDirectory() as t:
        text = (SOURCE / "packaging/stickwrightd.service.in").read_text()
        pathlib.Path(t, "stickwrightd.service").write_text(text.replace("@CMAKE_INSTALL_FULL_BINDIR@/stickwrightd", str(pathlib.Path(SWD).absolute())))
        pathlib.Path(t, "stickwrightd.socket").write_text((SOURCE / "packaging/stickwrightd.socket").read_text())
        run = subprocess.run([analyze, "verify", "--man=no", t + "/stickwrightd.service", t + "/stickwrightd.socket"], capture_output=True, text=True)
        check("the units", [line for line in run.stderr.splitlines() if "stickwright" in line], [])
else:
    print("systemd-analyze is not installed: the units were not looked at")
finish()
