// Matrix products: through mma.sync where the plan says so, else with one multiply-add per element and k from shared memory.
#include <array>
#include <map>
#include <optional>

#include "backend/ptx/lower_fragments.h"

namespace tile {
namespace {

constexpr uint32_t kMatrixScratch = 48 * 1024;  // for the operands of a product: what every target has without asking

struct Sizes {
  unsigned batch, m, n, k;  // bits
};

Sizes sizes_of(Lowering& x, InstId i) {
  const auto a = x.shape(x.f.operands(i)[0]), r = x.shape(x.f.result(i));
  const size_t rank = r.size();
  return {rank == 3 ? log2_of(r[0]) : 0, log2_of(r[rank - 2]), log2_of(r[rank - 1]), log2_of(a[rank - 1])};
}

bool is_signed(Lowering& x, InstId i, const char* name) { return x.f.attr(i, static_cast<size_t>(attr_index(x.f.def(i), name))) != 0; }

/// Registers of an operand as the 32-bit words (doubles for f64) that the instruction takes.
Values words(Lowering& x, ElementType e, const Values& regs, unsigned pack_bits) {
  llvm::IRBuilder<>& b = x.b;
  if (e == ElementType::F64) return regs;
  Values out;
  const bool widen = e == ElementType::F8E4M3FN || e == ElementType::F8E5M2;
  for (size_t r = 0; r < regs.size(); r += size_t{1} << pack_bits) {
    Value* word = nullptr;
    for (size_t k = 0; k < size_t{1} << pack_bits; ++k) {
      Value* v = regs[r + k];
      if (widen) v = convert_float(x.d, e, ElementType::F16, v);
      v = b.CreateBitCast(v, b.getIntNTy(static_cast<unsigned>(v->getType()->getPrimitiveSizeInBits())));
      v = b.CreateZExt(v, b.getInt32Ty());
      word = word ? b.CreateOr(word, b.CreateShl(v, (32u >> pack_bits) * k)) : v;
    }
    out.push_back(word);
  }
  return out;
}

/// Both operands' fragments: by ldmatrix from the scratch space where the layouts allow it, with one pair of barriers for both. Those are read as they
/// are asked for, so that the fragments of a long product are not all in registers at once.
class Operands {
 public:
  Operands(Lowering& x, InstId i, const MmaPlan& p) : x_(x) {
    const auto operands = x.f.operands(i);
    const Layout* layouts[2] = {&p.a, &p.b};
    uint32_t bytes = 0;
    for (size_t k = 0; k < 2; ++k) {
      reads_[k] = matrix_read(x, operands[k], *layouts[k], p.shape.k_pack_bits);
      if (reads_[k] && bytes + reads_[k]->bytes > kMatrixScratch) reads_[k].reset();
      if (reads_[k]) bytes += reads_[k]->bytes;
      words_[k].resize(layouts[k]->registers() >> (x.element(operands[k]) == ElementType::F64 ? 0 : p.shape.k_pack_bits));
    }
    for (size_t k = 0; k < 2; ++k)
      if (!reads_[k]) words_[k] = words(x, x.element(operands[k]), x.get(operands[k], *layouts[k]), p.shape.k_pack_bits);
    if (bytes == 0) return;
    Value* base = x.scratch(bytes);
    at_[0] = base;
    at_[1] = reads_[0] ? x.b.CreateAdd(base, x.i32(reads_[0]->bytes)) : base;
    x.barrier();
    for (size_t k = 0; k < 2; ++k)
      if (reads_[k]) write_matrices(x, *reads_[k], at_[k]);
    x.barrier();
  }
  [[nodiscard]] size_t size(size_t operand) const { return words_[operand].size(); }
  /// `n` words from number `first` on.
  std::span<Value* const> get(size_t operand, size_t first, size_t n) {
    Values& all = words_[operand];
    for (size_t k = first; k < first + n; ++k) {
      if (all[k]) continue;
      const unsigned together = reads_[operand]->matrices, read = static_cast<unsigned>(k) / together;
      const Values some = read_matrices(x_, *reads_[operand], at_[operand], read, 1);
      std::copy(some.begin(), some.end(), all.begin() + static_cast<std::ptrdiff_t>(read) * together);
    }
    return std::span<Value* const>(all).subspan(first, n);
  }

