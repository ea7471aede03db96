"""A case: a kernel in text form, its launch, and what must come out. How one looks on disk is in protocol.md, section 6."""

import hashlib
import json
import re

import numpy as np

from oracle.formats import F, INTS, memory_bits

GUARD = 64  # bytes of 0xA5 in front of and behind every output
TIERS = ("smoke", "standard", "full")
WORDS = {8: "<u1", 16: "<u2", 32: "<u4", 64: "<u8"}
SINCE = {
    "atan2": 2,
    "f8E8M0FNU": 2,
    "pack": 3,
    "unpack": 3,
    "alloca": 3,
    "mmaf_scaled": 3,
    "make_gather_scatter_view": 3,
    "make_strided_view": 3,
    "atomic_red_view_tko": 3,
    "i4": 3,
    "f4E2M1FN": 3,
    "fast_acc": 3,
    "private": 3,
    "public": 3,
    "insert": 4,
    "fpowi": 4,
    "gdc_wait_tko": 4,
    "gdc_launch_dependents_tko": 4,
    "memory_fence_alias_tko": 4,
    "saturating": 4,
    "inbounds": 4,
    "fnv8E5M3FNU": 4,
    "nearest_away": 4,
    "print_tko": 2,
}


_wanted = ["full"]  # the tier that is being generated; costly cases beyond it may be left out


def wanted(tier):
    return TIERS.index(tier) <= TIERS.index(_wanted[0])


def set_wanted(tier):
    _wanted[0] = tier


def pack_bits(t, bits):
    """A list of bit patterns as the bytes of an array."""
    n = memory_bits(t)
    if n == 4:
        a = np.array(list(bits) + [0] * (len(bits) % 2), dtype=np.uint8)
        return (a[0::2] | a[1::2] << 4).astype(np.uint8).tobytes()
    return np.array(bits, dtype=np.uint64).astype(WORDS[n]).tobytes()


def _json(d):
    """One key a line at the top, everything below on the line of its key."""
    return "{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in d.items()) + "\n}\n"


class Case:
    def __init__(self, family, name, tier="standard", ops=(), types=(), what=""):
        assert re.fullmatch(r"[A-Za-z0-9_.+-]+", name), name
        self.family, self.name, self.tier, self.what = family, name, tier, what
        self.ops, self.types = list(ops), list(types)
        self.goal, self.form, self.entry, self.grid = "run", "text", "k", [1, 1, 1]
        self.kernel = b""
        self.params, self.buffers, self.files = [], [], {}
        self.expect = {"outcome": "ok", "buffers": []}
        self.version = None

    # Launch
    def scalar(self, t, bits):
        self.params.append({"kind": "scalar", "type": t, "bits": hex(bits)})

    def buffer(self, t, data, first=0, param=True):
        """Memory of type t; the pointer parameter points at byte `first`."""
        i = len(self.buffers)
        self.files[f"b{i}.bin"] = bytes(data)
        self.buffers.append({"type": t, "file": f"b{i}.bin", "bytes": len(data)})
        if param:
            self.params.append({"kind": "pointer", "type": t, "buffer": i, "offset": first})
        return i

    def pieces(self, t, size, pieces):
        """Memory of `size` bytes of which only some is looked at: (first byte, data) in ascending order. Its file is the pieces, one
        after the other, and so are the places of expectations."""
        i = self.buffer(t, b"".join(data for _, data in pieces))
        self.buffers[i].update(bytes=size, pieces=[[at, len(data)] for at, data in pieces])
        return i

    def pointer(self, t, buffer, offset):
        self.params.append({"kind": "pointer", "type": t, "buffer": buffer, "offset": offset})

    def input(self, t, bits):
        return self.buffer(t, pack_bits(t, bits))

    def output(self, t, count, start=None, param=True):
        """An array of `count` elements between guards; start: its bits before the launch (default 0xA5 bytes)."""
        inner = b"\xa5" * ((count * memory_bits(t) + 7) // 8) if start is None else pack_bits(t, start)
        return self.buffer(t, b"\xa5" * GUARD + inner + b"\xa5" * GUARD, GUARD, param)

    # Expectations
    def results(self, buffer, t, bits, rule="bits", strict="bits", first=GUARD, free=None, bound=None, **more):
        """The array that must be in a buffer afterwards. rule: the language's; strict: this project's (section 5 of protocol.md)."""
        e = {"buffer": buffer, "type": t, "first": first, "count": len(bits), "rule": rule, **more}
        if strict != rule:
            e["strict"] = strict
        e["file"] = self._file(f"e{buffer}", pack_bits(t, bits))
        if free is not None and any(free):
            e["free"] = self._file(f"f{buffer}", bytes(bytearray(1 if x else 0 for x in free)))
        if bound is not None:
            e["bound"] = self._file(f"w{buffer}", np.array(bound, dtype="<f8").tobytes())
        self.expect["buffers"].append(e)
        return e

    def alternative(self, e, bits):
        e.setdefault("alternatives", []).append(self._file(f"a{e['buffer']}", pack_bits(e["type"], bits)))

    def _file(self, stem, data):
        name = stem + ".bin"
        k = 1
        while name in self.files:
            name, k = f"{stem}_{k}.bin", k + 1
        self.files[name] = data
        return name

    def trap(self, cls, strict_only=True):
        """The launch must end in a trap; strict_only: the language leaves it open, so that only this project's machine is judged."""
        self.expect = {"outcome": "trap", "class": cls, "strict_only": strict_only}

    def reject(self, classes, line=None):
        self.goal = "check"
        self.expect = {"outcome": "rejected", "classes": list(classes)}
        if line:
            self.expect["line"] = line

    # Output
    def text(self):
        return self.kernel.decode() if self.form == "text" else ""

    def needs(self):
        """Lowest bytecode version 13.x, and element types, of a kernel."""
        if self.form != "text" or len(self.kernel) > 50000:
            return self.version or "13.1", []
        words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"(?:\d+x|\?x)+(?=[a-z])", " ", self.text())))
        minor = max([1] + [SINCE[w] for w in words if w in SINCE])
        if re.search(r"for unsigned", self.text()):
            minor = max(minor, 2)
        if self.version:
            minor = max(minor, int(self.version.split(".")[1]))
        return f"13.{minor}", sorted(w for w in words if w in F or w in INTS)

    def manifest(self):
        version, types = self.needs()
        suffix = {"text": "tile", "tilebc": "tilebc", "tileirbc": "tileirbc"}[self.form]
        d = {"case": f"{self.family}/{self.name}", "tier": self.tier, "ops": self.ops, "types": self.types}
        if self.what:
            d["what"] = self.what
        d.update(goal=self.goal, form=self.form, kernel="kernel." + suffix, needs={"version": version, "types": types})
        if self.goal == "run":
            d.update(entry=self.entry, grid=self.grid, params=self.params, buffers=self.buffers)
        d["expect"] = self.expect
        return d

    def entries(self):
        """(file name, bytes) of the case, in a fixed order."""
        m = self.manifest()
        yield "case.json", _json(m).encode()
        yield m["kernel"], self.kernel
        yield from self.files.items()

    def digest(self):
        h = hashlib.sha256()
        for name, data in self.entries():
            h.update(f"{self.family}/{self.name}/{name} {len(data)}\n".encode())
            h.update(data)
        return h.hexdigest()
