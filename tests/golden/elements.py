"""With objective elements profile best never converts more than profile torch-spyre, all counted that moves a stick or lays a
table out for a gather (objective.full_value; torch-spyre's own value leaves some of it out).

Over the recorded graphs in tests/data and the models of data/, and over all models and graphs of the corpus where it is there
(SW_SHARED, or the folder shared beside the source)."""
import concurrent.futures, json, lzma, os, pathlib, subprocess, sys, tempfile

SOURCE = pathlib.Path(os.environ["SW_SOURCE"])
SHARED = pathlib.Path(os.environ.get("SW_SHARED") or SOURCE.parent / "shared")
LARGE = 4 << 20  # bytes of a file that only bench/profiles.py --elements compiles

# What the record says of the same graph: copies that its objective leaves out. A clone of a transposed [128,256], and tables of
# 512 by 256, 128 by 256 and 128 by 256 for gathers, whose rows were not in front.
LEFT_OUT = {"033_tr_contiguous_clone": 32768, "129_ga_embedding_default_table": 131072, "131_ga_index_select": 32768,
            "132_ga_index_rows_exp": 32768}
# Best counts no conversion where the host cuts out a convolution's patches, as the reference does.
HOST_CONVOLUTION = ("133_cv_conv2d_1x1", "134_cv_conv2d_3x3", "135_cv_patch_embed")


def objective(path, profile):
    p = subprocess.run([os.environ["SW"], "compile", "--json", "--verify=never", "--objective", "elements", "--profile", profile, str(path)],
                       capture_output=True)
    r = json.loads(p.stdout)
    return r["objective"] if r["status"] in ("optimal", "feasible") else None


def judge(path, name):
    """("compared" or "refused", what is wrong)"""
    reference, best = objective(path, "torch-spyre"), objective(path, "best")
    if not reference or not best:
        return "refused", ["only torch-spyre accepts it"] if reference else []
    wrong = []
    if best["full_value"] > reference["full_value"]:
        wrong.append(f"best converts {best['full_value']} elements, torch-spyre {reference['full_value']}")
    if best["full_value"] != best["value"]:
        wrong.append(f"best leaves out {best['full_value'] - best['value']}")
    if name in LEFT_OUT and reference["full_value"] - reference["value"] != LEFT_OUT[name]:
        wrong.append(f"torch-spyre leaves out {reference['full_value'] - reference['value']}, expected {LEFT_OUT[name]}")
    if name in HOST_CONVOLUTION and (best["value"], best["plan_of"]) != (0, "torch-spyre"):
        wrong.append(f"{best['value']} elements, plan of {best['plan_of']}")
    return "compared", wrong


def main():
    todo, large = [], 0
    with tempfile.TemporaryDirectory() as t:
        for case in json.loads(lzma.decompress((SOURCE / "tests/data/recorded_graphs.json.xz").read_bytes())):
            path = pathlib.Path(t, case["case"] + ".graph")
            path.write_text(case["text"])
            todo.append((path, case["case"]))
        todo += [(f, f.name) for f in sorted((SOURCE / "data").rglob("*")) if f.suffix in (".pt2", ".graph")]
        for folder in ("models", "reference/graphs"):
            for f in sorted((SHARED / folder).rglob("*.pt2")):
                if f.stat().st_size > LARGE:
                    large += 1
                else:
                    todo.append((f, f.parent.name if f.name == "graph.pt2" else f.name))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            done = list(pool.map(lambda x: judge(*x), todo))
    wrong = [f"{name}: {w}" for (_, name), (_, found) in zip(todo, done) for w in found]
    print("\n".join(wrong))
    n = {k: sum(kind == k for kind, _ in done) for k in ("compared", "refused")}
    print(f"{n['compared']} compared, {n['refused']} refused by a profile, {large} too large" +
          ("" if SHARED.exists() else "; no corpus beside the source: its models and graphs are skipped"))
    sys.exit(len(wrong) > 0)


main()
