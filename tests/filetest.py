#!/usr/bin/env python3
"""Runs filetests: programs in text form that say in comments what must come of them.

Usage: filetest.py --tileasm PROGRAM [--tilevm PROGRAM] [--filter REGEX] [--update] [-j N] PATH...

Every .tile file below the paths has one or more lines `// RUN: COMMAND [OPTIONS]`:

  check      tileasm check: reads and validates. Errors must be exactly those that the file expects.
  parse      the same without validation.
  roundtrip  text -> text and text -> tilebc -> text give the same text again; the same with debug info.
             Options: --no-validate; --same-bytes: the printed text also gives the bytes that the file gives.
  print      tileasm dis with the options given; its output must have the lines of the CHECK comments.
  fmt        tileasm fmt gives the file itself: it is in canonical form.
  run        tilevm with the options given, on the arguments below.

Errors (check, parse). Each stands on the line that is wrong, or below it on lines of their own; all of them must
come, and no other:

  // ERROR E0501 text              an error with this code on this line, whose message contains the text
  // ERROR E0501@14 text           ... at column 14
  // ERROR-FILE E0301 text         an error without a line

Output (print):

  // CHECK: text                   a line of the output, without indentation; in this order, others may stand between
  // CHECK-NOT: text               no line of the output contains the text

Launches (run). Arguments in the order of the entry's parameters:

  // SCALAR [NAME] i32 5           decimal, nan, inf, true, false, or 0x and the bits
  // BUFFER NAME f32[2,2] = VALUES a pointer to an array; VALUES separated by commas in row-major order, one alone
                                   fills the array, iota counts
  // BUFFER NAME f32[64] := normal(seed=1)   a generator of spec/launch.md
  // ARRAY NAME ...                as BUFFER, passed as pointer, extents and strides
  // EXPECT NAME = VALUES RULE     what the array holds afterwards; RULE: bits, exact (the default; any NaN for a
                                   NaN), ulp N, rel X, abs X
  // PRINTS text                   a line that the kernel prints; all of them, in any order
  // TRAP T0101                    the run ends with this trap

--update replaces CHECK lines by the whole output, and adds or corrects ERROR comments with code, column and
message: read the difference.
Prints "N passed, N failed"; exits with 1 if anything failed, 2 if there is nothing to run.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from filetest_values import ValueError_, encode, read_npy, same, show, values, write_npy

TIMEOUT = 120  # seconds for one command
RUN = re.compile(r"^\s*// RUN: (\w+)\s*(.*?)\s*$")
ERROR = re.compile(r"// (ERROR|ERROR-FILE) ([A-Z]\d{4})(?:@(\d+))?(?: (.*?))?\s*$")
CHECK = re.compile(r"^\s*// (CHECK|CHECK-NOT): ?(.*?)\s*$")
BUFFER = re.compile(r"^\s*// (BUFFER|ARRAY) (\w+) (\w+)\[([\d, ]*)\] (=|:=) (.*?)\s*$")
SCALAR = re.compile(r"^\s*// SCALAR (?:(\w+) )?(\w+) (\S+)\s*$")
EXPECT = re.compile(r"^\s*// EXPECT (\w+) = (.*?)(?: (bits|exact|(?:ulp|rel|abs) [\d.e+-]+))?\s*$")
PRINTS = re.compile(r"^\s*// PRINTS (.*?)\s*$")
TRAP = re.compile(r"^\s*// TRAP ([A-Z]\d{4})\s*$")
WORDS = re.compile(r"^\s*// (RUN|ERROR|ERROR-FILE|CHECK|CHECK-NOT|BUFFER|ARRAY|SCALAR|EXPECT|PRINTS|TRAP)\b")


class Failed(Exception):
    pass


def command(args, stdin=None):
    try:
        done = subprocess.run(args, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise Failed(f"{shlex.join(args)}: no end after {TIMEOUT} s") from None
    if done.returncode < 0:
        raise Failed(f"{shlex.join(args)}: ended by signal {-done.returncode}\n{done.stderr.decode(errors='replace')}")
    return done


def must(args, stdin=None):
    done = command(args, stdin)
    if done.returncode != 0:
        raise Failed(f"{shlex.join(args)}: exit status {done.returncode}\n{done.stderr.decode(errors='replace')}")
    return done.stdout


def first_difference(a, b):
    a, b = a.decode(errors="replace").splitlines(), b.decode(errors="replace").splitlines()
    for i in range(max(len(a), len(b))):
        x, y = (lines[i] if i < len(lines) else "(end)" for lines in (a, b))
        if x != y:
            return f"line {i + 1}\n  first:  {x}\n  second: {y}"
    return "only in line ends"


class Test:
    def __init__(self, path, tools, update):
        self.path, self.tools, self.update = path, tools, update
        self.lines = path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
        self.runs = [m.groups() for m in map(RUN.match, self.lines) if m]
        for line in self.lines:
            self.reject_unread(line)

    def reject_unread(self, line):
        """A misspelt expectation must not pass as a remark."""
        m = WORDS.match(line)
        if not m:
            return
        patterns = {"RUN": RUN, "ERROR": ERROR, "ERROR-FILE": ERROR, "CHECK": CHECK, "CHECK-NOT": CHECK, "BUFFER": BUFFER, "ARRAY": BUFFER,
                    "SCALAR": SCALAR, "EXPECT": EXPECT, "PRINTS": PRINTS, "TRAP": TRAP}
        if not patterns[m.group(1)].search(line):
            raise Failed(f"cannot read the line: {line.strip()}")

    def tileasm(self, *args):
        return [self.tools.tileasm, *args]

    # Errors.

    def expected_errors(self):
        expected, code_line = [], 0
        for number, line in enumerate(self.lines, 1):
            m = ERROR.search(line)
            alone = line.strip().startswith("//")
            if line.strip() and not alone:
                code_line = number
            if m:
                at = None if m.group(1) == "ERROR-FILE" else code_line
                expected.append((at, m.group(2), int(m.group(3)) if m.group(3) else None, m.group(4) or ""))
        return expected

    def run_check(self, args):
        self.compare_errors(self.tileasm("check", "--diagnostics", "json", *args, str(self.path)))

    def run_parse(self, args):
        self.compare_errors(self.tileasm("dis", "--diagnostics", "json", "-o", os.devnull, *args, str(self.path)))

    def compare_errors(self, args):
        done = command(args)
        found = [json.loads(line) for line in done.stderr.decode(errors="replace").splitlines() if line.startswith("{")]
        found = [f for f in found if f["severity"] == "error"]
        if (done.returncode == 0) != (not found):
            raise Failed(f"exit status {done.returncode} with {len(found)} errors\n{done.stderr.decode(errors='replace')}")
        left, missing = list(found), []
        for line, code, column, text in self.expected_errors():
            hit = next((f for f in left if f["code"] == code and f.get("line") == line and text in f["message"] and
                        (column is None or f.get("column") == column)), None)
            if hit is None:
                missing.append(f"  missing: line {line}: {code}{f'@{column}' if column else ''} {text}")
            else:
                left.remove(hit)
        unexpected = [f"  not expected: line {f.get('line')}: {f['code']}@{f.get('column')} {f['message']}" for f in left]
        if not missing and not unexpected:
            return
        if self.update:
            return self.write_errors(found)
        raise Failed("errors differ\n" + "\n".join(missing + unexpected))

    def write_errors(self, found):
        lines = [ERROR.sub("", line).rstrip() if ERROR.search(line) else line for line in self.lines]
        kept = [(number, line) for number, line in enumerate(lines, 1) if line.strip() or not self.lines[number - 1].strip()]
        out = []
        for number, line in kept:
            here = [f for f in found if f.get("line") == number]
            for i, f in enumerate(here):
                note = f"// ERROR {f['code']}@{f['column']} {f['message']}"
                if i == 0:
                    line += "  " + note
                else:
                    line += "\n    " + note
            out.append(line)
        for f in found:
            if f.get("line") is None:
                out.insert(1, f"// ERROR-FILE {f['code']} {f['message']}")
        self.write(out)

    def write(self, lines):
        text = "\n".join(lines)
        self.path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8", errors="surrogateescape")
        self.lines = text.split("\n")

    # Text.

    def run_roundtrip(self, args):
        same_bytes = "--same-bytes" in args
        args = [a for a in args if a != "--same-bytes"]
        path = str(self.path)
        with tempfile.TemporaryDirectory() as folder:
            code = os.path.join(folder, "a.tilebc")
            again = os.path.join(folder, "b.tilebc")
            must(self.tileasm("as", *args, path, "-o", code))
            for debug in ([], ["--debug-info"]):
                text = must(self.tileasm("dis", *debug, path))
                second = must(self.tileasm("dis", *debug, "-"), text)
                if second != text:
                    raise Failed("text -> text -> text differs at " + first_difference(text, second))
                from_code = must(self.tileasm("dis", *debug, code))
                if from_code != text:
                    raise Failed("text -> tilebc -> text differs at " + first_difference(text, from_code))
            must(self.tileasm("as", *args, "-", "-o", again), text)
            if same_bytes:
                with open(code, "rb") as a, open(again, "rb") as b:
                    if a.read() != b.read():
                        raise Failed("text -> tilebc and text -> text -> tilebc give different bytes")

    def run_print(self, args):
        output = must(self.tileasm("dis", *args, str(self.path))).decode(errors="surrogateescape").splitlines()
        checks = [(m.group(1), m.group(2)) for m in map(CHECK.match, self.lines) if m]
        try:
            self.match_checks(output, checks)
        except Failed:
            if not self.update:
                raise
            kept = [line for line in self.lines if not (CHECK.match(line) and CHECK.match(line).group(1) == "CHECK")]
            while kept and not kept[-1].strip():
                kept.pop()
            self.write(kept + [f"// CHECK: {line.strip()}" for line in output if line.strip()])

    @staticmethod
    def match_checks(output, checks):
        if not any(kind == "CHECK" for kind, _ in checks):
            raise Failed("there is no CHECK line")
        at = 0
        for kind, text in checks:
            if kind == "CHECK-NOT":
                if any(text in line for line in output):
                    raise Failed(f"CHECK-NOT: {text}: is in the output")
                continue
            start = at
            while at < len(output) and output[at].strip() != text.strip():
                at += 1
            if at == len(output):
                where = "\n  ".join(output[start:start + 6])
                raise Failed(f"CHECK: {text}: is not in the output, which goes on with\n  {where}")
            at += 1

    def run_fmt(self, args):
        output = must(self.tileasm("fmt", *args, str(self.path)))
        with open(self.path, "rb") as f:
            own = f.read()
        if output == own:
            return
        if self.update:
            self.path.write_bytes(output)
            return
        raise Failed("not in canonical form: file and tileasm fmt differ at " + first_difference(own, output))

    # Launches.

    def run_run(self, args):
        if not self.tools.tilevm:
            raise Failed("--tilevm is needed for RUN: run")
        with tempfile.TemporaryDirectory() as folder:
            call, buffers = [self.tools.tilevm, *args, "--diagnostics", "json"], {}
            call += self.arguments(folder, buffers)
            call.append(str(self.path))
            done = command(call)
            self.compare_outcome(done)
            for line in self.lines:
                if m := EXPECT.match(line):
                    self.compare_buffer(folder, buffers, *m.groups())

    def arguments(self, folder, buffers):
        call, expected = [], [m.group(1) for m in map(EXPECT.match, self.lines) if m]
        for line in self.lines:
            if m := SCALAR.match(line):
                name, kind, text = m.groups()
                bits = encode(kind, text)
                call += ["--arg", (f"{name}=" if name else "") + f"{kind}:{bits if kind == 'i1' else hex(bits)}"]
            elif m := BUFFER.match(line):
                way, name, kind, dims, sign, text = m.groups()
                shape = [int(d) for d in dims.split(",") if d.strip()]
                buffers[name] = (kind, shape)
                way = "ptr" if way == "BUFFER" else "array"
                if sign == ":=":
                    source = f"{kind}[{','.join(map(str, shape))}]={text}"
                else:
                    count = 1
                    for d in shape:
                        count *= d
                    path = os.path.join(folder, name + ".npy")
                    write_npy(path, kind, shape, values(kind, text, count))
                    source = f"{kind}:{path}"
                call += ["--arg", f"{name}={way}:{source}"]
                if name in expected:
                    call += ["--out", f"{name}={os.path.join(folder, name + '.out.npy')}"]
        return call

    def compare_outcome(self, done):
        trap = next((m.group(1) for m in map(TRAP.match, self.lines) if m), None)
        codes = [json.loads(line)["code"] for line in done.stderr.decode(errors="replace").splitlines() if line.startswith("{")]
        if trap is None and done.returncode != 0:
            raise Failed(f"exit status {done.returncode}\n{done.stderr.decode(errors='replace')}")
        if trap is not None and (done.returncode != 4 or trap not in codes):
            raise Failed(f"exit status {done.returncode}, codes {codes}, expected the trap {trap}")
        printed = sorted(line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip())
        expected = sorted(m.group(1) for m in map(PRINTS.match, self.lines) if m)
        if expected and printed != expected:
            raise Failed("prints differ\n  found:    " + "\n            ".join(printed) + "\n  expected: " + "\n            ".join(expected))

    def compare_buffer(self, folder, buffers, name, text, rule):
        if name not in buffers:
            raise Failed(f"EXPECT {name}: there is no such buffer")
        kind, shape = buffers[name]
        found_shape, found = read_npy(os.path.join(folder, name + ".out.npy"), kind)
        if list(found_shape) != shape:
            raise Failed(f"{name}: shape is {found_shape}, expected {tuple(shape)}")
        expected = values(kind, text, len(found))
        word, _, allowed = (rule or "exact").partition(" ")
        wrong = [i for i, (f, e) in enumerate(zip(found, expected)) if not same(kind, f, e, word, float(allowed or 0))]
        if wrong:
            i = wrong[0]
            raise Failed(f"{name}: {len(wrong)} of {len(found)} elements differ ({rule or 'exact'}); element {i} is {show(kind, found[i])}, "
                         f"expected {show(kind, expected[i])}")

    def run(self):
        """Runs every RUN line; returns (command, what went wrong or None) of each."""
        results = []
        for name, options in self.runs:
            method = getattr(self, "run_" + name, None)
            try:
                if method is None:
                    raise Failed(f"there is no command '{name}'")
                method(shlex.split(options))
                results.append((name, None))
            except (Failed, ValueError_) as e:
                results.append((name, str(e)))
            except OSError as e:
                results.append((name, f"{e.filename}: {e.strerror}"))
        return results or [("", "there is no RUN line")]


def run_file(path, tools, update):
    try:
        return Test(path, tools, update).run()
    except Failed as e:
        return [("", str(e))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tileasm", required=True)
    parser.add_argument("--tilevm")
    parser.add_argument("--filter", default="", help="only files whose path matches this expression")
    parser.add_argument("--update", action="store_true", help="rewrite what print, fmt, check and parse expect")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    tools = parser.parse_args()
    files = []
    for path in tools.paths:
        files += sorted(path.rglob("*.tile")) if path.is_dir() else [path]
    files = [f for f in files if re.search(tools.filter, str(f))]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, tools.jobs)) as pool:
        for path, results in zip(files, pool.map(lambda f: run_file(f, tools, tools.update), files)):
            for name, problem in results:
                if problem is None:
                    passed += 1
                else:
                    failed += 1
                    print(f"FAIL {path} ({name}): {problem}")
    print(f"{passed} passed, {failed} failed")
    if passed + failed == 0:
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
