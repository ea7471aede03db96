// Values, arrays and accesses of random programs.
#include "vm/random/random_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "vm/random/generator.h"
#include "vm/base/numeric.h"

namespace tile::random_program {

int64_t count_of(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t x : shape) n *= x;
  return n;
}

double exact_limit(ElementType e) {
  switch (e) {
    case ElementType::F16:
    case ElementType::TF32:
      return 2048;
    case ElementType::BF16:
      return 256;
    case ElementType::F32:
      return 1 << 24;
    case ElementType::F64:
      return 9007199254740992.0;
    case ElementType::F8E4M3FN:
      return 16;
    case ElementType::F8E5M2:
      return 8;
    case ElementType::F4E2M1FN:
      return 4;
    default:
      return 0;
  }
}

Generator::Generator(const Options& options, size_t params)
    : options_(options), rng_(options.seed * 2 + options.exact) {
  Module& m = program_.module;
  m.name = m.strings.add("random");
  m.functions.emplace_back().name = m.strings.add("k");
  m.order.push_back(0);
  const Ids types_of_params(params, types().tile(ElementType::I32));
  b_ = std::make_unique<FunctionBuilder>(f(), types_of_params);
  const uint32_t x = 1 + rng_.below(3);
  program_.grid = {x, rng_.chance(25) ? 2u : 1u, rng_.chance(10) ? 2u : 1u};
}

void Generator::run() {
  token_ = emit1(Opcode::MakeToken, {}, {}, {types().token()});
  block_ = block_number();
  keep(block_);
  actions(options_.size);
  for (unsigned k = 0; k < 3 && !vals_.empty(); ++k)
    store_output(vals_[vals_.size() - 1 - rng_.below(std::min<size_t>(vals_.size(), 4))]);
  needed_ = used_;
  for (size_t k = used_; k < f().param_count; ++k) program_.args.push_back("i32:0");
  emit(Opcode::Return, {{}}, {}, {});
  b_->finish();
}

InstId Generator::emit(Opcode op, const Groups& groups, const Ids& attrs, const Ids& types) {
  Ids operands, segments;
  for (const Ids& g : groups) operands.insert(operands.end(), g.begin(), g.end());
  const OpDef& row = op_def(op);
  if (has_segments(row)) {
    for (const Ids& g : groups) segments.push_back(static_cast<uint32_t>(g.size()));
    segments.resize(row.operands.size());
  }
  return b_->op({.op = op, .operands = operands, .segments = segments, .attrs = attrs, .result_types = types});
}

const Val& Generator::keep(Val v) {
  vals_.push_back(std::move(v));
  return vals_.back();
}

Val Generator::constant(ElementType e, const Shape& shape, const std::vector<double>& values) {
  std::string bytes;
  double bound = 0;
  for (const double x : values) {
    uint64_t bits;
    if (e == ElementType::I1)
      bits = static_cast<uint64_t>(static_cast<int64_t>(x)) & 1;
    else if (info(e).is_int)
      bits = static_cast<uint64_t>(static_cast<int64_t>(x));
    else
      bits = encode(e, x);
    for (unsigned k = 0; k < info(e).storage; ++k) bytes.push_back(static_cast<char>(bits >> (8 * k)));
    bound = std::max(bound, x == std::floor(x) ? std::fabs(x) : std::numeric_limits<double>::infinity());
  }
  if (info(e).is_float && !(bound <= exact_limit(e))) bound = kUnknown;
  const TypeId t = tile(e, shape);
  return {emit1(Opcode::Constant, {}, {dense(t, bytes)}, {t}), e, shape, bound};
}

AttrId Generator::dense(TypeId t, std::string bytes) {
  // Equal elements are written as one, as every reader does it.
  const size_t one = info(types().element_of(t)).storage;
  if (bytes.compare(one, bytes.size() - one, bytes, 0, bytes.size() - one) == 0) bytes.resize(one);
  return program_.module.attrs.dense(program_.module.types, t, std::move(bytes));
}

