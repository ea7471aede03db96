// Handing marks of unspecified elements from operands to results. Exact where an element has few sources (elementwise,
// shapes, select); a sum or product is marked if any term is.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "vm/base/numeric.h"
#include "vm/interp/check_undef.h"
#include "vm/interp/eval.h"

namespace tile {
namespace {

Mark first_of(const DenseMarks& m) {
  if (!m) return 0;
  const auto it = std::find_if(m->begin(), m->end(), [](Mark x) { return x != 0; });
  return it == m->end() ? 0 : *it;
}

/// Calls fn(row-major number, index) for every index of a shape.
template <class F>
void for_each_index(const std::vector<int64_t>& shape, F&& fn) {
  std::vector<int64_t> at(shape.size(), 0);
  for (size_t n = 0;; ++n) {
    fn(n, at);
    size_t d = shape.size();
    while (d-- > 0) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
    if (d == SIZE_MAX) return;
  }
}

size_t linear(const std::vector<int64_t>& shape, const std::vector<int64_t>& at) {
  size_t n = 0;
  for (size_t d = 0; d < shape.size(); ++d) n = n * static_cast<size_t>(shape[d]) + static_cast<size_t>(at[d]);
  return n;
}

}  // namespace

const char* origin_text(Origin o) {
  switch (o) {
    case Origin::OutsideArray:
      return "elements outside the array, of a view without padding value";
    case Origin::Masked:
      return "elements whose mask is 0, without a value for them";
    case Origin::Unwritten:
      return "memory that nobody has written";
    case Origin::DivideByZero:
      return "an integer division by zero";
    case Origin::DivideOverflow:
      return "the smallest number divided by -1";
    case Origin::Shift:
      return "a shift by the width of the type or more";
    case Origin::FloatToInt:
      return "a float outside the range of the integer type";
    case Origin::MaskedAtomic:
      return "old values of elements whose mask is 0";
    case Origin::kCount:
      break;
  }
  return "";
}

bool Marks::add(const Margin& m) {
  for (const Margin& have : margins())
    if (have.from == 0 || (have.dim == m.dim && have.from <= m.from)) return true;  // covered
  if (count_ == margins_.size()) return false;
  margins_[count_++] = m;
  return true;
}

bool Marks::add(const Marks& o) {
  return std::all_of(o.margins().begin(), o.margins().end(), [&](const Margin& m) { return add(m); });
}

DenseMarks Marks::dense(const std::vector<int64_t>& shape) const {
  if (dense_ || count_ == 0) return dense_;
  size_t n = 1;
  for (const int64_t d : shape) n *= static_cast<size_t>(d);
  std::vector<Mark> out(n, 0);
  // The last margin first: those before it stay.
  for (size_t k = count_; k-- > 0;) {
    const Margin& m = margins_[k];
    size_t inner = 1, extent = n;
    if (m.from != 0) {
      extent = static_cast<size_t>(shape[m.dim]);
      for (size_t d = m.dim + 1; d < shape.size(); ++d) inner *= static_cast<size_t>(shape[d]);
    }
    for (size_t at = 0; at < n; at += extent * inner)
      std::fill(out.begin() + static_cast<ptrdiff_t>(at + m.from * inner), out.begin() + static_cast<ptrdiff_t>(at + extent * inner), m.mark);
  }
  return std::make_shared<const std::vector<Mark>>(std::move(out));
}

UndefFlow::UndefFlow(const CheckFacts& facts) : facts_(facts), f_(facts.f), alike_(facts.f.insts.size(), 0), makers_(facts.f.insts.size()) {
  std::vector<const Attr*> constants(f_.value_types.size(), nullptr);  // by value: those of constants, also where these are spread over a tile
  for (InstId i = 0; i < f_.insts.size(); ++i) {
    const auto operands = facts_.operands(i);
    const Opcode is = f_.insts[i].op;
    if (is == Opcode::Constant) constants[f_.result(i)] = &facts_.module.attrs.get(f_.attr(i, 0));
    if (is == Opcode::Broadcast || is == Opcode::Reshape) constants[f_.result(i)] = constants[operands[0]];
    if (operands.empty() || f_.insts[i].result_count == 0 || !facts_.is_tile(f_.result(i))) continue;
    const size_t n = facts_.count(f_.result(i));
    alike_[i] = std::all_of(operands.begin(), operands.end(), [&](ValueId v) { return facts_.is_tile(v) && facts_.count(v) == n; });
    const Opcode op = f_.insts[i].op;
    const bool integer = op == Opcode::DivI || op == Opcode::RemI || op == Opcode::ShLI || op == Opcode::ShRI;
    if (!integer && !(op == Opcode::FToI && facts_.attr(i, "saturating", 0) == 0)) continue;
    const ElementType from = facts_.element(operands[operands.size() - 1]);
    makers_[i] = std::make_unique<Maker>(
        Maker{op, facts_.attr(i, "signedness", 0) != 0, from, info(from).bits, static_cast<unsigned>(info(from).storage), info(facts_.element(f_.result(i))).bits, false});
    Maker& m = *makers_[i];
    const Attr* constant = integer ? constants[operands[operands.size() - 1]] : nullptr;
    for (size_t e = 0; constant && e < constant->bytes.size() / m.size; ++e) {
      const uint64_t y = read_bits(constant->bytes.data(), m.size, e), ones = m.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << m.bits) - 1;
      m.never = op == Opcode::ShLI || op == Opcode::ShRI ? y < m.bits : y != 0 && (y & ones) != ones;
      if (!m.never) break;
    }
  }
}

