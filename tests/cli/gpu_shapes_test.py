#!/usr/bin/env python3
"""Products of many shapes on the emulated GPU (tools/bench/gpu/shape_set.py): each equals the interpreter in every bit, whenever asynchronous
copies happen, on small integers, whose sums are exact in any order. And each gets the unit that it should: none falls back unseen.

Skipped without the GPU part or a processor that runs its code. Environment: TILEVM, SOURCE_DIR."""
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
sys.path[:0] = [str(ROOT / "tools" / "bench" / "gpu"), str(pathlib.Path(__file__).resolve().parent)]
import shape_set  # noqa: E402
from _gpu_kit import SKIP, TILEVM, why_skipped  # noqa: E402

# Kernels, and what the remarks say of their products, in order. The first pattern counts.
UNITS = [("mm_f64_*", ["mma.sync.m16n8k16.f64 from a ring of 4 stages by cp.async"]),
         ("mm_skip", ["wgmma m64n128k16 from a ring of 3 stages by cp.async"]),
         ("mm_gathered", ["wgmma m64n128k16 from a ring of 3 stages by cp.async"]),
         ("mm_pointers", ["wgmma m64n128k16 from a ring of 3 stages by cp.async"]),
         ("mm_sparse", ["wgmma m64n128k16 from a ring of 3 stages by cp.async"]),
         ("mm_skinny_16_*", ["wgmma m64n16k16 of the transposed product*"]),
         ("mm_skinny_32_*", ["wgmma m64n32k16 of the transposed product*"]),
         ("mm_two_layers", ["wgmma m64n64k16 of a stream*", "wgmma m64n128k16 of a stream*"]),
         ("mm_two_loops", ["wgmma m64n128k16 from a ring*"] * 2),
         ("mm_of_mm", ["wgmma m64n128k16 from a ring*", "wgmma m64n128k16 with the left operand in registers from 1 stage of a ring*"]),
         ("*", ["wgmma m64n* from a ring*"])]
# The same with blocks in a loop: rings of cp.async whose pieces have 16 bytes are filled by a producer.
PRODUCED = [("mm_pointers", ["alternate=on"], "256 threads and a producer, looping over blocks, warpgroups in turn", "*from a ring of 5 stages by cp.async of a producer*"),
            ("mm_pointers", [], "256 threads and a producer, looping over blocks", "*from a ring of 6 stages by cp.async of a producer*"),
            ("mm_pointers", ["roles=off"], "256 threads, looping over blocks", "*from a ring of 3 stages by cp.async (*"),
            ("mm_skip", [], "256 threads, looping over blocks", "*from a ring of 3 stages by cp.async (*"),
            ("mm_skip", ["roles=on", "alternate=on"], "256 threads and a producer, looping over blocks, warpgroups in turn", "*by cp.async of a producer*"),
            ("mm_sparse", ["roles=on"], "256 threads, looping over blocks", "*from a ring of 3 stages by cp.async (*"),
            ("mm_gathered", ["roles=on"], "256 threads, looping over blocks", "*from a ring of 3 stages by cp.async (*")]
# Not exact on integers: tanh.
INEXACT = {"mm_gelu_128x128", "mm_gelu_128x256"}


def launch(row, *more, gaps=0, shapes=None):
    usual, grid, _ = row.small()
    shapes = shapes or usual
    line = [TILEVM, str(row.path()), "--gpu=emulate", "--both", "--target", "sm_90a", "--grid", ",".join(map(str, grid))]
    for i, ((element, _, generator, *_), shape) in enumerate(zip(row.args, shapes)):
        if "normal" in generator:
            generator = f"randint({i + 1},-2,3)"
        elif generator.startswith("randint(3,0,4096"):
            generator = f"randint(3,0,{shapes[0][0]})"
        strides = f":strides({shape[1] + gaps},1)" if gaps else ""
        line += ["--arg", f"array:{element}[{','.join(map(str, shape))}]{strides}={generator}"]
    return line + list(more)


def few_gathered(folder):
    """Launches of products of gathered rows, of which there are fewer than threads that copy."""
    for rows in 16, 32:
        path = pathlib.Path(folder) / f"gathered_{rows}.tile"
        path.write_text(shape_set.gathered("few", rows, 128, 16).text())
        for target in "sm_90a", "sm_80":
            arrays = [f"f16[{2 * rows},48]=randint(1,-2,3)", "f16[48,136]=randint(2,-2,3)", f"i32[{rows}]=randint(3,0,{2 * rows})", f"f16[{rows},136]=zeros"]
            yield [TILEVM, str(path), "--gpu=emulate", "--both", "--target", target, "--grid", "1,2", *(w for a in arrays for w in ("--arg", f"array:{a}"))]


def run(line):
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=240, check=False)
    except subprocess.TimeoutExpired:
        return "timeout"
    return "" if done.returncode == 0 else f"exit {done.returncode}: " + (done.stdout + done.stderr).strip()[-500:]


