"""POST /solve, /place, /compare and GET /ops: the bytes of the command line; HEAD is GET without the body."""
import gzip, json, pathlib, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SOURCE, SW, TEXT, Daemon, check, finish, problem

JSON = {"Content_Type": "application/json"}
PLACE = json.dumps({"format": "stickwright.place/1", "capacity": 10, "alignment": 1, "buffers": [
    {"name": "u", "size": 6, "start": 0, "end": 2, "value": 7}, {"name": "v", "size": 5, "start": 0, "end": 3, "value": 4},
    {"name": "w", "size": 5, "start": 1, "end": 3, "value": 4}]}).encode()  # at tick 1 only v and w fit: 8 beats u's 7
CSV = b"id,lower,upper,size\na,0,2,4\nb,1,3,4\n"


def command(*args, **files):
    """Output of the command line on files of these contents."""
    with tempfile.TemporaryDirectory() as t:
        for name, data in files.items():
            pathlib.Path(t, name.replace("_", ".")).write_bytes(data)
        return subprocess.run([pathlib.Path(SW).absolute(), *args], cwd=t, capture_output=True).stdout


with Daemon() as d:
    p = gzip.decompress((SOURCE / "tests/golden/assign/f1-decoder-n12-s1.json.gz").read_bytes())
    for query, flags in (("", ()), ("?solver=greedy", ("--solver", "greedy")), ("?mode=shared", ("--mode", "shared")),
                         ("?solver=beam&beam-width=2&budget=1000", ("--solver", "beam", "--beam-width", "2", "--budget", "1000"))):
        status, _, body = d.ask("POST", "/solve" + query, p, **JSON)
        check("solve" + query, (status, body), (200, command("solve", "p.json", "--json", *flags, p_json=p)))
    no = json.dumps({"format": "stickwright.assign/1", "variables": [{"name": "a", "labels": ["k"]}, {"name": "b", "labels": ["k"]}],
                     "edges": [[0, 1, [["inf"]]]]}).encode()
    status, _, body = d.ask("POST", "/solve", no, **JSON)
    check("what can't be met is an answer", (status, json.loads(body)["status"], body),
          (200, "infeasible", command("solve", "p.json", "--json", p_json=no)))
    problem("solve what is no problem", d.ask("POST", "/solve", b'{"format":"x"}', **JSON), 422, "bad-input")
    problem("solve with a mode that is none", d.ask("POST", "/solve?mode=x", p, **JSON), 400, "usage")
    problem("solve has no cores", d.ask("POST", "/solve?cores=3", p, **JSON), 400, "usage")
    problem("solve a text", d.ask("POST", "/solve", p, **TEXT), 415, "media-type")

    for query, flags in (("", ()), ("?placer=greedy", ("--placer", "greedy")), ("?capacity=5", ("--capacity", "5"))):
        status, _, body = d.ask("POST", "/place" + query, PLACE, **JSON)
        check("place" + query, (status, body), (200, command("place", "p.json", "--json", *flags, p_json=PLACE)))
    check("place, by hand", json.loads(d.ask("POST", "/place", PLACE, **JSON)[2])["value"], 8)
    status, _, body = d.ask("POST", "/place?capacity=8&name=p.csv", CSV, Content_Type="text/csv")
    check("place a CSV", (status, body), (200, command("place", "p.csv", "--json", "--capacity", "8", p_csv=CSV)))
    problem("place with a placer that is none", d.ask("POST", "/place?placer=best", PLACE, **JSON), 400, "usage")
    problem("place with a capacity that is none", d.ask("POST", "/place?capacity=-1", PLACE, **JSON), 400, "usage")

    status, _, body = d.ask("POST", "/compare?name=g.txt", GOOD, **TEXT)
    check("compare", (status, body), (200, command("compare", "g.txt", "--json", g_txt=GOOD)))
    status, _, body = d.ask("POST", "/compare?name=g.txt&profile=best&solver=beam,greedy&cores=8", GOOD, **TEXT)
    check("compare some", (status, body),
          (200, command("compare", "g.txt", "--json", "--profile", "best", "--solver", "beam,greedy", "--cores", "8", g_txt=GOOD)))
    check("compare takes a program's name", d.ask("POST", "/compare?program=model&solver=beam", GOOD, **TEXT)[0], 200)
    problem("compare with a solver that is none", d.ask("POST", "/compare?solver=ilp,x", GOOD, **TEXT), 400, "usage")

    check("ops", d.ask("GET", "/ops")[2], command("ops", "--json"))
    for path in ("/ops", "/version", "/healthz", "/readyz", "/openapi.yaml", "/nothing"):
        get, head = d.ask("GET", path), d.ask("HEAD", path)
        check("HEAD " + path, (head[0], head[1]["Content-Length"], head[2]), (get[0], get[1]["Content-Length"], b""))
    where = d.ask("POST", "/compile", GOOD, **TEXT)[1]["Location"]
    for path in (where, where + ".zip", where + "/files/manifest.json"):
        get, head = d.ask("GET", path), d.ask("HEAD", path)
        check("HEAD of a result", (head[0], head[1]["ETag"], head[1]["Content-Length"], head[2]),
              (200, get[1]["ETag"], get[1]["Content-Length"], b""))
    check("HEAD of work", (d.ask("HEAD", "/compile")[0], d.ask("HEAD", "/compile")[1]["Allow"]), (405, "POST"))
    check("exit code", d.stop(), 0)

finish()
