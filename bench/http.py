"""Figures of the daemon, as docs/daemon.md quotes them: python3 bench/http.py [BUILD] (build/release). Needs wrk.

Load: 32 connections of wrk on this machine post one graph, whose result is in the store, for 20 seconds. Then two tests in
their long form: 100,000 repeats over a thousandth of which memory may grow by 2 MB, behind 200 different graphs at once; and 50 times
kill -9 under load. What else the machine does counts: the load of the last minute is printed too."""
import argparse, os, pathlib, re, subprocess, sys, tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("build", nargs="?", type=pathlib.Path, default=SOURCE / "build/release")
BUILD = arguments.parse_args().build.resolve()


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def load(seconds=20, connections=32):
    with tempfile.TemporaryDirectory() as t:
        daemon = subprocess.Popen([BUILD / "stickwrightd", "--listen", "127.0.0.1:0", "--store", t + "/s.db", "--log", t + "/log"],
                                  stdout=subprocess.PIPE, text=True)
        port = re.search(r"port (\d+)", daemon.stdout.readline()).group(1)
        wrk = lambda n: subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{n}s", "--latency", "-s", SOURCE / "bench/post.lua",
                                        f"http://127.0.0.1:{port}/compile"], capture_output=True, text=True, check=True).stdout
        wrk(1)  # the first request computes
        before = resident(daemon.pid)
        out = wrk(seconds)
        after = resident(daemon.pid)
        daemon.terminate()
        code = daemon.wait()
        found = {name: re.search(pattern, out) for name, pattern in (
            ("rate", r"Requests/sec:\s+(\S+)"), ("p99", r"99%\s+(\S+)"), ("n", r"(\d+) requests in"), ("errors", r"(Non-2xx.*|Socket errors.*)"))}
        get = lambda name: found[name].group(1) if found[name] else "none"
        print(f"{float(get('rate')):,.0f} requests a second, 99th percentile {get('p99')}, {int(get('n')):,} requests, errors: "
              f"{get('errors')}, resident {before:.0f} MB before and {after:.0f} MB behind, exit code {code}")


def test(name, **settings):
    env = {**os.environ, **settings, "SW_SOURCE": str(SOURCE), "SW": str(BUILD / "stickwright"), "SWD": str(BUILD / "stickwrightd")}
    run = subprocess.run([sys.executable, SOURCE / f"tests/http/test_{name}.py"], env=env, capture_output=True, text=True)
    print(*settings.items(), "passed:" if run.returncode == 0 else "FAILED:", run.stdout.strip())


print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
load()
test("load", SW_REPEATS="100000")
test("store", SW_KILLS="50")
