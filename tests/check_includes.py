#!/usr/bin/env python3
"""Checks the #include lines of all sources against the order of the folders, and the length of the files.

Usage: check_includes.py SOURCE_DIR | check_includes.py --self-test
"""
import os
import re
import sys
import tempfile

LONGEST = 800  # lines of a file

# folder: folders whose headers it may include besides its own. The longest matching prefix of a path decides.
MAY_INCLUDE = {
    "vm/base": [],
    "vm/ops": ["vm/base"],
    "vm/ir": ["vm/ops", "vm/base"],
    "vm/codec": ["vm/ir", "vm/ops", "vm/base"],
    "vm/validate": ["vm/ir", "vm/ops", "vm/base"],
    "vm/random": ["vm/ir", "vm/ops", "vm/base"],
    "vm/interp": ["vm/ir", "vm/ops", "vm/base"],
    "assembler": ["vm/ir", "vm/ops", "vm/base"],
    "backend/plan": ["backend/compile.h", "vm/ir", "vm/ops", "vm/base"],
    "backend/emulate": ["backend/compile.h", "vm/ir", "vm/ops", "vm/base"],
    "backend/ptx": ["backend/plan", "backend/emulate", "backend/compile.h", "vm/ir", "vm/ops", "vm/base"],
    "backend/cuda": ["vm/base"],
    "backend/device": ["backend", "vm"],
    "vm/include": [],
    "vm/runtime": ["vm/interp", "vm/validate", "vm/codec", "assembler", "vm/ir", "vm/ops", "vm/base", "vm/include"],
    "vm/capi": ["vm", "assembler"],
    "conformance": ["vm", "assembler"],
    "tools": ["vm", "assembler", "backend", "conformance"],
    "examples": ["vm/include"],
    "tests": ["vm", "assembler", "backend", "tools", "conformance"],
}

