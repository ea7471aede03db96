#!/usr/bin/env python3
"""Products outside of loops, before and behind loops of products (backend/README.md, Products outside of loops): on the emulation every program
below gives the interpreter's bits, with every choice that --plan can force and whatever the order of threads and copies; and its PTX has what the
plan promises.

Skipped without the GPU part or a processor that runs its code. With ptxas (TILEVM_PTXAS or PATH), no register is spilled and no product
serialised. Environment: TILEVM, SOURCE_DIR, TILEVM_PTXAS."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from _gpu_kit import forced, run_cases, tilevm  # noqa: E402

ORDERS = [("early", 1), ("late", 2), ("random", 3), ("random", 4)]


def program(parts, *, element="f16", tiles=(128, 128, 64), inner=128, columns=None, maps="", loop=False, guard=False):
    """Of arrays A to E, C = what `parts` say, one after the other; %v is the tile at hand, of tiles[0] rows and %v's columns.
    "loop": %v = A B, K in steps of tiles[2]; "plus": %v = A B + %v. "by d", "by e": %v = f16(%v) X for the tile of X, whose rows are %v's columns, and
    which has `columns` columns (or as many as rows). "own": %v = A D + %v for the first tiles of both, `inner` long. "relu", "tanh". "keep", later "add
    kept": the tile at hand is added there once more. `maps`: letters of arrays
    that are stored transposed. `loop`: blocks loop over tiles of a row. `guard`: what follows the loop stands in an `if`."""
    tm, tn, tk = tiles
    text, names, views = "", [], []
    shape = {"a": (tm, tk), "b": (tk, tn), "d": (tn, columns or tn), "e": (columns or tn, columns or tn)}
    if "own" in parts:
        shape["a"], shape["d"] = (tm, inner), (inner, tn)
    wide = columns if columns and any(p.startswith("by") for p in parts) else tn
    shape["c"] = (tm, wide)
    for x in "abdec":
        text += f"!{x} = !cuda_tile.tensor_view<?x?x{element}, strides=[?,1]>\n"
        text += f"!{x}t = !cuda_tile.partition_view<tile=({shape[x][0]}x{shape[x][1]}), {'' if x == 'c' else 'padding_value = zero, '}!{x}{', dim_map = [1, 0]' if x in maps else ''}>\n"
        if x == "a" and "own" in parts:
            text += f"!ak = !cuda_tile.partition_view<tile=({tm}x{tk}), padding_value = zero, !a>\n"
        names.append(f"%{x}: tile<ptr<{element}>>, %{x}n0: tile<i32>, %{x}n1: tile<i32>, %{x}s0: tile<i32>, %{x}s1: tile<i32>")
        views.append(f"    %v{x} = make_tensor_view %{x}, shape = [%{x}n0, %{x}n1], strides = [%{x}s0, 1] : tile<i32> -> !{x}\n    %p{x} = make_partition_view %v{x} : !{x}t\n")
    ak = "ak" if "own" in parts else "at"
    text += f"cuda_tile.module @m {{\n  entry @k({', '.join(names)}) {{\n" + "".join(views)
    if "own" in parts:
        text += "    %pk = make_partition_view %va : !ak\n"
    pk = "%pk" if "own" in parts else "%pa"
    text += f"""    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %nothing = constant <f32: 0.0> : tile<{tm}x{tn}xf32>
    %x, %y0, %z = get_tile_block_id : tile<i32>
    %blocks:3 = get_num_tile_blocks : tile<i32>
    %steps:2 = get_index_space_shape {pk} : !{ak} -> tile<i32>
    %across:2 = get_index_space_shape %pc : !ct -> tile<i32>
    %start = make_token : token
