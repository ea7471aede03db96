#!/usr/bin/env python3
"""Wrong launches through tilevm: exit status, diagnostic code, and that no output file is left behind.

Environment: TILEVM, TILEASM, SOURCE_DIR.  Needs no NumPy: .npy files are written here byte by byte."""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

TILEVM, TILEASM = os.environ.get("TILEVM", "tilevm"), os.environ.get("TILEASM", "tileasm")

# Without the GPU part --gpu is not supported; with it, and no driver, the environment lacks something.
os.environ["TILEVM_DRIVER"] = "/no/such/libcuda.so"
WITHOUT_GPU_PART = "gpu: not in this build" in subprocess.run([TILEVM, "--version"], capture_output=True, text=True).stdout
GPU_ANSWER = (1, "E0808") if WITHOUT_GPU_PART else (3, "E0910")

KERNEL = """cuda_tile.module @m {
  entry @copy(%src: tile<ptr<f32>>, %dst: tile<ptr<f32>>, %n: tile<i32>) {
    %i = iota : tile<4xi32>
    %n1 = reshape %n : tile<i32> -> tile<1xi32>
    %ns = broadcast %n1 : tile<1xi32> -> tile<4xi32>
    %in = cmpi less_than %i, %ns, signed : tile<4xi32> -> tile<4xi1>
    %s1 = reshape %src : tile<ptr<f32>> -> tile<1xptr<f32>>
    %ss = broadcast %s1 : tile<1xptr<f32>> -> tile<4xptr<f32>>
    %sp = offset %ss, %i : tile<4xptr<f32>>, tile<4xi32> -> tile<4xptr<f32>>
    %d1 = reshape %dst : tile<ptr<f32>> -> tile<1xptr<f32>>
    %ds = broadcast %d1 : tile<1xptr<f32>> -> tile<4xptr<f32>>
    %dp = offset %ds, %i : tile<4xptr<f32>>, tile<4xi32> -> tile<4xptr<f32>>
    %zero = constant <f32: 0.0> : tile<4xf32>
    %x, %t = load_ptr_tko weak %sp, %in, %zero : tile<4xptr<f32>>, tile<4xi1>, tile<4xf32> -> tile<4xf32>, token
    %t2 = store_ptr_tko weak %dp, %x, %in : tile<4xptr<f32>>, tile<4xf32>, tile<4xi1> -> token
    return
  }
}
"""
MORE = """cuda_tile.module @m {
  entry @first() { return }
  entry @check(%dst: tile<ptr<f32>>, %c: tile<i1>) {
    %one = constant <f32: 1.0> : tile<f32>
    %t = store_ptr_tko weak %dst, %one : tile<ptr<f32>>, tile<f32> -> token
    assert %c, "c must be true" : tile<i1>
    return
  }
  entry @forever(%dst: tile<ptr<f32>>) {
    loop { continue }
    return
  }
  entry @talk(%dst: tile<ptr<f32>>) {
    %i = iota : tile<1024xi32>
    %t = print_tko "%i\\0A", %i : tile<1024xi32> -> token
    return
  }
}
"""
# What no pointer can name is refused before anything runs.
FOUR_BITS = """cuda_tile.module @m {
  entry @moved(%dst: tile<ptr<f4E2M1FN>>) {
    %i = constant <i32: 1> : tile<i32>
    %q = offset %dst, %i : tile<ptr<f4E2M1FN>>, tile<i32> -> tile<ptr<f4E2M1FN>>
    return
  }
  entry @loaded(%dst: tile<ptr<f4E2M1FN>>) {
    %q = reshape %dst : tile<ptr<f4E2M1FN>> -> tile<1xptr<f4E2M1FN>>
    %r = broadcast %q : tile<1xptr<f4E2M1FN>> -> tile<8xptr<f4E2M1FN>>
    %x, %t = load_ptr_tko weak %r : tile<8xptr<f4E2M1FN>> -> tile<8xf4E2M1FN>, token
    return
  }
}
"""
BAD_TEXT = "cuda_tile.module @m {\n  entry @f() {\n    %a = addj %b, %c : tile<i32>\n    return\n  }\n}\n"
BAD_TYPES = "cuda_tile.module @m {\n  entry @f(%a: tile<i32>) {\n    %b = addf %a, %a : tile<i32>\n    return\n  }\n}\n"


