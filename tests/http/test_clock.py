"""The wall clock jumps, years ahead and back, while the daemon works: nothing times out, nothing is lost. Needs libfaketime."""
import glob, pathlib, sys, tempfile
from email.utils import parsedate_to_datetime

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SANITIZED, TEXT, Daemon, chain, check, finish

LIBRARY = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
if not LIBRARY or SANITIZED:
    print("skipped: no libfaketime" if not LIBRARY else "skipped: a sanitizer wants to be loaded first")
    sys.exit(0)

with tempfile.TemporaryDirectory() as t:
    clock, store = pathlib.Path(t, "clock"), t + "/store.db"
    clock.write_text("+0\n")
    faked = {"LD_PRELOAD": LIBRARY[0], "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1"}
    with Daemon("--store", store, environment=faked) as d:
        first = d.ask("POST", "/compile", GOOD, **TEXT)
        check("before", first[0], 200)
        for n, jump in enumerate(("+10y", "-20y", "+1d", "+0")):
            job = d.job("/compile?deadline=60", chain(6000, seed=n), **TEXT)
            clock.write_text(jump + "\n")
            again = d.ask("POST", "/compile", GOOD, **TEXT)
            years = (parsedate_to_datetime(again[1]["Date"]) - parsedate_to_datetime(first[1]["Date"])).days / 365.25
            check(f"the clock did jump, {jump}", round(years), {"+10y": 10, "-20y": -20}.get(jump, 0))
            check(f"kept, {jump}", (again[0], again[2], d.metric("cache_misses_total")), (200, first[2], 2 + 2 * n))
            fresh = d.ask("POST", f"/compile?cores={n + 1}", GOOD, **TEXT)
            check(f"computed, {jump}", fresh[0], 200)
            ended = d.wait(job, "done", "failed")
            check(f"a job across the jump {jump}", ended["state"], "done")
            check(f"no time runs backwards, {jump}", all(v >= 0 for k, v in ended.items() if isinstance(v, float)), True)
        check("exit code", d.stop(), 0)
    with Daemon("--store", store) as d:
        again = d.ask("POST", "/compile", GOOD, **TEXT)
        check("after a restart with the right clock", (again[0], again[2], d.metric("cache_misses_total")), (200, first[2], 0))
        check("nothing damaged", d.metric("store_damaged_total"), 0)
finish()
