// Constants, shapes, packing and coordinates.
#include <algorithm>
#include <vector>

#include "vm/interp/eval.h"
#include "vm/interp/strided.h"

namespace tile {
namespace {

struct BoxData : StepData {
  size_t size = 1;
  std::vector<int64_t> shape, dst, src;   // of the box that is copied, strides in elements
  std::vector<int64_t> limits;            // extract, insert: number of slices along each dimension
  std::vector<int64_t> slice_strides;     // elements between neighbouring slices in the larger tile
  size_t whole_bytes = 0;                 // insert: bytes of the destination
};

std::vector<int64_t> strides_of(std::span<const int64_t> shape) {
  std::vector<int64_t> s(shape.size());
  row_major(shape, s);
  return s;
}

bool rank_ok(PlanBuilder& b, ValueId value) {
  if (b.type(value).shape.size() <= kMaxRank) return true;
  b.why = "tiles of rank " + std::to_string(b.type(value).shape.size()) + ", the limit is " + std::to_string(kMaxRank);
  return false;
}

Flow eval_box(Exec& x, const Step& s) {
  const auto& d = static_cast<const BoxData&>(*s.data);
  x.copy_box(d.size, x.at<std::byte>(s.out[0]), d.dst, x.at<std::byte>(s.in[0]), d.src, d.shape);
  return Flow::Next;
}

// Repeats what the first `have` bytes hold until `total` bytes are filled.
void repeat(std::byte* p, size_t have, size_t total) {
  while (have < total) {
    const size_t n = std::min(have, total - have);
    std::memcpy(p + have, p, n);
    have += n;
  }
}

size_t broadcast_into(const BoxData& d, size_t dim, std::byte* dst, const std::byte* src) {
  if (dim == d.shape.size()) {
    std::memcpy(dst, src, d.size);
    return d.size;
  }
  const size_t n = static_cast<size_t>(d.shape[dim]);
  if (d.src[dim] == 0) {
    const size_t one = broadcast_into(d, dim + 1, dst, src);
    repeat(dst, one, one * n);
    return one * n;
  }
  if (dim + 1 == d.shape.size()) {
    std::memcpy(dst, src, n * d.size);
    return n * d.size;
  }
  size_t done = 0;
  for (size_t i = 0; i < n; ++i) done += broadcast_into(d, dim + 1, dst + done, src + i * static_cast<size_t>(d.src[dim]) * d.size);
  return done;
}

Flow eval_broadcast(Exec& x, const Step& s) {
  const auto& d = static_cast<const BoxData&>(*s.data);
  size_t outer = 0;
  while (outer + 1 < d.shape.size() && d.shape[outer] == 1) ++outer;
  const size_t slices = static_cast<size_t>(d.shape[outer]), slice = s.n / slices;
  if (s.n < 2 * Exec::kSplit) {
    (void)broadcast_into(d, 0, x.at<std::byte>(s.out[0]), x.at<std::byte>(s.in[0]));
    return Flow::Next;
  }
  x.split(slices, (Exec::kSplit + slice - 1) / slice, [&](size_t begin, size_t end, std::byte*) {
    BoxData part = d;
    part.shape[outer] = static_cast<int64_t>(end - begin);
    (void)broadcast_into(part, 0, x.at<std::byte>(s.out[0]) + begin * slice * d.size,
                         x.at<std::byte>(s.in[0]) + begin * static_cast<size_t>(d.src[outer]) * d.size);
  });
  return Flow::Next;
}

/// Joins two tiles whose inner blocks have `n` and in[2] bytes; body[0] is the number of blocks.
struct CatData : StepData {
  size_t outer = 1, lhs = 0, rhs = 0;
};
Flow eval_cat(Exec& x, const Step& s) {
  const auto& d = static_cast<const CatData&>(*s.data);
  std::byte* to = x.at<std::byte>(s.out[0]);
  const std::byte *lhs = x.at<std::byte>(s.in[0]), *rhs = x.at<std::byte>(s.in[1]);
  for (size_t i = 0; i < d.outer; ++i) {
    std::memcpy(to, lhs + i * d.lhs, d.lhs);
    std::memcpy(to + d.lhs, rhs + i * d.rhs, d.rhs);
    to += d.lhs + d.rhs;
  }
  return Flow::Next;
}

struct SliceData : BoxData {
  std::vector<Slot> indices;
};

/// Offset in elements of the chosen slice, or -1 after reporting a trap.
int64_t slice_offset(Exec& x, const Step& s, const SliceData& d) {
  int64_t offset = 0;
  for (size_t k = 0; k < d.indices.size(); ++k) {
    const uint32_t index = *x.at<uint32_t>(d.indices[k]);
    if (index >= static_cast<uint64_t>(d.limits[k])) {
      (void)x.trap(Code::T0105, s,
                   std::string(x.plan.function().def(s.inst).name) + ": index " + std::to_string(index) + " along dimension " + std::to_string(k) +
                       ", valid are the slice numbers 0 to " + std::to_string(d.limits[k] - 1),
                   "indices count slices, not elements");
      return -1;
    }
    offset += static_cast<int64_t>(index) * d.slice_strides[k];
  }
  return offset;
}

Flow eval_extract(Exec& x, const Step& s) {
  const auto& d = static_cast<const SliceData&>(*s.data);
  const int64_t offset = slice_offset(x, s, d);
  if (offset < 0) return Flow::Trap;
  x.copy_box(d.size, x.at<std::byte>(s.out[0]), d.dst, x.at<std::byte>(s.in[0]) + static_cast<size_t>(offset) * d.size, d.src, d.shape);
  return Flow::Next;
}

Flow eval_insert(Exec& x, const Step& s) {
  const auto& d = static_cast<const SliceData&>(*s.data);
  const int64_t offset = slice_offset(x, s, d);
  if (offset < 0) return Flow::Trap;
  std::byte* to = x.at<std::byte>(s.out[0]);
  if (s.in[1] != s.out[0]) std::memcpy(to, x.at<std::byte>(s.in[1]), d.whole_bytes);
  x.copy_box(d.size, to + static_cast<size_t>(offset) * d.size, d.dst, x.at<std::byte>(s.in[0]), d.src, d.shape);
  return Flow::Next;
}

struct PackData : StepData {
  unsigned bits = 8;     // of an element in the packed bytes
  size_t storage = 1, elements = 0, bytes = 0;
};

Flow eval_pack(Exec& x, const Step& s) {
  const auto& d = static_cast<const PackData&>(*s.data);
  std::byte* to = x.at<std::byte>(s.out[0]);
  const std::byte* from = x.at<std::byte>(s.in[0]);
  if (d.bits >= 8) {
    std::memcpy(to, from, d.bytes);
    return Flow::Next;
  }
  std::memset(to, 0, d.bytes);
  const unsigned mask = (1u << d.bits) - 1;
  for (size_t i = 0; i < d.elements; ++i) {
    const size_t at = i * d.bits;
    to[at / 8] |= static_cast<std::byte>((static_cast<unsigned>(from[i]) & mask) << (at % 8));
  }
  return Flow::Next;
}

Flow eval_unpack(Exec& x, const Step& s) {
  const auto& d = static_cast<const PackData&>(*s.data);
  std::byte* to = x.at<std::byte>(s.out[0]);
  const std::byte* from = x.at<std::byte>(s.in[0]);
  if (d.bits >= 8) {
    std::memcpy(to, from, d.bytes);
    return Flow::Next;
  }
  const unsigned mask = (1u << d.bits) - 1;
  for (size_t i = 0; i < d.elements; ++i) {
    const size_t at = i * d.bits;
    to[i] = static_cast<std::byte>((static_cast<unsigned>(from[at / 8]) >> (at % 8)) & mask);
  }
  return Flow::Next;
}

template <bool kGrid>
Flow eval_coordinates(Exec& x, const Step& s) {
  const Grid& g = x.launch.grid;
  const uint32_t values[3] = {kGrid ? g.x : x.block[0], kGrid ? g.y : x.block[1], kGrid ? g.z : x.block[2]};
  for (int k = 0; k < 3; ++k) {
    uint32_t* out = x.at<uint32_t>(s.out[k]);
    if (s.n == 1) {
      *out = values[k];
    } else {
      std::fill_n(out, s.n, values[k]);
    }
  }
  return Flow::Next;
}

struct GlobalData : StepData {
  size_t index = 0;
};
Flow eval_get_global(Exec& x, const Step& s) {
  std::fill_n(x.at<uint64_t>(s.out[0]), s.n, x.launch.globals[static_cast<const GlobalData&>(*s.data).index]);
  return Flow::Next;
}

bool unary(PlanBuilder& b, InstId i, EvalFn fn, const StepData* data) {
  const Slot in = b.slot(b.f.operands(i)[0]);
  const Slot out = b.define(b.f.result(i));
  Step& s = b.step(i, fn);
  s.in[0] = in;
  s.out[0] = out;
  s.n = b.count(b.f.result(i));
  s.data = data;
  return true;
}

bool compile_slice(PlanBuilder& b, InstId i, ValueId whole, ValueId part, size_t first_index, SliceData* d) {
  if (!rank_ok(b, whole)) return false;
  const auto& whole_shape = b.type(whole).shape;
  const auto& part_shape = b.type(part).shape;
  const auto whole_strides = strides_of(whole_shape);
  d->size = b.storage(whole);
  d->shape = part_shape;
  for (size_t k = 0; k < whole_shape.size(); ++k) {
    d->limits.push_back(whole_shape[k] / part_shape[k]);
    d->slice_strides.push_back(whole_strides[k] * part_shape[k]);
    d->indices.push_back(b.slot(b.f.operands(i)[first_index + k]));
  }
  return true;
}

}  // namespace

bool compile_alias(PlanBuilder& b, InstId i) {
  b.alias(b.f.result(i), b.f.operands(i)[0]);
  return true;
}

bool compile_nothing(PlanBuilder&, InstId) { return true; }

bool compile_constant(PlanBuilder& b, InstId i) {
  const ValueId result = b.f.result(i);
  const std::string& bytes = b.module.attrs.get(b.f.attr(i, 0)).bytes;
  const size_t size = b.storage(result), n = b.count(result);
  if (bytes.size() == n * size) {
    (void)b.constant(result, bytes.data(), bytes.size());
    return true;
  }
  std::vector<std::byte> all(n * size);
  fill_elements(size, all.data(), read_bits(bytes.data(), size), n);
  (void)b.constant(result, all.data(), all.size());
  return true;
}

bool compile_iota(PlanBuilder& b, InstId i) {
  const ValueId result = b.f.result(i);
  const size_t size = b.storage(result), n = b.count(result);
  std::vector<std::byte> all(n * size);
  for (size_t k = 0; k < n; ++k) write_bits(all.data(), size, k, k);
  (void)b.constant(result, all.data(), all.size());
  return true;
}

bool compile_broadcast(PlanBuilder& b, InstId i) {
  const ValueId from = b.f.operands(i)[0], to = b.f.result(i);
  if (b.f.type(from) == b.f.type(to)) return unary(b, i, eval_box, [&] {
    BoxData* d = b.data<BoxData>();
    d->size = b.storage(to);
    d->shape = {static_cast<int64_t>(b.count(to))};
    d->dst = d->src = {1};
    return d;
  }());
  if (!rank_ok(b, to)) return false;
  BoxData* d = b.data<BoxData>();
  d->size = b.storage(to);
  d->shape = b.type(to).shape;
  d->src = strides_of(b.type(from).shape);
  for (size_t k = 0; k < d->shape.size(); ++k)
    if (b.type(from).shape[k] == 1 && d->shape[k] != 1) d->src[k] = 0;
  return unary(b, i, eval_broadcast, d);
}

bool compile_permute(PlanBuilder& b, InstId i) {
  const ValueId from = b.f.operands(i)[0], to = b.f.result(i);
  if (!rank_ok(b, to)) return false;
  const auto& p = b.module.attrs.get(b.f.attr(i, 0)).ints;
  const auto source = strides_of(b.type(from).shape);
  BoxData* d = b.data<BoxData>();
  d->size = b.storage(to);
  d->shape = b.type(to).shape;
  d->dst = strides_of(d->shape);
  for (const int64_t k : p) d->src.push_back(source[static_cast<size_t>(k)]);
  return unary(b, i, eval_box, d);
}

bool compile_cat(PlanBuilder& b, InstId i) {
  const auto operands = b.f.operands(i);
  const size_t dim = static_cast<size_t>(b.module.int_attr(b.f, i, 0));
  const auto inner = [&](ValueId value) {
    size_t n = b.storage(value);
    for (size_t k = dim; k < b.type(value).shape.size(); ++k) n *= static_cast<size_t>(b.type(value).shape[k]);
    return n;
  };
  CatData* d = b.data<CatData>();
  for (size_t k = 0; k < dim; ++k) d->outer *= static_cast<size_t>(b.type(operands[0]).shape[k]);
  d->lhs = inner(operands[0]);
  d->rhs = inner(operands[1]);
  const Slot in[2] = {b.slot(operands[0]), b.slot(operands[1])};
  const Slot out = b.define(b.f.result(i));
  Step& s = b.step(i, eval_cat);
  s.in[0] = in[0];
  s.in[1] = in[1];
  s.out[0] = out;
  s.data = d;
  return true;
}

bool compile_extract(PlanBuilder& b, InstId i) {
  const ValueId whole = b.f.operands(i)[0], part = b.f.result(i);
  SliceData* d = b.data<SliceData>();
  if (!compile_slice(b, i, whole, part, 1, d)) return false;
  d->src = strides_of(b.type(whole).shape);
  d->dst = strides_of(d->shape);
  return unary(b, i, eval_extract, d);
}

bool compile_insert(PlanBuilder& b, InstId i) {
  const auto operands = b.f.operands(i);
  SliceData* d = b.data<SliceData>();
  if (!compile_slice(b, i, operands[1], operands[0], 2, d)) return false;
  d->dst = strides_of(b.type(operands[1]).shape);
  d->src = strides_of(d->shape);
  d->whole_bytes = b.bytes(operands[1]);
  const Slot in[2] = {b.slot(operands[0]), b.slot(operands[1])};
  const ValueId reuse[1] = {operands[1]};
  const bool may_reuse = operands[0] != operands[1];
  const Slot out = b.define(b.f.result(i), may_reuse ? std::span<const ValueId>(reuse) : std::span<const ValueId>());
  Step& s = b.step(i, eval_insert);
  s.in[0] = in[0];
  s.in[1] = in[1];
  s.out[0] = out;
  s.data = d;
  return true;
}

bool compile_pack(PlanBuilder& b, InstId i) {
  const ValueId from = b.f.operands(i)[0];
  PackData* d = b.data<PackData>();
  d->bits = b.element(from) == ElementType::TF32 ? 32 : info(b.element(from)).bits;
  d->elements = b.count(from);
  d->bytes = b.bytes(b.f.result(i));
  return unary(b, i, eval_pack, d);
}

bool compile_unpack(PlanBuilder& b, InstId i) {
  const ValueId to = b.f.result(i);
  PackData* d = b.data<PackData>();
  d->bits = b.element(to) == ElementType::TF32 ? 32 : info(b.element(to)).bits;
  d->elements = b.count(to);
  d->bytes = b.bytes(b.f.operands(i)[0]);
  return unary(b, i, eval_unpack, d);
}

bool compile_coordinates(PlanBuilder& b, InstId i) {
  Slot out[3];
  for (size_t k = 0; k < 3; ++k) out[k] = b.define(b.f.result(i, k));
  Step& s = b.step(i, b.f.insts[i].op == Opcode::GetNumTileBlocks ? eval_coordinates<true> : eval_coordinates<false>);
  std::copy(out, out + 3, s.out);
  s.n = b.count(b.f.result(i));
  return true;
}

bool compile_get_global(PlanBuilder& b, InstId i) {
  GlobalData* d = b.data<GlobalData>();
  const Global* g = b.module.find_global(b.module.str(b.f.attr(i, 0)));
  d->index = static_cast<size_t>(g - b.module.globals.data());
  const Slot out = b.define(b.f.result(i));
  Step& s = b.step(i, eval_get_global);
  s.out[0] = out;
  s.data = d;
  s.n = b.count(b.f.result(i));
  return true;
}

}  // namespace tile
