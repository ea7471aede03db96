// Reductions and scans: registers first, then lanes by shuffles, then warps through the scratch space. The body is applied to pairs of
// neighbours with the lower index on the left, so it need be associative only, except in reductions, whose order the language leaves free.
#include <algorithm>

#include "backend/ptx/lowering.h"

namespace tile {
namespace {

/// One element of each operand.
using Tuple = Values;

class Folder {
 public:
  Folder(Lowering& x, InstId i) : x_(x), b_(x.b), region_(x.f.region(i)) {
    const uint32_t n = x.f.insts[i].result_count;
    for (uint32_t k = 0; k < n; ++k) elements_.push_back(x.element(x.f.operands(i)[k]));
    commutes_ = commutes();
  }

  [[nodiscard]] const std::vector<ElementType>& elements() const { return elements_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool commutative() const { return commutes_; }

  Tuple combine(const Tuple& low, const Tuple& high) {
    if (failed_) return low;  // one error says it all
    Values args;
    for (size_t k = 0; k < low.size(); ++k) {
      args.push_back(low[k]);
      args.push_back(high[k]);
    }
    auto out = x_.apply(region_, args);
    if (!out) failed_ = true;
    return out ? *out : low;
  }
  Tuple select(Value* condition, const Tuple& yes, const Tuple& no) {
    Tuple out;
    for (size_t k = 0; k < yes.size(); ++k) out.push_back(b_.CreateSelect(condition, yes[k], no[k]));
    return out;
  }
  Tuple shuffle(ShuffleMode mode, const Tuple& t, Value* by) {
    Tuple out;
    for (size_t k = 0; k < t.size(); ++k) {
      Value* word = to_memory(x_.d, elements_[k], t[k]);
      llvm::Type* type = word->getType();
      const unsigned bits = type->getIntegerBitWidth();
      if (bits <= 32) {
        word = b_.CreateTrunc(x_.d.shuffle(mode, b_.CreateZExt(word, b_.getInt32Ty()), by), type);
      } else {
        Value* low = x_.d.shuffle(mode, b_.CreateTrunc(word, b_.getInt32Ty()), by);
        Value* high = x_.d.shuffle(mode, b_.CreateTrunc(b_.CreateLShr(word, 32), b_.getInt32Ty()), by);
        word = b_.CreateOr(b_.CreateZExt(low, type), b_.CreateShl(b_.CreateZExt(high, type), 32));
      }
      out.push_back(from_memory(x_.d, elements_[k], word));
    }
    return out;
  }

 private:
  /// A body of one operation whose operands may change places without changing a bit.
  bool commutes() const {
    const Inst& first = x_.f.insts[region_.begin];
    if (elements_.size() != 1 || first.next >= region_.end || x_.f.insts[first.next].op != Opcode::Yield) return false;
    switch (first.op) {
      case Opcode::AddF: case Opcode::MulF: case Opcode::AddI: case Opcode::MulI: case Opcode::MaxI: case Opcode::MinI: case Opcode::AndI:
      case Opcode::OrI: case Opcode::XOrI: case Opcode::MaxF: case Opcode::MinF:
        return x_.f.operands(first.next)[0] == x_.f.result(region_.begin);
      default: return false;
    }
  }

  Lowering& x_;
  llvm::IRBuilder<>& b_;
  const Region& region_;
  std::vector<ElementType> elements_;
  bool commutes_ = false, failed_ = false;
};

std::vector<Tuple> transpose(const std::vector<Values>& by_operand) {
  std::vector<Tuple> out(by_operand[0].size());
  for (const Values& regs : by_operand)
    for (size_t r = 0; r < regs.size(); ++r) out[r].push_back(regs[r]);
  return out;
}
Values column(const std::vector<Tuple>& tuples, size_t k) {
  Values out;
  for (const Tuple& t : tuples) out.push_back(t[k]);
  return out;
}

bool lower_fold(Lowering& x, InstId i) {
  const Function& f = x.f;
  Folder fold(x, i);
  const auto operands = f.operands(i);
  const auto shape = x.shape(operands[0]);
  const unsigned dim = static_cast<unsigned>(x.m.int_attr(f, i, 0));
  const Layout& l = x.layout(operands[0]);
  const int low = static_cast<int>(dim_bits(shape)[dim]), count = static_cast<int>(log2_of(shape[dim]));
  const auto of_dim = [&](int8_t bit) { return bit != kCopies && bit >= low && bit < low + count; };

  std::vector<Values> in;
  for (const ValueId v : operands) in.push_back(x.get(v, l));
  std::vector<Tuple> now = transpose(in);
  // Registers: bits from the top, so that the numbers of those below stay; the last list is in the order of the kept bits.
  for (size_t k = l.reg.size(); k-- > 0;) {
    if (!of_dim(l.reg[k])) continue;
    std::vector<Tuple> next;
    const size_t step = size_t{1} << k;
    for (size_t r = 0; r < now.size(); ++r)
      if ((r & step) == 0) next.push_back(fold.combine(now[r], now[r | step]));
    now = std::move(next);
  }
  for (size_t k = 0; k < l.lane.size(); ++k) {
    if (!of_dim(l.lane[k])) continue;
    Value* upper = x.b.CreateTrunc(x.b.CreateLShr(x.lane(), x.i32(static_cast<int64_t>(k))), x.b.getInt1Ty());
    for (Tuple& t : now) {
      const Tuple other = fold.shuffle(ShuffleMode::Xor, t, x.i32(1 << k));
      t = fold.commutative() ? fold.combine(t, other) : fold.combine(fold.select(upper, other, t), fold.select(upper, t, other));
    }
  }
  const Layout reduced = reduced_layout(l, shape, dim);
  std::vector<unsigned> warps;
  for (unsigned k = 0; k < l.warp.size(); ++k)
    if (of_dim(l.warp[k])) warps.push_back(k);
  const uint32_t n = f.insts[i].result_count;
  if (warps.empty()) {
    for (uint32_t k = 0; k < n; ++k)
      x.set(f.result(i, k), x.convert(column(now, k), fold.elements()[k], reduced, x.layout(f.result(i, k)), element_bits(x.shape(f.result(i, k)))));
    return !fold.failed();
  }
  // Each warp's result becomes an element of a tile with one more dimension, on top; every thread then reads all of them.
  const unsigned bits = element_bits(x.shape(f.result(i)));
  Layout from = reduced;
  std::vector<Values> read(n);
  for (size_t j = 0; j < warps.size(); ++j) from.warp[warps[j]] = static_cast<int8_t>(bits + j);
  for (uint32_t k = 0; k < n; ++k) {
    Layout to = x.layout(f.result(i, k));
    for (size_t j = 0; j < warps.size(); ++j) to.reg.push_back(static_cast<int8_t>(bits + j));
    read[k] = x.convert(column(now, k), fold.elements()[k], from, to, bits + static_cast<unsigned>(warps.size()));
  }
  now = transpose(read);
  for (size_t j = warps.size(); j-- > 0;) {
    const size_t half = now.size() / 2;
    for (size_t r = 0; r < half; ++r) now[r] = fold.combine(now[r], now[r + half]);
    now.resize(half);
  }
  for (uint32_t k = 0; k < n; ++k) x.set(f.result(i, k), column(now, k));
  return !fold.failed();
}

/// Layout in which a scan runs: low bits of the dimension in the lowest registers, then the lowest lanes, then warps that have nothing else.
struct ScanLayout {
  Layout layout;
  unsigned reg_bits = 0, lane_bits = 0, warp_bits = 0;
};

ScanLayout scan_layout(std::span<const int64_t> shape, unsigned dim, unsigned warps) {
  ScanLayout s;
  const unsigned first = dim_bits(shape)[dim], n = log2_of(shape[dim]), total = element_bits(shape);
  std::vector<int8_t> others;
  for (unsigned k = 0; k < total; ++k)
    if (k < first || k >= first + n) others.push_back(static_cast<int8_t>(k));
  s.lane_bits = std::min(n, 5u);
  const unsigned free_lanes = 5 - s.lane_bits;
  const unsigned other_lanes = std::min<unsigned>(free_lanes, static_cast<unsigned>(others.size()));
  const unsigned other_warps = std::min<unsigned>(warps, static_cast<unsigned>(others.size()) - other_lanes);
  s.warp_bits = std::min(warps - other_warps, n - s.lane_bits);
  s.reg_bits = n - s.lane_bits - s.warp_bits;
  unsigned at = first;
  for (unsigned k = 0; k < s.reg_bits; ++k) s.layout.reg.push_back(static_cast<int8_t>(at++));
  for (unsigned k = 0; k < s.lane_bits; ++k) s.layout.lane.push_back(static_cast<int8_t>(at++));
  size_t from = 0;
  for (unsigned k = 0; k < free_lanes; ++k) s.layout.lane.push_back(k < other_lanes ? others[from++] : kCopies);
  for (unsigned k = 0; k < s.warp_bits; ++k) s.layout.warp.push_back(static_cast<int8_t>(at++));
  for (unsigned k = s.warp_bits; k < warps; ++k) s.layout.warp.push_back(k - s.warp_bits < other_warps ? others[from++] : kCopies);
  while (from < others.size()) s.layout.reg.push_back(others[from++]);
  return s;
}

bool lower_prefix(Lowering& x, InstId i) {
  const Function& f = x.f;
  llvm::IRBuilder<>& b = x.b;
  Folder fold(x, i);
  const auto operands = f.operands(i);
  const auto shape = x.shape(operands[0]);
  const unsigned dim = static_cast<unsigned>(x.m.int_attr(f, i, 0));
  const bool reverse = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "reverse"))) != 0;
  const ScanLayout s = scan_layout(shape, dim, x.plan.warp_bits);
  const unsigned bits = element_bits(shape);
  std::vector<Values> in;
  for (const ValueId v : operands) in.push_back(x.get(v, s.layout));
  std::vector<Tuple> t = transpose(in);

