// Layouts as bit maps: blocked, mma fragments, and what reshaping operations make of them.
#include "backend/plan/layout.h"

#include <algorithm>
#include <bit>

namespace tile {

uint32_t Layout::element_of_register(unsigned r) const {
  uint32_t e = 0;
  for (size_t k = 0; k < reg.size(); ++k)
    if (r >> k & 1 && reg[k] != kCopies) e |= 1u << reg[k];
  return e;
}

int Layout::register_bit(int bit) const {
  for (size_t k = 0; k < reg.size(); ++k)
    if (reg[k] == bit) return static_cast<int>(k);
  return -1;
}

std::string Layout::print() const {
  const auto list = [](const std::vector<int8_t>& bits) {
    std::string s;
    for (const int8_t b : bits) s += (s.empty() ? "" : " ") + (b == kCopies ? std::string("-") : std::to_string(b));
    return s;
  };
  return "r[" + list(reg) + "] l[" + list(lane) + "] w[" + list(warp) + "]";
}

unsigned log2_of(int64_t extent) { return static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(extent))); }

unsigned element_bits(std::span<const int64_t> shape) {
  unsigned n = 0;
  for (const int64_t e : shape) n += log2_of(e);
  return n;
}

std::vector<unsigned> dim_bits(std::span<const int64_t> shape) {
  std::vector<unsigned> first(shape.size());
  unsigned at = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    first[d] = at;
    at += log2_of(shape[d]);
  }
  return first;
}

Layout blocked_layout(std::span<const int64_t> shape, std::span<const unsigned> order, unsigned vector_bits, unsigned warp_bits, std::span<const int8_t> with) {
  std::vector<int8_t> bits;  // element bits, the most contiguous first
  const auto first = dim_bits(shape);
  for (const unsigned d : order)
    for (unsigned k = 0; k < log2_of(shape[d]); ++k) bits.push_back(static_cast<int8_t>(first[d] + k));
  // Small tiles rather use all lanes than long vectors.
  const unsigned n = static_cast<unsigned>(bits.size());
  const unsigned inner = order.empty() ? 0 : log2_of(shape[order[0]]);
  const unsigned v = std::min({vector_bits, inner, n > 5 ? n - 5 : 0});
  Layout out;
  size_t at = 0;
  const auto take = [&](std::vector<int8_t>& to, unsigned count) {
    for (unsigned k = 0; k < count; ++k) to.push_back(at < bits.size() ? bits[at++] : kCopies);
  };
  take(out.reg, v);
  // What the next lanes need for lines of 128 bytes stays theirs.
  const auto line = bits.begin() + static_cast<std::ptrdiff_t>(std::min(inner, v + 3));
  const std::vector<int8_t> kept(bits.begin(), line);
  for (const int8_t bit : with) {
    if (std::find(kept.begin(), kept.end(), bit) != kept.end()) continue;
    const auto left = std::find(bits.begin() + static_cast<std::ptrdiff_t>(at), bits.end(), bit);
    if (left == bits.end() || n <= 5 + warp_bits + at) continue;
    std::rotate(bits.begin() + static_cast<std::ptrdiff_t>(at), left, left + 1);
    take(out.reg, 1);
  }
  take(out.lane, 5);
  // Warps take the highest bits: each then works on a contiguous part.
  const unsigned left = n - static_cast<unsigned>(at), mine = std::min(left, warp_bits);
  for (unsigned k = 0; k < left - mine; ++k) out.reg.push_back(bits[at++]);
  take(out.warp, warp_bits);
  return out;
}

Layout blocked_layout(std::span<const int64_t> shape, unsigned vector_bits, unsigned warp_bits) {
  std::vector<unsigned> order(shape.size());
  for (size_t k = 0; k < shape.size(); ++k) order[k] = static_cast<unsigned>(shape.size() - 1 - k);
  return blocked_layout(shape, order, vector_bits, warp_bits);
}

namespace {

/// Renames element bits; `map[bit]` is the new bit or kCopies.
Layout renamed(const Layout& x, const std::vector<int8_t>& map) {
  Layout out = x;
  for (auto* bits : {&out.reg, &out.lane, &out.warp})
    for (int8_t& b : *bits)
      if (b != kCopies) b = map[static_cast<size_t>(b)];
  return out;
}

/// Element bits of `from` as element bits of the permuted tile.
std::vector<int8_t> permutation_map(std::span<const int64_t> from, std::span<const int32_t> perm) {
  std::vector<int64_t> to(from.size());
  for (size_t d = 0; d < from.size(); ++d) to[d] = from[static_cast<size_t>(perm[d])];
  const auto first_from = dim_bits(from), first_to = dim_bits(to);
  std::vector<int8_t> map(element_bits(from));
  for (size_t d = 0; d < from.size(); ++d)
    for (unsigned k = 0; k < log2_of(to[d]); ++k) map[first_from[static_cast<size_t>(perm[d])] + k] = static_cast<int8_t>(first_to[d] + k);
  return map;
}

}  // namespace

