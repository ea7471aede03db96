#include "backend/plan/cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tile {

namespace {

/// Share of the unit's rate that tiles of a shape reach: small ones read more from shared memory for each product.
double efficiency(unsigned rows, unsigned columns) {
  const auto [small, large] = std::minmax(rows, columns);
  if (small >= 128) return large >= 256 ? 1.0 : 0.97;
  if (small >= 64 && large == 128) return 0.85;
  return 0.65 * std::min(1.0, small / 64.0);
}

}  // namespace

double expected_microseconds(const ProductGrid& g, unsigned multiprocessors) {
  constexpr double kLaunch = 4.1, kEnds = 4.6, kBlock = 0.65, kLongBlock = 0.78, kStore = 0.9, kWideStore = 1.5, kLong = 60;
  const double area = g.rows * static_cast<double>(g.columns) / (128 * 256);
  const double waves = std::ceil(static_cast<double>(g.tiles) / std::max(1u, multiprocessors));
  const double blocks = waves * g.k_blocks * area / efficiency(g.rows, g.columns);
  const double products = blocks * (blocks * kBlock > kLong ? kLongBlock : kBlock);
  const double stores = g.overlapped && area <= 0.5 ? 0 : std::max(0.0, waves - 1) * kStore * area;
  return kLaunch + kEnds * std::sqrt(area) + products + stores + (g.wide_result ? kWideStore * waves * area : 0);
}

std::optional<ProductGrid> better_tiles(const ProductGrid& g, unsigned multiprocessors) {
  constexpr std::array<std::pair<unsigned, unsigned>, 7> kShapes{{{128, 256}, {256, 128}, {128, 128}, {64, 256}, {64, 128}, {128, 64}, {64, 64}}};
  constexpr double kError = 0.1;
  const double area = static_cast<double>(g.tiles) * g.rows * g.columns;
  double best = expected_microseconds(g, multiprocessors) / (1 + kError);
  std::optional<ProductGrid> out;
  for (const auto& [rows, columns] : kShapes) {
    ProductGrid other = g;
    other.rows = rows;
    other.columns = columns;
    other.tiles = static_cast<uint64_t>(std::ceil(area / (static_cast<double>(rows) * columns)));
    if (const double t = expected_microseconds(other, multiprocessors); t < best) {
      best = t;
      out = other;
    }
  }
  return out;
}

std::optional<ProductGrid> product_grid(const Module& m, const Function& f, const std::array<uint32_t, 3>& blocks, double flops) {
  InstId product = kNone, loop = kNone;
  for (InstId i = 0; i < f.insts.size(); ++i) {
    const Opcode op = f.insts[i].op;
    if (op == Opcode::MmaF || op == Opcode::MmaI) {
      if (product != kNone) return std::nullopt;
      product = i;
    }
    if (op == Opcode::For || op == Opcode::Loop) {
      if (loop != kNone) return std::nullopt;
      loop = i;
    }
  }
  if (product == kNone || loop == kNone || product < loop || product > f.insts[loop].next) return std::nullopt;
  const auto result = m.types.shape_of(f.type(f.result(product)));
  const ElementType e = m.types.element_of(f.type(f.operands(product)[0]));
  constexpr std::array kTypes{ElementType::F16, ElementType::BF16, ElementType::TF32, ElementType::I8, ElementType::F8E4M3FN, ElementType::F8E5M2};
  if (result.size() != 2 || std::max(result[0], result[1]) < 64 || std::find(kTypes.begin(), kTypes.end(), e) == kTypes.end()) return std::nullopt;
  ProductGrid out;
  out.rows = static_cast<unsigned>(result[0]);
  out.columns = static_cast<unsigned>(result[1]);
  out.tiles = uint64_t{blocks[0]} * blocks[1] * blocks[2];
  const double depth = flops / (2.0 * static_cast<double>(out.tiles) * out.rows * out.columns);
  out.k_blocks = depth * info(e).bits / (8 * 128);
  out.overlapped = info(e).bits == 16;  // others take an operand from registers where it lies across
  for (InstId i = 0; i < f.insts.size(); ++i)
    if (f.insts[i].op == Opcode::StoreViewTko) out.wide_result = out.wide_result || info(m.types.element_of(f.type(f.operands(i)[0]))).bits >= 32;
  return out.tiles > 0 && out.k_blocks > 0 ? std::optional(out) : std::nullopt;
}

}  // namespace tile
