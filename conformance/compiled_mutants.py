#!/usr/bin/env python3
"""Tests the suite with this project's own machine: faults are compiled into it, one at a time, and must be caught.

compiled_mutants.py --build BUILD --suite CACHE [--only GLOB] [--write]

BUILD has tilevm_impl and compile_commands.json. For each mutant a copy of one source file is changed, compiled, and linked before the libraries
into a shared library with the suite's C interface; the sources stay as they are. A mutant whose line is no longer in its file must be brought
up to date. Mutants marked legal differ only where the language leaves room and must pass in the profile `language`. The score is kept in
compiled_mutants.json."""

import argparse
import fnmatch
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)

from runner import execute, report, suite  # noqa: E402

NUMERIC, SHAPE, REDUCE = "vm/base/numeric.cpp", "vm/interp/eval_shape.cpp", "vm/interp/eval_reduce.cpp"
ATOMIC, CONTROL, MATRIX = "vm/interp/eval_atomic.cpp", "vm/interp/eval_control.cpp", "vm/interp/eval_matrix.cpp"

# fmt: off
# name: (file, code as it is, code with the fault, cases that should show it, legal)
MUTANTS = {
    "numeric.ties_away": (NUMERIC, "return rest > half || (rest == half && odd);", "return rest >= half;", ["convert/ftof.*nearest_even*", "convert/ftof.*default*"]),
    "numeric.zero_rounds_down": (NUMERIC, "    case kZero:\n      return false;", "    case kZero:\n      return negative;", ["convert/ftof.*zero*"]),
    "numeric.overflow_stays_finite": (NUMERIC, "return mode == kZero || (mode == kNegativeInf && !negative) || (mode == kPositiveInf && negative);", "return mode != Rounding{};", ["convert/ftof.*_inf.*"]),
    "numeric.e8m0_off_by_one": (NUMERIC, "if (exponent < -127) return 0;", "if (exponent <= -127) return 1;", ["convert/ftof.*f8E8M0FNU*"]),
    "numeric.subnormals_lost": (NUMERIC, "if (shift > 62) shift = 62;", "if (subnormal) return with_sign(0);\n  if (shift > 62) shift = 62;", ["convert/ftof.*f8E*", "convert/ftof.*f4*"]),
    "numeric.sign_of_nan": (NUMERIC, "if (value != value) return canonical_nan(t);", "if (value != value) return canonical_nan(t) | (t == ElementType::F16 ? 0x8000 : 0);", ["convert/ftof.*f16*"], "legal"),
    "shape.cat_swapped": (SHAPE, "std::memcpy(to, lhs + i * d.lhs, d.lhs);\n    std::memcpy(to + d.lhs, rhs + i * d.rhs, d.rhs);", "std::memcpy(to, rhs + i * d.rhs, d.rhs);\n    std::memcpy(to + d.rhs, lhs + i * d.lhs, d.lhs);", ["shape/cat.*"]),
    "shape.index_may_equal_limit": (SHAPE, "if (index >= static_cast<uint64_t>(d.limits[k])) {", "if (index > static_cast<uint64_t>(d.limits[k])) {", ["traps/extract.*", "traps/insert.*"]),
    "shape.slice_is_element": (SHAPE, "offset += static_cast<int64_t>(index) * d.slice_strides[k];", "offset += static_cast<int64_t>(index);", ["shape/extract.*", "shape/insert.*"]),
    "shape.insert_forgets_destination": (SHAPE, "if (s.in[1] != s.out[0]) std::memcpy(to, x.at<std::byte>(s.in[1]), d.whole_bytes);", "if (s.in[1] != s.out[0]) std::memset(to, 0, d.whole_bytes);", ["shape/insert.*"]),
    "shape.insert_ignores_index": (SHAPE, "strided_copy(d.size, to + static_cast<size_t>(offset) * d.size, d.dst,", "strided_copy(d.size, to, d.dst,", ["shape/insert.*"]),
    "reduce.first_element_twice": (REDUCE, "if (step == 0) {", "if (step == 0 || (step == 1 && d.len > 64)) {", ["reduce_scan/*128*", "reduce_scan/*512*"]),
    "reduce.scan_ignores_reverse": (REDUCE, "const size_t j = d.reverse ? d.len - 1 - step : step;", "const size_t j = step;", ["reduce_scan/scan_reverse.*"]),
    "reduce.fast_forgets_modifiers": (REDUCE, "fast->modifiers = modifiers_of(f, r.begin);", "(void)r;", ["reduce_scan/*propagate*", "reduce_scan/*unsigned*"]),
    "reduce.and_is_or": (REDUCE, "case Opcode::AndI: return ReduceKind::AndI;", "case Opcode::AndI: return ReduceKind::OrI;", ["reduce_scan/*andi*"]),
    "atomic.max_is_unsigned": (ATOMIC, "case Mode::Max: return static_cast<S>(old) > static_cast<S>(arg) ? old : arg;", "case Mode::Max: return std::max(old, arg);", ["atomics/rmw.max.*", "atomics/red_view.max.*"]),
    "atomic.returns_new_value": (ATOMIC, "  return old;\n}\n\ntemplate <class F>", "  return combine(d, old, arg);\n}\n\ntemplate <class F>", ["atomics/rmw.*"]),
    "atomic.not_atomic": (ATOMIC, "  while (!at.compare_exchange_weak(old, combine(d, old, arg))) {\n  }\n", "  for (volatile int wait = 0; wait < 200; wait = wait + 1) {\n  }\n  at.store(combine(d, old, arg));\n", ["atomics/contended.*", "programs/histogram.*"]),
    "atomic.mask_ignored": (ATOMIC, "    if (mask && !mask[i]) {\n      x.unspecified", "    if (mask && !mask[i] && i > 0) {\n      x.unspecified", ["atomics/rmw.*mask*"]),
    "atomic.cas_always_stores": (ATOMIC, "T old = static_cast<T>(expected);\n      std::atomic_ref<T>(*reinterpret_cast<T*>(host)).compare_exchange_strong(old, static_cast<T>(read_bits(val, d.size, i)));", "T old = std::atomic_ref<T>(*reinterpret_cast<T*>(host)).exchange(static_cast<T>(read_bits(val, d.size, i)));", ["atomics/cas.*"]),
    "atomic.element_may_leave_buffer": (ATOMIC, "std::byte* host = x.memory.resolve(address, size);", "std::byte* host = x.memory.resolve(address, 1);", ["traps/*.cut_off.*", "traps/rmw.*"]),
    "control.for_includes_upper": (CONTROL, "for (; iv < upper; iv += step) {", "for (; iv <= upper; iv += step) {", ["control/for.*", "control/random.*"]),
    "control.for_always_signed": (CONTROL, "d->is_unsigned = f.attr(i, static_cast<size_t>(attr_index(f.def(i), \"unsignedCmp\"))) != 0;", "d->is_unsigned = false;", ["control/for.unsigned*"]),
    "control.step_unchecked": (CONTROL, "if (step <= 0 && iv < upper)", "if (step < 0 && iv < upper)", ["traps/for.*"]),
    "control.else_runs_then": (CONTROL, "x.run(s.body[0], s.body[1]) : x.run(s.body[1], s.body[2]);", "x.run(s.body[0], s.body[1]) : x.run(s.body[0], s.body[1]);", ["control/*"]),
}
# fmt: on


