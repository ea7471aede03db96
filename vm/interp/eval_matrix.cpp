// Matrix products: operands handed to the register-blocked kernels of mma.h.
#include "vm/interp/mma.h"

#include <algorithm>

#include "vm/interp/eval.h"
#include "vm/interp/numerics_h200_mma.h"

namespace tile {
namespace {

struct MmaData : StepData {
  MmaDesc desc;
};
struct ProductData : StepData {
  ProductDesc desc;
};
struct ScaledData : StepData {
  MmaScaledDesc desc;
};

constexpr size_t kBand = 32;              // rows that stay together: several times those of a register block
constexpr size_t kProducts = 1 << 19;     // multiplications that are worth another thread

/// Calls f(row, row after the last one, scratch) for bands of rows. Each thread packs the right operand for itself, so it gets one band.
template <class Desc, class F>
void by_rows(Exec& x, const Desc& d, const F& f) {
  const size_t rows = d.batch * d.m;
  if (rows % kBand != 0) return f(size_t{0}, rows, x.scratch);
  const size_t least = std::max<size_t>(1, kProducts / (kBand * d.n * d.k));
  x.split(rows / kBand, least, [&](size_t begin, size_t end, std::byte* scratch) { f(begin * kBand, end * kBand, scratch); }, 1);
}

Flow eval_mma(Exec& x, const Step& s) {
  const MmaDesc& d = static_cast<const MmaData&>(*s.data).desc;
  by_rows(x, d, [&](size_t begin, size_t end, std::byte* scratch) { mma_rows(d, begin, end, x.at(s.out[0]), x.at(s.in[0]), x.at(s.in[1]), x.at(s.in[2]), scratch); });
  return Flow::Next;
}

Flow eval_mma_h200(Exec& x, const Step& s) {
  const ProductDesc& d = static_cast<const ProductData&>(*s.data).desc;
  by_rows(x, d.mma, [&](size_t begin, size_t end, std::byte* scratch) {
    mma_rows_h200(d, begin, end, x.at(s.out[0]), x.at(s.in[0]), x.at(s.in[1]), x.at(s.in[2]), scratch);
  });
  return Flow::Next;
}

Flow eval_scaled(Exec& x, const Step& s) {
  const MmaScaledDesc& d = static_cast<const ScaledData&>(*s.data).desc;
  by_rows(x, d, [&](size_t begin, size_t end, std::byte* scratch) {
    mma_scaled_rows(d, begin, end, x.at(s.out[0]), x.at(s.in[0]), x.at(s.in[1]), x.at(s.in[2]), x.at(s.in[3]), x.at(s.in[4]), scratch);
  });
  return Flow::Next;
}

template <class Desc>
void set_shape(PlanBuilder& b, ValueId lhs, ValueId rhs, Desc& d) {
  const auto& l = b.type(lhs).shape;
  const auto& r = b.type(rhs).shape;
  const size_t rank = l.size();
  d.batch = rank == 3 ? static_cast<size_t>(l[0]) : 1;
  d.m = static_cast<size_t>(l[rank - 2]);
  d.k = static_cast<size_t>(l[rank - 1]);
  d.n = static_cast<size_t>(r[rank - 1]);
}

void finish(PlanBuilder& b, InstId i, EvalFn fn, const StepData* data) {
  const auto operands = b.f.operands(i);
  Slot in[5];
  for (size_t k = 0; k < operands.size(); ++k) in[k] = b.slot(operands[k]);
  // The accumulator is updated in place, unless it is also one of the factors.
  bool factor = false;
  for (size_t k = 0; k < operands.size(); ++k) factor = factor || (k != 2 && in[k] == in[2]);
  const ValueId acc[1] = {operands[2]};
  const Slot out = b.define(b.f.result(i), factor ? std::span<const ValueId>() : std::span<const ValueId>(acc));
  Step& s = b.step(i, fn);
  for (size_t k = 0; k < operands.size(); ++k) s.in[k] = in[k];
  s.out[0] = out;
  s.data = data;
}

}  // namespace

bool compile_mma(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  const auto operands = f.operands(i);
  MmaData* d = b.data<MmaData>();
  d->desc.lhs_rhs = b.element(operands[0]);
  d->desc.acc = b.element(operands[2]);
  if (f.insts[i].op == Opcode::MmaI) {
    d->desc.lhs_signed = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "signedness_lhs"))) != 0;
    d->desc.rhs_signed = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "signedness_rhs"))) != 0;
  }
  set_shape(b, operands[0], operands[1], d->desc);
  if (!mma_supported(d->desc.lhs_rhs, d->desc.acc)) {
    b.why = std::string(info(d->desc.lhs_rhs).name) + " with accumulator " + std::string(info(d->desc.acc).name);
    return false;
  }
  if (b.numerics == Numerics::H200 && f.insts[i].op == Opcode::MmaF) {
    ProductData* p = b.data<ProductData>();
    p->desc.mma = d->desc;
    p->desc.fast = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "fast_acc"))) != 0;
    p->desc.batched = b.type(operands[0]).shape.size() == 3;
    if (product_path_h200(p->desc) != ProductPath::Exact) {
      b.scratch(mma_scratch_bytes_h200(d->desc));
      finish(b, i, eval_mma_h200, p);
      return true;
    }
  }
  b.scratch(mma_scratch_bytes(d->desc));
  finish(b, i, eval_mma, d);
  return true;
}

bool compile_mma_scaled(PlanBuilder& b, InstId i) {
  const auto operands = b.f.operands(i);
  ScaledData* d = b.data<ScaledData>();
  d->desc.lhs_rhs = b.element(operands[0]);
  d->desc.scale = b.element(operands[3]);
  set_shape(b, operands[0], operands[1], d->desc);
  d->desc.block = d->desc.k / static_cast<size_t>(b.type(operands[3]).shape.back());
  if (!mma_scaled_supported(d->desc.lhs_rhs, d->desc.scale)) {
    b.why = std::string(info(d->desc.lhs_rhs).name) + " with scales of " + std::string(info(d->desc.scale).name);
    return false;
  }
  b.scratch(mma_scaled_scratch_bytes(d->desc));
  finish(b, i, eval_scaled, d);
  return true;
}

}  // namespace tile
