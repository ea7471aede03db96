// Writes a kernel as tilebc with nothing but stock FlatBuffers bindings:
//
//     flatc --cpp --gen-object-api -o generated schema/tile.fbs
//     c++ -std=c++17 -Igenerated examples/bindings/build_kernel.cpp -o build_kernel && ./build_kernel negate.tilebc
//
// The kernel is that of build_kernel.py beside this file. What the numbers mean: spec/bytecode.md, spec/ops.md.
#include <fstream>

#include "tile_generated.h"

using namespace tile::bc;

int main(int, char** argv) {
  enum : uint32_t { kNone = 0xFFFFFFFF, kF32 = 0, kPointers = 2, kFloats = 3, kTokens = 4, kUnknown = 0 };
  ModuleT m;
  m.format_major = 1, m.version_minor = 1, m.name = 0, m.strings = {"kernels", "negate"};
  m.locs.push_back(std::make_unique<LocT>());
  for (int i = 0; i < 5; ++i) m.types.push_back(std::make_unique<TypeT>());
  m.types[0]->element = 7;                            // f32
  m.types[1]->kind = 1, m.types[1]->inner = kF32;     // ptr<f32>
  m.types[2]->kind = 2, m.types[2]->inner = 1;        // tile<ptr<f32>>
  m.types[3]->kind = 2, m.types[3]->inner = kF32;     // tile<f32>
  m.types[4]->kind = 7;                               // token
  auto f = std::make_unique<FunctionT>();
  f->name = 1, f->params = {kPointers};
  f->insts = {{0x3D, 0, 1, 2}, {0x4F, 0, 1, 1}, {0x65, 0, 2, 1}, {0x5C, 0, 0, 0}};  // load_ptr_tko, negf, store_ptr_tko, return
  // Operand groups, operands, attributes, result types, location.
  f->words = {1, 0, 0, 0, 0,    0, kNone, kNone, kFloats, kTokens, kUnknown, 1, kFloats, kUnknown,
              1, 1, 0, 0, 0, 3, 0, kNone, kNone, kTokens, kUnknown, kUnknown};
  m.functions.push_back(std::move(f));
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Module::Pack(builder, &m), "TILE");
  std::ofstream(argv[1], std::ios::binary).write(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}