class Builder:
    """Compiles and links mutants with the commands of a build folder."""

    def __init__(self, build, folder):
        self.build, self.folder = os.path.abspath(build), folder
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
            self.commands = {os.path.relpath(c["file"], ROOT): c for c in json.load(f)}
        self.adapter = self.compile("conformance/abi/tilevm_impl.cpp", None, "impl")

    def compile(self, source, change, name):
        command = self.commands[source]
        words = shlex.split(command["command"])
        at, out = words.index("-o"), os.path.join(self.folder, name + ".o")
        words[at + 1] = out
        if change:
            with open(os.path.join(ROOT, source), encoding="utf-8") as f:
                text = f.read()
            if text.count(change[0]) != 1:
                raise ValueError(f"the code to change is {text.count(change[0])} times in {source}")
            copy = os.path.join(self.folder, f"{name}_{os.path.basename(source)}")
            with open(copy, "w", encoding="utf-8") as f:
                f.write(text.replace(*change))
            words = [copy if w == command["file"] else w for w in words if not w.startswith("-Werror")]
            words += ["-I", os.path.join(ROOT, os.path.dirname(source)), "-w"]
        done = subprocess.run(words, cwd=command["directory"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(f"does not compile: {done.stderr[-600:]}")
        return out

    def library(self, source, change, name):
        out = os.path.join(self.folder, f"lib{name}.so")
        objects = [self.adapter, self.compile(source, change, name)]
        archives = [os.path.join(self.build, n) for n in sorted(os.listdir(self.build)) if n.startswith("libtile_")]
        archives = [a for a in archives if a.endswith(".a")]
        compiler = shlex.split(self.commands[source]["command"])
        compiler = [w for w in compiler[: compiler.index("-o")] if not w.startswith("-") and not w.endswith("ccache")][
            0
        ]
        words = [compiler, "-shared", "-o", out, *objects, "-Wl,--start-group", *archives, "-Wl,--end-group"]
        done = subprocess.run(words + ["-lzstd", "-lpthread"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(f"does not link: {done.stderr[-600:]}")
        return out


def verdicts(library, cases, profile):
    command = execute.command_of(library)
    can = {**execute.describe(command), "profile": profile}
    options = {
        "timeout": 10,
        "form": "text",
        "jobs": os.cpu_count() or 1,
        "tmp": "/dev/shm" if os.path.isdir("/dev/shm") else None,
    }
    out = {}
    execute.run_all(command, can, cases, options, lambda r: out.__setitem__(r["case"], r["verdict"]))
    return out


def main():
    p = argparse.ArgumentParser(description="Compiles faults into the machine; the suite must catch them.")
    p.add_argument("--build", required=True, metavar="DIR")
    p.add_argument("--suite", action="append", required=True, metavar="PATH")
    p.add_argument("--only", action="append", default=[], metavar="GLOB", help="mutants")
    p.add_argument("--most", type=int, default=60, help="cases for each mutant and pattern")
    p.add_argument("--write", action="store_true", help="write compiled_mutants.json")
    a = p.parse_args()
    everything = suite.find(a.suite, threading.Lock())
    path = os.path.join(HERE, "compiled_mutants.json")
    scores, missed, start = {}, [], time.monotonic()
    if os.path.exists(path) and a.only:
        with open(path, encoding="utf-8") as f:
            scores = json.load(f)
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(a.build, folder)
        for name, (source, old, new, patterns, *rest) in MUTANTS.items():
            if a.only and not any(fnmatch.fnmatchcase(name, g) for g in a.only):
                continue
            chosen = {}
            for pattern in patterns:
                some = [c for c in everything if fnmatch.fnmatchcase(c.name, pattern)]
                step = max(1, len(some) // a.most)
                chosen.update({c.name: c for c in some[::step][: a.most]})
            try:
                library = builder.library(source, (old, new), name.replace(".", "_"))
            except ValueError as e:
                print(f"STALE  {name}: {e}", flush=True)
                missed.append(name)
                continue
            legal = "legal" in rest
            profile = "language" if legal else "tilevm"
            found = verdicts(library, [chosen[n] for n in sorted(chosen)], profile)
            judged = [v for v in found.values() if v not in ("unsupported", "skipped")]
            caught = sum(v in report.FAILURES for v in judged)
            scores[name] = {
                "file": source,
                "cases": len(judged),
                "caught": caught,
                **({"legal": True} if legal else {}),
            }
            good = judged and (caught == 0 if legal else caught > 0)
            if not good:
                missed.append(name)
            note = " (legal: none may be)" if legal else ""
            print(f"{'ok    ' if good else 'MISSED'} {name:34} {caught} of {len(judged)}{note}", flush=True)
    print(
        f"{len(scores) - len(missed)} of {len(scores)} mutants judged rightly in {time.monotonic() - start:.0f} s"
        + (f"; not: {', '.join(missed)}" if missed else "")
    )
    if a.write:
        scores = {n: scores[n] for n in MUTANTS if n in scores}
        with open(path, "w", encoding="utf-8") as f:
            f.write("{\n" + ",\n".join(f" {json.dumps(n)}: {json.dumps(s)}" for n, s in scores.items()) + "\n}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
