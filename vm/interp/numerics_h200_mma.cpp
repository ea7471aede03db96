// Matrix products of an H200: which instructions compute them, and how a tensor core adds.
#include "vm/interp/numerics_h200_mma.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "vm/base/check.h"
#include "vm/base/numeric.h"

namespace tile {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kSteps = 32;             // most products that are added at once
constexpr int kNone = -100000;            // exponent of zero

bool is_f8(ElementType t) { return t == ElementType::F8E4M3FN || t == ElementType::F8E5M2; }

/// What one instruction of a tensor core does with its products and the accumulator.
struct Unit {
  size_t products;  ///< that it adds at once
  int fraction;     ///< bits that stay behind the leading one of the largest exponent
  int digits;       ///< of the sum that stay: bits of its significand
  bool apart;       ///< the chain starts at zero and is added to the accumulator at the end
};

Unit unit_of(const ProductDesc& p) {
  const MmaDesc& d = p.mma;
  if (is_f8(d.lhs_rhs) && !p.batched && d.m >= 64 && d.k >= 32) return {32, 13, 14, !p.fast && d.acc == ElementType::F32};
  return {d.lhs_rhs == ElementType::TF32 ? size_t{8} : size_t{16}, 25, 24, false};
}

template <class T>
T* take(unsigned char*& at, size_t count) {
  T* p = reinterpret_cast<T*>(at);
  at += (count * sizeof(T) + kAlign - 1) / kAlign * kAlign;
  return p;
}
unsigned char* align_up(void* p) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  return static_cast<unsigned char*>(p) + ((at + kAlign - 1) / kAlign * kAlign - at);
}

double element(ElementType t, const void* tile, size_t at) {
  uint64_t bits = 0;
  const size_t size = info(t).storage;
  std::memcpy(&bits, static_cast<const char*>(tile) + at * size, size);
  if (t == ElementType::TF32) bits &= ~uint64_t{0x1FFF};
  return decode(t, bits);
}

/// Of a number of this type; subnormal ones have that of the least normal one.
int exponent_of(double x, int least) { return x == 0 ? kNone : std::max(least, static_cast<int>(double_bits(x) >> 52 & 0x7FF) - 1023); }
int least_exponent(ElementType t, const Unit& u) {
  switch (t) {
    case ElementType::F8E4M3FN: return u.products == kSteps ? -6 : -14;  // smaller units take f8 as f16
    case ElementType::F8E5M2:
    case ElementType::F16: return -14;
    default: return -126;
  }
}
double power(int exponent) { return double_of(static_cast<uint64_t>(exponent + 1023) << 52); }

/// The sum of accumulator and products, each cut off below the last bit that counts.
void add_products(const Unit& u, bool narrow, size_t n, size_t count, const double* lhs, const int* lhs_exponents, const double* rhs,
                  const int* rhs_exponents, double* acc, int* top, int64_t* sums) {
  const int least = least_exponent(narrow ? ElementType::F16 : ElementType::F32, u);
  for (size_t j = 0; j < n; ++j) top[j] = exponent_of(acc[j], least);
  for (size_t k = 0; k < count; ++k) {
    const int e = lhs_exponents[k];
    const int* r = rhs_exponents + k * n;
    for (size_t j = 0; j < n; ++j) top[j] = std::max(top[j], e + r[j]);
  }
  for (size_t j = 0; j < n; ++j) {
    top[j] = std::max(top[j], -400);      // below all products
    sums[j] = static_cast<int64_t>(acc[j] * power(u.fraction - top[j]));
  }
  for (size_t k = 0; k < count; ++k) {
    const double l = lhs[k];
    const double* r = rhs + k * n;
    for (size_t j = 0; j < n; ++j) sums[j] += static_cast<int64_t>(l * r[j] * power(u.fraction - top[j]));
  }
  const uint64_t mask = ~uint64_t{0} << (53 - u.digits);
  for (size_t j = 0; j < n; ++j) {
    const double sum = static_cast<double>(sums[j]) * power(top[j] - u.fraction);
    if (narrow) {
      acc[j] = decode(ElementType::F16, encode(ElementType::F16, sum)) + 0.0;  // zeros are positive
    } else if (std::fabs(sum) < power(least)) {
      acc[j] = std::trunc(sum * power(149)) * power(-149);
    } else {
      acc[j] = double{static_cast<float>(double_of(double_bits(sum) & mask))};
    }
  }
}