  const size_t run = size_t{1} << s.reg_bits, rows = t.size() / run;
  const auto reg = [&](size_t row, size_t k) { return row * run + (reverse ? run - 1 - k : k); };
  for (size_t row = 0; row < rows; ++row)
    for (size_t k = 1; k < run; ++k) t[reg(row, k)] = fold.combine(t[reg(row, k - 1)], t[reg(row, k)]);

  std::vector<Tuple> total(rows);
  for (size_t row = 0; row < rows; ++row) total[row] = t[reg(row, run - 1)];
  const int64_t mask = (1 << s.lane_bits) - 1;
  Value* place = b.CreateAnd(reverse ? b.CreateNot(x.lane()) : x.lane(), x.i32(mask));
  const auto source = [&](int64_t distance) { return reverse ? b.CreateAdd(x.lane(), x.i32(distance)) : b.CreateSub(x.lane(), x.i32(distance)); };
  if (s.lane_bits > 0) {
    Value* has_left = b.CreateICmpNE(place, x.i32(0));
    for (size_t row = 0; row < rows; ++row) {
      for (int64_t step = 1; step <= mask; step *= 2) {
        const Tuple left = fold.shuffle(ShuffleMode::Index, total[row], b.CreateAnd(source(step), x.i32(31)));
        total[row] = fold.select(b.CreateICmpUGE(place, x.i32(step)), fold.combine(left, total[row]), total[row]);
      }
      const Tuple left = fold.shuffle(ShuffleMode::Index, total[row], b.CreateAnd(source(1), x.i32(31)));
      for (size_t k = 0; k < run; ++k) t[reg(row, k)] = fold.select(has_left, fold.combine(left, t[reg(row, k)]), t[reg(row, k)]);
      Value* last = b.CreateAnd(x.lane(), x.i32(31 & ~mask));
      if (!reverse) last = b.CreateOr(last, x.i32(mask));
      total[row] = fold.shuffle(ShuffleMode::Index, total[row], last);
    }
  }
  if (s.warp_bits > 0) {
    // Totals of the warps as a tile: the bits without the dimension, then one bit for each warp bit of the dimension.
    const unsigned other_bits = bits - log2_of(shape[dim]);
    Layout from = reduced_layout(s.layout, shape, dim), to = from;
    for (unsigned k = 0; k < s.warp_bits; ++k) {
      from.warp[k] = static_cast<int8_t>(other_bits + k);
      to.reg.push_back(static_cast<int8_t>(other_bits + k));
    }
    std::vector<Values> all(operands.size());
    for (size_t k = 0; k < operands.size(); ++k) all[k] = x.convert(column(total, k), fold.elements()[k], from, to, other_bits + s.warp_bits);
    const std::vector<Tuple> totals = transpose(all);
    const size_t warps = size_t{1} << s.warp_bits;
    Value* mine = b.CreateAnd(reverse ? b.CreateNot(x.warp()) : x.warp(), x.i32(static_cast<int64_t>(warps) - 1));
    for (size_t row = 0; row < rows; ++row) {
      const auto of_warp = [&](size_t w) { return totals[(reverse ? warps - 1 - w : w) * rows + row]; };
      Tuple running = of_warp(0), prefix = running;
      for (size_t w = 1; w + 1 < warps; ++w) {
        running = fold.combine(running, of_warp(w));
        prefix = fold.select(b.CreateICmpUGT(mine, x.i32(static_cast<int64_t>(w))), running, prefix);
      }
      Value* has_left = b.CreateICmpNE(mine, x.i32(0));
      for (size_t k = 0; k < run; ++k) t[reg(row, k)] = fold.select(has_left, fold.combine(prefix, t[reg(row, k)]), t[reg(row, k)]);
    }
  }
  for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
    x.set(f.result(i, k), x.convert(column(t, k), fold.elements()[k], s.layout, x.layout(f.result(i, k)), bits));
  return !fold.failed();
}

}  // namespace

bool lower_reduce(Lowering& x, InstId i) { return x.f.insts[i].op == Opcode::Scan ? lower_prefix(x, i) : lower_fold(x, i); }

}  // namespace tile
