// How the elements of a tile lie in the registers of a block's threads, as a map over bits.
//
// Every extent of a tile is a power of two, so an element's row-major number is a string of bits, and so are register number, lane and
// warp. A layout says for each register, lane and warp bit which bit of the element number it carries, or that it carries none: then
// the threads (or registers) that differ in it hold copies. Reshape keeps a layout, permute renames its bits, a reduction drops bits,
// and mma fragments are layouts like any other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tile {

inline constexpr int8_t kCopies = -1;  ///< a thread or register bit that carries no element bit

struct Layout {
  std::vector<int8_t> reg;    ///< element bit of each register bit, lowest first
  std::vector<int8_t> lane;   ///< five of them
  std::vector<int8_t> warp;   ///< log2 of the block's warps

  bool operator==(const Layout&) const = default;

  [[nodiscard]] unsigned registers() const { return 1u << reg.size(); }
  /// Element bits that register number `r` contributes.
  [[nodiscard]] uint32_t element_of_register(unsigned r) const;
  /// Register bit that carries element bit `bit`; -1 if none does.
  [[nodiscard]] int register_bit(int bit) const;
  [[nodiscard]] std::string print() const;
};

/// Number of bits of an extent that is a power of two.
[[nodiscard]] unsigned log2_of(int64_t extent);
/// Element bits of a tile.
[[nodiscard]] unsigned element_bits(std::span<const int64_t> shape);
/// First (lowest) element bit of each dimension.
[[nodiscard]] std::vector<unsigned> dim_bits(std::span<const int64_t> shape);

/// Runs of 2^vector_bits elements along the dimension `order[0]` in a thread, then lanes, warps and more registers along order[0], order[1]...
/// Bits that are left over in lanes and warps carry copies. `order` lists all dimensions, the contiguous one first. Registers that are left
/// after the runs take the element bits `with` first.
[[nodiscard]] Layout blocked_layout(std::span<const int64_t> shape, std::span<const unsigned> order, unsigned vector_bits, unsigned warp_bits,
                                    std::span<const int8_t> with = {});
/// order = last dimension first.
[[nodiscard]] Layout blocked_layout(std::span<const int64_t> shape, unsigned vector_bits, unsigned warp_bits);

/// Layout of permute(x, perm): dimension d of the result is dimension perm[d] of x, whose shape is `from`.
[[nodiscard]] Layout permuted_layout(const Layout& x, std::span<const int64_t> from, std::span<const int32_t> perm);
/// The inverse: layout of x for which permute(x) has layout `y`.
[[nodiscard]] Layout unpermuted_layout(const Layout& y, std::span<const int64_t> from, std::span<const int32_t> perm);
/// Layout that the source (shape `from`, extents 1 or equal) must have so that broadcasting to `to` in layout `y` moves nothing.
[[nodiscard]] Layout broadcast_source(const Layout& y, std::span<const int64_t> from, std::span<const int64_t> to);
/// Layout of a tile after dimension `dim` (of `shape`) was reduced away in place. Register bits of the dimension vanish, lane and warp bits
/// carry copies. The element bits are those of the shape without the dimension.
[[nodiscard]] Layout reduced_layout(const Layout& x, std::span<const int64_t> shape, unsigned dim);
/// The same without register bits that carry copies: two registers never hold one element.
[[nodiscard]] Layout without_copies(Layout x);

/// Fragments of mma.sync. Warps are spread over rows first: `warp_m_bits` of them, the rest over columns.
struct MmaShape {
  unsigned m_bits = 4, n_bits = 3, k_bits = 4;   ///< of one instruction, as log2
  unsigned k_pack_bits = 1;                      ///< elements of A and B in one 32-bit register, as log2
};
/// Accumulator of a batch x M x N product (batch first in the element number). m, n: bits of the tile; at least one instruction's.
[[nodiscard]] Layout mma_result_layout(const MmaShape& s, unsigned batch_bits, unsigned m_bits, unsigned n_bits, unsigned warp_m_bits, unsigned warp_n_bits,
                                       unsigned warp_batch_bits);
/// A (batch x M x K) and B (batch x K x N) operands for that result.
[[nodiscard]] Layout mma_a_layout(const MmaShape& s, unsigned batch_bits, unsigned m_bits, unsigned k_bits, unsigned warp_m_bits, unsigned warp_n_bits,
                                  unsigned warp_batch_bits);
[[nodiscard]] Layout mma_b_layout(const MmaShape& s, unsigned batch_bits, unsigned k_bits, unsigned n_bits, unsigned warp_m_bits, unsigned warp_n_bits,
                                  unsigned warp_batch_bits);

/// Which of every 64 rows of P (the operand with wgmma's M) is which row of the unit. From registers any order will do.
enum class RowOrder : uint8_t {
  Plain,   ///< as they are
  Bytes,   ///< neighbours in the rows g and g + 8 of a fragment: bytes that ldmatrix brings as pairs
  Words,   ///< the same for loads of two words, in an order whose loads hit different banks
};
/// Bits of P's row that the rows' bits of a fragment stand for: g0, g1, g2 (lane / 4), h (rows g + 8), two bits of the warp.
[[nodiscard]] std::span<const int8_t, 6> row_bits(RowOrder order);
/// Accumulator of wgmma for a P x Q tile whose row and column numbers begin at the given element bits: warps 0..3 of a warpgroup take 16
/// rows each of every 64; further warpgroups take the top bits of P, or of Q where P has none left.
[[nodiscard]] Layout wgmma_layout(RowOrder order, unsigned p_first, unsigned p_bits, unsigned q_first, unsigned q_bits, unsigned group_bits);
/// The same for a row-major M x N tile, rows plain.
[[nodiscard]] Layout wgmma_result_layout(unsigned m_bits, unsigned n_bits, unsigned group_bits);

/// A of wgmma in registers (M x K, 16-bit elements), for results laid out as above; group_bits at most m_bits - 6.
[[nodiscard]] Layout wgmma_a_layout(unsigned m_bits, unsigned k_bits, unsigned group_bits);

/// How to turn one layout into another.
enum class ConvertKind : uint8_t {
  None,       ///< equal
  Registers,  ///< each thread has what it needs: choose registers
  Warp,       ///< the warps have what they need: shuffles
  Shared,     ///< through shared memory
};
[[nodiscard]] ConvertKind convert_kind(const Layout& from, const Layout& to);
/// Shared-memory bytes of a tile of 2^bits elements in row-major order, as Lowering::write_shared leaves it for who reads it by address.
/// (Conversions have a map of their own: shared_map.h.)
[[nodiscard]] uint32_t convert_bytes(unsigned bits, unsigned element_bytes);
/// Byte offset of an element in that memory: 16 bytes of padding behind every 128, so that neighbouring rows begin in different banks.
/// Linear: offset(a | b) = offset(a) + offset(b) for disjoint a and b.
[[nodiscard]] uint32_t padded_offset(uint32_t byte);

}  // namespace tile