/// The same where an infinity or a NaN takes part: true, with the result in `acc`, where that decides it.
bool add_special(size_t count, const double* lhs, const double* rhs, size_t stride, double* acc) {
  double sum = *acc;
  for (size_t k = 0; k < count; ++k) sum += lhs[k] * rhs[k * stride];
  if (std::isfinite(sum)) return false;
  *acc = sum;
  return true;
}

void tensor_rows(const ProductDesc& p, size_t begin, size_t end, void* out, const void* lhs, const void* rhs, const void* acc, void* scratch) {
  const MmaDesc& d = p.mma;
  const Unit u = unit_of(p);
  unsigned char* at = align_up(scratch);
  auto* right = take<double>(at, d.k * d.n);
  auto* right_exponents = take<int>(at, d.k * d.n);
  auto* left = take<double>(at, d.k);
  auto* left_exponents = take<int>(at, d.k);
  auto *sum = take<double>(at, d.n), *before = take<double>(at, d.n);
  auto* top = take<int>(at, d.n);
  auto* sums = take<int64_t>(at, d.n);
  const size_t size = info(d.acc).storage;
  const bool narrow = d.acc == ElementType::F16;
  const int least = least_exponent(d.lhs_rhs, u);
  size_t entry = std::numeric_limits<size_t>::max();
  bool right_special = false;
  for (size_t row = begin; row < end; ++row) {
    if (row / d.m != entry) {
      entry = row / d.m;
      right_special = false;
      for (size_t i = 0; i < d.k * d.n; ++i) {
        right[i] = element(d.lhs_rhs, rhs, entry * d.k * d.n + i);
        right_exponents[i] = exponent_of(right[i], least);
        right_special = right_special || !std::isfinite(right[i]);
      }
    }
    bool special = right_special;
    for (size_t k = 0; k < d.k; ++k) {
      left[k] = element(d.lhs_rhs, lhs, row * d.k + k);
      left_exponents[k] = exponent_of(left[k], least);
      special = special || !std::isfinite(left[k]);
    }
    for (size_t j = 0; j < d.n; ++j) {
      before[j] = element(d.acc, acc, row * d.n + j);
      sum[j] = u.apart ? 0.0 : before[j];
    }
    for (size_t k = 0; k < d.k; k += u.products) {
      const size_t count = std::min(u.products, d.k - k);
      bool infinite = special;
      for (size_t j = 0; j < d.n; ++j) infinite = infinite || !std::isfinite(sum[j]);
      if (!infinite) {
        add_products(u, narrow, d.n, count, left + k, left_exponents + k, right + k * d.n, right_exponents + k * d.n, sum, top, sums);
        continue;
      }
      for (size_t j = 0; j < d.n; ++j) {
        if (add_special(count, left + k, right + k * d.n + j, d.n, &sum[j])) continue;
        double column[kSteps];
        int exponents[kSteps];
        for (size_t i = 0; i < count; ++i) {
          column[i] = right[(k + i) * d.n + j];
          exponents[i] = right_exponents[(k + i) * d.n + j];
        }
        add_products(u, narrow, 1, count, left + k, left_exponents + k, column, exponents, &sum[j], top, sums);
      }
    }
    for (size_t j = 0; j < d.n; ++j) {
      const uint64_t bits = encode(d.acc, u.apart ? before[j] + sum[j] : sum[j]);
      std::memcpy(static_cast<char*>(out) + (row * d.n + j) * size, &bits, size);
    }
  }
}

/// The first of these that is a NaN, made quiet, else that of an invalid operation.
uint64_t nan_of(std::initializer_list<uint64_t> operands) {
  constexpr uint64_t kQuiet = 0x0008000000000000, kInvalid = 0xFFF8000000000000;
  for (const uint64_t x : operands)
    if (std::isnan(double_of(x))) return x | kQuiet;
  return kInvalid;
}

/// Gives the NaN among the results of the chain in f64 their bits; without `acc` it starts at zero, on scalar units.
void set_nan(const MmaDesc& d, size_t begin, size_t end, void* out, const void* lhs, const void* rhs, const void* acc) {
  const auto bits_at = [](const void* tile, size_t at) {
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const char*>(tile) + at * sizeof(bits), sizeof(bits));
    return bits;
  };
  for (size_t i = begin * d.n; i < end * d.n; ++i) {
    if (!std::isnan(double_of(bits_at(out, i)))) continue;
    const size_t row = i / d.n, column = i % d.n, entry = row / d.m;
    uint64_t sum = acc ? bits_at(acc, i) : 0;
    for (size_t k = 0; k < d.k; ++k) {
      const uint64_t l = bits_at(lhs, row * d.k + k), r = bits_at(rhs, (entry * d.k + k) * d.n + column);
      const double next = std::fma(double_of(l), double_of(r), double_of(sum));
      sum = next == next ? double_bits(next) : acc ? nan_of({sum, l, r}) : nan_of({l, r, sum});
    }
    std::memcpy(static_cast<char*>(out) + i * sizeof(sum), &sum, sizeof(sum));
  }
}