bool UndefFlow::makes(InstId i) const { return makers_[i] != nullptr; }

Marks UndefFlow::result(const Exec& x, InstId i, const std::vector<Marks>& values) const {
  const auto operands = facts_.operands(i);
  bool marked = false, dense = false;
  for (const ValueId v : operands) {
    marked = marked || values[v];
    dense = dense || values[v].is_dense();
  }
  if (!marked && (!makes(i) || makes_none(x, i))) return {};
  if (marked && !dense && (!makes(i) || makes_none(x, i)))
    if (Marks out; by_margins(i, values, out)) return out;
  In in;
  for (const ValueId v : operands) in.push_back(values[v] ? values[v].dense(facts_.type(v).shape) : nullptr);
  const ValueId result = f_.result(i);
  Out out(facts_.count(result), 0);
  switch (f_.insts[i].op) {
    case Opcode::Select:
      select(x, i, in, out);
      break;
    case Opcode::Reshape:
    case Opcode::Broadcast:
    case Opcode::Permute:
    case Opcode::Cat:
    case Opcode::Extract:
    case Opcode::Insert:
    case Opcode::Pack:
    case Opcode::Unpack:
      shape(x, i, in, out);
      break;
    case Opcode::Reduce:
    case Opcode::Scan:
      reduction(i, in, out);
      break;
    case Opcode::MmaF:
    case Opcode::MmaI:
      matrix(i, in, out);
      break;
    default: {
      if (alike_[i]) {
        elementwise(x, i, in, out);
        break;
      }
      for (const DenseMarks& m : in)
        if (const Mark mark = first_of(m)) {
          std::fill(out.begin(), out.end(), mark);
          break;
        }
    }
  }
  if (std::all_of(out.begin(), out.end(), [](Mark m) { return m == 0; })) return {};
  return Marks(std::make_shared<const Out>(std::move(out)));
}

