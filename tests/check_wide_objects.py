#!/usr/bin/env python3
"""Fails when an object compiled for AVX2 or AVX-512 defines a symbol that the linker may pick for everybody.

Inline functions and templates become weak symbols, one copy of which the linker keeps. Were it the copy with wide
instructions, the program would stop on a machine without them. Code that such an object runs at start-up would stop it too.
Usage: check_wide_objects.py NM ARCHIVE
"""
import re
import subprocess
import sys


def shared_code(listing):
    """(object, symbol) of each weak function and each start-up function in objects named *_avx2* or *_avx512*."""
    found = []
    member = ""
    for line in listing.splitlines():
        header = re.match(r"^(\S+\.o):$", line)
        if header:
            member = header.group(1)
            continue
        symbol = re.match(r"^[0-9a-f]+ ([A-Za-z]) (.+)$", line)
        if not symbol or not re.search(r"_avx(2|512)\.", member):
            continue
        kind, name = symbol.groups()
        # V and u are data, which holds no instruction.
        if kind == "W" or re.search(r"_GLOBAL__sub_I|global constructors keyed|^__cxx_global_var_init", name):
            found.append((member, name))
    return found


def self_test():
    listing = ("isa.cpp.o:\n0000 W std::min\nmma_avx2.cpp.o:\n0000 T tile::mma\n0010 V DW.ref.x\n0020 u tile::kTable\n"
               "0030 t _GLOBAL__sub_I_x\nmma_avx512.cpp.o:\n0000 W std::max\n                 U free\n")
    expected = [("mma_avx2.cpp.o", "_GLOBAL__sub_I_x"), ("mma_avx512.cpp.o", "std::max")]
    assert shared_code(listing) == expected, shared_code(listing)


def main():
    self_test()
    nm, archive = sys.argv[1:3]
    listing = subprocess.run([nm, "-C", archive], check=True, capture_output=True, text=True).stdout
    found = shared_code(listing)
    for member, name in found:
        print(f"{member}: {name}: make it static and constant, or keep it out of the wide objects")
    print(f"{len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
