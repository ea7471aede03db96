// Fragments of mma.sync from the stages of rings: panels of rows, swizzled as bulk tensor copies do it.
#include "backend/ptx/lower_fragments.h"

#include <algorithm>

#include "backend/ptx/lower_ring.h"

namespace tile {

std::optional<MatrixRead> matrix_read(Lowering& x, ValueId operand, const Layout& to, unsigned pack_bits) {
  MatrixRead out;
  Layout l = to;
  for (out.value = operand; x.layout(out.value) != l;) {
    const InstId i = x.definition(out.value);
    const Opcode op = i == kNone ? Opcode::Constant : x.f.insts[i].op;
    if (i != kNone && (op == Opcode::Constant || op == Opcode::Iota || op == Opcode::Broadcast)) return std::nullopt;  // made anew
    if (i == kNone || (op != Opcode::Reshape && op != Opcode::Permute)) break;
    const ValueId source = x.f.operands(i)[0];
    if (op == Opcode::Permute) {
      const auto& ints = x.m.attrs.get(x.f.attr(i, 0)).ints;
      l = unpermuted_layout(l, x.shape(source), std::vector<int32_t>(ints.begin(), ints.end()));
    }
    out.value = source;
  }
  const unsigned bytes = info(x.element(operand)).storage;
  if (convert_kind(x.layout(out.value), l) != ConvertKind::Shared || bytes << pack_bits != 4 || l.reg.size() < pack_bits) return std::nullopt;
  // Eight rows of 16 bytes each: lane 4 g + t gets word t of row g, or, of 16-bit elements, places 2 t and 2 t + 1 of column g.
  const auto counts_from_zero = [](std::initializer_list<int8_t> bits) {
    int8_t next = 0;
    return std::all_of(bits.begin(), bits.end(), [&](int8_t bit) { return bit == next++; });
  };
  std::vector<int8_t> rows;
  const auto reg = [&](unsigned k) { return k < l.reg.size() ? l.reg[k] : kCopies; };
  const bool plain = pack_bits == 0   ? counts_from_zero({l.lane[0], l.lane[1]})
                     : pack_bits == 1 ? counts_from_zero({reg(0), l.lane[0], l.lane[1]})
                                      : counts_from_zero({reg(0), reg(1), l.lane[0], l.lane[1]});
  if (plain) {
    rows = {l.lane[2], l.lane[3], l.lane[4]};
  } else if (pack_bits == 1 && counts_from_zero({l.lane[2], l.lane[3], l.lane[4]})) {
    rows = {reg(0), l.lane[0], l.lane[1]};
    out.transpose = true;
  } else {
    return std::nullopt;
  }
  const unsigned word_bits = static_cast<unsigned>(l.reg.size()) - pack_bits, taken = std::min(word_bits, 2u);
  out.matrices = 1u << taken;
  out.rows.lane = rows;
  for (unsigned k = 0; k < 2; ++k) out.rows.lane.push_back(k < taken ? l.reg[pack_bits + k] : kCopies);
  out.rows.reg.assign(l.reg.begin() + pack_bits + taken, l.reg.end());
  out.rows.warp = l.warp;
  const unsigned bits = element_bits(x.shape(out.value));
  out.exchange = std::max(7u, log2_of(x.shape(out.value).back()) + log2_of(bytes));
  out.bytes = std::max(bytes << bits, 128u);
  return out;
}

namespace {

/// Offsets of a thread and, added by exclusive or, of its registers.
class Places {
 public:
  Places(Lowering& x, const MatrixRead& r, const Layout& l, unsigned bytes) : x_(x), r_(r), l_(l), bytes_(bytes) {
    llvm::IRBuilder<>& b = x.b;
    Value* at = b.CreateMul(x.thread_element(l), x.i32(bytes));
    thread_ = b.CreateXor(at, b.CreateShl(b.CreateAnd(b.CreateLShr(at, x.i32(r.exchange)), x.i32(7)), x.i32(4)));
  }
  [[nodiscard]] Value* of(unsigned reg, Value* base) const {
    uint32_t at = l_.element_of_register(reg) * bytes_;
    at ^= (at >> r_.exchange & 7) << 4;
    // The other bits differ, so that they may be added, which the instruction does.
    const uint32_t meeting = at & 0x70;
    Value* thread = meeting != 0 ? x_.b.CreateXor(thread_, x_.i32(meeting)) : thread_;
    return x_.b.CreateAdd(x_.b.CreateAdd(base, thread), x_.i32(at - meeting));
  }