"""
    y, order = ("%y", " token = %before") if loop else ("%y0", "")
    if loop:
        text += "    %end = for %y in (%y0 to %across#1, step %blocks#1) : tile<i32> iter_values(%before = %start) -> (token) {\n"
    value, width, n, guarded = "%nothing", tn, 0, False
    for part in parts:
        n += 1
        t = f"tile<{tm}x{width}xf32>"
        if part in ("loop", "plus"):
            text += f"""    %v{n} = for %k in (%zero to %steps#1, step %one) : tile<i32> iter_values(%sum{n} = {value}) -> ({t}) {{
      %a{n}, %ta{n} = load_view_tko weak {pk}[%x, %k] : !{ak}, tile<i32> -> tile<{tm}x{tk}x{element}>, token
      %b{n}, %tb{n} = load_view_tko weak %pb[%k, {y}] : !bt, tile<i32> -> tile<{tk}x{tn}x{element}>, token
      %n{n} = mmaf %a{n}, %b{n}, %sum{n} : tile<{tm}x{tk}x{element}>, tile<{tk}x{tn}x{element}>, {t}
      continue %n{n} : {t}
    }}
"""
            if guard and not guarded:
                text += f"    %some = cmpi less_than %x, %y0, signed : tile<i32> -> tile<i1>\n    if %some {{\n"
                guarded = True
        elif part == "own":
            text += f"""    %a{n}, %ta{n} = load_view_tko weak %pa[%x, %zero] : !at, tile<i32> -> tile<{tm}x{inner}x{element}>, token
    %d{n}, %td{n} = load_view_tko weak %pd[%zero, {y}] : !dt, tile<i32> -> tile<{inner}x{tn}x{element}>, token
    %v{n} = mmaf %a{n}, %d{n}, {value} : tile<{tm}x{inner}x{element}>, tile<{inner}x{tn}x{element}>, {t}
"""
        elif part == "relu":
            text += f"    %v{n} = maxf {value}, %nothing : {t}\n"
        elif part == "tanh":
            text += f"    %v{n} = tanh {value} : {t}\n"
        elif part == "keep":
            kept = value
            n -= 1
        elif part == "add kept":
            text += f"    %v{n} = addf {value}, {kept} : {t}\n"
        else:
            x = part[-1]
            rows, width = shape[x]
            text += f"""    %h{n} = ftof {value} : {t} -> tile<{tm}x{rows}x{element}>
    %d{n}, %td{n} = load_view_tko weak %p{x}[%zero, %zero] : !{x}t, tile<i32> -> tile<{rows}x{width}x{element}>, token
    %empty{n} = constant <f32: 0.0> : tile<{tm}x{width}xf32>
    %v{n} = mmaf %h{n}, %d{n}, %empty{n} : tile<{tm}x{rows}x{element}>, tile<{rows}x{width}x{element}>, tile<{tm}x{width}xf32>
