#!/usr/bin/env python3
"""What profile best must do better than the reference compiler on its own recorded graphs: one copy for several readers, clones that
move sticks avoided, weights and tables laid out at load, and a plan for every graph that the reference refuses although the card can
run it. Graphs and refusals: graphs.md 7.4 and 7.6. Every program is executed against the graph's meaning where it is small.

  gains.py [--update]

tests/data/refused_graphs.json has the graphs in text form that the reference refused, from the reference data in $SW_SHARED."""
import json, lzma, os, pathlib, subprocess, sys, tempfile

SW, SOURCE = os.environ["SW"], pathlib.Path(os.environ["SW_SOURCE"])
SHARED = pathlib.Path(os.environ.get("SW_SHARED") or SOURCE.parent / "shared")
DATA = SOURCE / "tests/data/refused_graphs.json"

# case: moves of a stick that are left, elements that they read; the reference's own number of conversions and moving clones
RECORDED = {
    "022_tr_shared_reader": (1, 32768),    # 3 readers of a[128,256].t(), 3 conversions there
    "045_mm_t_qkv_shared": (1, 32768),     # 3 products of one transposed operand, 3 there
    "166_tr_fanout8": (1, 32768),          # 8 readers, 8 there
    "062_softmax_t_input": (0, 0),         # the softmax runs on the transposed lanes; a clone moves them there
    "084_vw_t_contig": (0, 0),             # row major for the caller; on the card the lanes stay where they are
    "160_attn_flash_2": (2, 16384),        # each chunk of 64 keys of 2 heads of 64 once; 5 conversions and 4 clones there
    "161_attn_flash_4": (4, 32768),
    "162_attn_flash_8": (8, 65536),
    "024_tr_chain": (2, 65536),            # nothing to gain: the reference's optimum
    "130_ga_embedding_module": (0, 0),     # its table lies with the rows in front; 1 copy on every run there
}
# The same with the weight or table a parameter: the loader does it.
AT_LOAD = {"052_linear_relu_default_weight": "args_1", "129_ga_embedding_default_table": "args_1", "037_mm_nt": "args_1"}

# Refused there, and why; here there is a plan.
SOLVABLE = {
    "032_tr_fp32_rejected": "no op moves float32 sticks: the input is laid out twice",
    "073_var_mean": "lowering",
    "087_vw_split_below_stick": "no representable stick: a copy through another one",
    "088_vw_flatten": "a view of lower rank in a sum",
    "095_vw_squeeze": "the same",
    "098_vw_cat_unaligned": "pieces inside a stick",
    "101_vw_pad": "the same",
    "104_vw_rotate_half_64": "halves of a stick",
    "125_mod_llama_block_headdim64": "the same in a block",
    "126_mod_llama_block_headdim64_decode": "the same",
    "127_mod_moe_einsum": "lowering",
    "128_mod_moe_matmul": "lowering",
    "136_cv_avgpool": "a window along the stick",
    "145_hf_arange_compare": "an integer compare: folded",
    "159_attn_chunked_slice_t": "a slice of a transposed operand: the slice is copied first",
    "178_hf_cpu_scalar": "a number from the host",
    "197_wm_hf_llama2": "lanes in two orders meet",
    "198_wm_hf_bert2": "position ids would be converted",
}
# True limits of the card: refused here too, with the reason.
LIMITS = {"054_mm_fp32": "no batchmatmul on float32", "190_rej_7d": "7 dims", "193_rej_int_matmul": "no batchmatmul on int64"}


def compiled(text, t):
    (t / "g.graph").write_text(text)
    p = subprocess.run([SW, "compile", t / "g.graph", "--json", "--objective=elements"], capture_output=True)
    return json.loads(p.stdout)


def unsound(r):
    """What is wrong with a plan whatever it costs."""
    if r["status"] not in ("optimal", "feasible"):
        return f"{r['status']}: {[f['detail'] for f in r['faults']][:1]}"
    return "" if r["verify"]["outcome"] in ("agrees", "not executed") else f"verify: {r['verify']}"


def moves(r):
    return sum(o["device_op"] == "ReStickifyOpHBM" for o in r["ops"]), r["objective"]["full_value"]


def update():
    """Text forms of what the reference refused."""
    out = {}
    for case in [*SOLVABLE, *LIMITS]:
        p = subprocess.run([SW, "compile", SHARED / "reference/graphs" / case / "graph.pt2", "-o", "/dev/null/none", "--dump-after=read"],
                           capture_output=True)
        out[case] = p.stdout.decode()
    DATA.write_text(json.dumps(out, indent=0) + "\n")
    print(f"{len(out)} graphs, {DATA.stat().st_size} bytes")


def main():
    if "--update" in sys.argv:
        return update()
    recorded = {c["case"]: c["text"] for c in json.loads(lzma.decompress((SOURCE / "tests/data/recorded_graphs.json.xz").read_bytes()))}
    refused, wrong = json.loads(DATA.read_text()), []
    with tempfile.TemporaryDirectory() as d:
        t = pathlib.Path(d)
        for case, want in RECORDED.items():
            r = compiled(recorded[case], t)
            why = unsound(r) or (f"{moves(r)} moves and elements, expected {want}" if moves(r) != want else "")
            wrong += [f"{case}: {why}"] if why else []
        for case, weight in AT_LOAD.items():
            lines = recorded[case].splitlines()
            text = "\n".join(f'{line.split("=")[0]}= parameter("w")' if line.startswith(f"%{weight} :") else line for line in lines) + "\n"
            r = compiled(text, t)
            copies = [o["name"] for o in r["ops"] if o["name"].startswith(("relayout", "restickify"))]
            why = unsound(r) or (f"{moves(r)[1]} elements, copies {copies}" if copies or moves(r)[1] > 1 else "")
            wrong += [f"{case}, {weight} a parameter: {why}"] if why else []
        for case, why in SOLVABLE.items():
            r = compiled(refused[case], t)
            wrong += [f"{case} ({why}): {unsound(r)}"] if unsound(r) else []
        for case, reason in LIMITS.items():
            r = compiled(refused[case], t)
            if r["status"] != "unsupported" or reason not in str(r["faults"]):
                wrong.append(f"{case}: {r['status']}, {[f['detail'] for f in r['faults']]}; expected {reason}")
    print("\n".join(wrong) or f"{len(RECORDED) + len(AT_LOAD)} gains and {len(SOLVABLE)} graphs that the reference refuses; {len(LIMITS)} limits")
    sys.exit(len(wrong) > 0)


main()
