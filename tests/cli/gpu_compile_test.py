#!/usr/bin/env python3
"""What the GPU part says of a kernel without running it: PTX with source lines, the plan, remarks, errors of wrong choices; and that the
loops of products get the units that they should.

Skipped without the GPU part. Environment: TILEVM, SOURCE_DIR."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEVM = os.environ.get("TILEVM", "tilevm")
EXAMPLES = ROOT / "examples"
CORPUS = ROOT / "tests" / "corpus" / "tileirbc"
failures = []
# A loop over a tile, and a chain of operations on it.
LOOP = """cuda_tile.module @m { entry @e(%p: tile<ptr<f32>>) {
 %x, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
 %b = reshape %x : tile<f32> -> tile<1xf32>
 %c0 = broadcast %b : tile<1xf32> -> tile<SIZExf32>
 %z = constant <i32: 0> : tile<i32>
 %n = constant <i32: TRIPS> : tile<i32>
 %s = constant <i32: 1> : tile<i32>
 %r = for %i in (%z to %n, step %s) : tile<i32> iter_values(%a = %c0) -> (tile<SIZExf32>) {
CHAIN   continue %cLAST : tile<SIZExf32>
 }
 %w = reduce %r dim=0 identities=[0.0 : f32] : tile<SIZExf32> -> tile<f32> (%l: tile<f32>, %k: tile<f32>) { %y = addf %l, %k : tile<f32> yield %y : tile<f32> }
 %t2 = store_ptr_tko weak %p, %w : tile<ptr<f32>>, tile<f32> -> token
 return } }"""


def loop(trips, size, chain):
    lines = "".join(f"   %c{k + 1} = {'mulf' if k % 2 else 'addf'} %a, %c{k} : tile<SIZExf32>\n" for k in range(chain))
    return LOOP.replace("CHAIN", lines).replace("LAST", str(chain)).replace("SIZE", str(size)).replace("TRIPS", str(trips))


# Every block writes its numbers and the grid's extents.
IDS = """cuda_tile.module @m {
  entry @ids(%p: tile<ptr<i32>>) {
    %id:3 = get_tile_block_id : tile<i32>
    %n:3 = get_num_tile_blocks : tile<i32>
    %six = constant <i32: 6> : tile<i32>
    %zy0 = muli %id#2, %n#1 : tile<i32>
    %zy = addi %zy0, %id#1 : tile<i32>
    %zyx0 = muli %zy, %n#0 : tile<i32>
    %zyx = addi %zyx0, %id#0 : tile<i32>
    %at = muli %zyx, %six : tile<i32>
    %p0 = offset %p, %at : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
""" + "".join(f"""    %k{k} = constant <i32: {k}> : tile<i32>
    %q{k} = offset %p0, %k{k} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %t{k} = store_ptr_tko weak %q{k}, %{'id' if k < 3 else 'n'}#{k % 3} : tile<ptr<i32>>, tile<i32> -> token
""" for k in range(6)) + """    %four = constant <i32: 4> : tile<i32>
    %x1 = cmpi not_equal %id#0, %k1, signed : tile<i32> -> tile<i1>
    %y2 = cmpi not_equal %id#1, %k2, signed : tile<i32> -> tile<i1>
    %z4 = cmpi not_equal %id#2, %four, signed : tile<i32> -> tile<i1>
    %xy = ori %x1, %y2 : tile<i1>
    %other = ori %xy, %z4 : tile<i1>
    assert %other, "block (1, 2, 4)" : tile<i1>
    return
  }
}
"""


def tilevm(*arguments):
    return subprocess.run([TILEVM, *map(str, arguments), "--color", "never"], capture_output=True, text=True, timeout=120, check=False)


def check(what, condition, detail=""):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}: {detail[-600:]}")


def remarks(kernel, target, *more):
    done = tilevm(kernel, "--gpu", "--target", target, "--remarks=json", "--emit", "plan", *more)
    check(f"{kernel.name} {target} compiles", done.returncode == 0, done.stderr)
    return done.stderr + done.stdout


def main():
    if "gpu: LLVM" not in tilevm("--version").stdout:
        print("skipped: tilevm was built without the GPU part")
        return 77
    f16 = EXAMPLES / "04_f16.tile"

    # Source lines: of the text, and those that bytecode carries; none without the option.
    with_lines = tilevm(f16, "--gpu", "--target", "sm_90a", "--lineinfo", "--emit", "ptx").stdout
    check("--lineinfo names the file", "04_f16.tile" in with_lines and "\t.loc\t" in with_lines, with_lines[:800])
    check("no lines without it", "\t.loc\t" not in tilevm(f16, "--gpu", "--target", "sm_90a", "--emit", "ptx").stdout)
    carried = tilevm(CORPUS / "attention_full.13.4.tileirbc", "--gpu", "--target", "sm_80", "--lineinfo", "--emit", "ptx").stdout
    check("--lineinfo takes the bytecode's places", "kernels.py" in carried, carried[:800])

    # Units that loops of products get, and why not.
    ring = remarks(f16, "sm_90a")
    check("a product loop on sm_90a", "wgmma m64n64k16 from a ring" in ring, ring)
    check("the same on sm_80", "mma.sync.m16n8k16.f16" in remarks(f16, "sm_80"))
    check("without bulk copies", "wgmma m64n64k16 from a ring of 6 stages by cp.async" in remarks(f16, "sm_90a", "--plan", "tma=off"))
    check("without rings", "from a ring" not in remarks(f16, "sm_90a", "--plan", "ring=off"))
    check("a fixed number of stages", "a ring of 2 stages" in remarks(f16, "sm_90a", "--plan", "stages=2"))
    check("tf32 is rounded on the way", "wgmma m64n64k8 of the transposed product" in remarks(EXAMPLES / "03_tf32.tile", "sm_90a"))
    check("8-bit integers", "wgmma m64n64k32 of the transposed product" in remarks(EXAMPLES / "11_i8.tile", "sm_90a"))
    # Of a block's place among the tiles: once for both roles where no loop over blocks lies between.
    product = ROOT / "tools" / "bench" / "gpu" / "kernels" / "mm_f16_128x256x64_c2_p0.tile"
    divisions = {plan: len(re.findall(r"\t(?:div|rem)\.[su]32", tilevm(product, "--gpu", "--target", "sm_90a", "--emit", "ptx", "--plan", plan).stdout)) for plan in ("roles=off", "roles=on", "grid=loop")}
    check("producer and consumers share divisions", divisions["roles=on"] == divisions["roles=off"] == 3 and divisions["grid=loop"] > 6, str(divisions))
    check("f32 has no tensor core", "has no product" in remarks(EXAMPLES / "02_loop_over_k.tile", "sm_90a") or "have no product" in remarks(EXAMPLES / "02_loop_over_k.tile", "sm_90a"))
    ptx = tilevm(f16, "--gpu", "--target", "sm_90a", "--emit", "ptx").stdout
    for word in "wgmma.mma_async", "cp.async.bulk.tensor.2d", "mbarrier.try_wait.parity":
        check(f"PTX has {word}", word in ptx)
    check("PTX calls nothing outside", ".extern .func" not in ptx)

    # Every product and every access to memory has a remark of its unit, with the stages where it is fed by some.
    for kernel in [*sorted(EXAMPLES.glob("*.tile")), *sorted((CORPUS.parent / "text").glob("*.txt"))]:
        text = re.sub(r"//.*", "", kernel.read_text())
        if len(re.findall(r"\bentry @", text)) != 1:
            continue
        there = sorted(re.findall(r"(?<![%@\w])(?:mma[fi]\w*|(?:load|store)_(?:ptr|view)_tko|atomic_\w+)", text))
        for target in "sm_90a", "sm_80", "sm_75":
            done = tilevm(kernel, "--gpu", "--target", target, "--remarks=json", "--emit", f"plan={os.devnull}")
            if "E0808" in done.stderr:
                continue
            lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
            said = {r["instruction"]: r["op"] for r in lines if "instruction" in r and r["op"] in there}
            check(f"{kernel.name} {target}: operations with a remark", sorted(said.values()) == there, f"{sorted(said.values())}, there are {there}")
            for r in lines:
                if found := re.search(r"(?:ring|stream) of (\d+) stages", r["unit"]):
                    check(f"{kernel.name} {target}: stages", r.get("stages") == int(found[1]), str(r))
    copies = [json.loads(line) for line in tilevm(f16, "--gpu", "--target", "sm_90a", "--remarks=json", "--emit", f"plan={os.devnull}").stderr.splitlines()]
    check("loads of a ring", [r["unit"] for r in copies if r["op"] == "load_view_tko" and r["stages"] == 6] == [f"bulk tensor copies, swizzled by {n} bytes" for n in (64, 128)], str(copies))
    check("loads of a ring by cp.async", "cp.async of 16 bytes" in remarks(f16, "sm_80"))
    widths = remarks(EXAMPLES / "softmax_rows.tile", "sm_80") + remarks(EXAMPLES / "vector_add_pointers.tile", "sm_80")
    for words in "global loads of 16 bytes", "global stores of 16 bytes", "global loads of one element", "every element of a tile of pointers has an address of its own":
        check(f"width of accesses: {words}", words in widths, widths)

    # Control of dependent grids is there where the target has it.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "gdc.tile"
        path.write_text("cuda_tile.module @m { entry @e() { %t = gdc_wait_tko -> token\n %u = gdc_launch_dependents_tko token=%t -> token\n return } }")
        for target, there in ("sm_90a", True), ("sm_100a", True), ("sm_80", False):
            ptx = tilevm(path, "--gpu", "--target", target, "--emit", "ptx").stdout
            check(f"griddepcontrol on {target}", ("griddepcontrol.wait" in ptx and "griddepcontrol.launch_dependents" in ptx) == there and ".entry" in ptx, ptx)
        # A grid along x: every block has the program's numbers, also where it traps.
        path.write_text(IDS)
        good = tilevm(path, "--grid", "3,2,4", "--gpu=emulate", "--plan", "grid=linear", "--both", "--arg", "ptr:i32[144]=zeros")
        check("numbers of blocks of a linear grid", good.returncode == 0 and "agree" in good.stderr + good.stdout, good.stderr)
        trap = tilevm(path, "--grid", "2,3,5", "--gpu=emulate", "--plan", "grid=linear", "--arg", "ptr:i32[180]=zeros")
        check("a trap in a linear grid", trap.returncode == 4 and "in block (1, 2, 4)" in trap.stderr, trap.stderr)
        many = tilevm(path, "--grid", "1,1,70000", "--gpu=emulate", "--plan", "grid=linear", "--both", "--arg", "ptr:i32[420000]=zeros")
        check("70000 blocks along z", many.returncode == 0, many.stderr)

        # Code does not grow with trips, nor with a tile beyond what a thread holds of it: 256 elements. It grows with operations as they do.
        def size(target, *shape):
            path.write_text(loop(*shape))
            return len(tilevm(path, "--gpu", "--target", target, "--emit", "ptx").stdout.splitlines())

        for target in "sm_75", "sm_90a":
            sizes = [size(target, trips, 512, 2) for trips in (3, 8, 100, 1000000)]
            check(f"code and trips on {target}", len(set(sizes)) == 1 and sizes[0] > 50, str(sizes))
            sizes = [size(target, 100, 2 ** bits, 4) for bits in (16, 17, 18)]
            check(f"code and elements on {target}", max(sizes) < 1.05 * min(sizes), str(sizes))
            sizes = [size(target, 100, 4096, chain) for chain in (8, 16, 32, 64)]
            check(f"code and operations on {target}", all(b < 2.1 * a for a, b in zip(sizes, sizes[1:])), str(sizes))

        # Products of signed by unsigned integers take a newer PTX than those of two alike.
        text = (ROOT / "tools" / "bench" / "gpu" / "kernels" / "mm_i8_128x128x128_c1_p0.tile").read_text()
        for signs, version in ("signed signed", "8.3"), ("unsigned unsigned", "8.3"), ("signed unsigned", "8.4"), ("unsigned signed", "8.4"):
            path.write_text(text.replace("%sum signed signed", f"%sum {signs}"))
            ptx = tilevm(path, "--gpu", "--target", "sm_90a", "--emit", "ptx").stdout
            check(f"PTX version of i8 products, {signs}", f".version {version}\n" in ptx and "wgmma.mma_async" in ptx, ptx[:300])

        # More parameters than older PTX has, and more than a kernel can have.
        for count, target, version in (500, "sm_80", "7.8"), (600, "sm_75", "8.1"), (600, "sm_90", "8.1"), (600, "sm_90a", "8.3"), (4100, "sm_120a", None):
            path.write_text("cuda_tile.module @m { entry @e(" + ", ".join(f"%p{k}: tile<i32>" for k in range(count)) + ") { return } }")
            done = tilevm(path, "--target", target, "--emit", "ptx")
            if version:
                check(f"PTX version of {count} parameters on {target}", f".version {version}\n" in done.stdout, done.stdout[:300] + done.stderr)
            else:
                check("more parameters than a kernel has", done.returncode == 1 and "32808 bytes of parameters" in done.stderr and "at most 32764 [E0808]" in done.stderr, done.stderr)

    # Wrong choices.
    for arguments, text in (["--plan", "speed=high"], "the choices are"), (["--target", "sm_42"], "the targets are"):
        done = tilevm(f16, "--gpu", "--emit", "plan", *arguments)
        check(" ".join(arguments), done.returncode in (1, 2) and text in done.stderr, f"exit {done.returncode}: {done.stderr}")
    done = tilevm(CORPUS / "raw_multimem.13.5.tileirbc", "--gpu", "--target", "sm_90a", "--emit", "ptx", "--diagnostics", "json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    check("an operation that no target runs is refused once", [d["code"] for d in lines if d["severity"] == "error"] == ["E0808"], done.stderr)
    print("all checks passed" if not failures else f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