 private:
  Lowering& x_;
  std::optional<MatrixRead> reads_[2];
  Value* at_[2] = {nullptr, nullptr};
  Values words_[2];   ///< nullptr: not read yet
};

bool lower_sync(Lowering& x, InstId i, const MmaPlan& p) {
  const auto operands = x.f.operands(i);
  const ValueId r = x.f.result(i);
  const Sizes s = sizes_of(x, i);
  const ElementType e = x.element(operands[0]), acc_type = x.element(r);
  MmaKind kind = MmaKind::F16F32;
  switch (e) {
    case ElementType::BF16: kind = MmaKind::BF16F32; break;
    case ElementType::TF32: kind = MmaKind::TF32F32; break;
    case ElementType::F64: kind = MmaKind::F64; break;
    case ElementType::I8: {
      const bool sa = is_signed(x, i, "signedness_lhs"), sb = is_signed(x, i, "signedness_rhs");
      kind = sa ? (sb ? MmaKind::S8 : MmaKind::S8U8) : sb ? MmaKind::U8S8 : MmaKind::U8;
      break;
    }
    default: break;
  }
  // The accumulator first: bringing it into its layout may take the scratch space, where the fragments lie.
  Values c = x.get(operands[2], p.result);
  Operands fragments(x, i, p);
  // An f16 accumulator is rounded once, at the end.
  if (acc_type == ElementType::F16)
    for (Value*& v : c) v = convert_float(x.d, ElementType::F16, ElementType::F32, v);
  const unsigned ks = 1u << (s.k - p.shape.k_bits);
  const unsigned a_words = (1u << (p.shape.m_bits + p.shape.k_bits - 5)) >> p.shape.k_pack_bits, b_words = (1u << (p.shape.n_bits + p.shape.k_bits - 5)) >> p.shape.k_pack_bits;
  const unsigned c_regs = 1u << (p.shape.m_bits + p.shape.n_bits - 5);
  const size_t blocks_a = fragments.size(0) / a_words / ks, blocks_b = fragments.size(1) / b_words / ks;  // batch * tiles of this warp
  const size_t blocks_c = c.size() / c_regs;
  // blocks_c = batches * mt * nt, blocks_a = batches * mt, blocks_b = batches * nt.
  const size_t batches = blocks_a * blocks_b / blocks_c, mt = blocks_a / batches, nt = blocks_b / batches;
  for (size_t g = 0; g < batches; ++g)
    for (unsigned k = 0; k < ks; ++k)
      for (size_t y = 0; y < mt; ++y)
        for (size_t z = 0; z < nt; ++z) {
          const auto at = static_cast<std::ptrdiff_t>(((g * mt + y) * nt + z) * c_regs);
          const Values sum = x.d.mma(kind, fragments.get(0, ((g * mt + y) * ks + k) * a_words, a_words), fragments.get(1, ((g * nt + z) * ks + k) * b_words, b_words),
                                     std::span<Value* const>(c).subspan(static_cast<size_t>(at), c_regs));
          std::copy(sum.begin(), sum.end(), c.begin() + at);
        }
  if (acc_type == ElementType::F16)
    for (Value*& v : c) v = convert_float(x.d, ElementType::F32, ElementType::F16, v);
  x.set(r, x.convert(c, acc_type, p.result, x.layout(r), element_bits(x.shape(r))));
  return true;
}

/// An operand in shared memory, read by coordinates.
struct Staged {
  ElementType element;
  Value* base;
  uint32_t at;
  unsigned bytes;
  [[nodiscard]] Value* offset(Lowering& x, Value* element_number) const {
    Value* o = x.b.CreateMul(element_number, x.i32(bytes));
    return x.b.CreateAdd(o, x.b.CreateShl(x.b.CreateLShr(o, x.i32(7)), x.i32(4)));
  }
};

Value* widened(Lowering& x, ElementType e, ElementType acc, bool sign, Value* v) {
  if (acc == ElementType::I32) return sign ? x.b.CreateSExt(v, x.b.getInt32Ty()) : x.b.CreateZExt(v, x.b.getInt32Ty());
  const ElementType to = acc == ElementType::F64 ? ElementType::F64 : ElementType::F32;
  return e == to || (e == ElementType::TF32 && to == ElementType::F32) ? v : convert_float(x.d, e, to, v);
}

/// The elements of part `n` of K, 2^part long, in the order of the operand. K has `k_bits` bits from `k_at` on of an element's number.
void write_part(Lowering& x, ValueId v, const Staged& to, unsigned k_at, unsigned k_bits, unsigned part, Value* n) {
  llvm::IRBuilder<>& b = x.b;
  for (const Lowering::Placed& p : x.placed(x.own(v), to.element, x.layout(v))) {
    Value* here = b.CreateICmpEQ(b.CreateAnd(b.CreateLShr(p.number, k_at + part), x.i32((1 << (k_bits - part)) - 1)), n);
    Value* low = b.CreateAnd(p.number, x.i32((1 << (k_at + part)) - 1));
    Value* high = b.CreateShl(b.CreateLShr(p.number, k_at + k_bits), k_at + part);
    Value* at = b.CreateAdd(b.CreateAdd(to.base, x.i32(to.at)), to.offset(x, b.CreateOr(high, low)));
    x.d.store_shared({&p.word, 1}, at, p.when ? b.CreateAnd(here, p.when) : here);
  }
}

bool lower_fma(Lowering& x, InstId i) {
  llvm::IRBuilder<>& b = x.b;
  const auto operands = x.f.operands(i);
  const ValueId r = x.f.result(i);
  const Sizes s = sizes_of(x, i);
  const Layout& l = x.layout(r);
  const ElementType acc_type = x.element(r), e = x.element(operands[0]);
  const bool scaled = operands.size() > 3;

  // As long a part of K at a time as there is room for, all of it if possible. Scales are few.
  std::vector<Staged> staged;
  uint32_t bytes = 0;
  unsigned part = s.k;
  const uint32_t room = std::min(x.room, x.d.target.max_shared());
  const auto place = [&] {
    staged.clear();
    bytes = 0;
    for (size_t k = 0; k < operands.size(); ++k) {
      if (k == 2) continue;
      const ElementType t = x.element(operands[k]);
      const unsigned size = memory_type(b.getContext(), t)->getIntegerBitWidth() / 8;
      staged.push_back({t, nullptr, bytes, size});
      bytes += (convert_bytes(element_bits(x.shape(operands[k])) - (k < 2 ? s.k - part : 0), size) + 127u) & ~127u;
    }
  };
  for (place(); bytes > room && part > 0; place()) --part;
  if (bytes > x.d.target.max_shared())
    return x.unsupported(i, "its operands need " + std::to_string(bytes) + " bytes of shared memory, a block has " + std::to_string(x.d.target.max_shared()));
  // The accumulator first: bringing it into its layout may take the scratch space.
  const Values c = x.get(operands[2], l);
  Value* base = x.scratch(bytes);
  if (part < s.k) x.remark(i, "fma of parts of " + std::to_string(1u << part) + " of K", "shared memory does not hold all of both operands");
  x.barrier();
  for (size_t k = 0, at = 0; k < operands.size(); ++k) {
    if (k == 2) continue;
    staged[at].base = base;
    if (k > 2 || part == s.k) x.write_shared(x.own(operands[k]), staged[at].element, x.layout(operands[k]), base, staged[at].at);
    ++at;
  }
  if (part == s.k) x.barrier();

  const bool sign_a = e == ElementType::I8 && is_signed(x, i, "signedness_lhs"), sign_b = e == ElementType::I8 && is_signed(x, i, "signedness_rhs");
  llvm::Type* type = acc_type == ElementType::I32 ? b.getInt32Ty() : acc_type == ElementType::F64 ? b.getDoubleTy() : b.getFloatTy();
  std::vector<Lowering::Var> acc;
  for (Value* v : c) {
    acc.push_back(x.var(type));
    x.store(acc.back(), acc_type == ElementType::F16 ? convert_float(x.d, ElementType::F16, ElementType::F32, v) : v);
  }
  const int64_t shape[3] = {int64_t{1} << s.batch, int64_t{1} << s.m, int64_t{1} << s.n};
  Value *tb = x.thread_coordinate(l, shape, 0), *tm = x.thread_coordinate(l, shape, 1), *tn = x.thread_coordinate(l, shape, 2);
  // Thread parts of the element numbers; the parts of k and of the registers have other bits, so offsets add up.
  const auto begin = [&](const Staged& t, Value* number) { return b.CreateAdd(b.CreateAdd(t.base, x.i32(t.at)), t.offset(x, number)); };
  Value* a_base = begin(staged[0], b.CreateOr(b.CreateShl(tb, s.m + part), b.CreateShl(tm, part)));
  Value* b_base = begin(staged[1], b.CreateOr(b.CreateShl(tb, part + s.n), tn));
  unsigned sk = 0, sa_bits = 0;
  Value *as_base = nullptr, *bs_base = nullptr;
  if (scaled) {
    sa_bits = log2_of(x.shape(operands[3]).back());
    sk = s.k - sa_bits;
    as_base = begin(staged[2], b.CreateOr(b.CreateShl(tb, s.m + sa_bits), b.CreateShl(tm, sa_bits)));
    bs_base = begin(staged[3], b.CreateOr(b.CreateShl(tb, sa_bits + s.n), tn));
  }
  // Of a part, `first` is where it begins in K.
  const auto multiply = [&](Value* k, Value* first) {
    Value* ks = scaled ? b.CreateLShr(first ? b.CreateOr(first, k) : k, x.i32(sk)) : nullptr;
    std::map<uint32_t, Value*> rows, columns;
    const auto fetch = [&](const Staged& t, Value* thread_part, Value* k_part, uint32_t reg_number) {
      Value* at = b.CreateAdd(b.CreateAdd(thread_part, t.offset(x, k_part)), x.i32(padded_offset(reg_number * t.bytes)));
      return from_memory(x.d, t.element, x.d.load_shared(memory_type(b.getContext(), t.element), 1, at)[0]);
    };
    for (unsigned reg = 0; reg < acc.size(); ++reg) {
      const uint32_t gb = Lowering::register_coordinate(l, shape, 0, reg), gm = Lowering::register_coordinate(l, shape, 1, reg),
                     gn = Lowering::register_coordinate(l, shape, 2, reg);
      Value*& row = rows[gb << s.m | gm];
      if (!row) {
        row = widened(x, e, acc_type, sign_a, fetch(staged[0], a_base, k, gb << (s.m + part) | gm << part));
        if (scaled)
          row = b.CreateFMul(row, convert_float(x.d, staged[2].element, ElementType::F32, fetch(staged[2], as_base, ks, gb << (s.m + sa_bits) | gm << sa_bits)));
      }
      Value*& column = columns[gb << s.n | gn];
      if (!column) {
        column = widened(x, e, acc_type, sign_b, fetch(staged[1], b_base, b.CreateShl(k, s.n), gb << (part + s.n) | gn));
        if (scaled)
          column = b.CreateFMul(column, convert_float(x.d, staged[3].element, ElementType::F32,
                                                      fetch(staged[3], bs_base, b.CreateShl(ks, s.n), gb << (sa_bits + s.n) | gn)));
      }
      Value* old = x.load(acc[reg]);
      x.store(acc[reg], acc_type == ElementType::I32 ? b.CreateAdd(old, b.CreateMul(row, column)) : x.d.fma(row, column, old));
    }
  };
  if (part == s.k) {
    x.loop(1u << s.k, [&](Value* k) { multiply(k, nullptr); });
  } else {
    x.loop(1u << (s.k - part), [&](Value* n) {
      write_part(x, operands[0], staged[0], 0, s.k, part, n);
      write_part(x, operands[1], staged[1], s.n, s.k, part, n);
      x.barrier();
      x.loop(1u << part, [&](Value* k) { multiply(k, b.CreateShl(n, part)); });
      x.barrier();
    });
  }
  Values out;
  for (const auto& v : acc) out.push_back(acc_type == ElementType::F16 ? convert_float(x.d, ElementType::F32, ElementType::F16, x.load(v)) : x.load(v));
  x.set(r, std::move(out));
  return true;
}

}  // namespace

bool lower_matrix(Lowering& x, InstId i) {
  const MmaPlan& p = x.plan.mma.at(i);
  if (p.unit == MmaUnit::Group) {
    const auto it = x.plan.rings.find(i);
    return it != x.plan.rings.end() ? lower_single(x, i, it->second) : lower_stream_product(x, i);
  }
  return p.unit == MmaUnit::Sync ? lower_sync(x, i, p) : lower_fma(x, i);
}

}  // namespace tile