def npy(descr, shape, data, fortran=False, version=(1, 0)):
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"
    size = 10 if version[0] == 1 else 12
    text += " " * (-(size + len(text) + 1) % 64) + "\n"
    return (b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version[0] == 1 else "<I", len(text)) + text.encode("latin-1") + data)


FOUR = struct.pack("<4f", 1.5, -2.0, 3.25, 4.0)
GOOD = npy("'<f4'", "(4,)", FOUR)
FILES = {
    "good.npy": GOOD,
    "big.npy": npy("'>f4'", "(4,)", struct.pack(">4f", 1.5, -2.0, 3.25, 4.0)),
    "fortran.npy": npy("'<f4'", "(2, 2)", FOUR, fortran=True),
    "v2.npy": npy("'<f4'", "(4,)", FOUR, version=(2, 0)),
    "ints.npy": npy("'<i4'", "(4,)", FOUR),
    "wide.npy": npy("'<f8'", "(4,)", FOUR * 2),
    "complex.npy": npy("'<c8'", "(2,)", FOUR),
    "objects.npy": npy("'|O'", "(2,)", FOUR),
    "fields.npy": npy("[('a', '<f4')]", "(4,)", FOUR),
    "void.npy": npy("'|V2'", "(8,)", FOUR),
    "short.npy": GOOD[:-1],
    "long.npy": GOOD + b"\0",
    "header.npy": GOOD[:40],
    "magic.npy": b"\x93NUMPX" + GOOD[6:],
    "version.npy": GOOD[:6] + b"\x09\0" + GOOD[8:],
    "negative.npy": npy("'<f4'", "(-4,)", FOUR),
    "huge.npy": npy("'<f4'", "(9223372036854775807, 9223372036854775807)", FOUR),
    "empty.npy": b"",
    "copy.tile": KERNEL.encode(),
    "more.tile": MORE.encode(),
    "four_bits.tile": FOUR_BITS.encode(),
    "bad_text.tile": BAD_TEXT.encode(),
    "bad_types.tile": BAD_TYPES.encode(),
    "garbage.tile": bytes(range(256)),
    "nothing.tile": b"",
    "job.json": b'{"kernel": "copy.tile", "args": ["src=ptr:good.npy", "dst=ptr:f32[4]=zeros", "i32:4"]}',
    "job_differs.json": b'{"kernel": "copy.tile", "args": ["src=ptr:good.npy", "dst=ptr:f32[4]=zeros", "i32:4"],\n'
                        b' "expect": [{"arg": "dst", "generate": "zeros"}], "out": {"dst": "OUT/dst.npy"}}',
    "job_key.json": b'{"kernel": "copy.tile",\n "argz": []}',
    "job_twice.json": b'{"kernel": "copy.tile", "kernel": "more.tile"}',
    "job_cut.json": b'{"kernel": "copy.tile", ',
    "job_deep.json": b"[" * 100,
    "job_kernel.json": b'{"kernel": "no_such.tile"}',
    "job_grid.json": b'{"kernel": "copy.tile", "grid": [1, 0]}',
    "job_trap.json": b'{"kernel": "more.tile", "entry": "check", "args": ["ptr:f32[1]=zeros", "i1:false"], "outcome": "assert"}',
    "job_no_trap.json": b'{"kernel": "more.tile", "entry": "check", "args": ["ptr:f32[1]=zeros", "i1:true"], "outcome": "assert"}',
    "job_prints.json": b'{"kernel": "copy.tile", "args": ["ptr:good.npy", "ptr:f32[4]=zeros", "i32:4"], "prints": ["hello"]}',
}
SRC, DST, N = "src=ptr:good.npy", "dst=ptr:f32[4]=zeros", "n=i32:4"


