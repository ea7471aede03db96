#!/usr/bin/env python3
"""filetest.py reports what is wrong: each case here is a small test file and whether it must pass."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNNER = ROOT / "tests" / "filetest.py"

GOOD = "cuda_tile.module @m {\n  entry @k(%x: tile<i32>) {\n    %a = addi %x, %x : tile<i32>\n    return\n  }\n}\n"
WRONG = "cuda_tile.module @m {\n  entry @k(%x: tile<i32>) {\n    %a = addi %x, %x : tile<i64>NOTE\n    return\n  }\n}\n"


def wrong(note):
    """A text with one error on its third line, with this behind it."""
    return WRONG.replace("NOTE", note)


ADD = """cuda_tile.module @m {{
  entry @k(%x: tile<ptr<f32>>, %c: tile<f32>) {{
    %p = reshape %x : tile<ptr<f32>> -> tile<1xptr<f32>>
    %q = broadcast %p : tile<1xptr<f32>> -> tile<4xptr<f32>>
    %i = iota : tile<4xi32>
    %r = offset %q, %i : tile<4xptr<f32>>, tile<4xi32> -> tile<4xptr<f32>>
    %v, %t = load_ptr_tko weak %r : tile<4xptr<f32>> -> tile<4xf32>, token
    %d = reshape %c : tile<f32> -> tile<1xf32>
    %e = broadcast %d : tile<1xf32> -> tile<4xf32>
    %s = addf %v, %e : tile<4xf32>
    %u = store_ptr_tko weak %r, %s token=%t : tile<4xptr<f32>>, tile<4xf32> -> token
{}  }}
}}
"""
ARGS = "// BUFFER x f32[4] = 1.0, -0.0, nan, 0x3F800000\n// SCALAR f32 0.5\n"
RESULT = "[1.5, 0.5, nan, 1.5]"
ASSERT = "    %f = constant <i1: false> : tile<i1>\n    assert %f, \"no\" : tile<i1>\n"

# name: (text of the file, must pass)
CASES = {
    "check good": ("// RUN: check\n" + GOOD, True),
    "check finds an unexpected error": ("// RUN: check\n" + wrong(""), False),
    "check expects the error": ("// RUN: check\n" + wrong("  // ERROR E0501@24 found type tile<i64>"), True),
    "check with another code": ("// RUN: check\n" + wrong("  // ERROR E0502@24"), False),
    "check with another column": ("// RUN: check\n" + wrong("  // ERROR E0501@23"), False),
    "check with another text": ("// RUN: check\n" + wrong("  // ERROR E0501 found type tile<i63>"), False),
    "check on another line": ("// RUN: check\n" + wrong("").replace("return", "return  // ERROR E0501"), False),
    "check below the line": ("// RUN: check\n" + wrong("\n    // ERROR E0501 found type tile<i64>"), True),
    "check with an error too many": ("// RUN: check\n" + wrong("  // ERROR E0501\n    // ERROR E0501"), False),
    "check expects an error that does not come": ("// RUN: check\n" + GOOD.replace("return", "return  // ERROR E0501"), False),
    "parse does not validate": ("// RUN: parse\n" + GOOD.replace("addi", "addf"), True),
    "check validates": ("// RUN: check\n" + GOOD.replace("addi", "addf"), False),
    "fmt of canonical text": ("// RUN: fmt\n" + GOOD, True),
    "fmt of other text": ("// RUN: fmt\n" + GOOD.replace("%x, %x", "%x,%x"), False),
    "roundtrip": ("// RUN: roundtrip --same-bytes\n" + GOOD, True),
    "print with its lines": ("// RUN: print\n" + GOOD + "// CHECK: %a = addi %x, %x : tile<i32>\n// CHECK: return\n", True),
    "print with a wrong line": ("// RUN: print\n" + GOOD + "// CHECK: %a = addi %x, %x : tile<i33>\n", False),
    "print with lines out of order": ("// RUN: print\n" + GOOD + "// CHECK: return\n// CHECK: %a = addi %x, %x : tile<i32>\n", False),
    "print without lines": ("// RUN: print\n" + GOOD, False),
    "print with a forbidden text": ("// RUN: print\n" + GOOD + "// CHECK: return\n// CHECK-NOT: addi\n", False),
    "two commands, one fails": ("// RUN: check\n// RUN: fmt\n" + GOOD.replace("%x, %x", "%x,%x"), False),
    "no command": (GOOD, False),
    "an unknown command": ("// RUN: chekc\n" + GOOD, False),
    "an unreadable expectation": ("// RUN: check\n// ERROR 501 x\n" + GOOD, False),
    "run with the result": ("// RUN: run\n" + ARGS + "// EXPECT x = " + RESULT + "\n" + ADD.format(""), True),
    "run with another result": ("// RUN: run\n" + ARGS + "// EXPECT x = [1.5, 0.5, nan, 1.25]\n" + ADD.format(""), False),
    "run with a result of another sign": ("// RUN: run\n" + ARGS.replace("0.5", "0.0") + "// EXPECT x = [1.0, -0.0, nan, 1.0]\n" + ADD.format(""), False),
    "run within ulps": ("// RUN: run\n" + ARGS + "// EXPECT x = [0x3FC00001, 0.5, nan, 1.5] ulp 1\n" + ADD.format(""), True),
    "run beyond ulps": ("// RUN: run\n" + ARGS + "// EXPECT x = [0x3FC00002, 0.5, nan, 1.5] ulp 1\n" + ADD.format(""), False),
    "run with too few values": ("// RUN: run\n" + ARGS + "// EXPECT x = [1.5, 0.5]\n" + ADD.format(""), False),
    "run with an unexpected trap": ("// RUN: run\n" + ARGS + ADD.format(ASSERT), False),
    "run with its trap": ("// RUN: run\n// TRAP T0102\n" + ARGS + ADD.format(ASSERT), True),
    "run with another trap": ("// RUN: run\n// TRAP T0101\n" + ARGS + ADD.format(ASSERT), False),
    "run without its trap": ("// RUN: run\n// TRAP T0102\n" + ARGS + ADD.format(""), False),
    "run with what it prints": ("// RUN: run\n// PRINTS hello\n" + ARGS + ADD.format("    %pr = print_tko \"hello\\0A\" -> token\n"), True),
    "run with another print": ("// RUN: run\n// PRINTS hallo\n" + ARGS + ADD.format("    %pr = print_tko \"hello\\0A\" -> token\n"), False),
}


def run(*args):
    done = subprocess.run([sys.executable, str(RUNNER), "--tileasm", os.environ["TILEASM"], "--tilevm", os.environ["TILEVM"], *args],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def main():
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (text, good)) in enumerate(CASES.items()):
            path = pathlib.Path(folder) / f"case_{number}.tile"
            path.write_text(text)
            status, output = run(str(path))
            if (status == 0) != good:
                failures.append(f"{name}: exit status {status}\n{output}")
            if status == 0 and "0 failed" not in output:
                failures.append(f"{name}: passes without saying so\n{output}")
        # --update mends what it can, and the mended file passes.
        for name, text in {"errors": "// RUN: check\n" + wrong("  // ERROR E0101"), "output": "// RUN: print\n" + GOOD + "// CHECK: ?\n",
                           "format": "// RUN: fmt\n// a remark\n" + GOOD.replace("%x, %x", "%x,%x")}.items():
            path = pathlib.Path(folder) / f"update_{name}.tile"
            path.write_text(text)
            run("--update", str(path))
            status, output = run(str(path))
            if status != 0:
                failures.append(f"--update of {name}: {output}\n{path.read_text()}")
        empty = pathlib.Path(folder) / "empty"
        empty.mkdir()
        if run(str(empty))[0] != 2:
            failures.append("a folder without tests does not give status 2")
    print("\n".join(failures))
    print(f"{len(CASES) + 4 - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