void chain_rows(const MmaDesc& d, size_t begin, size_t end, void* out, const void* lhs, const void* rhs, const void* acc, void* scratch) {
  unsigned char* at = align_up(scratch);
  const size_t first = begin * d.n, count = (end - begin) * d.n;
  auto* before = take<double>(at, d.batch * d.m * d.n);  // `out` may be the accumulator
  std::memcpy(before + first, static_cast<const double*>(acc) + first, count * sizeof(double));
  mma_rows(d, begin, end, out, lhs, rhs, acc, at);
  set_nan(d, begin, end, out, lhs, rhs, before);
}

/// The accumulator plus a sum that started at zero.
void sum_rows(const MmaDesc& d, size_t begin, size_t end, void* out, const void* lhs, const void* rhs, const void* acc, void* scratch) {
  MmaDesc apart = d;
  if (d.acc == ElementType::F16) apart.acc = ElementType::F32;
  const size_t size = info(apart.acc).storage, stored_size = info(d.acc).storage, first = begin * d.n, last = end * d.n;
  unsigned char* at = align_up(scratch);
  auto* sums = take<char>(at, d.batch * d.m * d.n * size);
  std::memset(sums + first * size, 0, (last - first) * size);
  mma_rows(apart, begin, end, sums, lhs, rhs, sums, at);
  if (d.acc == ElementType::F64) set_nan(d, begin, end, sums, lhs, rhs, nullptr);
  for (size_t i = first; i < last; ++i) {
    const double a = element(d.acc, acc, i), s = element(apart.acc, sums, i);
    const double total = apart.acc == ElementType::F64 ? a + s : double{static_cast<float>(a) + static_cast<float>(s)};
    uint64_t bits = encode(d.acc, total);
    if (apart.acc == ElementType::F64 && total != total) bits = nan_of({double_bits(a), double_bits(s)});
    std::memcpy(static_cast<char*>(out) + i * stored_size, &bits, stored_size);
  }
}

}  // namespace

ProductPath product_path_h200(const ProductDesc& p) {
  constexpr size_t kWarps = 4;
  const MmaDesc& d = p.mma;
  const size_t elements = d.batch * d.m * d.n;
  switch (d.lhs_rhs) {
    case ElementType::I8: return ProductPath::Exact;
    case ElementType::F32: return ProductPath::Sum;
    case ElementType::F64: return d.m >= 8 && d.n >= 8 && elements >= 64 * kWarps && d.k >= 4 ? ProductPath::Chain : ProductPath::Sum;
    default: break;
  }
  const size_t least = d.lhs_rhs == ElementType::TF32 ? 4 : 8;
  return d.m >= 16 && d.n >= 8 && elements >= 128 * kWarps && d.k >= least ? ProductPath::Tensor : ProductPath::Sum;
}

size_t mma_scratch_bytes_h200(const MmaDesc& d) {
  const size_t sum = d.batch * d.m * d.n * sizeof(double) + mma_scratch_bytes(d) + 4 * kAlign;
  const size_t tensor = (d.k * d.n + d.k) * (sizeof(double) + sizeof(int)) + d.n * (3 * sizeof(double) + sizeof(int)) + 16 * kAlign;
  return std::max(sum, tensor);
}

void mma_rows_h200(const ProductDesc& p, size_t row_begin, size_t row_end, void* out, const void* lhs, const void* rhs, const void* acc, void* scratch) {
  const ProductPath path = product_path_h200(p);
  TILE_CHECK(path != ProductPath::Exact);
  if (path == ProductPath::Sum) {
    sum_rows(p.mma, row_begin, row_end, out, lhs, rhs, acc, scratch);
  } else if (path == ProductPath::Chain) {
    chain_rows(p.mma, row_begin, row_end, out, lhs, rhs, acc, scratch);
  } else {
    tensor_rows(p, row_begin, row_end, out, lhs, rhs, acc, scratch);
  }
}

}  // namespace tile
