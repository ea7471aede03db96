#!/usr/bin/env python3
"""A template: fill in load() and execute(), then run.py --impl "python3 template.py". protocol.md says what is where."""
import json
import pathlib
import sys

STATUS = {ValueError: "rejected", ArithmeticError: "trap", NotImplementedError: "unsupported"}


def load(path, form):
    """Reads and checks a kernel. Raise ValueError where it is no valid program."""
    raise NotImplementedError


def execute(kernel, entry, grid, arguments):
    """Runs an entry. Arguments are (type, bits) or (type, bytearray, offset): change these. Raise ArithmeticError for a trap."""
    raise NotImplementedError


def run(folder, m):
    kernel = load(folder / m["kernel"], m["form"])
    memory = [bytearray((folder / b["file"]).read_bytes()) for b in m.get("buffers", [])]
    value = lambda p: (int(p["bits"], 0),) if p["kind"] == "scalar" else (memory[p["buffer"]], p["offset"])
    if m["goal"] == "run":
        execute(kernel, m["entry"], m["grid"], [(p["type"], *value(p)) for p in m["params"]])
    for b, data in zip(m.get("buffers", []), memory):
        (folder / b["out"]).write_bytes(data)
    return {"status": "ok"}


if sys.argv[1] == "--describe":
    print(json.dumps({"protocol": 1, "name": "my implementation", "forms": ["text"], "profile": "language"}))
else:
    case = pathlib.Path(sys.argv[1])
    try:
        said = run(case, json.loads((case / "manifest.json").read_text()))
    except tuple(STATUS) as e:
        said = {"status": next(s for kind, s in STATUS.items() if isinstance(e, kind)), "reason": repr(e)}
    (case / "status.json").write_text(json.dumps(said))
