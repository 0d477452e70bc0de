"""POST /compile: the same bytes as the command line, results by address, and an error for each way to be wrong."""
import io, json, pathlib, subprocess, sys, tempfile, zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from daemon import GOOD, SLOW, SOURCE, SW, Daemon, chain, check, finish, problem

MODEL = SOURCE / "data/models/softmax_block.pt2"
ZIP = "application/zip"

with Daemon("--body-mb", "8") as d:
    model = MODEL.read_bytes()
    with tempfile.TemporaryDirectory() as t:
        subprocess.run([SW, "compile", str(MODEL), "-o", t + "/out"], check=True, capture_output=True)
        files = {str(p.relative_to(t + "/out")): p.read_bytes() for p in pathlib.Path(t, "out").rglob("*") if p.is_file()}

    status, headers, body = d.ask("POST", "/compile", model, Content_Type=ZIP)
    check("compile", status, 200)
    check("same bytes as the command line", body == files["result.json"], True)
    where, tag = headers["Location"], headers["ETag"]
    check("Server-Timing", "choose;dur=" in headers["Server-Timing"], True)

    status, headers, again = d.ask("POST", "/compile", model, Content_Type=ZIP)
    check("the same again", (status, again == body, headers["ETag"]), (200, True, tag))
    check("by address", d.ask("GET", where)[2] == body, True)
    check("not modified", d.ask("GET", where, If_None_Match=tag)[0], 304)
    check("for a year", d.ask("GET", where)[1]["Cache-Control"], "max-age=31536000, immutable")
    problem("no such file, whatever the client has", d.ask("GET", where + "/files/none", If_None_Match="*"), 404, "not-found")
    check("a file", d.ask("GET", where + "/files/manifest.json")[2] == files["manifest.json"], True)
    status, headers, body = d.ask("GET", where + ".zip")
    with zipfile.ZipFile(io.BytesIO(body)) as z:
        for name, data in files.items():
            if name != "stats.json":
                check("in the zip: " + name, z.read(name) == data, True)
        check("files of the zip", sorted(z.namelist()), sorted(files))
        check("they are deflated", {i.compress_type for i in z.infolist()}, {zipfile.ZIP_DEFLATED})
    status, headers, body = d.ask("POST", "/compile", model, Content_Type=ZIP, Accept=ZIP)
    check("zip on demand", (status, headers["Content-Type"], zipfile.is_zipfile(io.BytesIO(body))), (200, ZIP, True))
    status, _, body = d.ask("POST", "/compile?profile=torch-spyre&solver=greedy", GOOD, Content_Type="text/plain")
    check("text graph and options", (status, json.loads(body)["options"]["solver"]), (200, "greedy"))

    check("version", json.loads(d.ask("GET", "/version")[2])["name"], "stickwright")
    check("health", d.ask("GET", "/healthz")[2], b"ok\n")

    problem("no path", d.ask("GET", "/nothing"), 404, "not-found")
    problem("no result", d.ask("GET", "/results/" + 64 * "0"), 404, "not-found")
    problem("climbing path", d.ask("GET", where + "/files/../../etc/passwd"), 404, "not-found")
    check("allow", d.ask("GET", "/compile")[1]["Allow"], "POST")
    problem("method", d.ask("GET", "/compile"), 405, "method")
    problem("media type", d.ask("POST", "/compile", model, Content_Type="image/png"), 415, "media-type")
    problem("option", d.ask("POST", "/compile?solver=magic", model, Content_Type=ZIP), 400, "usage")
    problem("unknown option", d.ask("POST", "/compile?colour=red", model, Content_Type=ZIP), 400, "usage")
    problem("no body", d.ask("POST", "/compile"), 400, "usage")
    problem("host", d.ask("GET", "/healthz", Host="evil.example"), 421, "host")

    c = d.connect(timeout=20 * SLOW)
    c.putrequest("POST", "/compile")
    c.putheader("Content-Type", ZIP)
    c.putheader("Content-Length", str(9 << 20))
    c.endheaders()
    check("too large, said before the body came", c.getresponse().status, 413)
    c.close()

    text = {"Content_Type": "text/plain"}
    problem("truncated zip", d.ask("POST", "/compile", model[:3000], Content_Type=ZIP), 422, "bad-input")
    problem("deep JSON", d.ask("POST", "/compile", b'{"a":' + 10000 * b"[" + 10000 * b"]" + b"}",
                               Content_Type="application/json"), 413, "limit")
    doc = problem("unknown ops", d.ask("POST", "/compile", b"%a : f16[64,64] = input\n%b : f16[64,64] = my.op.default(%a)\n"
                                       b"%c : f16[64,64] = my.other.default(%b)\nreturn %c\n", **text), 422, "unsupported")
    check("every unknown op is named", sorted(e["node"] for e in doc["errors"]), ["b", "c"])
    for name in "n" * 30000, "\u00fc" * 15000:
        body = "%a : f16[64] = input\n" + "".join(f"%{name}{i} : f16[64] = my.op{i}.default(%a)\n" for i in range(200))
        body += "return " + ", ".join(f"%{name}{i}" for i in range(5)) + "\n"
        status, _, data = d.ask("POST", "/compile", body.encode(), **text)
        check("names of 30 kB", (status, len(data) < 4 << 20, len(json.loads(data)["errors"]) > 0), (422, True, True))
    problem("cycle", d.ask("POST", "/compile", b"%a : f16[64] = aten.exp.default(%b)\n%b : f16[64] = aten.exp.default(%a)\n"
                           b"return %b\n", **text), 422, "bad-input")
    problem("overflow", d.ask("POST", "/compile", b"%a : f16[4611686018427387904,4611686018427387904] = input\n"
                              b"return %a\n", **text), 422, "bad-input")
    check("alive after all that", d.ask("GET", "/healthz")[0], 200)
    large = d.ask("POST", "/compile?verify=never", chain(400), **text)[1]["Location"]
    with zipfile.ZipFile(io.BytesIO(d.ask("GET", large + ".zip")[2])) as z:
        check("files of more than 8 MB are stored", (sum(i.file_size for i in z.infolist()) > 8 << 20, {i.compress_type for i in z.infolist()}),
              (True, {zipfile.ZIP_STORED}))
        check("and whole", (z.testzip(), z.read("result.json") == d.ask("GET", large)[2]), (None, True))
    check("exit code after SIGTERM", d.stop(), 0)

finish()
