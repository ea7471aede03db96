// One element of an elementwise operation as LLVM code, the same on both targets. Rules: spec/semantics.md, bit by bit where it is not free.
#pragma once

#include "backend/ptx/device.h"
#include "vm/base/element_type.h"
#include "vm/ir/module.h"

namespace tile {

/// Type of an element in a register: i1; i4, i8, f8*, f4: i8 (i4, f4: upper four bits zero); i16..i64; half, bfloat, float (tf32 too:
/// its low 13 bits are zero), double; pointers i64.
[[nodiscard]] llvm::Type* register_type(llvm::LLVMContext& c, ElementType e);
/// Integer type of an element in shared or global memory: i1 and f4 take i8.
[[nodiscard]] llvm::Type* memory_type(llvm::LLVMContext& c, ElementType e);
[[nodiscard]] Value* to_memory(DeviceOps& d, ElementType e, Value* v);
[[nodiscard]] Value* from_memory(DeviceOps& d, ElementType e, Value* v);   ///< i1: any non-zero byte is true

/// Constant from an element's storage bits (element_type.h).
[[nodiscard]] Value* constant_bits(DeviceOps& d, ElementType e, uint64_t bits);

/// True for operations that work element by element and have no memory effect: lower_scalar takes them.
[[nodiscard]] bool is_scalar_op(Opcode op);
/// One element. `operands` as the row orders them (absent optional ones left out). nullptr if the operation on this type is not supported, with `why`.
[[nodiscard]] Value* lower_scalar(DeviceOps& d, const Module& m, const Function& f, InstId i, std::span<Value* const> operands, std::string& why);

/// ftof of f32 to f16 or bf16 to nearest even on targets with an instruction for pairs, which is several times as fast; false for all else.
[[nodiscard]] bool narrowed_in_pairs(DeviceOps& d, const Module& m, const Function& f, InstId i, const Values& in, Values& out);

/// Conversion between any two float types as ftof does it with nearest_even.
[[nodiscard]] Value* convert_float(DeviceOps& d, ElementType from, ElementType to, Value* v);

}  // namespace tile