// What the functions below do, for operands that have margins only; false where the result has no such form. Operations that look at other
// operands' values are left to them.
bool UndefFlow::by_margins(InstId i, const std::vector<Marks>& values, Marks& out) const {
  using Margin = Marks::Margin;
  const auto operands = facts_.operands(i);
  const auto& from = facts_.type(operands[0]).shape;
  const Opcode op = f_.insts[i].op;
  // Margins of an operand, with what becomes of each.
  const auto take = [&](size_t operand, auto&& moved) {
    const auto margins = values[operands[operand]].margins();
    return std::all_of(margins.begin(), margins.end(), [&](const Margin& m) { return out.add(moved(m)); });
  };
  switch (op) {
    case Opcode::Broadcast:  // a dimension of one element, all of which is marked, has margins from 0 only
      return take(0, [](const Margin& m) { return m; });
    case Opcode::Permute: {
      const auto& p = facts_.module.attrs.get(facts_.attr(i, "permutation")).ints;
      return take(0, [&](Margin m) {
        m.dim = static_cast<uint32_t>(std::find(p.begin(), p.end(), static_cast<int64_t>(m.dim)) - p.begin());
        return m;
      });
    }
    case Opcode::Reduce:
    case Opcode::Scan: {
      if (std::count_if(operands.begin(), operands.end(), [&](ValueId v) { return static_cast<bool>(values[v]); }) != 1) return false;
      const auto along = static_cast<uint32_t>(facts_.module.int_attr(f_, i, 0));
      const bool scan = op == Opcode::Scan;
      if (scan && facts_.attr(i, "reverse", 0) != 0) return false;
      const Marks& source = *std::find_if(values.begin(), values.end(), [&](const Marks& m) {
        return m && std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return &values[v] == &m; });
      });
      // Elements that are marked from the first on, then those that meet a mark on the way.
      Margin first{0, ~uint32_t{0}, 0};
      for (Margin m : source.margins()) {
        if (m.from == 0) return false;
        if (m.dim == along) {
          if (m.from < first.from) first = m;
          continue;
        }
        if (!scan && m.dim > along) --m.dim;
        if (!out.add(m)) return false;
      }
      return first.mark == 0 || out.add(scan ? first : Margin{0, 0, first.mark});
    }
    case Opcode::MmaF:
    case Opcode::MmaI: {
      // A marked factor marks its row or column: the last one of them, which any margin along the sum is.
      const auto rank = static_cast<uint32_t>(from.size());
      return take(0, [&](Margin m) { return m.from == 0 || m.dim == rank - 1 ? Margin{0, 0, m.mark} : m; }) &&
             take(1, [&](Margin m) { return m.from == 0 || m.dim == rank - 2 ? Margin{0, 0, m.mark} : m; }) && take(2, [](const Margin& m) { return m; });
    }
    case Opcode::Select:
    case Opcode::Reshape:
    case Opcode::Cat:
    case Opcode::Extract:
    case Opcode::Insert:
    case Opcode::Pack:
    case Opcode::Unpack:
    case Opcode::AndI:
    case Opcode::MulI:
    case Opcode::OrI:
      return false;
    default:
      return alike_[i] && std::all_of(operands.begin(), operands.end(), [&](ValueId v) { return out.add(values[v]); });
  }
}

// The usual case, without memory for marks.
bool UndefFlow::makes_none(const Exec& x, InstId i) const {
  const Maker& m = *makers_[i];
  if (m.never) return true;
  const auto operands = facts_.operands(i);
  const ValueId last = operands[operands.size() - 1];
  const std::byte* data = facts_.data(x, last);
  const size_t n = facts_.count(last);
  // Some at a time without a branch between them.
  const auto all = [&](auto&& holds) {
    const auto typed = [&](auto zero) {
      constexpr size_t kAtATime = 64;
      for (size_t e = 0; e < n;) {
        unsigned broken = 0;
        for (const size_t end = std::min(n, e + kAtATime); e < end; ++e) {
          std::memcpy(&zero, data + e * sizeof zero, sizeof zero);
          broken |= holds(uint64_t{zero}) ? 0u : 1u;
        }
        if (broken) return false;
      }
      return true;
    };
    switch (m.size) {
      case 1: return typed(uint8_t{});
      case 2: return typed(uint16_t{});
      case 4: return typed(uint32_t{});
      default: return typed(uint64_t{});
    }
  };
  switch (m.op) {
    case Opcode::FToI: {
      if (m.from != ElementType::F32 && m.from != ElementType::F64) return false;
      const double most = std::ldexp(1.0, static_cast<int>(m.is_signed ? m.result_bits - 1 : m.result_bits)), least = m.is_signed ? -most : 0.0;
      const auto fits = [&](double v) { return v >= least && v < most; };
      return m.from == ElementType::F32 ? all([&](uint64_t y) { return fits(std::bit_cast<float>(static_cast<uint32_t>(y))); })
                                        : all([&](uint64_t y) { return fits(std::bit_cast<double>(y)); });
    }
    case Opcode::ShLI:
    case Opcode::ShRI:
      return all([&](uint64_t y) { return y < m.bits; });
    default: {
      const uint64_t ones = m.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << m.bits) - 1;
      return all([&](uint64_t y) { return y != 0 && (!m.is_signed || (y & ones) != ones); });
    }
  }
}

// x and 0, x * 0, x or ~0 are what they are, whatever x is.
bool UndefFlow::absorbs(const Exec& x, InstId i, ValueId other, size_t element) const {
  const ElementInfo& t = info(facts_.element(other));
  const uint64_t bits = read_bits(facts_.data(x, other), t.storage, element),
                 ones = t.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << t.bits) - 1;
  switch (f_.insts[i].op) {
    case Opcode::AndI:
    case Opcode::MulI:
      return (bits & ones) == 0;
    case Opcode::OrI:
      return (bits & ones) == ones;
    default:
      return false;
  }
}