 private:
  Lowering& x_;
  const MatrixRead& r_;
  const Layout& l_;
  const unsigned bytes_;
  Value* thread_;
};

}  // namespace

void write_matrices(Lowering& x, const MatrixRead& r, Value* base) {
  const Layout& l = x.layout(r.value);
  const ElementType e = x.element(r.value);
  const unsigned bytes = info(e).storage;
  unsigned run = 0;  // log2 of the registers that are neighbours, from the lowest
  while (run < l.reg.size() && l.reg[run] == static_cast<int>(run) && bytes << (run + 1) <= 16) ++run;
  const Places places(x, r, l, bytes);
  Value* mine = x.owner(l);
  const Values& regs = x.own(r.value);
  for (unsigned k = 0; k < regs.size(); k += 1u << run) {
    Values words;
    for (unsigned n = 0; n < 1u << run; ++n) words.push_back(to_memory(x.d, e, regs[k + n]));
    x.d.store_shared(words, places.of(k, base), mine);
  }
}

Values read_matrices(Lowering& x, const MatrixRead& r, Value* base, unsigned first, unsigned count) {
  const Places places(x, r, r.rows, info(x.element(r.value)).storage);
  Values out;
  for (unsigned k = first; k < first + count; ++k)
    for (Value* w : x.d.ldmatrix(r.matrices, r.transpose, places.of(k, base))) out.push_back(w);
  return out;
}

StageFragments::StageFragments(Lowering& x, const RingPlan& r) : x_(x), b_(x.b), r_(r) {
  const Layout& result = x.plan.mma.at(r.mma).result;
  Layout warps = result;
  for (int8_t& k : warps.lane) k = kCopies;
  const auto shape = x.shape(x.f.result(r.mma));
  warp_m_ = x.thread_coordinate(warps, shape, 0);
  warp_n_ = x.thread_coordinate(warps, shape, 1);
  // Register bits beyond the instruction's four accumulators count tiles along n, then along m.
  for (unsigned k = 0; k < result.registers(); k += 4) {
    const uint32_t m = Lowering::register_coordinate(result, shape, 0, k), n = Lowering::register_coordinate(result, shape, 1, k);
    if (std::find(tiles_m_.begin(), tiles_m_.end(), m) == tiles_m_.end()) tiles_m_.push_back(m);
    if (std::find(tiles_n_.begin(), tiles_n_.end(), n) == tiles_n_.end()) tiles_n_.push_back(n);
  }
  Value *lane = x.lane(), *low = b_.CreateAnd(lane, x.i32(7)), *bit3 = b_.CreateAnd(b_.CreateLShr(lane, x.i32(3)), x.i32(1)), *bit4 = b_.CreateLShr(lane, x.i32(4));
  for (const bool is_b : {false, true}) {
    const RingPlan::Operand& o = is_b ? r.b : r.a;
    // Matrices 1 and 2 of ldmatrix: for A the next 8 rows, then the next 16 bytes of K; for B the other way round.
    Value *minor = is_b ? bit4 : bit3, *k_half = is_b ? bit3 : bit4, *first = is_b ? warp_n_ : warp_m_;
    first = is_b && !pairs() ? first : b_.CreateOr(first, b_.CreateShl(minor, x.i32(3)));
    Value *row = nullptr, *byte = nullptr;
    if (doubles()) {
      // Lane 4 g + t: row or column g, K from 2 t on.
      Value *g = b_.CreateLShr(lane, x.i32(2)), *t = b_.CreateAnd(lane, x.i32(3)), *mine = b_.CreateOr(is_b ? warp_n_ : warp_m_, g);
      row = o.mn_major ? b_.CreateShl(t, x.i32(1)) : mine;
      byte = o.mn_major ? b_.CreateShl(mine, x.i32(3)) : b_.CreateShl(t, x.i32(4));
    } else if (o.mn_major) {
      row = b_.CreateOr(low, b_.CreateShl(k_half, x.i32(3)));
      byte = b_.CreateMul(first, x.i32(r.element_bytes));
    } else {
      row = b_.CreateOr(first, low);
      byte = b_.CreateShl(k_half, x.i32(4));
    }
    place_[is_b] = place(o, x.i32(0), row, byte);
  }
}

/// One ldmatrix. The swizzle is linear over bits, and the thread's part of row and byte has other bits than `first` and `k`: the place is the
/// exclusive or of their places, where only bits 4 to 6 meet.
Values StageFragments::matrices(const RingPlan::Operand& o, Value* from, uint32_t first, unsigned k, bool is_b, bool pair) {
  const uint32_t row = o.mn_major ? 16 * k : first, byte = o.mn_major ? first * r_.element_bytes : 32 * k;
  uint32_t at = byte / o.row_bytes * o.panel_bytes() + row * o.row_bytes + byte % o.row_bytes;
  at ^= (at >> 7 & ((1u << o.swizzle()) - 1)) << 4;
  const uint32_t meeting = at & 0x70;
  Value* thread = meeting != 0 ? b_.CreateXor(place_[is_b], x_.i32(meeting)) : place_[is_b];
  return x_.d.ldmatrix(is_b && !pair ? 2 : 4, o.mn_major, b_.CreateAdd(b_.CreateAdd(from, thread), x_.i32(at - meeting)));
}

/// Fragments of f64: slot t + 4 s of the instruction's K holds element 2 t + (s & 1) + 8 (s >> 1), in both operands alike. Where rows run along K
/// two neighbours are read at once; where they run across it, the four rows of a lane's neighbours lie in different banks.
Values StageFragments::of_doubles(const RingPlan::Operand& o, Value* from, uint32_t first, unsigned k, bool is_b) {
  const auto at = [&](uint32_t row, uint32_t byte) {
    uint32_t place = byte / o.row_bytes * o.panel_bytes() + row * o.row_bytes + byte % o.row_bytes;
    place ^= (place >> 7 & ((1u << o.swizzle()) - 1)) << 4;
    const uint32_t meeting = place & 0x70;
    Value* thread = meeting != 0 ? b_.CreateXor(place_[is_b], x_.i32(meeting)) : place_[is_b];
    return b_.CreateAdd(b_.CreateAdd(from, thread), x_.i32(place - meeting));
  };
  const unsigned halves = is_b ? 1 : 2;
  Values out(4 * halves);
  for (unsigned h = 0; h < halves; ++h) {
    for (unsigned pair = 0; pair < 2; ++pair) {
      Values two;
      if (o.mn_major) {
        for (unsigned e = 0; e < 2; ++e) two.push_back(x_.d.load_shared(b_.getInt64Ty(), 1, at(16 * k + 8 * pair + e, 8 * (first + 8 * h)))[0]);
      } else {
        two = x_.d.load_shared(b_.getInt64Ty(), 2, at(first + 8 * h, 128 * k + 64 * pair));
      }
      for (unsigned e = 0; e < 2; ++e) out[(2 * pair + e) * halves + h] = b_.CreateBitCast(two[e], b_.getDoubleTy());
    }
  }
  return out;
}

StageFragments::Step StageFragments::load(Value* from, unsigned k) {
  Step s;
  if (doubles()) {
    for (const uint32_t m : tiles_m_) s.a.push_back(of_doubles(r_.a, from, m, k, false));
    for (const uint32_t n : tiles_n_) s.b.push_back(of_doubles(r_.b, from, n, k, true));
    return s;
  }
  for (const uint32_t m : tiles_m_) s.a.push_back(rounded(r_.a, matrices(r_.a, from, m, k, false, true)));
  for (size_t n = 0; n < tiles_n_.size(); n += 2) {
    const Values both = rounded(r_.b, matrices(r_.b, from, tiles_n_[n], k, true, pairs()));
    s.b.push_back({both[0], both[1]});
    if (pairs()) s.b.push_back({both[2], both[3]});
  }
  return s;
}

StageFragments::Step StageFragments::load_any(Value* from, Value* k) {
  const auto one = [&](const RingPlan::Operand& o, Value* first, bool is_b) {
    return rounded(o, o.mn_major ? across(o, from, first, k, is_b, pairs()) : along(o, from, first, k, is_b, pairs()));
  };
  Step s;
  for (const uint32_t m : tiles_m_) s.a.push_back(one(r_.a, b_.CreateAdd(warp_m_, x_.i32(m)), false));
  for (size_t n = 0; n < tiles_n_.size(); n += 2) {
    // Two neighbouring tiles of eight columns in one read.
    const Values both = one(r_.b, b_.CreateAdd(warp_n_, x_.i32(tiles_n_[n])), true);
    s.b.push_back({both[0], both[1]});
    if (pairs()) s.b.push_back({both[2], both[3]});
  }
  return s;
}

/// f32 words that no bulk copy has rounded on the way.
Values StageFragments::rounded(const RingPlan::Operand& o, Values words) {
  if (!o.rounds) return words;
  for (Value*& w : words)
    w = b_.CreateBitCast(convert_float(x_.d, ElementType::F32, ElementType::TF32, b_.CreateBitCast(w, b_.getFloatTy())), b_.getInt32Ty());
  return words;
}

void StageFragments::multiply(const Step& s, Values& acc) {
  widened_.clear();
  for (size_t m = 0; m < s.a.size(); ++m)
    for (size_t n = 0; n < s.b.size(); ++n) product(s.a[m], s.b[n], acc, (m * s.b.size() + n) * 4);
}

void StageFragments::stage(Value* from, const std::vector<Lowering::Var>& vars) {
  const auto add = [&](const Step& s) {
    Values acc;
    for (const auto& v : vars) acc.push_back(x_.load(v));
    multiply(s, acc);
    for (size_t k = 0; k < vars.size(); ++k) x_.store(vars[k], acc[k]);
  };
  // Elements that are gathered one by one are many loads; ahead of all steps at once they would fill the registers.
  if (gathers() && steps() > 1) {
    x_.loop(steps(), [&](Value* k) { add(load_any(from, k)); });
  } else {
    for (unsigned k = 0; k < steps(); ++k) add(gathers() ? load_any(from, x_.i32(k)) : load(from, k));
  }
}

Value* StageFragments::place(const RingPlan::Operand& o, Value* from, Value* row, Value* byte) {
  return b_.CreateAdd(b_.CreateAdd(from, x_.i32(o.offset)), swizzled(x_, o, row, byte));
}

/// Rows run along K: ldmatrix moves 16 bytes of a row to four lanes, whatever the element type.
Values StageFragments::along(const RingPlan::Operand& o, Value* from, Value* first, Value* k, bool is_b, bool pair) {
  Value* lane = x_.lane();
  Value *low = b_.CreateAnd(lane, x_.i32(7)), *bit3 = b_.CreateAnd(b_.CreateLShr(lane, x_.i32(3)), x_.i32(1)), *bit4 = b_.CreateLShr(lane, x_.i32(4));
  Value* row = b_.CreateAdd(low, b_.CreateShl(is_b ? bit4 : bit3, x_.i32(3)));
  if (is_b && !pair) row = low;
  Value* byte = b_.CreateAdd(b_.CreateShl(is_b ? bit3 : bit4, x_.i32(4)), b_.CreateShl(k, x_.i32(5)));
  return x_.d.ldmatrix(is_b && !pair ? 2 : 4, false, place(o, from, b_.CreateAdd(first, row), byte));
}

/// Rows run along M or N. 16-bit elements are transposed on the way; others are gathered one by one.
Values StageFragments::across(const RingPlan::Operand& o, Value* from, Value* first, Value* k, bool is_b, bool pair) {
  const unsigned size = r_.element_bytes;
  Value* lane = x_.lane();
  if (size == 2) {
    Value *low = b_.CreateAnd(lane, x_.i32(7)), *bit3 = b_.CreateAnd(b_.CreateLShr(lane, x_.i32(3)), x_.i32(1)), *bit4 = b_.CreateLShr(lane, x_.i32(4));
    Value* row = b_.CreateAdd(b_.CreateAdd(low, b_.CreateShl(is_b ? bit3 : bit4, x_.i32(3))), b_.CreateShl(k, x_.i32(4)));
    Value* column = is_b && !pair ? first : b_.CreateAdd(first, b_.CreateShl(is_b ? bit4 : bit3, x_.i32(3)));
    return x_.d.ldmatrix(is_b && !pair ? 2 : 4, true, place(o, from, row, b_.CreateShl(column, x_.i32(1))));
  }
  Value *g = b_.CreateLShr(lane, x_.i32(2)), *t = b_.CreateAnd(lane, x_.i32(3));
  const unsigned per_word = 4 / size, k_half = 16 / size;  // elements of K in a word, and in half the fragment
  llvm::Type* type = b_.getIntNTy(8 * size);
  Values out;
  for (unsigned word = 0; word < (is_b && !pair ? 2u : 4u); ++word) {
    // A: rows first, then the second half of K; B: the halves of K, then the next eight columns.
    const unsigned half = is_b ? word & 1 : word >> 1, eight = is_b ? word >> 1 : word & 1;
    Value* column = b_.CreateAdd(b_.CreateAdd(first, g), x_.i32(8 * eight));
    Value* packed = nullptr;
    for (unsigned e = 0; e < per_word; ++e) {
      Value* row = b_.CreateAdd(b_.CreateAdd(b_.CreateMul(t, x_.i32(per_word)), b_.CreateMul(k, x_.i32(2 * k_half))), x_.i32(half * k_half + e));
      Value* v = b_.CreateZExt(x_.d.load_shared(type, 1, place(o, from, row, b_.CreateMul(column, x_.i32(size))))[0], b_.getInt32Ty());
      packed = packed ? b_.CreateOr(packed, b_.CreateShl(v, 8 * size * e)) : v;
    }
    out.push_back(packed);
  }
  return out;
}

void StageFragments::product(const Values& a, const Values& bb, Values& acc, size_t at) {
  const auto add = [&](MmaKind kind, const Values& p, const Values& q) {
    const Values c(acc.begin() + static_cast<std::ptrdiff_t>(at), acc.begin() + static_cast<std::ptrdiff_t>(at + 4));
    const Values d = x_.d.mma(kind, p, q, c);
    std::copy(d.begin(), d.end(), acc.begin() + static_cast<std::ptrdiff_t>(at));
  };
  switch (r_.element) {
    case ElementType::F16: return add(MmaKind::F16F32, a, bb);
    case ElementType::BF16: return add(MmaKind::BF16F32, a, bb);
    case ElementType::TF32: return add(MmaKind::TF32F32, a, bb);
    case ElementType::F64: return add(MmaKind::F64, a, bb);
    case ElementType::I8: return add(integer_kind(x_, r_.mma, false), a, bb);
    default: {
      // f8 as f16: a word's two pairs become the two halves of K of one product. K is rearranged alike in both operands.
      add(MmaKind::F16F32, {wide(a[0], 0), wide(a[1], 0), wide(a[0], 1), wide(a[1], 1)}, {wide(bb[0], 0), wide(bb[0], 1)});
      add(MmaKind::F16F32, {wide(a[2], 0), wide(a[3], 0), wide(a[2], 1), wide(a[3], 1)}, {wide(bb[1], 0), wide(bb[1], 1)});
    }
  }
}

/// Two f8 of a word, the lower or the upper ones, as two f16.
Value* StageFragments::wide(Value* word, unsigned upper) {
  const auto key = std::pair(word, upper);
  if (const auto it = widened_.find(key); it != widened_.end()) return it->second;
  Value* out = nullptr;
  for (unsigned k = 0; k < 2; ++k) {
    Value* byte = b_.CreateTrunc(b_.CreateLShr(word, 16 * upper + 8 * k), b_.getInt8Ty());
    Value* half = b_.CreateZExt(b_.CreateBitCast(convert_float(x_.d, r_.element, ElementType::F16, byte), b_.getInt16Ty()), b_.getInt32Ty());
    out = out ? b_.CreateOr(out, b_.CreateShl(half, 16)) : half;
  }
  return widened_[key] = out;
}

}  // namespace tile
