// Which compile function each operation has. Elementwise operations share one.
#include <bit>

#include "vm/interp/eval.h"

namespace tile {

static_assert(std::endian::native == std::endian::little, "tiles are stored little-endian");

CompileFn compile_fn(Opcode op) {
  switch (op) {
    case Opcode::Constant: return compile_constant;
    case Opcode::Iota: return compile_iota;
    case Opcode::Broadcast: return compile_broadcast;
    case Opcode::Permute: return compile_permute;
    case Opcode::Cat: return compile_cat;
    case Opcode::Extract: return compile_extract;
    case Opcode::Insert: return compile_insert;
    case Opcode::Pack: return compile_pack;
    case Opcode::Unpack: return compile_unpack;
    case Opcode::GetTileBlockId: case Opcode::GetNumTileBlocks: return compile_coordinates;
    case Opcode::GetGlobal: return compile_get_global;
    case Opcode::Assume: case Opcode::Reshape: case Opcode::PtrToPtr: case Opcode::IntToPtr: case Opcode::PtrToInt: case Opcode::Bitcast:
    case Opcode::MakePartitionView: case Opcode::MakeStridedView: case Opcode::MakeGatherScatterView: return compile_alias;
    case Opcode::MakeToken: case Opcode::JoinTokens: case Opcode::MemoryFenceAliasTko: case Opcode::GdcWaitTko:
    case Opcode::GdcLaunchDependentsTko: return compile_nothing;  // blocks run their memory operations in program order
    case Opcode::Offset: return compile_offset;
    case Opcode::For: return compile_for;
    case Opcode::If: return compile_if;
    case Opcode::Loop: return compile_loop;
    case Opcode::Break: case Opcode::Continue: case Opcode::Yield: case Opcode::Return: return compile_terminator;
    case Opcode::Assert: return compile_assert;
    case Opcode::PrintTko: return compile_print;
    case Opcode::LoadPtrTko: return compile_load_ptr;
    case Opcode::StorePtrTko: return compile_store_ptr;
    case Opcode::Alloca: return compile_alloca;
    case Opcode::AtomicRMWTko: return compile_atomic_rmw;
    case Opcode::AtomicCASTko: return compile_atomic_cas;
    // One copy of multicast memory: combining the copies gives it, and what goes to all of them goes to it.
    case Opcode::AtomicRedViewTko: case Opcode::MultimemReduceViewTko: return compile_atomic_red;
    case Opcode::MakeTensorView: return compile_make_tensor_view;
    case Opcode::GetTensorShape: case Opcode::GetIndexSpaceShape: return compile_view_shape;
    case Opcode::LoadViewTko: case Opcode::MultimemLoadReduceViewTko: return compile_load_view;
    case Opcode::StoreViewTko: case Opcode::MultimemStoreViewTko: return compile_store_view;
    case Opcode::MmaF: case Opcode::MmaI: return compile_mma;
    case Opcode::MmaFScaled: return compile_mma_scaled;
    case Opcode::Reduce: case Opcode::Scan: return compile_reduce;
    // Items of a module, never instructions.
    case Opcode::Entry: case Opcode::Global: case Opcode::Module: return nullptr;
    default: return compile_elementwise;
  }
}

}  // namespace tile