# Headers that only these folders may include, each with the rule in words.
RESERVED = [
    (re.compile(r"^(llvm|llvm-c|mlir|clang|lld)/"),
     ["backend/ptx", "tests/unit/backend_scalar_kit.h", "tests/unit/backend_scalar_test.cpp"], "LLVM headers belong in backend/ptx"),
    (re.compile(r"^(cuda|cuda_runtime|cuda_runtime_api|nvrtc|nvJitLink|nvPTXCompiler)\.h$"), ["backend/cuda"],
     "driver headers belong in backend/cuda"),
    (re.compile(r"(^|/)\w+_generated\.h$|^flatbuffers/"), ["vm/codec", "examples/bindings"],
     "FlatBuffers and its generated headers belong in vm/codec"),
    (re.compile(r"^(spdlog|CLI|fmt)/"), ["tools"], "spdlog and CLI11 belong in tools"),
    (re.compile(r"^nlohmann/"), ["vm/base", "vm/runtime", "vm/capi", "tools", "tests", "conformance"],
     "JSON belongs in vm/base, vm/runtime, vm/capi and tools"),
    (re.compile(r"^doctest/"), ["tests"], "doctest belongs in tests"),
    (re.compile(r"^benchmark/"), ["tools/bench"], "benchmark belongs in tools/bench"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCE = (".h", ".cpp", ".inc", ".cc", ".hpp", ".c")
TEXT = SOURCE + (".py", ".cmake", ".sh", ".fbs")
OURS = ("vm/", "assembler/", "backend/", "conformance/", "tools/", "tests/")
SKIPPED = {".git", "build", "__pycache__", ".venv", ".cache"}


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def folder_of(path):
    found = [folder for folder in MAY_INCLUDE if within(path, folder)]
    return max(found, key=len) if found else None


def check_include(path, quote, header):
    """The rule that this include breaks, or None."""
    folder = folder_of(path)
    for pattern, folders, rule in RESERVED:
        if pattern.search(header) and not any(within(path, allowed) for allowed in folders):
            return rule
    if folder == "vm/include":
        if quote == '"' and header.startswith("tilevm/"):
            return None
        if "/" in header or (quote == '"' and header.endswith(".h")):
            return "public headers include the standard library and each other only"
        return None
    if header.startswith("tilevm/"):
        header = "vm/include/" + header
    elif not header.startswith(OURS):
        generated = header.endswith("_generated.h") or header == "tilevm_build_info.h"
        helper = folder == "tests" and "/" not in header  # a helper beside its test
        if quote == '"' and folder is not None and not generated and not helper:
            return "headers of this project are named from the root of the source tree"
        return None
    if folder is None or within(header, folder):
        return None
    if not any(within(header, allowed) for allowed in MAY_INCLUDE[folder]):
        return f"{folder} may not include {header}"
    return None


def check_tree(root):
    """All problems as 'file:line: text', and the number of files seen."""
    problems = []
    count = 0
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED and not n.startswith("build"))
        for name in sorted(files):
            if not name.endswith(TEXT):
                continue
            count += 1
            full = os.path.join(folder, name)
            path = os.path.relpath(full, root).replace(os.sep, "/")
            with open(full, encoding="utf-8", errors="replace") as file:
                lines = file.read().split("\n")
            if len(lines) - 1 > LONGEST:
                problems.append(f"{path}:{LONGEST + 1}: the file has {len(lines) - 1} lines, more than {LONGEST}: split it")
            if not name.endswith(SOURCE):
                continue
            for number, line in enumerate(lines, 1):
                match = INCLUDE.match(line)
                rule = check_include(path, match.group(1), match.group(2)) if match else None
                if rule:
                    problems.append(f"{path}:{number}: {rule}")
    return problems, count


# Planted faults: path, text, and the words of the problem that must be found (None: no problem).
PLANTED = [
    ("vm/base/a.h", '#include "vm/ops/op_table.h"', "vm/base may not include vm/ops/op_table.h"),
    ("vm/base/b.h", '#include <vector>\n#include "vm/base/a.h"', None),
    ("vm/ops/a.cpp", '#include "vm/ir/module.h"', "vm/ops may not include"),
    ("vm/ir/a.cpp", '#include "vm/ops/op_table.h"', None),
    ("vm/codec/a.cpp", '#include "tile_generated.h"', None),
    ("vm/runtime/gen.cpp", '#include "tile_generated.h"', "belong in vm/codec"),
    ("vm/runtime/gen2.cpp", "#include <flatbuffers/flatbuffers.h>", "belong in vm/codec"),
    ("vm/interp/a.cpp", '#include "backend/plan/layout.h"', "vm/interp may not include"),
    ("backend/plan/a.cpp", '#include "vm/interp/tile.h"', "backend/plan may not include"),
    ("backend/ptx/a.cpp", "#include <llvm/IR/Module.h>", None),
    ("backend/plan/b.cpp", "#  include <llvm/IR/Module.h>", "belong in backend/ptx"),
    ("backend/cuda/a.cpp", "#include <cuda.h>", None),
    ("backend/ptx/b.cpp", "#include <cuda.h>", "belong in backend/cuda"),
    ("tools/tilevm.cpp", '#include <CLI/CLI.hpp>\n#include "vm/runtime/device.h"', None),
    ("vm/runtime/log.cpp", "#include <spdlog/spdlog.h>", "belong in tools"),
    ("vm/codec/json.cpp", "#include <nlohmann/json.hpp>", "JSON belongs"),
    ("vm/include/tilevm/a.h", '#include <stdint.h>\n#include "tilevm/b.h"', None),
    ("vm/include/tilevm/c.h", '#include "vm/base/result.h"', "public headers include"),
    ("assembler/parser.cpp", '#include "assembler/lexer.h"', None),
    ("assembler/parser2.cpp", '#include "lexer.h"', "named from the root"),
    ("assembler/parser3.cpp", '#include "vm/validate/validate.h"', "assembler may not include"),
    ("tests/unit/a_test.cpp", '#include "assembler/lexer.h"\n#include <doctest/doctest.h>', None),
    ("tests/unit/b_test.cpp", '#include "temp_dir.h"', None),
    ("vm/ir/long.cpp", "\n" * (LONGEST + 1), "split it"),
    ("vm/ir/nearly.cpp", "\n" * LONGEST, None),
]


def self_test():
    failures = []
    with tempfile.TemporaryDirectory() as root:
        for path, text, _ in PLANTED:
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        problems, count = check_tree(root)
    if count != len(PLANTED):
        failures.append(f"saw {count} of {len(PLANTED)} files")
    for path, _, words in PLANTED:
        found = [p for p in problems if p.startswith(path + ":")]
        if words is None and found:
            failures.append(f"reported without reason: {found[0]}")
        if words is not None and not any(words in p for p in found):
            failures.append(f"not found: {path}: {words}")
    for failure in failures:
        print(failure)
    print(f"self-test: {len(PLANTED) - len(failures)} of {len(PLANTED)} as expected")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        print(__doc__)
        return 2
    problems, count = check_tree(sys.argv[1])
    for problem in problems:
        print(problem)
    print(f"{count} files, {len(problems)} problems")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