Val Generator::random_constant(ElementType e, const Shape& shape) {
  const int64_t n = count_of(shape);
  std::vector<double> values(n <= 64 && rng_.chance(50) ? static_cast<size_t>(n) : 1);
  const bool narrow = info(e).bits < 8;
  const bool positive = e == ElementType::F8E8M0FNU || e == ElementType::NV8E5M3FNU;
  for (double& x : values) {
    x = positive ? 1 + rng_.below(4) : static_cast<double>(rng_.below(narrow ? 5 : 9)) - (narrow ? 2 : 4);
    if (!narrow && !positive && rng_.chance(15)) {
      x = info(e).is_int ? static_cast<double>(rng_.below(256)) - 128
                         : (static_cast<double>(rng_.below(4096)) - 2048) / 16;
      if (info(e).is_float && rng_.chance(30)) x = rng_.chance(50) ? -0.0 : rng_.chance(50) ? HUGE_VAL : -HUGE_VAL;
      if (std::isinf(x) && !float_format(e).has_inf) x = 1;
    }
  }
  return constant(e, shape, values);
}

Val Generator::binary(Opcode op, const Val& a, const Val& b, const Ids& attrs) {
  return {emit1(op, {{a.id}, {b.id}}, attrs, {type(a)}), a.e, a.shape, kUnknown};
}

Val Generator::reshape(const Val& v, const Shape& shape) {
  if (v.shape == shape) return v;
  return {emit1(Opcode::Reshape, {{v.id}}, {}, {tile(v.e, shape)}), v.e, shape, v.bound};
}

Val Generator::spread(const Val& v, const Shape& shape) {
  const Val ones = reshape(v, Shape(shape.size(), 1));
  if (ones.shape == shape) return ones;
  return {emit1(Opcode::Broadcast, {{ones.id}}, {}, {tile(v.e, shape)}), v.e, shape, v.bound};
}

Val Generator::masked(const Val& v, int64_t mask) {
  Val out = binary(Opcode::AndI, v, constant(v.e, v.shape, {static_cast<double>(mask)}));
  out.bound = static_cast<double>(mask);
  return out;
}

Val Generator::small(const Val& v) {
  return masked(v, v.e == ElementType::I1 ? 0 : 7);
}

Val Generator::block_number() {
  const TypeId t = tile(ElementType::I32, {});
  const auto of = [&](InstId i, size_t r) { return Val{f().result(i, r), ElementType::I32, {}, kUnknown}; };
  const InstId id = emit(Opcode::GetTileBlockId, {}, {}, {t, t, t});
  if (program_.grid[1] == 1 && program_.grid[2] == 1 && rng_.chance(70)) return of(id, 0);
  const InstId n = emit(Opcode::GetNumTileBlocks, {}, {}, {t, t, t});
  const Val zy = binary(Opcode::AddI, binary(Opcode::MulI, of(id, 2), of(n, 1), {0}), of(id, 1), {0});
  return binary(Opcode::AddI, binary(Opcode::MulI, zy, of(n, 0), {0}), of(id, 0), {0});
}

Shape Generator::random_shape(size_t max_rank) {
  Shape shape(rng_.below(max_rank + 1));
  int64_t room = rng_.chance(8) ? 2048 : rng_.chance(50) ? 256 : 32;
  for (int64_t& x : shape) {
    const auto most =
        static_cast<unsigned>(std::min<int>(6, static_cast<int>(std::bit_width(static_cast<uint64_t>(room))) - 1));
    x = int64_t{1} << rng_.below(shape.size() == 1 ? std::bit_width(static_cast<uint64_t>(room)) : most + 1);
    room /= x;
  }
  return shape;
}

ElementType Generator::random_element(ElementSet set) {
  for (;;) {
    const auto e = static_cast<ElementType>(rng_.below(kElementTypes));
    if (set.has(e)) return e;
  }
}

