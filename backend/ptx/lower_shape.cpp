// Constants, coordinates, reshaping, joining, slicing, packing.
#include <array>

#include "backend/ptx/lowering.h"
#include "vm/base/numeric.h"

namespace tile {
namespace {

uint64_t storage_bits(const std::string& bytes, size_t at, unsigned size) {
  uint64_t v = 0;
  for (unsigned k = 0; k < size; ++k) v |= uint64_t{static_cast<uint8_t>(bytes[at * size + k])} << (8 * k);
  return v;
}

/// Read-only data of the module, and the address (i64, global memory) of its first byte.
Value* constant_table(Lowering& x, llvm::Constant* data) {
  auto* table = new llvm::GlobalVariable(x.d.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "constant", nullptr,
                                         llvm::GlobalValue::NotThreadLocal, x.d.target.emulated ? 0u : 1u);
  table->setAlignment(llvm::Align(16));
  return table;
}

bool lower_constant(Lowering& x, InstId i) {
  const ValueId r = x.f.result(i);
  const ElementType e = x.element(r);
  const Attr& a = x.m.attrs.get(x.f.attr(i, 0));
  const unsigned size = info(e).storage;
  const Layout& l = x.layout(r);
  const size_t n = size_t{1} << element_bits(x.shape(r));
  if (a.bytes.size() == size) {
    x.set(r, Values(l.registers(), constant_bits(x.d, e, storage_bits(a.bytes, 0, size))));
    return true;
  }
  // Any other constant is a table in the kernel's own memory.
  llvm::Type* type = memory_type(x.b.getContext(), e);
  const unsigned bytes = type->getIntegerBitWidth() / 8;
  std::vector<llvm::Constant*> items(n);
  for (size_t k = 0; k < n; ++k) items[k] = llvm::ConstantInt::get(type, storage_bits(a.bytes, k, size));
  Value* table = constant_table(x, llvm::ConstantArray::get(llvm::ArrayType::get(type, n), items));
  Values out(l.registers());
  Value* t = x.thread_element(l);
  for (unsigned k = 0; k < out.size(); ++k) {
    Value* at = x.b.CreateZExt(x.b.CreateOr(t, x.i32(l.element_of_register(k))), x.b.getInt64Ty());
    auto* load = x.b.CreateAlignedLoad(type, x.b.CreateInBoundsGEP(type, table, at), llvm::Align(bytes));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(x.b.getContext(), {}));
    out[k] = from_memory(x.d, e, load);
  }
  x.set(r, std::move(out));
  return true;
}

// Tiles are joined, cut and repacked in the scratch space, where every element has a row-major place.

/// Element number in `to` (row-major) of element `t` of a tile `shape` that starts at `start` there.
Value* placed(Lowering& x, const Layout& l, std::span<const int64_t> shape, std::span<const int64_t> to, const Values& start, unsigned reg) {
  const auto first = dim_bits(to);
  Value* at = x.i32(0);
  for (size_t d = 0; d < shape.size(); ++d) {
    Value* c = x.b.CreateOr(x.thread_coordinate(l, shape, d), x.i32(Lowering::register_coordinate(l, shape, d, reg)));
    at = x.b.CreateAdd(at, x.b.CreateShl(x.b.CreateAdd(c, start[d]), x.i32(first[d])));
  }
  return at;
}

Value* shared_place(Lowering& x, Value* base, Value* element, unsigned bytes) {
  Value* at = x.b.CreateMul(element, x.i32(bytes));
  return x.b.CreateAdd(base, x.b.CreateAdd(at, x.b.CreateShl(x.b.CreateLShr(at, x.i32(7)), x.i32(4))));
}

/// The elements of a tile by their numbers in a tile of shape `to`, in which they begin at `start`.
void add_placed(Lowering& x, ValueId v, ElementType e, std::span<const int64_t> to, const Values& start, std::vector<Lowering::Placed>& out) {
  const Layout& l = x.layout(v);
  const Values& regs = x.own(v);
  Value* mine = x.owner(l);
  for (unsigned k = 0; k < regs.size(); ++k) out.push_back({to_memory(x.d, e, regs[k]), placed(x, l, x.shape(v), to, start, k), mine});
}

bool lower_cat(Lowering& x, InstId i) {
  const auto operands = x.f.operands(i);
  const ValueId r = x.f.result(i);
  const auto to = x.shape(r);
  const size_t dim = static_cast<size_t>(x.m.int_attr(x.f, i, 0));
  const ElementType e = x.element(r);
  const unsigned bytes = memory_type(x.b.getContext(), e)->getIntegerBitWidth() / 8;
  if (convert_bytes(element_bits(to), bytes) > x.room) {
    std::vector<Lowering::Placed> parts;
    int64_t at = 0;
    for (const ValueId v : operands) {
      Values start(to.size(), x.i32(0));
      start[dim] = x.i32(at);
      add_placed(x, v, e, to, start, parts);
      at += x.shape(v)[dim];
    }
    x.set(r, x.pass(e, element_bits(to), std::array{std::move(parts)}, x.numbers(x.layout(r))));
    return true;
  }
  Value* base = x.scratch(convert_bytes(element_bits(to), bytes));
  x.barrier();
  int64_t before = 0;
  for (const ValueId v : operands) {
    Values start(to.size(), x.i32(0));
    start[dim] = x.i32(before);
    const Layout& l = x.layout(v);
    const Values& regs = x.own(v);
    Value* mine = x.owner(l);
    for (unsigned k = 0; k < regs.size(); ++k) {
      Value* word = to_memory(x.d, e, regs[k]);
      x.d.store_shared({&word, 1}, shared_place(x, base, placed(x, l, x.shape(v), to, start, k), bytes), mine);
    }
    before += x.shape(v)[dim];
  }
  x.barrier();
  x.set(r, x.read_shared(e, x.layout(r), base, 0));
  return true;
}

/// Starts of the slice that the indices select, checked: an index outside is a trap.
Values slice_start(Lowering& x, std::span<const ValueId> indices, std::span<const int64_t> slice, std::span<const int64_t> whole) {
  Values start;
  for (size_t d = 0; d < slice.size(); ++d) {
    Value* index = x.scalar(indices[d]);
    const uint64_t limit = static_cast<uint64_t>(whole[d] / slice[d]);
    const unsigned width = index->getType()->getIntegerBitWidth();
    if (width > 31 || limit < uint64_t{1} << width)
      x.trap_if(x.b.CreateICmpUGE(index, llvm::ConstantInt::get(index->getType(), limit)), Code::T0105);
    start.push_back(x.b.CreateMul(x.b.CreateZExtOrTrunc(index, x.b.getInt32Ty()), x.i32(slice[d])));
  }
  return start;
}

bool lower_extract(Lowering& x, InstId i) {
  const ValueId s = x.f.operand(i, 0), r = x.f.result(i);
  const ElementType e = x.element(r);
  const unsigned bytes = memory_type(x.b.getContext(), e)->getIntegerBitWidth() / 8;
  const Values start = slice_start(x, x.f.group(i, 1), x.shape(r), x.shape(s));
  const Layout& l = x.layout(r);
  if (convert_bytes(element_bits(x.shape(s)), bytes) > x.room) {
    Values wanted;
    for (unsigned k = 0; k < l.registers(); ++k) wanted.push_back(placed(x, l, x.shape(r), x.shape(s), start, k));
    x.set(r, x.pass(e, element_bits(x.shape(s)), std::array{x.placed(x.own(s), e, x.layout(s))}, wanted));
    return true;
  }
  Value* base = x.scratch(convert_bytes(element_bits(x.shape(s)), bytes));
  x.barrier();
  x.write_shared(x.own(s), e, x.layout(s), base, 0);
  x.barrier();
  Values out(l.registers());
  for (unsigned k = 0; k < out.size(); ++k)
    out[k] = from_memory(x.d, e, x.d.load_shared(memory_type(x.b.getContext(), e), 1, shared_place(x, base, placed(x, l, x.shape(r), x.shape(s), start, k), bytes))[0]);
  x.set(r, std::move(out));
  return true;
}

bool lower_insert(Lowering& x, InstId i) {
  const ValueId s = x.f.operand(i, 0), into = x.f.operand(i, 1), r = x.f.result(i);
  const ElementType e = x.element(r);
  const unsigned bytes = memory_type(x.b.getContext(), e)->getIntegerBitWidth() / 8;
  const Values start = slice_start(x, x.f.group(i, 2), x.shape(s), x.shape(r));
  if (convert_bytes(element_bits(x.shape(r)), bytes) > x.room) {
    std::vector<Lowering::Placed> over;
    add_placed(x, s, e, x.shape(r), start, over);
    x.set(r, x.pass(e, element_bits(x.shape(r)), std::array{x.placed(x.own(into), e, x.layout(into)), std::move(over)}, x.numbers(x.layout(r))));
    return true;
  }
  Value* base = x.scratch(convert_bytes(element_bits(x.shape(r)), bytes));
  x.barrier();
  x.write_shared(x.own(into), e, x.layout(into), base, 0);
  x.barrier();
  const Layout& l = x.layout(s);
  Value* mine = x.owner(l);
  for (unsigned k = 0; k < l.registers(); ++k) {
    Value* word = to_memory(x.d, e, x.own(s)[k]);
    x.d.store_shared({&word, 1}, shared_place(x, base, placed(x, l, x.shape(s), x.shape(r), start, k), bytes), mine);
  }
  x.barrier();
  x.set(r, x.read_shared(e, x.layout(r), base, 0));
  return true;
}

/// lower_pack() where there is no room for all at once: byte by byte.
void pack_in_parts(Lowering& x, ValueId s, ValueId r, ElementType e, bool unpack) {
  llvm::IRBuilder<>& b = x.b;
  const unsigned width = info(e).bits, size = std::max(1u, memory_type(b.getContext(), e)->getIntegerBitWidth() / 8);
  const unsigned size_bits = log2_of(size), per_bits = width == 1 ? 3 : width < 8 ? 1 : 0, per = 1u << per_bits;
  const Layout& lr = x.layout(r);
  std::vector<Lowering::Placed> bytes;
  for (const Lowering::Placed& p : x.placed(x.own(s), unpack ? ElementType::I8 : e, x.layout(s)))
    for (unsigned j = 0; j < (unpack ? 1 : size); ++j)
      bytes.push_back({b.CreateTrunc(b.CreateLShr(p.word, 8 * j), b.getInt8Ty()), unpack ? p.number : b.CreateOr(b.CreateShl(p.number, size_bits), x.i32(j)), p.when});
  // For each register of the result: bytes of its element, or elements of its byte.
  const unsigned together = unpack ? size : per;
  Values wanted;
  for (Value* number : x.numbers(lr))
    for (unsigned j = 0; j < together; ++j)
      wanted.push_back(unpack && per > 1 ? b.CreateLShr(number, per_bits) : b.CreateOr(b.CreateShl(number, unpack ? size_bits : per_bits), x.i32(j)));
  const unsigned bits = element_bits(x.shape(s)) + (unpack ? 0 : size_bits);
  const Values got = x.pass(ElementType::I8, bits, std::array{std::move(bytes)}, wanted);
  const Values numbers = x.numbers(lr);
  Values out;
  for (unsigned k = 0; k < numbers.size(); ++k) {
    Value* word = nullptr;
    for (unsigned j = 0; j < together; ++j) {
      Value* byte = b.CreateZExt(got[k * together + j], b.getIntNTy(std::max(8u, size * 8)));
      if (!unpack && per > 1) byte = b.CreateAnd(byte, (1u << width) - 1);
      byte = b.CreateShl(byte, j * (unpack || per == 1 ? 8 : width));
      word = word ? b.CreateOr(word, byte) : byte;
    }
    if (unpack && per > 1) {
      Value* shift = b.CreateTrunc(b.CreateMul(b.CreateAnd(numbers[k], x.i32(per - 1)), x.i32(width)), b.getInt8Ty());
      word = b.CreateAnd(b.CreateLShr(word, shift), (1u << width) - 1);
    }
    out.push_back(from_memory(x.d, unpack ? e : ElementType::I8, unpack ? word : b.CreateTrunc(word, b.getInt8Ty())));
  }
  x.set(r, std::move(out));
}

/// pack: any tile of rank 1 -> bytes; unpack: the reverse. Elements lie in little-endian order, four-bit ones two in a byte.
bool lower_pack(Lowering& x, InstId i, bool unpack) {
  const ValueId s = x.f.operands(i)[0], r = x.f.result(i);
  const ElementType e = x.element(unpack ? r : s);
  const Layout &ls = x.layout(s), &lr = x.layout(r);
  llvm::Type* i8 = x.b.getInt8Ty();
  const unsigned n = 1u << element_bits(x.shape(unpack ? r : s));
  const unsigned width = info(e).bits;
  const unsigned scratch_bytes = width < 8 ? convert_bytes(element_bits(x.shape(s)), 1) : padded_offset(n * (memory_type(x.b.getContext(), e)->getIntegerBitWidth() / 8));
  if (scratch_bytes > x.room) {
    pack_in_parts(x, s, r, e, unpack);
    return true;
  }
  if (width < 8) {
    // A byte holds 8 / width elements, from the low bits up; in the scratch space each has a byte of its own.
    const unsigned per_bits = width == 1 ? 3 : 1, per = 1u << per_bits;
    Value* base = x.scratch(convert_bytes(element_bits(x.shape(s)), 1));
    x.barrier();
    x.write_shared(x.own(s), unpack ? ElementType::I8 : e, ls, base, 0);
    x.barrier();
    Values out(lr.registers());
    for (unsigned k = 0; k < out.size(); ++k) {
      Value* at = x.b.CreateOr(x.thread_element(lr), x.i32(lr.element_of_register(k)));
      if (unpack) {
        Value* byte = x.d.load_shared(i8, 1, shared_place(x, base, x.b.CreateLShr(at, x.i32(per_bits)), 1))[0];
        Value* shift = x.b.CreateTrunc(x.b.CreateMul(x.b.CreateAnd(at, x.i32(per - 1)), x.i32(width)), i8);
        out[k] = from_memory(x.d, e, x.b.CreateAnd(x.b.CreateLShr(byte, shift), (1u << width) - 1));
      } else {
        Value* byte = nullptr;
        for (unsigned j = 0; j < per; ++j) {
          Value* v = x.d.load_shared(i8, 1, shared_place(x, base, x.b.CreateOr(x.b.CreateShl(at, x.i32(per_bits)), x.i32(j)), 1))[0];
          v = x.b.CreateShl(x.b.CreateAnd(v, (1u << width) - 1), j * width);
          byte = byte ? x.b.CreateOr(byte, v) : v;
        }
        out[k] = byte;
      }
    }
    x.set(r, std::move(out));
    return true;
  }
  const unsigned size = memory_type(x.b.getContext(), e)->getIntegerBitWidth() / 8;
  Value* base = x.scratch(padded_offset(n * size));
  x.barrier();
  x.write_shared(x.own(s), x.element(s), ls, base, 0);
  x.barrier();
  x.set(r, x.read_shared(x.element(r), lr, base, 0));
  return true;
}

}  // namespace

bool lower_shape(Lowering& x, InstId i) {
  const Opcode op = x.f.insts[i].op;
  switch (op) {
    case Opcode::Constant: return lower_constant(x, i);
    case Opcode::Iota: case Opcode::Reshape: case Opcode::Broadcast: case Opcode::Permute: {
      const ValueId r = x.f.result(i);
      x.set(r, x.remade(r));
      return true;
    }
    case Opcode::Cat: return lower_cat(x, i);
    case Opcode::Extract: return lower_extract(x, i);
    case Opcode::Insert: return lower_insert(x, i);
    case Opcode::Pack: return lower_pack(x, i, false);
    case Opcode::Unpack: return lower_pack(x, i, true);
    default: return x.unsupported(i, "not a shape operation");
  }
}

}  // namespace tile
