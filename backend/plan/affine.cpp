#include "backend/plan/affine.h"

#include <algorithm>

namespace tile {

int ScalarNodes::constant(int64_t n) {
  if (n == 0) return -1;
  nodes.push_back({Kind::Constant, n});
  return static_cast<int>(nodes.size()) - 1;
}

int ScalarNodes::value(ValueId v) {
  nodes.push_back({Kind::Value, 0, v});
  return static_cast<int>(nodes.size()) - 1;
}

int ScalarNodes::combine(Kind kind, int left, int right) {
  const auto a = known(left), b = known(right);
  if (kind == Kind::Mul) {
    if (left < 0 || right < 0) return -1;
    if (a == 1) return right;
    if (b == 1) return left;
  } else {
    if (right < 0) return left;
    if (left < 0 && kind == Kind::Add) return right;
  }
  if (a && b) {
    // Unsigned, as the program's numbers wrap.
    const auto x = static_cast<uint64_t>(*a), y = static_cast<uint64_t>(*b);
    return constant(static_cast<int64_t>(kind == Kind::Add ? x + y : kind == Kind::Sub ? x - y : x * y));
  }
  nodes.push_back({kind, 0, kNone, left, right});
  return static_cast<int>(nodes.size()) - 1;
}

std::optional<int64_t> ScalarNodes::known(int n) const {
  if (n < 0) return 0;
  const Node& node = nodes[static_cast<size_t>(n)];
  if (node.kind == Kind::Constant) return node.number;
  return std::nullopt;
}

bool AffineTile::splat() const {
  return std::all_of(step.begin(), step.end(), [](int s) { return s < 0; });
}

std::optional<PointerLoad> AffineFinder::load(InstId i) {
  out_ = {};
  const bool stores = f_.insts[i].op == Opcode::StorePtrTko;
  if ((!stores && f_.insts[i].op != Opcode::LoadPtrTko) || f_.attr(i, static_cast<size_t>(attr_index(f_.def(i), "memory_ordering_semantics"))) != 0) return std::nullopt;
  auto found = pointers(f_.operand(i, 0), !stores);
  if (!found) return std::nullopt;
  out_.pointers = *std::move(found);
  if (const ValueId v = f_.operand(i, stores ? 2 : 1); v != kNone && !mask(v, out_.limits)) return std::nullopt;
  if (const ValueId v = stores ? kNone : f_.operand(i, 2); v != kNone) {
    const InstId c = def_[v];
    if (c == kNone || f_.insts[c].op != Opcode::Constant) return std::nullopt;
    const std::string& bytes = m_.attrs.get(f_.attr(c, 0)).bytes;
    if (std::any_of(bytes.begin(), bytes.end(), [](char x) { return x != 0; })) return std::nullopt;
  }
  return std::move(out_);
}

/// For each dimension of the result the dimension of the source whose numbers it has; -1: none.
std::optional<std::vector<int>> AffineFinder::same_dims(ValueId from, ValueId to, Opcode op, InstId i) const {
  const auto a = m_.types.shape_of(f_.type(from)), b = m_.types.shape_of(f_.type(to));
  std::vector<int> out(b.size(), -1);
  if (op == Opcode::Broadcast) {
    for (size_t k = 0; k < b.size(); ++k)
      if (a[k] == b[k]) out[k] = static_cast<int>(k);
    return out;
  }
  if (op == Opcode::Permute) {
    const auto& ints = m_.attrs.get(f_.attr(i, 0)).ints;
    for (size_t k = 0; k < b.size(); ++k) out[k] = static_cast<int>(ints[k]);
    return out;
  }
  // A reshape that only adds or drops dimensions of one element.
  size_t at = 0;
  for (size_t k = 0; k < b.size(); ++k) {
    if (b[k] == 1) continue;
    while (at < a.size() && a[at] == 1) ++at;
    if (at == a.size() || a[at] != b[k]) return std::nullopt;
    out[k] = static_cast<int>(at++);
  }
  while (at < a.size() && a[at] == 1) ++at;
  if (at != a.size()) return std::nullopt;
  return out;
}

AffineTile AffineFinder::moved(const AffineTile& t, std::span<const int> from_dim) const {
  AffineTile out{t.start, {}, t.bits};
  for (const int d : from_dim) out.step.push_back(d < 0 ? -1 : t.step[static_cast<size_t>(d)]);
  return out;
}

std::optional<AffineTile> AffineFinder::integers(ValueId v) {
  const auto shape = m_.types.shape_of(f_.type(v));
  const ElementType e = m_.types.element_of(f_.type(v));
  if (e != ElementType::I32 && e != ElementType::I64) return std::nullopt;
  const InstId i = def_[v];
  AffineTile out{-1, std::vector<int>(shape.size(), -1), e == ElementType::I32 ? 32u : 64u};
  if (i != kNone && f_.insts[i].op == Opcode::Constant) {
    const std::string& bytes = m_.attrs.get(f_.attr(i, 0)).bytes;
    const size_t size = out.bits / 8;
    for (size_t k = size; k < bytes.size(); ++k)
      if (bytes[k] != bytes[k % size]) return std::nullopt;
    uint64_t n = 0;
    for (size_t k = 0; k < size; ++k) n |= uint64_t{static_cast<uint8_t>(bytes[k])} << (8 * k);
    out.start = out_.scalars.constant(out.bits == 32 ? static_cast<int32_t>(n) : static_cast<int64_t>(n));
    return out;
  }
  if (shape.empty()) {
    out.start = out_.scalars.value(v);
    return out;
  }
  if (i == kNone) return std::nullopt;
  const auto operands = f_.operands(i);
  switch (const Opcode op = f_.insts[i].op) {
    case Opcode::Iota:
      out.step[0] = out_.scalars.constant(1);
      return out;
    case Opcode::Assume: return integers(operands[0]);
    case Opcode::Reshape: case Opcode::Broadcast: case Opcode::Permute: {
      const auto from = same_dims(operands[0], v, op, i);
      const auto source = from ? integers(operands[0]) : std::nullopt;
      if (!source) return std::nullopt;
      return moved(*source, *from);
    }
    case Opcode::AddI: case Opcode::SubI: case Opcode::MulI: {
      const auto a = integers(operands[0]), b = a ? integers(operands[1]) : std::nullopt;
      if (!b || (op == Opcode::MulI && !a->splat() && !b->splat())) return std::nullopt;
      using K = ScalarNodes::Kind;
      if (op == Opcode::MulI) {
        const AffineTile &tile = a->splat() ? *b : *a, &factor = a->splat() ? *a : *b;
        out.start = out_.scalars.combine(K::Mul, tile.start, factor.start);
        for (size_t k = 0; k < out.step.size(); ++k) out.step[k] = out_.scalars.combine(K::Mul, tile.step[k], factor.start);
        return out;
      }
      const K kind = op == Opcode::AddI ? K::Add : K::Sub;
      out.start = out_.scalars.combine(kind, a->start, b->start);
      for (size_t k = 0; k < out.step.size(); ++k) out.step[k] = out_.scalars.combine(kind, a->step[k], b->step[k]);
      return out;
    }
    default: return std::nullopt;
  }
}

std::optional<AffinePointers> AffineFinder::pointers(ValueId v, bool carried) {
  const InstId i = def_[v];
  if (m_.types.shape_of(f_.type(v)).empty()) {
    AffinePointers out;
    out.base = v;
    return out;
  }
  if (i == kNone) {
    // A pointer that the loop carries, moved by as much in every trip.
    const Region& r = f_.region(loop_);
    if (!carried || v < r.first_arg + 1 || v >= r.first_arg + r.arg_count) return std::nullopt;
    const uint32_t k = v - r.first_arg - 1;
    const InstId last = f_.last_of(r);
    if (last == kNone || f_.insts[last].op != Opcode::Continue) return std::nullopt;
    auto out = pointers(f_.operands(loop_)[3 + k], false);
    if (!out) return std::nullopt;
    for (ValueId next = f_.operands(last)[k]; next != v;) {
      const InstId move = def_[next];
      if (move == kNone || f_.insts[move].op != Opcode::Offset) return std::nullopt;
      const auto by = integers(f_.operands(move)[1]);
      if (!by || !by->splat()) return std::nullopt;
      out->trips.push_back(*by);
      next = f_.operands(move)[0];
    }
    return out;
  }
  const auto operands = f_.operands(i);
  switch (const Opcode op = f_.insts[i].op) {
    case Opcode::Assume: return pointers(operands[0], carried);
    case Opcode::Reshape: case Opcode::Broadcast: case Opcode::Permute: {
      const auto from = same_dims(operands[0], v, op, i);
      auto out = from ? pointers(operands[0], carried) : std::nullopt;
      if (!out) return std::nullopt;
      for (AffineTile& t : out->moves) t = moved(t, *from);
      return out;
    }
    case Opcode::Offset: {
      auto out = pointers(operands[0], carried);
      const auto by = out ? integers(operands[1]) : std::nullopt;
      if (!by) return std::nullopt;
      AffineTile move = *by;
      move.step.resize(m_.types.shape_of(f_.type(v)).size(), -1);
      // Moves of a base that was spread have the dimensions of the tile by now.
      for (AffineTile& t : out->moves) t.step.resize(move.step.size(), -1);
      out->moves.push_back(std::move(move));
      return out;
    }
    default: return std::nullopt;
  }
}

bool AffineFinder::mask(ValueId v, std::vector<AffineLimit>& out) {
  const InstId i = def_[v];
  if (i == kNone) return false;
  const auto operands = f_.operands(i);
  switch (const Opcode op = f_.insts[i].op) {
    case Opcode::AndI: return mask(operands[0], out) && mask(operands[1], out);
    case Opcode::Reshape: case Opcode::Broadcast: case Opcode::Permute: {
      const auto from = same_dims(operands[0], v, op, i);
      std::vector<AffineLimit> inner;
      if (!from || !mask(operands[0], inner)) return false;
      for (AffineLimit& l : inner) {
        const auto at = std::find(from->begin(), from->end(), static_cast<int>(l.dim));
        if (at == from->end()) return false;
        l.dim = static_cast<size_t>(at - from->begin());
        out.push_back(l);
      }
      return true;
    }
    case Opcode::CmpI: {
      const uint32_t predicate = f_.attr(i, static_cast<size_t>(attr_index(f_.def(i), "comparison_predicate")));
      const bool is_signed = f_.attr(i, static_cast<size_t>(attr_index(f_.def(i), "signedness"))) != 0;
      constexpr uint32_t kLess = 2, kGreater = 4;
      if (!is_signed || (predicate != kLess && predicate != kGreater)) return false;
      const auto number = integers(operands[predicate == kLess ? 0 : 1]), limit = integers(operands[predicate == kLess ? 1 : 0]);
      if (!number || !limit || !limit->splat()) return false;
      int dim = -1;
      for (size_t k = 0; k < number->step.size(); ++k) {
        if (number->step[k] < 0) continue;
        if (dim >= 0 || out_.scalars.known(number->step[k]) != 1) return false;
        dim = static_cast<int>(k);
      }
      if (dim < 0) return false;
      out.push_back({static_cast<size_t>(dim), number->start, limit->start, number->bits});
      return true;
    }
    default: return false;
  }
}

}  // namespace tile