Val Generator::fresh(ElementType e, const Shape& shape, bool small_values) {
  if (e == ElementType::I4) {
    const Val wide = get(ElementType::I8, shape, small_values);
    return {emit1(Opcode::TruncI, {{wide.id}}, {0}, {tile(e, shape)}), e, shape, kUnknown};
  }
  if (e == ElementType::I32 && shape.size() == 1 && !small_values && rng_.chance(20))
    return {emit1(Opcode::Iota, {}, {}, {tile(e, shape)}), e, shape, static_cast<double>(shape[0] - 1)};
  if (inputs_ < 10 && rng_.chance(70)) return load_input(e, shape, small_values);
  if (small_values)
    return constant(e, shape,
                    {static_cast<double>(rng_.below(exact_limit(e) == 0 && info(e).is_float ? 1 : 4)) +
                     (e == ElementType::F8E8M0FNU)});
  return random_constant(e, shape);
}

Val Generator::get(ElementType e, const Shape& shape, bool small_values) {
  const auto good = [&](const Val& v) { return v.e == e && (!small_values || (v.bound >= 0 && v.bound <= kSmall)); };
  if (rng_.chance(80)) {
    std::vector<size_t> same, other;
    for (size_t k = 0; k < vals_.size(); ++k) {
      if (!good(vals_[k])) continue;
      if (vals_[k].shape == shape)
        same.push_back(k);
      else if (count_of(vals_[k].shape) == count_of(shape) || (vals_[k].shape.empty() && e != ElementType::F4E2M1FN))
        other.push_back(k);
    }
    if (!same.empty() && (other.empty() || rng_.chance(75))) return vals_[rng_.of(same)];
    if (!other.empty()) {
      const Val v = vals_[rng_.of(other)];
      return keep(v.shape.empty() && !shape.empty() ? spread(v, shape) : reshape(v, shape));
    }
  }
  return keep(fresh(e, shape, small_values));
}

Val Generator::any(ElementSet set, size_t min_rank, size_t max_rank) {
  if (rng_.chance(70)) {
    std::vector<size_t> good;
    for (size_t k = 0; k < vals_.size(); ++k)
      if (set.has(vals_[k].e) && vals_[k].shape.size() >= min_rank && vals_[k].shape.size() <= max_rank)
        good.push_back(k);
    if (!good.empty()) return vals_[rng_.of(good)];
  }
  Shape shape = random_shape(max_rank);
  while (shape.size() < min_rank) shape.push_back(2);
  const ElementType e = random_element(set);
  if (e == ElementType::F4E2M1FN && count_of(shape) == 1) {
    if (shape.empty()) shape.push_back(2);
    shape.back() = 2;
  }
  return get(e, shape);
}

// --- arrays

ValueId Generator::param(TypeId t) {
  if (used_ >= f().param_count) {
    ++used_;  // the next try has room
    return 0;
  }
  f().value_types[used_] = t;
  return static_cast<ValueId>(used_++);
}

ArrayParam Generator::array(ElementType e, const Shape& shape, const std::string& generator, double bound, bool gaps,
                            bool with_shape) {
  ArrayParam a{kNone, e, shape, Shape(shape.size(), 1), bound, {}, {}};
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    a.strides[d] = step;
    step *= shape[d];
    if (gaps && e != ElementType::F4E2M1FN) step += rng_.below(3);
  }
  a.base = param(types().tile(types().ptr(types().element(e))));
  const TypeId i32 = tile(ElementType::I32, {});
  if (with_shape) {
    for (size_t d = 0; d < shape.size(); ++d) a.extents.push_back(param(i32));
    for (size_t d = 0; d < shape.size(); ++d) a.steps.push_back(param(i32));
  }
  const auto list = [](const Shape& values) {
    std::string out;
    for (const int64_t x : values) out += (out.empty() ? "" : ",") + std::to_string(x);
    return out;
  };
  std::string text = std::string(with_shape ? "array:" : "ptr:") + std::string(info(e).name) + "[" + list(shape) + "]";
  if (gaps) text += ":strides(" + list(a.strides) + ")";
  program_.args.push_back(text + "=" + generator);
  return a;
}

