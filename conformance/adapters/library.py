#!/usr/bin/env python3
"""Adapter: a shared library with the interface of abi/tile_impl.h. library.py FILE.so --describe | --batch | FOLDER

The library lives in this process. In batch mode one process serves many cases; the runner counts its end as a crash of the case that it
was given, kills it when a case takes too long, and starts another. Standard output of the library goes to standard error.
"""

import ctypes
import json
import mmap
import os
import sys

ABI = 1
STATUS = ("ok", "rejected", "trap", "unsupported", "crash", "hang")
PRINT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)


class Report(ctypes.Structure):
    _fields_ = [("line", ctypes.c_int32), ("class_name", ctypes.c_char * 28), ("reason", ctypes.c_char * 992)]


class Kernel(ctypes.Structure):
    _fields_ = [
        ("form", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_char_p),
        ("size", ctypes.c_uint64),
    ]


class Buffer(ctypes.Structure):
    _fields_ = [("type", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size", ctypes.c_uint64)]


class Param(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_char_p),
        ("buffer", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("value", ctypes.c_uint64),
    ]


class Launch(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_char_p),
        ("grid", ctypes.c_uint32 * 3),
        ("params_count", ctypes.c_uint32),
        ("buffers_count", ctypes.c_uint32),
        ("timeout_ms", ctypes.c_uint32),
        ("params", ctypes.POINTER(Param)),
        ("buffers", ctypes.POINTER(Buffer)),
        ("print", PRINT),
        ("user", ctypes.c_void_p),
    ]


class Memory:
    """Bytes at a multiple of 256. Of pieces of a large buffer only these are read and written; the pages of the rest stay untouched."""

    def __init__(self, buffer, data):
        self.size = buffer["bytes"]
        self.pieces = buffer.get("pieces", [[0, self.size]])
        self.block = mmap.mmap(-1, self.size + 256)
        self.at = (ctypes.addressof(ctypes.c_char.from_buffer(self.block)) + 255) & ~255
        done = 0
        for at, size in self.pieces:
            ctypes.memmove(self.at + at, data[done : done + size], size)
            done += size

    def bytes(self):
        return b"".join(ctypes.string_at(self.at + at, size) for at, size in self.pieces)


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(os.path.abspath(path))
        self.lib.tile_impl_open.restype = ctypes.c_void_p
        self.lib.tile_impl_open.argtypes = [ctypes.c_uint32, ctypes.POINTER(ctypes.c_char_p)]
        self.lib.tile_impl_load.argtypes = [ctypes.c_void_p, ctypes.POINTER(Kernel), ctypes.POINTER(Report)]
        self.lib.tile_impl_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(Launch), ctypes.POINTER(Report)]
        self.lib.tile_impl_close.argtypes = [ctypes.c_void_p]
        self.lib.tile_impl_close.restype = None
        text = ctypes.c_char_p()
        self.impl = self.lib.tile_impl_open(ABI, ctypes.byref(text))
        said = (text.value or b"").decode(errors="replace")
        if not self.impl:
            raise ValueError(f"tile_impl_open: {said or f'does not know interface {ABI}'}")
        self.description = {**json.loads(said), "protocol": 1, "batch": True, "pieces": True}

    def close(self):
        self.lib.tile_impl_close(self.impl)

    def answer(self, code, report, more=None):
        code = STATUS[code] if 0 <= code < len(STATUS) else f"status {code} of the library"
        status = {"status": code, **(more or {})}
        if code != "ok":
            status["reason"] = report.reason.decode(errors="replace")
            if report.class_name:
                status["class"] = report.class_name.decode(errors="replace")
            if report.line:
                status["line"] = report.line
        return status

    def run(self, folder):
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
            m = json.load(f)

        def read(name):
            with open(os.path.join(folder, name), "rb") as f:
                return f.read()

        data, report = read(m["kernel"]), Report()
        kernel = Kernel(m["form"].encode(), m["version"].encode(), m["case"].encode(), data, len(data))
        code = self.lib.tile_impl_load(self.impl, ctypes.byref(kernel), ctypes.byref(report))
        if code or m["goal"] == "check":
            return self.answer(code, report)
        memory = [Memory(b, read(b["file"])) for b in m["buffers"]]
        buffers = (Buffer * max(1, len(memory)))(
            *(Buffer(b["type"].encode(), x.at, x.size) for b, x in zip(m["buffers"], memory))
        )
        params = (Param * max(1, len(m["params"])))(
            *(
                (
                    Param(p["type"].encode(), -1, 0, int(p["bits"], 0))
                    if p["kind"] == "scalar"
                    else Param(p["type"].encode(), p["buffer"], 0, p["offset"])
                )
                for p in m["params"]
            )
        )
        printed = []
        take = PRINT(lambda user, text, size: printed.append(ctypes.string_at(text, size)))
        launch = Launch(
            m["entry"].encode(),
            (ctypes.c_uint32 * 3)(*m["grid"]),
            len(m["params"]),
            len(memory),
            int(m["timeout"] * 1000),
            params,
            buffers,
            take,
            None,
        )
        code = self.lib.tile_impl_run(self.impl, ctypes.byref(launch), ctypes.byref(report))
        if code == 0:
            for b, x in zip(m["buffers"], memory):
                with open(os.path.join(folder, b["out"]), "wb") as f:
                    f.write(x.bytes())
        return self.answer(code, report, {"prints": b"".join(printed).decode(errors="replace")})

    def one(self, folder):
        status = self.run(folder)
        with open(os.path.join(folder, "status.json"), "w", encoding="utf-8") as f:
            json.dump(status, f)


def main():
    if len(sys.argv) != 3:
        print(__doc__.split("\n", maxsplit=1)[0], file=sys.stderr)
        return 2
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        library = Library(sys.argv[1])
    except (OSError, AttributeError, ValueError) as e:
        print(f"{sys.argv[1]}: {e}", file=sys.stderr)
        return 3
    if sys.argv[2] == "--describe":
        answers.write(json.dumps(library.description) + "\n")
    elif sys.argv[2] == "--batch":
        for line in sys.stdin:
            library.one(line.rstrip("\n"))
            answers.write("done\n")
    else:
        library.one(sys.argv[2])
    library.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
