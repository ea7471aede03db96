#!/usr/bin/env python3
"""Adapter: tilevm, on its CPU machine (--cpu, the default) or a GPU (--gpu[=DEVICE], --gpu=emulate): tilevm.py [MACHINE] --describe | ...

TILEVM and TILEASM name the programs; without them they are looked for in PATH. TILEVM_FLAGS are more options for every run: --target sm_80.
The batch mode is `tilevm conformance serve`: one process, and one context of a GPU, for many cases. Without it (--no-batch) every case is a
job file for a `tilevm run` of its own, or a `tileasm check`.
"""

import json
import os
import re
import shlex
import struct
import subprocess
import sys

TILEVM, TILEASM = os.environ.get("TILEVM", "tilevm"), os.environ.get("TILEASM", "tileasm")
FLAGS = shlex.split(os.environ.get("TILEVM_FLAGS", ""))
BITS = {
    "i1": 8,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "tf32": 32,
    "f64": 64,
    "f4E2M1FN": 4,
}
TRAPS = {
    "OutOfBounds": "out_of_bounds",
    "Assert": "assert",
    "Assume": "assume",
    "Alloca": "alloca",
    "Index": "index",
    "Step": "step",
}
DESCRIPTION = {
    "protocol": 1,
    "forms": ["text", "tilebc", "tileirbc"],
    "batch": True,
    "pieces": True,
    "classes": True,
    "lines": True,
    "prints": True,
}


def npy(data, bits):
    """Raw memory as a .npy file of unsigned words (4-bit types: one byte an element)."""
    if bits == 4:
        data, bits = bytes(v for b in data for v in (b & 15, b >> 4)), 8
    text = f"{{'descr': '{'|' if bits == 8 else '<'}u{bits // 8}', 'fortran_order': False, 'shape': ({len(data) * 8 // bits},), }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def raw(path, bits):
    with open(path, "rb") as f:
        data = f.read()
    data = data[10 + struct.unpack_from("<H", data, 8)[0] :]
    return bytes(a | b << 4 for a, b in zip(data[0::2], data[1::2])) if bits == 4 else data


def machine():
    """The flag that chooses the machine; taken out of sys.argv."""
    return sys.argv.pop(1) if len(sys.argv) > 1 and re.fullmatch(r"--cpu|--gpu(=.+)?", sys.argv[1]) else "--cpu"


def classify(stderr, code):
    """The status that tilevm's first error stands for."""
    for line in stderr.splitlines():
        try:
            d = json.loads(line)
        except ValueError:
            continue
        if d.get("severity") != "error":
            continue
        reason = f"{d['code']}: {d['message']}"
        if d["class"] == "trap":
            return {"status": "trap", "class": TRAPS.get(d["subclass"], d["subclass"]), "reason": reason}
        # A machine without a GPU, or without its driver, cannot be judged.
        if d["code"] in ("E0808", "E0910", "E0911", "E0912", "E0916"):
            return {"status": "unsupported", "reason": reason}
        if d["class"] in ("malformed", "invalid", "unsupported") and not d["code"].startswith("E08"):
            return {
                "status": "rejected",
                "class": d["class"],
                "line": d.get("line"),
                "reason": reason,
                "code": d["code"],
            }
        if d["class"] == "exhausted":
            return {"status": "rejected", "class": "exhausted", "line": d.get("line"), "reason": reason}
        return {"status": "crash", "reason": reason}
    return {"status": "crash", "reason": f"exit status {code}: {stderr[-300:]}"}


def run(folder, flag):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        m = json.load(f)
    path = lambda name: os.path.join(folder, name)
    if m["goal"] == "check":
        command = [TILEASM, "--diagnostics", "json", "check", path(m["kernel"])]
    else:
        args, named = [], {}
        for i, b in enumerate(m["buffers"]):
            with open(path(b["file"]), "rb") as f, open(path(f"b{i}.npy"), "wb") as out:
                out.write(npy(f.read(), BITS.get(b["type"], 8)))
        for p in m["params"]:
            if p["kind"] == "scalar":
                args.append({p["type"]: p["bits"]})
            elif p["buffer"] in named:
                args.append({"ptr": f"{p['type']}:@{named[p['buffer']]}", "offset": p["offset"]})
            else:
                named[p["buffer"]] = name = f"b{p['buffer']}"
                args.append(
                    {"name": name, "ptr": f"{m['buffers'][p['buffer']]['type']}:{name}.npy", "offset": p["offset"]}
                )
        blocks = m["grid"][0] * m["grid"][1] * m["grid"][2]
        with open(path("job.json"), "w", encoding="utf-8") as f:
            json.dump({"kernel": m["kernel"], "entry": m["entry"], "grid": m["grid"], "args": args}, f)
        command = [
            TILEVM,
            "run",
            path("job.json"),
            flag,
            *FLAGS,
            "--no-check",
            "--diagnostics",
            "json",
            "--dump",
            path("dump"),
            "--threads",
            "4" if blocks >= 8 else "1",
        ]
    try:
        done = subprocess.run(command, capture_output=True, timeout=m["timeout"], check=False)
    except subprocess.TimeoutExpired:
        return {"status": "hang", "reason": f"no end within {m['timeout']} s"}
    if done.returncode:
        return classify(done.stderr.decode(errors="replace"), done.returncode)
    if m["goal"] == "run":
        # Buffers are numbered in the order in which arguments name them.
        for k, buffer in enumerate(named):
            b = m["buffers"][buffer]
            with open(path(b["out"]), "wb") as f:
                f.write(raw(path(f"dump/buffer_{k}.npy"), BITS.get(b["type"], 8)))
    return {"status": "ok", "prints": done.stdout.decode(errors="replace")}


def one(folder, flag):
    try:
        status = run(folder, flag)
    except (OSError, ValueError, KeyError) as e:
        status = {"status": "crash", "reason": f"adapter: {e!r}"}
    with open(os.path.join(folder, "status.json"), "w", encoding="utf-8") as f:
        json.dump(status, f)


def has_pieces(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        return any("pieces" in b for b in json.load(f).get("buffers", []))


def main():
    flag = machine()
    if sys.argv[1:] == ["--describe"]:
        done = subprocess.run([TILEVM, "--version"], capture_output=True, check=False, text=True)
        # A GPU's engine claims what the language promises, not the choices of the reference machine.
        profile = "tilevm" if flag == "--cpu" else "language"
        head = {"name": f"tilevm {flag}", "version": done.stdout.split("\n")[0], "profile": profile}
        print(json.dumps({**DESCRIPTION, **head}))
    elif sys.argv[1:] == ["--batch"]:
        os.execvp(TILEVM, [TILEVM, "conformance", "serve", "--batch", flag, *FLAGS])
    elif has_pieces(sys.argv[1]):  # a job file has no words for them
        os.execvp(TILEVM, [TILEVM, "conformance", "serve", flag, *FLAGS, sys.argv[1]])
    else:
        one(sys.argv[1], flag)


if __name__ == "__main__":
    main()