std::pair<std::string, double> Generator::contents(ElementType e, bool small_values) {
  const std::string seed = std::to_string(1 + rng_.below(1000000));
  if (e == ElementType::F8E8M0FNU) return {"full(1)", 1};
  if (e == ElementType::NV8E5M3FNU) return {"randint(" + seed + ",0,5)", 4};
  if (e == ElementType::I1) return {"bits(" + seed + ")", 1};
  if (small_values || rng_.chance(50)) return {"randint(" + seed + ",-4,5)", 4};
  if (info(e).is_float && rng_.chance(60)) return {"normal(" + seed + ",0,4)", kUnknown};
  return {"bits(" + seed + ")", kUnknown};
}

Val Generator::load_input(ElementType e, const Shape& shape, bool small_values) {
  ++inputs_;
  if (shape.empty() || (e != ElementType::F4E2M1FN && rng_.chance(35))) return load_pointers(e, shape, small_values);
  return load_view(e, shape, small_values);
}

ValueId Generator::tensor_view(const ArrayParam& a) {
  Shape shape = a.shape, strides = a.strides;
  Ids extents, steps;
  for (size_t d = 0; d < a.extents.size(); ++d) {
    if (rng_.chance(70)) {
      shape[d] = kDynamic;
      extents.push_back(a.extents[d]);
    }
    if (d + 1 < shape.size() || rng_.chance(30)) {
      strides[d] = kDynamic;
      steps.push_back(a.steps[d]);
    }
  }
  const TypeId t = types().tensor_view(types().element(a.e), shape, strides);
  return emit1(Opcode::MakeTensorView, {{a.base}, extents, steps}, {}, {t});
}

ValueId Generator::partition_view(const ArrayParam& a, const Shape& tile_shape, uint32_t padding,
                                  const std::vector<int32_t>& map) {
  const ValueId view = tensor_view(a);
  Type t;
  t.kind = TypeKind::PartitionView;
  t.inner = f().type(view);
  t.shape = tile_shape;
  t.dim_map = map;
  t.padding = padding;
  return emit1(Opcode::MakePartitionView, {{view}}, {}, {types().add(t)});
}

/// Element types whose zero is a number and that every array may be ragged for.
constexpr ElementSet kPadded = kInt | kBaseFloat | set_of(ElementType::F8E5M2);