Layout permuted_layout(const Layout& x, std::span<const int64_t> from, std::span<const int32_t> perm) {
  return renamed(x, permutation_map(from, perm));
}

Layout unpermuted_layout(const Layout& y, std::span<const int64_t> from, std::span<const int32_t> perm) {
  const auto map = permutation_map(from, perm);
  std::vector<int8_t> inverse(map.size());
  for (size_t k = 0; k < map.size(); ++k) inverse[static_cast<size_t>(map[k])] = static_cast<int8_t>(k);
  return renamed(y, inverse);
}

Layout broadcast_source(const Layout& y, std::span<const int64_t> from, std::span<const int64_t> to) {
  const auto first_from = dim_bits(from), first_to = dim_bits(to);
  std::vector<int8_t> map(element_bits(to), kCopies);
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] == to[d])
      for (unsigned k = 0; k < log2_of(to[d]); ++k) map[first_to[d] + k] = static_cast<int8_t>(first_from[d] + k);
  return without_copies(renamed(y, map));
}

Layout reduced_layout(const Layout& x, std::span<const int64_t> shape, unsigned dim) {
  const auto first = dim_bits(shape);
  std::vector<int8_t> map(element_bits(shape));
  const unsigned low = first[dim], count = log2_of(shape[dim]);
  for (unsigned k = 0; k < map.size(); ++k) map[k] = static_cast<int8_t>(k < low ? k : k < low + count ? kCopies : k - count);
  return without_copies(renamed(x, map));
}

Layout without_copies(Layout x) {
  std::erase(x.reg, kCopies);
  return x;
}

namespace {

void add_warps(Layout& l, unsigned bits, int first, unsigned total) {
  // The highest bits of a dimension go to the warps; fewer bits than warps: copies.
  for (unsigned k = 0; k < bits; ++k) {
    const int at = static_cast<int>(total) - static_cast<int>(bits) + static_cast<int>(k);
    l.warp.push_back(first < 0 || at < 0 ? kCopies : static_cast<int8_t>(first + at));
  }
}

}  // namespace

Layout mma_result_layout(const MmaShape& s, unsigned batch_bits, unsigned m_bits, unsigned n_bits, unsigned warp_m_bits, unsigned warp_n_bits,
                         unsigned warp_batch_bits) {
  const auto m = [&](unsigned k) { return static_cast<int8_t>(n_bits + k); };
  const auto n = [&](unsigned k) { return static_cast<int8_t>(k); };
  Layout out;
  out.reg.push_back(n(0));
  if (s.m_bits == 4) out.reg.push_back(m(3));
  out.lane = {n(1), n(2), m(0), m(1), m(2)};
  for (unsigned k = s.n_bits; k + warp_n_bits < n_bits; ++k) out.reg.push_back(n(k));
  for (unsigned k = s.m_bits; k + warp_m_bits < m_bits; ++k) out.reg.push_back(m(k));
  for (unsigned k = 0; k + warp_batch_bits < batch_bits; ++k) out.reg.push_back(static_cast<int8_t>(n_bits + m_bits + k));
  add_warps(out, warp_n_bits, 0, n_bits);
  add_warps(out, warp_m_bits, static_cast<int>(n_bits), m_bits);
  add_warps(out, warp_batch_bits, static_cast<int>(n_bits + m_bits), batch_bits);
  return out;
}

Layout mma_a_layout(const MmaShape& s, unsigned batch_bits, unsigned m_bits, unsigned k_bits, unsigned warp_m_bits, unsigned warp_n_bits,
                    unsigned warp_batch_bits) {
  const auto m = [&](unsigned b) { return static_cast<int8_t>(k_bits + b); };
  const auto k = [&](unsigned b) { return static_cast<int8_t>(b); };
  Layout out;
  for (unsigned b = 0; b < s.k_pack_bits; ++b) out.reg.push_back(k(b));
  if (s.m_bits == 4) out.reg.push_back(m(3));
  out.lane = {k(s.k_pack_bits), k(s.k_pack_bits + 1), m(0), m(1), m(2)};
  for (unsigned b = s.k_pack_bits + 2; b < k_bits; ++b) out.reg.push_back(k(b));
  for (unsigned b = s.m_bits; b + warp_m_bits < m_bits; ++b) out.reg.push_back(m(b));
  for (unsigned b = 0; b + warp_batch_bits < batch_bits; ++b) out.reg.push_back(static_cast<int8_t>(k_bits + m_bits + b));
  add_warps(out, warp_n_bits, -1, 0);
  add_warps(out, warp_m_bits, static_cast<int>(k_bits), m_bits);
  add_warps(out, warp_batch_bits, static_cast<int>(k_bits + m_bits), batch_bits);
  return out;
}

