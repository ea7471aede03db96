// Tensor views, their index spaces, and loads and stores of tiles through them. Address rule: spec/machine.md "Views".
#include "vm/interp/view_access.h"

#include <algorithm>

#include "vm/interp/eval.h"
#include "vm/interp/strided.h"

namespace tile {
namespace {

struct TensorViewData : StepData {
  struct Part {
    int64_t fixed = 0;
    Slot slot = kNoSlot;   // dynamic value
    size_t size = 0;       // its storage
  };
  size_t rank = 0;
  std::vector<Part> shape, strides;
};

Flow eval_make_tensor_view(Exec& x, const Step& s) {
  const auto& d = static_cast<const TensorViewData&>(*s.data);
  uint64_t* out = x.at<uint64_t>(s.out[0]);
  out[0] = *x.at<uint64_t>(s.in[0]);
  const auto value = [&](const TensorViewData::Part& p) {
    return p.slot == kNoSlot ? static_cast<uint64_t>(p.fixed) : read_bits(x.at(p.slot), p.size);  // dynamic values are unsigned
  };
  for (size_t k = 0; k < d.rank; ++k) {
    out[1 + k] = value(d.shape[k]);
    out[1 + d.rank + k] = value(d.strides[k]);
  }
  return Flow::Next;
}

struct ShapeData : StepData {
  std::vector<std::pair<size_t, uint64_t>> dims;  // tensor dimension, divisor
  std::vector<Slot> out;
  size_t size = 4;
};

Flow eval_view_shape(Exec& x, const Step& s) {
  const auto& d = static_cast<const ShapeData&>(*s.data);
  const uint64_t* view = x.at<uint64_t>(s.in[0]);
  for (size_t k = 0; k < d.dims.size(); ++k) {
    const uint64_t n = view[1 + d.dims[k].first], by = d.dims[k].second;
    write_bits(x.at(d.out[k]), d.size, n / by + (n % by != 0));
  }
  return Flow::Next;
}

Flow eval_load_view(Exec& x, const Step& s) {
  const auto& d = static_cast<const ViewAccess&>(*s.data);
  return d.load(x, s) ? Flow::Next : Flow::Trap;
}

Flow eval_store_view(Exec& x, const Step& s) {
  const auto& d = static_cast<const ViewAccess&>(*s.data);
  return d.store(x, s) ? Flow::Next : Flow::Trap;
}

}  // namespace

bool compile_make_tensor_view(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  const Type& t = b.type(f.result(i));
  TensorViewData* d = b.data<TensorViewData>();
  d->rank = t.shape.size();
  if (d->rank > kMaxRank) {
    b.why = "views of rank " + std::to_string(d->rank) + ", the limit is " + std::to_string(kMaxRank);
    return false;
  }
  const auto fill = [&](std::vector<TensorViewData::Part>& parts, const std::vector<int64_t>& types, std::span<const ValueId> dynamic) {
    size_t next = 0;
    for (const int64_t n : types) {
      TensorViewData::Part p{n, kNoSlot, 0};
      if (n == kDynamic) {
        p.slot = b.slot(dynamic[next]);
        p.size = b.storage(dynamic[next++]);
      }
      parts.push_back(p);
    }
  };
  fill(d->shape, t.shape, f.group(i, 1));
  fill(d->strides, t.strides, f.group(i, 2));
  const Slot base = b.slot(f.operands(i)[0]);
  const Slot out = b.define(f.result(i));
  Step& s = b.step(i, eval_make_tensor_view);
  s.in[0] = base;
  s.out[0] = out;
  s.data = d;
  return true;
}

bool compile_view_shape(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  const ValueId view = f.operands(i)[0];
  const Type& t = b.type(view);
  ShapeData* d = b.data<ShapeData>();
  for (size_t k = 0; k < t.shape.size(); ++k) {
    switch (t.kind) {
      case TypeKind::PartitionView: d->dims.emplace_back(static_cast<size_t>(t.dim_map[k]), static_cast<uint64_t>(t.shape[k])); break;
      case TypeKind::StridedView: d->dims.emplace_back(static_cast<size_t>(t.dim_map[k]), static_cast<uint64_t>(t.strides[k])); break;
      default: d->dims.emplace_back(k, 1); break;  // tensor views and gather/scatter views: the extents
    }
  }
  const Slot in = b.slot(view);
  for (size_t k = 0; k < d->dims.size(); ++k) d->out.push_back(b.define(f.result(i, k)));
  if (!d->out.empty()) d->size = b.storage(f.result(i));
  Step& s = b.step(i, eval_view_shape);
  s.in[0] = in;
  s.data = d;
  return true;
}

bool compile_load_view(PlanBuilder& b, InstId i) {
  ViewAccess* d = b.data<ViewAccess>();
  if (!d->plan(b, i, b.f.operand(i, 0), b.f.group(i, 1))) return false;
  const Slot view = b.slot(b.f.operand(i, 0));
  const Slot out = b.define(b.f.result(i));
  Step& s = b.step(i, eval_load_view);
  s.in[0] = view;
  s.out[0] = out;
  s.data = d;
  s.n = b.count(b.f.result(i));
  return true;
}

bool compile_store_view(PlanBuilder& b, InstId i) {
  const OpDef& row = b.f.def(i);
  const auto operand = [&](std::string_view name) { return b.f.operand(i, static_cast<size_t>(operand_index(row, name))); };
  const ValueId tile = operand("tile"), view = operand("view");
  ViewAccess* d = b.data<ViewAccess>();
  if (!d->plan(b, i, view, b.f.group(i, 2))) return false;
  Step& s = b.step(i, eval_store_view);
  s.in[0] = b.slot(view);
  s.in[1] = b.slot(tile);
  s.data = d;
  s.n = b.count(tile);
  return true;
}

}  // namespace tile