Val Generator::load_view(ElementType e, const Shape& shape, bool small_values) {
  const size_t rank = shape.size();
  const auto [generator, bound] = contents(e, small_values);
  const bool ragged = kPadded.has(e) && rng_.chance(40);
  std::vector<int32_t> map(rank);
  for (size_t d = 0; d < rank; ++d) map[d] = static_cast<int32_t>(d);
  const unsigned form = rng_.below(10);  // 0, 1: strided; 2, 3: gather; else partition
  if (form >= 4 && rng_.chance(20))
    for (size_t d = rank; d-- > 1;) std::swap(map[d], map[rng_.below(d + 1)]);
  // One or two tiles along each dimension, the last one cut.
  Shape extents(rank);
  Shape tiles(rank), steps(rank);
  for (size_t d = 0; d < rank; ++d) {
    const auto at = static_cast<size_t>(map[d]);
    tiles[d] = 1 + (rng_.chance(40) ? 1 : 0);
    steps[d] = form < 2 ? 1 + rng_.below(static_cast<uint64_t>(shape[d]) * 2) : shape[d];
    extents[at] = (tiles[d] - 1) * steps[d] + shape[d];
    if (ragged && shape[d] > 1) extents[at] -= rng_.below(static_cast<uint64_t>(shape[d]));
    if (form < 2) tiles[d] = ragged ? (extents[at] + steps[d] - 1) / steps[d] : tiles[d];
  }
  if (e == ElementType::F4E2M1FN && extents.back() % 2 != 0) ++extents.back();
  const ArrayParam a = array(e, extents, generator, bound, rng_.chance(30), rng_.chance(40));
  uint32_t padding = kNone;
  if (ragged || rng_.chance(30)) padding = 0;
  if (padding != kNone && kBaseFloat.has(e) && !small_values) padding = rng_.below(5);
  if (!kPadded.has(e)) padding = kNone;
  const double out_bound = padding == kNone || padding == 0 ? bound : kUnknown;

  Ids index;
  ValueId view;
  const TypeId out = tile(e, shape);
  const size_t sparse = rng_.below(rank);
  for (size_t d = 0; d < rank; ++d) {
    if (form >= 2 && form < 4) {
      const bool is_sparse = d == sparse;
      if (!is_sparse) {
        index.push_back(
            scalar(extents[d] == shape[d] || ragged ? 0 : rng_.below(static_cast<uint64_t>(extents[d] - shape[d]) + 1))
                .id);
        continue;
      }
      // Rows in any order and more than once: a product with an odd number, cut to a power of two inside the extent.
      const int64_t rows = int64_t{1} << (std::bit_width(static_cast<uint64_t>(extents[d])) - 1);
      const Val count{
          emit1(Opcode::Iota, {}, {}, {tile(ElementType::I32, {shape[d]})}), ElementType::I32, {shape[d]}, kUnknown};
      const Val mixed =
          binary(Opcode::MulI, count,
                 constant(ElementType::I32, count.shape, {static_cast<double>(2 * rng_.below(8) + 1)}), {0});
      index.push_back(masked(mixed, rows - 1).id);
    } else if (tiles[d] > 1 && std::has_single_bit(static_cast<uint64_t>(tiles[d])) && rng_.chance(50)) {
      index.push_back(masked(block_, tiles[d] - 1).id);
    } else {
      index.push_back(scalar(rng_.below(static_cast<uint64_t>(tiles[d]))).id);
    }
  }
  if (form >= 4) {
    view = partition_view(a, shape, padding, map);
  } else {
    const ValueId tensor = tensor_view(a);
    Type t;
    t.kind = form < 2 ? TypeKind::StridedView : TypeKind::GatherScatterView;
    t.inner = f().type(tensor);
    t.shape = shape;
    t.padding = padding;
    if (form < 2) {
      t.dim_map = map;
      t.strides = steps;
    } else {
      t.sparse_dim = static_cast<uint32_t>(sparse);
    }
    view = emit1(form < 2 ? Opcode::MakeStridedView : Opcode::MakeGatherScatterView, {{tensor}}, {}, {types().add(t)});
  }
  const Ids token = rng_.chance(30) ? Ids{token_} : Ids{};
  return {emit1(Opcode::LoadViewTko, {{view}, index, token}, {0, kNone, kNone, kNone}, {out, types().token()}), e,
          shape, out_bound};
}

Val Generator::positions(const Shape& shape) {
  const int64_t n = count_of(shape);
  const Val flat{
      emit1(Opcode::Iota, {}, {}, {tile(ElementType::I32, {n})}), ElementType::I32, {n}, static_cast<double>(n - 1)};
  return reshape(flat, shape);
}

Val Generator::pointers(const ArrayParam& a, const Val& offsets) {
  const TypeId pointer = types().ptr(types().element(a.e));
  ValueId p = a.base;
  if (!offsets.shape.empty()) {
    const Shape ones(offsets.shape.size(), 1);
    p = emit1(Opcode::Reshape, {{p}}, {}, {types().tile(pointer, ones)});
    if (ones != offsets.shape) p = emit1(Opcode::Broadcast, {{p}}, {}, {types().tile(pointer, offsets.shape)});
  }
  p = emit1(Opcode::Offset, {{p}, {offsets.id}}, {}, {types().tile(pointer, offsets.shape)});
  return {p, ElementType::Ptr, offsets.shape, kUnknown};
}