Layout mma_b_layout(const MmaShape& s, unsigned batch_bits, unsigned k_bits, unsigned n_bits, unsigned warp_m_bits, unsigned warp_n_bits,
                    unsigned warp_batch_bits) {
  const auto k = [&](unsigned b) { return static_cast<int8_t>(n_bits + b); };
  const auto n = [&](unsigned b) { return static_cast<int8_t>(b); };
  Layout out;
  for (unsigned b = 0; b < s.k_pack_bits; ++b) out.reg.push_back(k(b));
  out.lane = {k(s.k_pack_bits), k(s.k_pack_bits + 1), n(0), n(1), n(2)};
  for (unsigned b = s.k_pack_bits + 2; b < k_bits; ++b) out.reg.push_back(k(b));
  for (unsigned b = s.n_bits; b + warp_n_bits < n_bits; ++b) out.reg.push_back(n(b));
  for (unsigned b = 0; b + warp_batch_bits < batch_bits; ++b) out.reg.push_back(static_cast<int8_t>(n_bits + k_bits + b));
  add_warps(out, warp_n_bits, 0, n_bits);
  add_warps(out, warp_m_bits, -1, 0);
  add_warps(out, warp_batch_bits, static_cast<int>(n_bits + k_bits), batch_bits);
  return out;
}

std::span<const int8_t, 6> row_bits(RowOrder order) {
  // Words: the sixteen lanes that a load of two words serves at once differ in g0, g1 and in two bits of K. With 128-byte swizzle K's bits
  // move the 16-byte chunk by 1 and 2, so g1 must move it by 4 (bit 4 of 32 words), and g0 choose the half of a chunk.
  static constexpr int8_t kPlain[] = {0, 1, 2, 3, 4, 5}, kBytes[] = {1, 2, 3, 0, 4, 5}, kWords[] = {1, 4, 2, 0, 3, 5};
  return std::span<const int8_t, 6>(order == RowOrder::Plain ? kPlain : order == RowOrder::Bytes ? kBytes : kWords, 6);
}

Layout wgmma_layout(RowOrder order, unsigned p_first, unsigned p_bits, unsigned q_first, unsigned q_bits, unsigned group_bits) {
  const auto p = [&](unsigned k) { return static_cast<int8_t>(p_first + k); };
  const auto q = [&](unsigned k) { return static_cast<int8_t>(q_first + k); };
  const auto row = [&](unsigned k) { return p(static_cast<unsigned>(row_bits(order)[k])); };
  const unsigned groups_p = std::min(group_bits, p_bits - 6), groups_q = group_bits - groups_p;
  Layout out;
  out.reg = {q(0), row(3)};
  out.lane = {q(1), q(2), row(0), row(1), row(2)};
  for (unsigned k = 3; k + groups_q < q_bits; ++k) out.reg.push_back(q(k));
  for (unsigned k = 6; k + groups_p < p_bits; ++k) out.reg.push_back(p(k));
  out.warp = {row(4), row(5)};
  for (unsigned k = groups_p; k > 0; --k) out.warp.push_back(p(p_bits - k));
  for (unsigned k = groups_q; k > 0; --k) out.warp.push_back(q(q_bits - k));
  return out;
}

Layout wgmma_result_layout(unsigned m_bits, unsigned n_bits, unsigned group_bits) {
  return wgmma_layout(RowOrder::Plain, n_bits, m_bits, 0, n_bits, group_bits);
}

Layout wgmma_a_layout(unsigned m_bits, unsigned k_bits, unsigned group_bits) {
  // The fragment of mma.sync, and so the accumulator's own layout with K in the place of N: a product's result is the next one's operand.
  return wgmma_result_layout(m_bits, k_bits, group_bits);
}

namespace {

/// Every thread of `to` finds its elements among those that the same lane (or warp) bits of `from` hold.
bool covers(const std::vector<int8_t>& from, const std::vector<int8_t>& to) {
  for (size_t k = 0; k < from.size(); ++k)
    if (from[k] != kCopies && from[k] != to[k]) return false;
  return true;
}

}  // namespace

ConvertKind convert_kind(const Layout& from, const Layout& to) {
  if (from == to) return ConvertKind::None;
  if (!covers(from.warp, to.warp)) return ConvertKind::Shared;
  return covers(from.lane, to.lane) ? ConvertKind::Registers : ConvertKind::Warp;
}

uint32_t padded_offset(uint32_t byte) { return byte + byte / 128 * 16; }

uint32_t convert_bytes(unsigned bits, unsigned element_bytes) { return padded_offset((1u << bits) * element_bytes) + 16; }

}  // namespace tile