def units(row):
    done = subprocess.run([TILEVM, str(row.path()), "--emit", f"ptx={os.devnull}", "--target", "sm_90a", "--remarks=json"], capture_output=True, text=True, timeout=120, check=False)
    found = [r["unit"] for r in map(json.loads, (x for x in done.stderr.splitlines() if x.startswith("{"))) if r.get("op") == "mmaf"]
    wanted = next(w for name, w in UNITS if fnmatch.fnmatch(row.kernel, name))
    if len(found) != len(wanted) or not all(map(fnmatch.fnmatch, found, wanted)):
        return f"units {found} instead of {wanted} {done.stderr[-300:] if not found else ''}"
    return ""


def produced(name, plan, threads, unit):
    words = [w for p in ["grid=loop", *plan] for w in ("--plan", p)]
    done = subprocess.run([TILEVM, str(shape_set.KERNELS / f"{name}.tile"), "--emit", "plan", "--target", "sm_90a", *words], capture_output=True, text=True, timeout=120, check=False)
    lines = done.stdout.splitlines() or [done.stderr]
    product = next((line for line in lines if " mmaf:" in line), "")
    if not lines[0].endswith(": " + threads) or not fnmatch.fnmatch(product, unit):
        return f"{name} {plan}: {lines[0]}, {product}"
    return ""


def main():
    rows = {}
    for row in shape_set.build()[1]:
        rows.setdefault(row.kernel, row)
    if why := why_skipped(lambda: run(launch(rows["mm_ragged_64"]))):
        print("skipped:", why)
        return SKIP
    work = []
    for k, row in enumerate(rows.values()):
        if row.kernel in INEXACT:
            continue
        policy = ("random", "early", "late")[k % 3]
        work.append(launch(row, "--emulate-policy", policy, "--emulate-seed", str(k)))
    # What has no tensor map: rows that begin at multiples of 16, 8, 4 and 2 bytes.
    for gaps, policy in (0, "late"), (4, "early"), (2, "late"), (1, "random"):
        work.append(launch(rows["mm_ragged"], "--plan", "tma=off", "--emulate-policy", policy, gaps=gaps))
    # Loops of loops, one after the other, over tiles and in branches, by copies.
    for name in "mm_nested", "mm_c2_p1", "mm_two_loops", "mm_lower", "mm_split_f16", "mm_a_permute_b_permute", "mm_skinny_16_b_map":
        work.append(launch(rows[name], "--plan", "tma=off", "--emulate-policy", "late"))
    # Blocks of clusters, whose shared addresses hold the number of the block.
    for name in "mm_c2_p0", "mm_c2_p1":
        work.append(launch(rows[name], "--plan", "clusters=on"))
    # The loops by copies that ask before each product, and those that gather, at their latest.
    for name in "mm_sparse", "mm_gathered", "mm_pointers", "mm_skip", "mm_f64_64x64x16":
        for policy in "early", "late":
            work.append(launch(rows[name], "--emulate-policy", policy))
    # Rows cut out of pieces of 16 bytes, with ends of arrays within the last of these, and element by element.
    for shapes, policy in ([(131, 149), (149, 137), (131, 137)], "late"), ([(129, 65), (65, 255), (129, 255)], "random"), ([(1, 1), (1, 1), (1, 1)], "early"):
        for plan in [], ["unaligned=pieces"], ["roles=on", "grid=loop"], ["roles=on", "grid=loop", "unaligned=pieces"]:
            work.append(launch(rows["mm_ragged"], "--plan", "tma=off", *(w for p in plan for w in ("--plan", p)), "--emulate-policy", policy, shapes=shapes))
    # A producer fills them: one block after the other, in turn, loops of loops, and pieces of 8, 4 and 2 bytes.
    for policy in "early", "late", "random":
        for plan in ["roles=on"], ["grid=loop"], ["grid=loop", "alternate=on"]:
            work.append(launch(rows["mm_pointers"], *(w for p in plan for w in ("--plan", p)), "--emulate-policy", policy))
        for name in "mm_nested", "mm_two_loops", "mm_c2_p1":
            work.append(launch(rows[name], "--plan", "tma=off", "--plan", "roles=on", "--emulate-policy", policy))
    for gaps, policy in (0, "random"), (4, "random"), (2, "early"), (1, "late"), (1, "random"):
        work.append(launch(rows["mm_ragged"], "--plan", "tma=off", "--plan", "roles=on", "--plan", "grid=loop", *(["--plan", "alternate=on"] if gaps else []), "--emulate-policy", policy, gaps=gaps))
    # mma.sync instead, and targets without wgmma.
    for name in "mm_sparse", "mm_gathered", "mm_pointers", "mm_skip", "mm_ragged":
        work.append(launch(rows[name], "--plan", "mma=sync"))
        work.append([w if w != "sm_90a" else "sm_80" for w in launch(rows[name])])
    problems = []
    with ThreadPoolExecutor(os.cpu_count()) as pool, tempfile.TemporaryDirectory() as folder:
        work += few_gathered(folder)
        for line, problem in zip(work, pool.map(run, work)):
            if problem:
                problems.append(f"{' '.join(line)}: {problem}")
        for row, problem in zip(rows.values(), pool.map(units, rows.values())):
            if problem:
                problems.append(f"{row.kernel}: {problem}")
    problems += [p for p in (produced(*wanted) for wanted in PRODUCED) if p]
    print("\n".join(problems) or f"{len(work)} launches and {len(rows)} kernels passed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