Val Generator::load_pointers(ElementType e, const Shape& shape, bool small_values) {
  const auto [generator, bound] = contents(e, small_values);
  const int64_t n = count_of(shape), extent = n * 2;
  const ArrayParam a = array(e, {extent}, generator, bound, false, false);
  Val offsets = positions(shape);
  if (rng_.chance(50)) {
    const Val times = constant(ElementType::I32, shape, {static_cast<double>(rng_.below(7))});
    offsets = binary(Opcode::AddI, binary(Opcode::MulI, offsets, times, {0}), spread(block_, shape), {0});
    offsets = masked(offsets, extent - 1);
  }
  if (rng_.chance(20)) {
    offsets.id = emit1(Opcode::ExtI, {{offsets.id}}, {1}, {tile(ElementType::I64, shape)});
    offsets.e = ElementType::I64;
  }
  const Val p = pointers(a, offsets);
  Ids mask, padding;
  if (e != ElementType::F4E2M1FN && rng_.chance(35)) {
    mask = {get(ElementType::I1, shape).id};
    padding = {small_values ? constant(e, shape, {1}).id : random_constant(e, shape).id};
  }
  const double out_bound = mask.empty() || small_values ? bound : kUnknown;
  return {emit1(Opcode::LoadPtrTko, {{p.id}, mask, padding, rng_.chance(30) ? Ids{token_} : Ids{}}, {0, kNone, kNone},
                {tile(e, shape), types().token()}),
          e, shape, out_bound};
}

// --- results

void Generator::store_output(const Val& value) {
  if (!writes_ || outputs_ >= 12) return;
  Val v = value;
  if (v.e == ElementType::I4)
    v = {emit1(Opcode::ExtI, {{v.id}}, {1}, {tile(ElementType::I8, v.shape)}), ElementType::I8, v.shape, kUnknown};
  if (v.e == ElementType::F4E2M1FN)
    v = {emit1(Opcode::FToF, {{v.id}}, {0}, {tile(ElementType::F32, v.shape)}), ElementType::F32, v.shape, kUnknown};
  if (v.shape.empty()) v = reshape(v, {1});
  ++outputs_;
  const auto n = static_cast<int64_t>(blocks());
  const TypeId token = types().token();
  if (rng_.chance(30)) {  // through pointers
    const int64_t count = count_of(v.shape);
    const ArrayParam a = array(v.e, {n * count}, "zeros", kUnknown, false, false);
    const Val first = spread(binary(Opcode::MulI, block_, scalar(count), {0}), v.shape);
    const Val p = pointers(a, binary(Opcode::AddI, positions(v.shape), first, {0}));
    const Ids mask = rng_.chance(30) ? Ids{get(ElementType::I1, v.shape).id} : Ids{};
    token_ = emit1(Opcode::StorePtrTko, {{p.id}, {v.id}, mask, {token_}}, {0, kNone, kNone}, {token});
    return;
  }
  Shape extents = v.shape;
  extents[0] *= n;
  const bool scatter = rng_.chance(15);
  for (int64_t& x : extents)
    if (x > 1 && rng_.chance(25))
      x -= rng_.below(static_cast<uint64_t>(std::min<int64_t>(x, &x == &extents[0] ? v.shape[0] : x)));
  const ArrayParam a = array(v.e, extents, "zeros", kUnknown, rng_.chance(25), rng_.chance(30));
  Ids index(v.shape.size());
  const Val zero = scalar(0);
  std::fill(index.begin(), index.end(), zero.id);
  index[0] = block_.id;
  ValueId view;
  if (scatter) {
    const ValueId tensor = tensor_view(a);
    Type t;
    t.kind = TypeKind::GatherScatterView;
    t.inner = f().type(tensor);
    t.shape = v.shape;
    view = emit1(Opcode::MakeGatherScatterView, {{tensor}}, {}, {types().add(t)});
    const Shape rows{v.shape[0]};
    Val order = positions(rows);
    order = masked(binary(Opcode::MulI, order,
                          constant(ElementType::I32, rows, {static_cast<double>(2 * rng_.below(8) + 1)}), {0}),
                   rows[0] - 1);
    index[0] = binary(Opcode::AddI, order, spread(binary(Opcode::MulI, block_, scalar(rows[0]), {0}), rows), {0}).id;
  } else {
    std::vector<int32_t> map(v.shape.size());
    for (size_t d = 0; d < map.size(); ++d) map[d] = static_cast<int32_t>(d);
    view = partition_view(a, v.shape, kNone, map);
  }
  token_ = emit1(Opcode::StoreViewTko, {{v.id}, {view}, index, {token_}}, {0, kNone, kNone, kNone}, {token});
}

}  // namespace tile::random_program