"""
        value = f"%v{n}"
    text += f"    %cast = ftof {value} : tile<{tm}x{width}xf32> -> tile<{tm}x{width}x{element}>\n"
    text += f"    %stored = store_view_tko weak %cast, %pc[%x, {y}]{order} : tile<{tm}x{width}x{element}>, !ct, tile<i32> -> token\n"
    if guarded:
        text += "    }\n"
    if loop:
        text += "    continue %stored : token\n    }\n"
    return text + "    return\n  }\n}\n"


USUAL = ["grid=program", "alternate=off", "roles=off", "stages=2", "single=off", "tma=off", "store=direct"]
SOME = ["grid=program", "roles=off"]
# Name: text, extents of A, B, C, D, E as stored, choices, what remarks say of the products outside of loops.
REGISTERS = "with the left operand in registers from {} stage"
CASES = {
    "behind": (program(["loop", "by d"]), [(136, 72), (72, 264), (128, 128), (8, 8), (136, 384)], USUAL, [REGISTERS.format(1)]),
    "behind, ragged": (program(["loop", "by d"]), [(200, 136), (136, 520), (120, 104), (8, 8), (200, 424)], SOME, [REGISTERS.format(1)]),
    "bf16, relu": (program(["loop", "relu", "by d"], element="bf16"), [(136, 72), (72, 264), (128, 128), (8, 8), (136, 384)], SOME, [REGISTERS.format(1)]),
    "D stored transposed": (program(["loop", "by d"], maps="d"), [(136, 72), (72, 264), (128, 128), (8, 8), (136, 384)], SOME + ["stages=2"], [REGISTERS.format(1)]),
    "narrow D": (program(["loop", "by d"], columns=64), [(136, 72), (72, 264), (128, 64), (8, 8), (136, 192)], SOME + ["alternate=off", "stages=2"], [REGISTERS.format(1)]),
    "D in pieces": (program(["loop", "by d"], tiles=(128, 128, 32)), [(136, 72), (72, 264), (128, 128), (8, 8), (136, 384)], SOME, [REGISTERS.format(2)]),
    "D in pieces, transposed": (program(["loop", "by d"], tiles=(128, 128, 16), maps="d"), [(136, 72), (72, 264), (128, 128), (8, 8), (136, 384)], SOME, [REGISTERS.format(2)]),
    "D of 256 rows": (program(["loop", "by d"], tiles=(128, 256, 32), columns=64), [(136, 72), (72, 520), (256, 64), (8, 8), (136, 192)], SOME + ["stages=2"], [REGISTERS.format(2)]),
    "64 rows": (program(["loop", "by d"], tiles=(64, 128, 64)), [(136, 72), (72, 264), (128, 128), (8, 8), (136, 384)], SOME, [REGISTERS.format(2)]),
    "three products": (program(["loop", "by d", "relu", "by e"]), [(136, 72), (72, 264), (128, 128), (128, 128), (136, 384)], USUAL, [REGISTERS.format(1)] * 2),
    "four products": (program(["loop", "by d", "by e", "by d"]), [(136, 72), (72, 136), (128, 128), (128, 128), (136, 256)], SOME, [REGISTERS.format(1)] * 3),
    "a tile is kept": (program(["loop", "keep", "by d", "add kept"]), [(136, 72), (72, 264), (128, 128), (8, 8), (136, 264)], SOME, [REGISTERS.format(1)]),
    "tiles are kept": (program(["loop", "keep", "by d", "add kept", "keep", "by e", "add kept"]), [(136, 72), (72, 136), (128, 128), (128, 128), (136, 264)], SOME, [REGISTERS.format(1)] * 2),
    "tanh": (program(["loop", "tanh", "by d"]), None, [], [REGISTERS.format(1)]),
    "before": (program(["own", "loop"]), [(136, 136), (136, 264), (136, 264), (8, 8), (136, 264)], SOME + ["single=off"], ["wgmma m64n128k16 from 2 stages of a ring"]),
    "both loaded behind": (program(["loop", "own"]), [(136, 136), (136, 264), (136, 264), (8, 8), (136, 264)], SOME + ["single=off"], ["wgmma m64n128k16 from 2 stages of a ring"]),
    "long, behind": (program(["loop", "own"], inner=1024, tiles=(64, 64, 32)), [(72, 1000), (1000, 136), (1000, 136), (8, 8), (72, 136)], SOME + ["stages=2"], []),
    "between": (program(["loop", "by d", "plus"]), [(136, 72), (72, 264), (128, 128), (8, 8), (136, 264)], SOME + ["single=off"], [REGISTERS.format(1)]),
    "loop of tiles": (program(["loop", "by d"], loop=True), [(136, 72), (72, 520), (128, 128), (8, 8), (136, 520)], USUAL + ["grid=loop"], [REGISTERS.format(1)]),
    "loop of tiles, narrow D": (program(["loop", "by d"], loop=True, columns=64), [(136, 72), (72, 520), (128, 64), (8, 8), (136, 320)], SOME, [REGISTERS.format(1)]),
    "no trips": (program(["loop", "by d"], loop=True), [(136, 0), (0, 520), (128, 128), (8, 8), (136, 520)], SOME, [REGISTERS.format(1)]),
    "in an if": (program(["loop", "by d"], guard=True), [(264, 72), (72, 264), (128, 128), (8, 8), (264, 384)], SOME, [REGISTERS.format(1)]),
    "no loop": (program(["own"]), [(136, 136), (136, 264), (136, 264), (8, 8), (136, 264)], ["single=on", "single=on roles=on", "single=on grid=loop"], ["wgmma m64n128k16 from 2 stages of a ring"]),
    "no loop, two": (program(["own", "by e"]), [(136, 136), (136, 264), (136, 264), (128, 128), (136, 264)], ["single=on", "single=on roles=on", "single=on grid=loop"],
                     ["wgmma m64n128k16 from 2 stages of a ring", REGISTERS.format(1)]),
}


def launch(path, case, plan, order):
    text, shapes, _, _ = CASES[case]
    element = re.search(r"!a = !cuda_tile.tensor_view<\?x\?x(\w+)", text).group(1)
    tile_c = [int(n) for n in re.search(r"!ct = !cuda_tile.partition_view<tile=\((\d+)x(\d+)\)", text).groups()]
    grid = [-(-shapes[4][0] // tile_c[0]), 2 if "%before" in text else -(-shapes[4][1] // tile_c[1])]
    words = lambda shape: ",".join(map(str, shape))
    arrays = [f"array:{element}[{words(s)}]=" + (f"randint(seed={k},lo=-1,hi=2)" if k < 4 else "zeros") for k, s in enumerate(shapes)]
    return tilevm(path, "--gpu=emulate", "--target", "sm_90a", "--both", "--grid", words(grid), "--emulate-policy", order[0], "--emulate-seed", order[1],
                  *(w for x in arrays for w in ("--arg", x)), *forced(plan))


def agrees(folder, case):
    """What is wrong with a case."""
    if CASES[case][1] is None:  # not exact
        return []
    path = pathlib.Path(folder) / f"{re.sub('[ ,]+', '_', case)}.tile"
    path.write_text(CASES[case][0])
    problems = []
    for number, plan in enumerate(["", "", *CASES[case][2]]):
        order = ORDERS[(number + len(case)) % len(ORDERS)]
        done = launch(path, case, plan, order)
        if done.returncode != 0:
            problems.append(f"{case} with {plan or 'no choice'}, {order}: exit {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return problems


def code(folder, ptxas):
    """What is wrong with remarks and PTX."""
    problems = []
    for case, (text, _, plans, wanted) in CASES.items():
        if not wanted:
            continue
        path = pathlib.Path(folder) / f"code_{re.sub('[ ,]+', '_', case)}.tile"
        path.write_text(text)
        always = "single=on " if all("single=on" in plan for plan in plans) else ""
        for plan in always + "grid=loop", always + "grid=program":
            done = tilevm(path, "--gpu", "--target", "sm_90a", "--emit", "ptx", "--remarks", *forced(plan))
            what = f"{case}, {plan}"
            for remark in wanted:
                if len(re.findall(re.escape(remark), done.stderr)) < wanted.count(remark):
                    problems.append(f"{what}: no remark says '{remark}': {done.stderr[-600:]}")
            if re.search(r"mma\.sync|ldmatrix", done.stdout):
                problems.append(f"{what}: there is mma.sync")
            if plan.endswith("grid=loop") and len(re.findall("setmaxnreg", done.stdout)) != 2:
                problems.append(f"{what}: there is no producer")
            if ptxas:
                ptx = pathlib.Path(folder) / "k.ptx"
                ptx.write_text(done.stdout)
                done = subprocess.run([ptxas, "-v", "-arch", "sm_90a", "-o", f"{folder}/k.cubin", str(ptx)], capture_output=True, text=True, timeout=200, check=False)
                said = done.stdout + done.stderr
                if re.search(r"C75\d\d", said) or not re.search(r"[^0-9]0 bytes spill stores, 0 bytes spill loads", said):
                    problems.append(f"{what}: {said[-500:]}")
    return problems


def probe(folder):
    path = pathlib.Path(folder) / "probe.tile"
    path.write_text(CASES["64 rows"][0])
    return launch(path, "64 rows", "", ORDERS[0]).stderr


if __name__ == "__main__":
    sys.exit(run_cases(probe, CASES, agrees, code, sum(2 + len(c[2]) for c in CASES.values() if c[1])))
