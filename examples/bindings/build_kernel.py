#!/usr/bin/env python3
"""Writes a kernel as tilebc with nothing but stock FlatBuffers bindings.

    flatc --python --gen-object-api -o generated schema/tile.fbs
    pip install flatbuffers
    PYTHONPATH=generated python3 examples/bindings/build_kernel.py negate.tilebc
    tileasm negate.tilebc

The kernel:

    entry @negate(%0: tile<ptr<f32>>) {
      %1, %2 = load_ptr_tko weak %0 : tile<ptr<f32>> -> tile<f32>, token
      %3 = negf %1 : tile<f32>
      %4 = store_ptr_tko weak %0, %3 : tile<ptr<f32>>, tile<f32> -> token
      return
    }

What the numbers mean: spec/bytecode.md; opcodes and the fields of operations: spec/ops.md.
"""
import sys

import flatbuffers
from tile.bc.Function import FunctionT
from tile.bc.Inst import InstT
from tile.bc.Loc import LocT
from tile.bc.Module import ModuleT
from tile.bc.Type import TypeT

NONE = 0xFFFFFFFF
LOAD_PTR_TKO, NEGF, STORE_PTR_TKO, RETURN = 0x3D, 0x4F, 0x65, 0x5C
ELEMENT, PTR, TILE, TOKEN = 0, 1, 2, 7
F32, POINTERS, FLOATS, TOKENS = 0, 2, 3, 4  # indices of the types below
UNKNOWN = 0  # location


def make(cls, **fields):
    record = cls()
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def kernel():
    module = make(ModuleT, formatMajor=1, versionMinor=1, name=0, strings=["kernels", "negate"], locs=[LocT()])
    module.types = [make(TypeT, kind=ELEMENT, element=7), make(TypeT, kind=PTR, inner=F32),
                    make(TypeT, kind=TILE, inner=1), make(TypeT, kind=TILE, inner=F32), make(TypeT, kind=TOKEN)]
    function = make(FunctionT, name=1, params=[POINTERS])
    function.insts = [make(InstT, opcode=LOAD_PTR_TKO, operands=1, results=2), make(InstT, opcode=NEGF, operands=1, results=1),
                      make(InstT, opcode=STORE_PTR_TKO, operands=2, results=1), make(InstT, opcode=RETURN, operands=0, results=0)]
    function.words = [
        # operand groups, operands,   attributes,    result types,   location
        1, 0, 0, 0,       0,          0, NONE, NONE, FLOATS, TOKENS, UNKNOWN,
        1,                                           FLOATS,         UNKNOWN,
        1, 1, 0, 0,       0, 3,       0, NONE, NONE, TOKENS,         UNKNOWN,
        UNKNOWN,
    ]
    module.functions = [function]
    return module


def main():
    builder = flatbuffers.Builder(1024)
    builder.Finish(kernel().Pack(builder), file_identifier=b"TILE")
    with open(sys.argv[1], "wb") as file:
        file.write(builder.Output())


if __name__ == "__main__":
    main()
