#!/usr/bin/env python3
"""The schema is an evolution of each released one, and files written by stock FlatBuffers tools are good tilebc.

Environment: SOURCE_DIR, TILEASM.  Needs flatc, as the build does; the Python example also runs where the module flatbuffers exists."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
TILEASM = os.environ.get("TILEASM", "tileasm")
FLATC = shutil.which("flatc")
SCHEMA = ROOT / "schema" / "tile.fbs"

# Changes that would break readers of older files; the comparison must find each.
BREAKING = [
    ("  operands:uint32;", "  operands:uint16;"),
    ("  name:uint32 = 4294967295 (id: 3);", "  name:uint64 = 4294967295 (id: 3);"),
    ("  padding:uint32 = 4294967295 (id: 6);", "  padding:uint32 (id: 6);"),
    ("  insts:[Inst] (id: 5);", "  insts:[Region] (id: 5);"),
]
# And some that do not.
HARMLESS = [
    ("  order:[uint32] (id: 12);", "  order:[uint32] (id: 12);\n  later:uint32 (id: 13);"),
    ("root_type Module;", "table Later { x:int; }\nroot_type Module;"),
]

NEGATE = """entry @negate(%arg0: tile<ptr<f32>>) {
  %0, %1 = load_ptr_tko weak %arg0 : tile<ptr<f32>> -> tile<f32>, token
  %2 = negf %0 : tile<f32>
  %3 = store_ptr_tko weak %arg0, %2 : tile<ptr<f32>>, tile<f32> -> token
  return
}"""
NONE = 0xFFFFFFFF
AS_JSON = {
    "format_major": 1,
    "version_minor": 1,
    "name": 0,
    "strings": ["kernels", "negate"],
    "types": [{"element": 7}, {"kind": 1, "inner": 0}, {"kind": 2, "inner": 1}, {"kind": 2, "inner": 0}, {"kind": 7}],
    "locs": [{}],
    "functions": [{
        "name": 1,
        "params": [2],
        "insts": [{"opcode": op, "reserved": 0, "operands": operands, "results": results}
                  for op, operands, results in ((0x3D, 1, 2), (0x4F, 1, 1), (0x65, 2, 1), (0x5C, 0, 0))],
        "words": [1, 0, 0, 0, 0, 0, NONE, NONE, 3, 4, 0,
                  1, 3, 0,
                  1, 1, 0, 0, 0, 3, 0, NONE, NONE, 4, 0,
                  0],
    }],
}


def run(*command, **options):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


def conforms(old, new):
    return run(FLATC, "--conform", old, new).returncode == 0


def check_evolution(folder):
    faults = []
    released = sorted((ROOT / "schema").glob("v*/tile.fbs"))
    if not released:
        faults.append("there is no released schema")
    for old in released:
        if not conforms(old, SCHEMA):
            faults.append(f"{SCHEMA.name} is no evolution of {old.relative_to(ROOT)}")
    text = SCHEMA.read_text()
    for changes, expected in ((BREAKING, False), (HARMLESS, True)):
        for before, after in changes:
            if before not in text:
                faults.append(f"the schema has no line '{before.strip()}': correct this test")
            changed = folder / "changed.fbs"
            changed.write_text(text.replace(before, after))
            if conforms(SCHEMA, changed) != expected:
                faults.append(f"'{after.strip()}' counts as {'breaking' if expected else 'harmless'}")
    return faults


def check_kernel(file, name):
    """The file is accepted, and its text is the kernel's."""
    found = run(TILEASM, "check", file)
    if found.returncode != 0:
        return [f"{name}: tileasm check: {found.stdout}"]
    text = run(TILEASM, file, "-o", "-")
    lines = [line.strip() for line in text.stdout.splitlines()]
    return [f"{name}: no line '{line.strip()}' in:\n{text.stdout}" for line in NEGATE.splitlines() if line.strip() not in lines]


def check_json(folder):
    (folder / "negate.json").write_text(json.dumps(AS_JSON))
    done = run(FLATC, "--binary", "-o", folder, SCHEMA, folder / "negate.json")
    return [f"flatc: {done.stdout}"] if done.returncode != 0 else check_kernel(folder / "negate.tilebc", "flatc --binary")


def check_python(folder):
    if importlib.util.find_spec("flatbuffers") is None:
        print("the module flatbuffers is missing: examples/bindings/build_kernel.py is not run")
        return []
    done = run(FLATC, "--python", "--gen-object-api", "-o", folder, SCHEMA)
    if done.returncode != 0:
        return [f"flatc --python: {done.stdout}"]
    file = folder / "python.tilebc"
    done = run(sys.executable, ROOT / "examples" / "bindings" / "build_kernel.py", file, env={**os.environ, "PYTHONPATH": str(folder)})
    return [f"build_kernel.py: {done.stdout}"] if done.returncode != 0 else check_kernel(file, "build_kernel.py")


def check_cpp(folder):
    compiler = shutil.which("c++") or shutil.which("clang++-14")
    if compiler is None:
        print("no C++ compiler: examples/bindings/build_kernel.cpp is not run")
        return []
    program = folder / "build_kernel"
    for command in ((FLATC, "--cpp", "--gen-object-api", "-o", folder, SCHEMA),
                    (compiler, "-std=c++17", "-I", folder, ROOT / "examples" / "bindings" / "build_kernel.cpp", "-o", program),
                    (program, folder / "cpp.tilebc")):
        done = run(*command)
        if done.returncode != 0:
            return [f"{command[0]}: {done.stdout}"]
    return check_kernel(folder / "cpp.tilebc", "build_kernel.cpp")


def main():
    if FLATC is None:
        print("flatc is missing")
        return 1
    faults = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for check in (check_evolution, check_json, check_python, check_cpp):
            faults += check(folder)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
