// pow and atan2 of 16 bits, which take two operands: against the C library's f64 functions, whose error is below one unit in the last place
// (glibc's manual, "Errors in Math Functions"). Where that is too near to a middle between two results to decide, long double decides, and
// where that cannot either, only an exact value may be there. With --no-skip every pair of operands is tried, else every kStride-th.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "vm/base/numeric.h"
#include "vm/interp/elementwise.h"

using namespace tile;

namespace {

constexpr uint64_t kPairs = uint64_t{1} << 32;
constexpr uint32_t kStride = 1009;  // prime: all operands come up

struct Format {
  ElementType type;
  int digits, least;  // of the significand with the hidden bit; exponent of the smallest normal number
};
constexpr Format kFormats[] = {{ElementType::F16, 11, -14}, {ElementType::BF16, 8, -126}};

/// Distance between neighbours around |x|.
double spacing(const Format& f, double x) { return std::ldexp(1.0, std::max(std::ilogb(x), f.least) - f.digits + 1); }

/// Whether a value could be on the other side of a middle between two results, its error being at most `error` times its magnitude.
bool undecided(const Format& f, long double x, long double error) {
  const long double s = spacing(f, static_cast<double>(x)), t = std::fabs(x) / s - 0.5L;
  return std::fabs(t - std::round(t)) <= std::fabs(x) / s * error;
}

/// x^y where that is a number of at most 63 bits; NaN where it is none. x > 0.
long double exact_power(double x, double y) {
  constexpr long double kNone = std::numeric_limits<long double>::quiet_NaN();
  for (int k = 0; y != std::floor(y); ++k) {
    const double root = std::sqrt(x);  // exact if x is a square: its significand is short
    if (k == 24 || root * root != x) return kNone;
    x = root;
    y *= 2;
  }
  int e = 0;
  const double m = std::frexp(x, &e);
  if (y < 0) return m == 0.5 ? std::ldexp(1.0L, static_cast<int>(std::clamp((e - 1) * y, -1e6, 1e6))) : kNone;
  const int shift = std::countr_zero(static_cast<uint64_t>(std::ldexp(m, 53)));
  const uint64_t odd = static_cast<uint64_t>(std::ldexp(m, 53)) >> shift;
  uint64_t power = 1;
  for (double k = 0; k < y && odd > 1; ++k) {
    if (power > (uint64_t{1} << 63) / odd) return kNone;
    power *= odd;
  }
  return std::ldexp(static_cast<long double>(power), static_cast<int>(std::clamp((e - 53 + shift) * y, -1e6, 1e6)));
}

struct Judge {
  Opcode op;
  double (*near)(double, double);
  long double (*nearer)(long double, long double);
};
const Judge kJudges[] = {{Opcode::FPowF, std::pow, powl}, {Opcode::Atan2, std::atan2, atan2l}};

/// How many results of a pair of formats are wrong, and how many could not be judged.
struct Count {
  std::atomic<uint64_t> pairs{0}, wrong{0}, unknown{0}, close{0};
};

void judge(const Judge& j, const Format& f, uint64_t first, uint64_t last, uint64_t stride, Count& count) {
  constexpr size_t kChunk = 4096;
  const ElementwiseFn kernel = find_elementwise(j.op, f.type, f.type, {});
  std::vector<uint16_t> x(kChunk), y(kChunk), got(kChunk);
  std::vector<double> value(65536);
  for (uint32_t h = 0; h < 65536; ++h) value[h] = decode(f.type, h);
  uint64_t pairs = 0, wrong = 0, unknown = 0, close = 0;
  for (uint64_t p = first; p < last;) {
    size_t n = 0;
    for (; n < kChunk && p < last; ++n, p += stride) {
      x[n] = static_cast<uint16_t>(p >> 16);
      y[n] = static_cast<uint16_t>(p);
    }
    const void* in[] = {x.data(), y.data()};
    kernel(got.data(), in, n);
    pairs += n;
    for (size_t i = 0; i < n; ++i) {
      const double a = value[x[i]], b = value[y[i]];
      double exact = j.near(a, b);
      if (std::isfinite(exact) && exact != 0 && std::fabs(exact) >= std::ldexp(1.0, f.least - f.digits - 1) && undecided(f, exact, 0x1p-51L)) {
        ++close;
        const long double nearer = j.nearer(a, b);
        if (undecided(f, nearer, 0x1p-61L)) {
          // A power that is exactly in the middle, or an angle so small that it cannot be told from a quotient there: it is smaller.
          const long double power = exact_power(std::fabs(a), b);
          const double quotient = a / b;
          if (j.op == Opcode::FPowF && !std::isnan(power)) {
            exact = static_cast<double>(std::copysign(power, nearer));
          } else if (j.op == Opcode::Atan2 && b > 0 && std::fabs(quotient) < 0x1p-20 && quotient * b == a) {
            exact = std::nextafter(quotient, 0.0);
          } else {
            ++unknown;
            continue;
          }
        } else {
          // On the right side of the middle is enough.
          const long double s = spacing(f, exact);
          exact = static_cast<double>((std::floor(nearer / s * 2) + 0.5L) * s / 2);
        }
      }
      wrong += got[i] != static_cast<uint16_t>(encode(f.type, exact));
    }
  }
  count.pairs += pairs;
  count.wrong += wrong;
  count.unknown += unknown;
  count.close += close;
}

void judge_all(uint64_t stride) {
  for (const Judge& j : kJudges)
    for (const Format& f : kFormats) {
      Count count;
      const unsigned workers = std::max(1u, std::thread::hardware_concurrency());
      std::vector<std::thread> threads;
      // Borders that are multiples of the stride, so that each worker's pairs are some of those of one.
      const auto border = [&](unsigned w) { return kPairs / stride * w / workers * stride; };
      for (unsigned w = 0; w < workers; ++w)
        threads.emplace_back([&, w] { judge(j, f, border(w), w + 1 == workers ? kPairs : border(w + 1), stride, count); });
      for (std::thread& t : threads) t.join();
      CAPTURE(static_cast<int>(j.op));
      CAPTURE(info(f.type).name);
      CAPTURE(count.close.load());
      CHECK(count.pairs.load() == (kPairs + stride - 1) / stride);
      CHECK(count.wrong.load() == 0);
      CHECK(count.unknown.load() == 0);
    }
}

}  // namespace

TEST_CASE("pow and atan2 of f16 and bf16 are the exact values rounded once, for a sample of all pairs") { judge_all(kStride); }

TEST_CASE("powers that lie exactly in the middle between two results go to the even one") {
  for (const Format& f : kFormats) {
    Count count;
    // Middles come from short exponents: all bases with multiples of 1/4 up to 4, and their negatives.
    for (int quarters = -16; quarters <= 16; ++quarters) {
      const auto y = static_cast<uint16_t>(encode(f.type, quarters / 4.0));
      judge(kJudges[0], f, y, kPairs, uint64_t{1} << 16, count);
    }
    CAPTURE(info(f.type).name);
    CHECK(count.pairs.load() == 33 * 65536);
    CHECK(count.wrong.load() == 0);
    CHECK(count.unknown.load() == 0);
  }
}

TEST_CASE("pow and atan2 of f16 and bf16 are the exact values rounded once, for all pairs" * doctest::skip()) { judge_all(1); }
