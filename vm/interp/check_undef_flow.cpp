// Handing marks of unspecified elements from operands to results. Exact where an element has few sources (elementwise,
// shapes, select); a sum or product is marked if any term is.
#include <algorithm>
#include <cmath>
#include <span>

#include "vm/base/numeric.h"
#include "vm/interp/check_undef.h"
#include "vm/interp/eval.h"

namespace tile {
namespace {

Mark first_of(const Marks& m) {
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

bool UndefFlow::makes(InstId i) const {
  switch (f_.insts[i].op) {
    case Opcode::DivI:
    case Opcode::RemI:
    case Opcode::ShLI:
    case Opcode::ShRI:
      return true;
    case Opcode::FToI:
      return facts_.attr(i, "saturating", 0) == 0;
    default:
      return false;
  }
}

Marks UndefFlow::result(const Exec& x, InstId i, const std::vector<Marks>& values) const {
  const auto operands = facts_.operands(i);
  const bool marked = std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return values[v] != nullptr; });
  if (!marked && !makes(i)) return nullptr;
  const ValueId result = f_.result(i);
  Out out(facts_.count(result), 0);
  switch (f_.insts[i].op) {
    case Opcode::Select:
      select(x, i, values, out);
      break;
    case Opcode::Reshape:
    case Opcode::Broadcast:
    case Opcode::Permute:
    case Opcode::Cat:
    case Opcode::Extract:
    case Opcode::Insert:
    case Opcode::Pack:
    case Opcode::Unpack:
      shape(x, i, values, out);
      break;
    case Opcode::Reduce:
    case Opcode::Scan:
      reduction(i, values, out);
      break;
    case Opcode::MmaF:
    case Opcode::MmaI:
      matrix(i, values, out);
      break;
    default: {
      const bool alike = std::all_of(operands.begin(), operands.end(),
                                     [&](ValueId v) { return facts_.is_tile(v) && facts_.count(v) == out.size(); });
      if (alike) {
        elementwise(x, i, values, out);
        break;
      }
      for (const ValueId v : operands)
        if (const Mark m = first_of(values[v])) {
          std::fill(out.begin(), out.end(), m);
          break;
        }
    }
  }
  if (std::all_of(out.begin(), out.end(), [](Mark m) { return m == 0; })) return nullptr;
  return std::make_shared<const Out>(std::move(out));
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

void UndefFlow::elementwise(const Exec& x, InstId i, const std::vector<Marks>& values, Out& out) const {
  const auto operands = facts_.operands(i);
  for (size_t k = 0; k < operands.size(); ++k) {
    const Marks& m = values[operands[k]];
    if (!m) continue;
    const ValueId other = operands.size() == 2 ? operands[1 - k] : kNone;
    for (size_t e = 0; e < out.size(); ++e)
      if ((*m)[e] && !out[e] && !(other != kNone && !(values[other] && (*values[other])[e]) && absorbs(x, i, other, e)))
        out[e] = (*m)[e];
  }
  if (makes(i)) made(x, i, out);
}

void UndefFlow::made(const Exec& x, InstId i, Out& out) const {
  const auto operands = facts_.operands(i);
  const Opcode op = f_.insts[i].op;
  const bool is_signed = facts_.attr(i, "signedness", 0) != 0;
  const ValueId last = operands[operands.size() - 1];
  const ElementType from = facts_.element(last);
  const ElementInfo& t = info(from);
  const std::byte* data = facts_.data(x, last);
  if (op == Opcode::FToI) {
    const unsigned bits = info(facts_.element(f_.result(i))).bits;
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

void UndefFlow::select(const Exec& x, InstId i, const std::vector<Marks>& values, Out& out) const {
  const auto operands = facts_.operands(i);
  const uint8_t* condition = facts_.data<uint8_t>(x, operands[0]);
  for (size_t e = 0; e < out.size(); ++e) {
    if (values[operands[0]] && (*values[operands[0]])[e]) {
      out[e] = (*values[operands[0]])[e];
      continue;
    }
    const Marks& chosen = values[operands[condition[e] ? 1 : 2]];
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

void UndefFlow::shape(const Exec& x, InstId i, const std::vector<Marks>& values, Out& out) const {
  const auto operands = facts_.operands(i);
  const Marks& source = values[operands[0]];
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
      const Marks& rhs = values[operands[1]];
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
      if (values[operands[1]]) out = *values[operands[1]];
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

void UndefFlow::matrix(InstId i, const std::vector<Marks>& values, Out& out) const {
  const auto operands = facts_.operands(i);
  const auto& l = facts_.type(operands[0]).shape;
  const auto& r = facts_.type(operands[1]).shape;
  const size_t rank = l.size(), m = static_cast<size_t>(l[rank - 2]), k = static_cast<size_t>(l[rank - 1]),
               n = static_cast<size_t>(r[rank - 1]);
  const Marks &lhs = values[operands[0]], &rhs = values[operands[1]], &acc = values[operands[2]];
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

void UndefFlow::reduction(InstId i, const std::vector<Marks>& values, Out& out) const {
  const auto& shape = facts_.type(facts_.operands(i)[0]).shape;
  const size_t dim = static_cast<size_t>(facts_.module.int_attr(f_, i, 0));
  const bool scan = f_.insts[i].op == Opcode::Scan, reverse = scan && facts_.attr(i, "reverse", 0) != 0;
  size_t outer = 1, len = 1, inner = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d < dim ? outer : d == dim ? len : inner) *= static_cast<size_t>(shape[d]);
  for (size_t o = 0; o < outer; ++o)
    for (size_t in = 0; in < inner; ++in) {
      Mark so_far = 0;
      for (size_t j = 0; j < len; ++j) {
        const size_t e = (o * len + (reverse ? len - 1 - j : j)) * inner + in;
        for (const ValueId v : facts_.operands(i))
          if (!so_far && values[v]) so_far = (*values[v])[e];
        if (scan) out[e] = so_far;
      }
      if (!scan) out[o * inner + in] = so_far;
    }
}

}  // namespace tile