void UndefFlow::elementwise(const Exec& x, InstId i, const In& in, Out& out) const {
  const auto operands = facts_.operands(i);
  for (size_t k = 0; k < operands.size(); ++k) {
    const DenseMarks& m = in[k];
    if (!m) continue;
    const ValueId other = operands.size() == 2 ? operands[1 - k] : kNone;
    const Opcode op = f_.insts[i].op;
    const bool may_absorb = other != kNone && (op == Opcode::AndI || op == Opcode::MulI || op == Opcode::OrI);
    for (size_t e = 0; e < out.size(); ++e)
      if ((*m)[e] && !out[e] && !(may_absorb && !(in[1 - k] && (*in[1 - k])[e]) && absorbs(x, i, other, e))) out[e] = (*m)[e];
  }
  if (makes(i)) made(x, i, out);
}

void UndefFlow::made(const Exec& x, InstId i, Out& out) const {
  const auto operands = facts_.operands(i);
  const Maker& maker = *makers_[i];
  const Opcode op = maker.op;
  const bool is_signed = maker.is_signed;
  const ElementType from = maker.from;
  const unsigned bits = maker.result_bits;
  const ValueId last = operands[operands.size() - 1];
  const ElementInfo& t = info(from);
  const std::byte* data = facts_.data(x, last);
  if (op == Opcode::FToI) {
    const double most = std::ldexp(1.0, static_cast<int>(is_signed ? bits - 1 : bits)), least = is_signed ? -most : 0.0;
    for (size_t e = 0; e < out.size(); ++e) {
      const double v = std::trunc(decode(from, read_bits(data, t.storage, e)));
      if (!out[e] && !(v >= least && v < most)) out[e] = mark_of(i, Origin::FloatToInt);
    }
    return;
  }
  const std::byte* lhs = facts_.data(x, operands[0]);
  for (size_t e = 0; e < out.size(); ++e) {
    const uint64_t y = read_bits(data, t.storage, e);
    if (out[e]) continue;
    if (op == Opcode::ShLI || op == Opcode::ShRI) {
      if (y >= t.bits) out[e] = mark_of(i, Origin::Shift);
    } else if (y == 0) {
      out[e] = mark_of(i, Origin::DivideByZero);
    } else if (is_signed && t.bits > 1 && sign_extend(y, t.bits) == -1) {
      if (read_bits(lhs, t.storage, e) == uint64_t{1} << (t.bits - 1)) out[e] = mark_of(i, Origin::DivideOverflow);
    }
  }
}

void UndefFlow::select(const Exec& x, InstId i, const In& in, Out& out) const {
  const auto operands = facts_.operands(i);
  const uint8_t* condition = facts_.data<uint8_t>(x, operands[0]);
  for (size_t e = 0; e < out.size(); ++e) {
    if (in[0] && (*in[0])[e]) {
      out[e] = (*in[0])[e];
      continue;
    }
    const DenseMarks& chosen = in[condition[e] ? 1 : 2];
    if (chosen) out[e] = (*chosen)[e];
  }
}

std::vector<int64_t> UndefFlow::slice_start(const Exec& x, InstId i, size_t first_index,
                                            const std::vector<int64_t>& part) const {
  std::vector<int64_t> start;
  for (size_t d = 0; d < part.size(); ++d)
    start.push_back(static_cast<int64_t>(*facts_.data<uint32_t>(x, facts_.operands(i)[first_index + d])) * part[d]);
  return start;
}