def launch(*arguments, kernel="copy.tile", more=()):
    """Command that asks for the array dst in OUT/dst.npy."""
    command = [kernel]
    for a in arguments:
        command += ["--arg", a]
    return command + (["--out", "dst=OUT/dst.npy"] if any("dst" in a for a in arguments) else []) + list(more)


def entry(name, *arguments, more=()):
    return launch(*arguments, kernel="more.tile", more=["--entry", name, *more])


def src(source, more=()):
    return launch(f"src={source}", DST, N, more=more)


# name, arguments of tilevm, exit status, code of the first error (or None)
CASES = [
    ("plain", launch(SRC, DST, N), 0, None),
    ("version 2.0", src("ptr:v2.npy"), 0, None),
    ("big endian", src("ptr:big.npy"), 0, None),
    ("fortran order", src("ptr:fortran.npy"), 0, None),
    ("bits named as another type", src("ptr:f32:good.npy"), 0, None),

    ("integers for f32", src("ptr:ints.npy"), 1, "E0803"),
    ("integers, f32 named", src("ptr:f32:ints.npy"), 1, "E0806"),
    ("f64 for f32", src("ptr:wide.npy"), 1, "E0803"),
    ("f64, f32 named", src("ptr:f32:wide.npy"), 1, "E0806"),
    ("complex", src("ptr:complex.npy"), 1, "E0806"),
    ("objects", src("ptr:objects.npy"), 1, "E0806"),
    ("fields", src("ptr:fields.npy"), 1, "E0806"),
    ("V2 without a type", src("ptr:void.npy"), 1, "E0806"),
    ("data too short", src("ptr:short.npy"), 1, "E0806"),
    ("data too long", src("ptr:long.npy"), 1, "E0806"),
    ("header cut", src("ptr:header.npy"), 1, "E0806"),
    ("wrong magic", src("ptr:magic.npy"), 1, "E0806"),
    ("unknown version", src("ptr:version.npy"), 1, "E0806"),
    ("negative extent", src("ptr:negative.npy"), 1, "E0806"),
    ("extents whose product overflows", src("ptr:huge.npy"), 1, "E0806"),
    ("empty file", src("ptr:empty.npy"), 1, "E0806"),
    ("a kernel as array", src("ptr:./copy.tile"), 1, "E0806"),

    ("grid 0", launch(SRC, DST, N, more=["--grid", "0"]), 1, "E0805"),
    ("grid 1,0", launch(SRC, DST, N, more=["--grid", "1,0"]), 1, "E0805"),
    ("grid -1", launch(SRC, DST, N, more=["--grid=-1"]), 1, "E0805"),
    ("grid 2^24", launch(SRC, DST, N, more=["--grid", "1,1,16777216"]), 1, "E0805"),
    ("grid 2^40", launch(SRC, DST, N, more=["--grid", "1099511627776"]), 1, "E0805"),
    ("grid 2^64", launch(SRC, DST, N, more=["--grid", "18446744073709551616"]), 1, None),
    ("2^64 blocks", launch(SRC, DST, N, more=["--grid", "4194304,2097152,2097152"]), None, None),
    ("grid of four", launch(SRC, DST, N, more=["--grid", "1,1,1,1"]), 1, None),
    ("grid of words", launch(SRC, DST, N, more=["--grid", "all"]), 1, "E0804"),

    ("no argument", launch(), 1, "E0802"),
    ("argument missing", launch(SRC, DST), 1, "E0802"),
    ("argument too many", launch(SRC, DST, N, "i32:1"), 1, "E0802"),
    ("array for a pointer", launch("array:good.npy", DST, N), 1, "E0802"),
    ("float for integer", launch(SRC, DST, "f32:4"), 1, "E0803"),
    ("i64 for i32", launch(SRC, DST, "i64:4"), 1, "E0803"),
    ("scalar for pointer", launch("i64:0", DST, N), 1, "E0803"),
    ("pointer to another type", launch(SRC, "dst=ptr:i32[4]=zeros", N), 1, "E0803"),
    ("order of arguments", launch(N, SRC, DST), 1, "E0803"),
    ("integer too large", launch(SRC, DST, "i32:4294967296"), 1, "E0804"),
    ("not a number", launch(SRC, DST, "i32:four"), 1, "E0804"),
    ("unknown type", launch(SRC, DST, "i33:4"), 1, "E0804"),
    ("no value", launch(SRC, DST, "i32"), 1, "E0804"),
    ("unknown generator", launch(SRC, "dst=ptr:f32[4]=zeroes", N), 1, "E0804"),
    ("unknown parameter", src("ptr:f32[4]=normal(sed=1)"), 1, "E0804"),
    ("generator without value", src("ptr:f32[4]=full"), 1, "E0804"),
    ("name twice", launch(SRC, DST, "dst=i32:4"), 1, "E0804"),
    ("reference to nothing", launch("src=ptr:@dts", DST, N), 1, "E0804"),
    ("references in a circle", launch("src=ptr:@dst", "dst=ptr:@src", N), 1, "E0804"),
    ("output of a scalar", launch(SRC, DST, N, more=["--out", "n=OUT/n.npy"]), 1, "E0804"),
    ("output of nothing", launch(SRC, DST, N, more=["--out", "x=OUT/n.npy"]), 1, "E0804"),
    ("show of nothing", launch(SRC, DST, N, more=["--show", "x"]), 1, "E0804"),

    ("unknown entry", launch(SRC, DST, N, more=["--entry", "copi"]), 1, "E0801"),
    ("no entry named", launch(kernel="more.tile"), 1, "E0801"),
    ("bad text", launch(kernel="bad_text.tile"), 1, "E0303"),
    ("bad types", launch(kernel="bad_types.tile"), 1, None),
    ("garbage", launch(kernel="garbage.tile"), 1, None),
    ("empty kernel", launch(kernel="nothing.tile"), 1, None),
    ("cut tilebc", launch(kernel="cut.tilebc"), 1, None),
    ("pointers of four bits moved", launch("ptr:f4E2M1FN[8]=zeros", kernel="four_bits.tile", more=["--entry", "moved"]), 1, "E0808"),
    ("elements of four bits through pointers", launch("ptr:f4E2M1FN[8]=zeros", kernel="four_bits.tile", more=["--entry", "loaded"]), 1, "E0808"),
    ("gpu", launch(SRC, DST, N, more=["--gpu"]), *GPU_ANSWER),

    ("no kernel", [], 2, "U0001"),
    ("unknown option", launch(SRC, DST, N, more=["--fast"]), 2, "U0001"),
    ("two kernels", launch(SRC, DST, N, more=["copy.tile"]), 2, "U0001"),
    ("threads", launch(SRC, DST, N, more=["--threads", "5000"]), 2, "U0001"),
    ("repeat", launch(SRC, DST, N, more=["--repeat", "0"]), 2, "U0001"),
    ("memory", launch(SRC, DST, N, more=["--max-memory", "much"]), 2, "U0001"),
    ("run without a job", ["run"], 2, "U0001"),

    ("missing array", src("ptr:no_such.npy"), 3, "E0901"),
    ("folder as array", src("ptr:./OUT"), 3, "E0901"),
    ("missing kernel", launch(kernel="no_such.tile"), 3, "E0901"),
    ("folder as kernel", launch(kernel="OUT"), 3, "E0901"),
    ("missing job", ["run", "no_such.json"], 3, "E0901"),
    ("output into nowhere", launch(SRC, "x=ptr:f32[4]=zeros", N, more=["--out", "x=NONE/x.npy"]), 3, "E0902"),
    ("output onto a folder", launch(SRC, "x=ptr:f32[4]=zeros", N, more=["--out", "x=OUT"]), 3, "E0902"),

    ("read behind the array", launch("src=ptr:f32[3]=ones", DST, N), 4, "T0101"),
    ("write behind the array", launch(SRC, "dst=ptr:f32[3]=zeros", N), 4, "T0101"),
    ("pointer at the end", launch("src=ptr:@a+16", "dst=ptr:f32[4]=zeros", N, "a=ptr:good.npy"), 1, "E0802"),
    ("assertion", entry("check", "dst=ptr:f32[1]=zeros", "i1:false"), 4, "T0102"),

    ("result differs", ["run", "job_differs.json"], 5, "E0809"),
    ("trap that did not come", ["run", "job_no_trap.json"], 5, "E0809"),
    ("print that did not come", ["run", "job_prints.json"], 5, "E0809"),
    ("trap that came", ["run", "job_trap.json"], 0, None),
    ("job", ["run", "job.json"], 0, None),
    ("unknown key", ["run", "job_key.json"], 1, "E0807"),
    ("key twice", ["run", "job_twice.json"], 1, "E0807"),
    ("job cut short", ["run", "job_cut.json"], 1, "E0807"),
    ("job too deep", ["run", "job_deep.json"], 1, "E0807"),
    ("job without its kernel", ["run", "job_kernel.json"], 3, "E0901"),
    ("grid of a job", ["run", "job_grid.json"], 1, "E0805"),

    ("fuel", entry("forever", "dst=ptr:f32[1]=zeros", more=["--fuel", "1000"]), 6, "L0104"),
    ("memory of a block", launch(SRC, DST, N, more=["--max-memory", "16"]), 6, "L0103"),
    ("array too large", src("ptr:f32[99999999999999]=zeros"), 6, "L0103"),
    ("extents too large", src("ptr:f32[9223372036854775807,9223372036854775807]=zeros"), None, None),
]


