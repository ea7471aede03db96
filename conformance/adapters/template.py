#!/usr/bin/env python3
"""A template: fill in load() and execute(), then run.py --impl "python3 template.py". protocol.md says what is where."""

import json
import pathlib
import sys


def load(path, form):
    """Reads and checks a kernel. Raise ValueError where it is no valid program."""
    raise NotImplementedError


def execute(kernel, entry, grid, arguments):
    """Runs an entry. A scalar argument is (type, bits), a pointer (type, bytearray, offset); change the bytearrays. Raise ArithmeticError for a trap."""
    raise NotImplementedError


def judge(folder):
    m = json.loads((folder / "manifest.json").read_text())
    try:
        kernel = load(folder / m["kernel"], m["form"])
        if m["goal"] == "run":
            memory = [bytearray((folder / b["file"]).read_bytes()) for b in m["buffers"]]
            arguments = [
                (
                    (p["type"], int(p["bits"], 0))
                    if p["kind"] == "scalar"
                    else (p["type"], memory[p["buffer"]], p["offset"])
                )
                for p in m["params"]
            ]
            execute(kernel, m["entry"], m["grid"], arguments)
            for b, data in zip(m["buffers"], memory):
                (folder / b["out"]).write_bytes(data)
        return {"status": "ok"}
    except ValueError as e:
        return {"status": "rejected", "reason": str(e)}
    except ArithmeticError as e:
        return {"status": "trap", "reason": str(e)}
    except NotImplementedError as e:
        return {"status": "unsupported", "reason": repr(e)}


if sys.argv[1] == "--describe":
    print(json.dumps({"protocol": 1, "name": "my implementation", "forms": ["text"], "profile": "language"}))
else:
    (pathlib.Path(sys.argv[1]) / "status.json").write_text(json.dumps(judge(pathlib.Path(sys.argv[1]))))