void UndefFlow::shape(const Exec& x, InstId i, const In& in, Out& out) const {
  const auto operands = facts_.operands(i);
  const DenseMarks& source = in[0];
  const auto& to = facts_.type(f_.result(i)).shape;
  const auto& from = facts_.type(operands[0]).shape;
  const auto at_source = [&](auto index) {
    if (!source) return;
    for_each_index(to, [&](size_t n, const std::vector<int64_t>& at) { out[n] = (*source)[linear(from, index(at))]; });
  };
  const auto inside = [](const std::vector<int64_t>& start, const std::vector<int64_t>& part,
                         const std::vector<int64_t>& whole) {
    for (size_t d = 0; d < part.size(); ++d)
      if (start[d] + part[d] > whole[d]) return false;  // the operation is about to trap
    return true;
  };
  switch (f_.insts[i].op) {
    case Opcode::Reshape:
      out = *source;
      break;
    case Opcode::Broadcast:
      at_source([&](std::vector<int64_t> at) {
        for (size_t d = 0; d < at.size(); ++d)
          if (from[d] == 1) at[d] = 0;
        return at;
      });
      break;
    case Opcode::Permute: {
      const auto& p = facts_.module.attrs.get(facts_.attr(i, "permutation")).ints;
      at_source([&](const std::vector<int64_t>& at) {
        std::vector<int64_t> back(at.size());
        for (size_t d = 0; d < at.size(); ++d) back[static_cast<size_t>(p[d])] = at[d];
        return back;
      });
      break;
    }
    case Opcode::Cat: {
      const size_t dim = static_cast<size_t>(facts_.module.int_attr(f_, i, 0));
      const DenseMarks& rhs = in[1];
      const auto& right = facts_.type(operands[1]).shape;
      for_each_index(to, [&](size_t n, std::vector<int64_t> at) {
        if (at[dim] < from[dim]) {
          if (source) out[n] = (*source)[linear(from, at)];
        } else if (rhs) {
          at[dim] -= from[dim];
          out[n] = (*rhs)[linear(right, at)];
        }
      });
      break;
    }
    case Opcode::Extract: {
      const auto start = slice_start(x, i, 1, to);
      if (!inside(start, to, from)) break;
      at_source([&](std::vector<int64_t> at) {
        for (size_t d = 0; d < at.size(); ++d) at[d] += start[d];
        return at;
      });
      break;
    }
    case Opcode::Insert: {
      if (in[1]) out = *in[1];
      const auto start = slice_start(x, i, 2, from);
      if (!inside(start, from, to)) break;
      for_each_index(from, [&](size_t n, std::vector<int64_t> at) {
        for (size_t d = 0; d < at.size(); ++d) at[d] += start[d];
        out[linear(to, at)] = source ? (*source)[n] : 0;
      });
      break;
    }
    default: {  // pack and unpack: elements and bytes share bits
      const auto bits = [&](ValueId v) {
        return facts_.element(v) == ElementType::TF32 ? size_t{32} : size_t{info(facts_.element(v)).bits};
      };
      const size_t wide = bits(operands[0]), narrow = bits(f_.result(i));
      for (size_t e = 0; e < source->size(); ++e)
        if ((*source)[e])
          for (size_t b = e * wide; b < (e + 1) * wide; ++b) out[std::min(b / narrow, out.size() - 1)] = (*source)[e];
      break;
    }
  }
}

void UndefFlow::matrix(InstId i, const In& in, Out& out) const {
  const auto operands = facts_.operands(i);
  const auto& l = facts_.type(operands[0]).shape;
  const auto& r = facts_.type(operands[1]).shape;
  const size_t rank = l.size(), m = static_cast<size_t>(l[rank - 2]), k = static_cast<size_t>(l[rank - 1]),
               n = static_cast<size_t>(r[rank - 1]);
  const DenseMarks &lhs = in[0], &rhs = in[1], &acc = in[2];
  for (size_t batch = 0; batch < out.size() / (m * n); ++batch) {
    // A marked factor marks its row or column.
    std::vector<Mark> row(m, 0), column(n, 0);
    for (size_t a = 0; lhs && a < m; ++a)
      for (size_t b = 0; b < k; ++b)
        if (const Mark mark = (*lhs)[(batch * m + a) * k + b]) row[a] = mark;
    for (size_t a = 0; rhs && a < k; ++a)
      for (size_t b = 0; b < n; ++b)
        if (const Mark mark = (*rhs)[(batch * k + a) * n + b]) column[b] = mark;
    for (size_t a = 0; a < m; ++a)
      for (size_t b = 0; b < n; ++b) {
        const size_t e = (batch * m + a) * n + b;
        out[e] = row[a] ? row[a] : column[b] ? column[b] : acc ? (*acc)[e] : 0;
      }
  }
}

void UndefFlow::reduction(InstId i, const In& in, Out& out) const {
  const auto& shape = facts_.type(facts_.operands(i)[0]).shape;
  const size_t dim = static_cast<size_t>(facts_.module.int_attr(f_, i, 0));
  const bool scan = f_.insts[i].op == Opcode::Scan, reverse = scan && facts_.attr(i, "reverse", 0) != 0;
  size_t outer = 1, len = 1, inner = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d < dim ? outer : d == dim ? len : inner) *= static_cast<size_t>(shape[d]);
  for (size_t o = 0; o < outer; ++o)
    for (size_t at = 0; at < inner; ++at) {
      Mark so_far = 0;
      for (size_t j = 0; j < len; ++j) {
        const size_t e = (o * len + (reverse ? len - 1 - j : j)) * inner + at;
        for (const DenseMarks& m : in)
          if (!so_far && m) so_far = (*m)[e];
        if (scan) out[e] = so_far;
      }
      if (!scan) out[o * inner + at] = so_far;
    }
}

}  // namespace tile