class Checker:
    def __init__(self, folder):
        self.folder, self.passed, self.failed = folder, 0, 0

    def verdict(self, name, problems):
        if problems:
            self.failed += 1
            print(f"FAILED {name}: " + "; ".join(problems), flush=True)
        else:
            self.passed += 1

    def run(self, arguments, **how):
        return subprocess.run([TILEVM, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              check=False, **how)

    def left(self):
        """Names of files in the output folder, which are removed."""
        names = []
        for file in (self.folder / "OUT").iterdir():
            names.append(file.name)
            file.unlink()
        return sorted(names)

    def case(self, name, arguments, status, code):
        problems = []
        try:
            done = self.run([*arguments, "--diagnostics", "json"])
        except subprocess.TimeoutExpired:
            self.verdict(name, ["still running after 60 s"])
            return
        text = done.stderr.decode(errors="replace")
        try:
            errors = [e for e in map(json.loads, (x for x in text.splitlines() if x.startswith("{"))) if e["severity"] == "error"]
        except (ValueError, KeyError) as error:
            self.verdict(name, [f"diagnostics are no JSON ({error}): {text[:300]!r}"])
            return
        if status is None:
            if done.returncode not in (1, 6):
                problems.append(f"exit {done.returncode}, expected 1 or 6")
        elif done.returncode != status:
            problems.append(f"exit {done.returncode}, expected {status}; {text.strip()[:300]}")
        if status != 0 and not errors:
            problems.append(f"no diagnostic: {text[:300]!r}")
        if code and errors and errors[0]["code"] != code:
            problems.append(f"{errors[0]['code']} ({errors[0]['message']}), expected {code}")
        if status == 0 and errors:
            problems.append(f"an error without a status: {errors[0]}")
        names = self.left()
        # A launch that ends well writes its outputs; so does one whose results differ, for a look at them.
        wanted = ["dst.npy"] if done.returncode in (0, 5) and any("OUT/dst.npy" in a or "differs" in a for a in arguments) else []
        if names != wanted:
            problems.append(f"files {names} were left, expected {wanted}")
        self.verdict(name, problems)


def special(c):
    """What a table of cases cannot say."""
    done = c.run(["bad_text.tile"])
    text = done.stderr.decode()
    c.verdict("place of an error", [] if done.returncode == 1 and re.search(r"bad_text\.tile:3:10: ", text) else [f"{done.returncode}: {text}"])

    # The values, through a file: byte order and Fortran order are the reader's business.
    for file, wanted in (("big.npy", GOOD), ("fortran.npy", GOOD)):
        done = c.run(["copy.tile", "--arg", f"ptr:{file}", "--arg", "d=ptr:f32[4]=zeros", "--arg", "i32:4", "--out", "d=OUT/d.npy"])
        made = c.folder / "OUT" / "d.npy"
        data = made.read_bytes()[-16:] if made.exists() else b""
        c.verdict(f"values of {file}", [] if data == wanted[-16:] else [f"exit {done.returncode}, data {data.hex()}"])
        c.left()

    # An output that cannot be written keeps the file that was there.
    old = c.folder / "OUT" / "dst.npy"
    old.write_bytes(b"old")
    c.run(["copy.tile", "--arg", "ptr:f32[3]=ones", "--arg", DST, "--arg", N, "--out", "dst=OUT/dst.npy"])
    c.verdict("an old output stays", [] if old.read_bytes() == b"old" else ["the file was changed by a launch that trapped"])
    c.left()

    # Memory of a trap is not what is written; nor is half of a file when the disk is full.
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TILEVM, "more.tile", "--entry", "talk", "--arg", "ptr:f32[1]=zeros"], cwd=c.folder, stdout=full,
                                  stderr=subprocess.PIPE, timeout=60, check=False)
        c.verdict("full disk", [] if done.returncode == 3 and b"E0902" in done.stderr else [f"exit {done.returncode}: {done.stderr[:200]!r}"])

    # A reader that goes away ends the program, by the signal or with success, without a word and without hanging.
    read, write = os.pipe()
    with subprocess.Popen([TILEVM, "more.tile", "--entry", "talk", "--grid", "64", "--arg", "ptr:f32[1]=zeros"], cwd=c.folder,
                          stdout=write, stderr=subprocess.PIPE) as process:
        os.close(write)
        os.close(read)
        try:
            _, said = process.communicate(timeout=60)
            ok = process.returncode in (0, -signal.SIGPIPE, 3) and b"internal" not in said
            c.verdict("closed pipe", [] if ok else [f"exit {process.returncode}: {said[:200]!r}"])
        except subprocess.TimeoutExpired:
            process.kill()
            c.verdict("closed pipe", ["still running after 60 s"])

    # An interrupt stops a kernel that does not end; nothing is written.
    with subprocess.Popen([TILEVM, "more.tile", "--entry", "forever", "--fuel", "0", "--arg", "dst=ptr:f32[1]=zeros", "--out",
                           "dst=OUT/dst.npy"], cwd=c.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=30)
            names = c.left()
            c.verdict("interrupt", [] if process.returncode == 130 and not names else [f"exit {process.returncode}, files {names}"])
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            c.verdict("interrupt", ["still running 30 s after the signal"])

    # --json reports errors too, as one JSON document.
    done = c.run(["run", "job_differs.json", "--json"])
    try:
        report = json.loads(done.stdout)
        ok = report["status"] == done.returncode == 5 and report["diagnostics"][0]["code"] == "E0809"
        c.verdict("report of a difference", [] if ok else [f"exit {done.returncode}: {report}"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        c.verdict("report of a difference", [f"{error!r} in {done.stdout[:400]!r}"])
    c.left()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "OUT").mkdir()
        for file, data in FILES.items():
            (folder / file).write_bytes(data)
        subprocess.run([TILEASM, "as", "copy.tile", "-o", "copy.tilebc"], cwd=folder, check=True)
        whole = (folder / "copy.tilebc").read_bytes()
        (folder / "cut.tilebc").write_bytes(whole[:len(whole) // 2])
        checker = Checker(folder)
        for case in CASES:
            checker.case(*case)
        special(checker)
    print(f"{checker.passed} passed, {checker.failed} failed")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
