// Operations whose shapes have rules of their own: slices, reductions, products.
#include <algorithm>
#include <cmath>

#include "vm/random/generator.h"
#include "vm/base/numeric.h"

namespace tile::random_program {

void Generator::shape_op() {
  auto& attrs = program_.module.attrs;
  const ElementSet no_four = ElementSet{kNum.bits & ~set_of(ElementType::F4E2M1FN).bits};
  switch (rng_.below(8)) {
    case 0: {
      const ElementType e = random_element(kInt);
      const int64_t most = e == ElementType::I1 ? 2 : 6;
      const Shape shape{int64_t{1} << rng_.below(static_cast<uint64_t>(most))};
      keep({emit1(Opcode::Iota, {}, {}, {tile(e, shape)}), e, shape, static_cast<double>(shape[0] - 1)});
      return;
    }
    case 1: {
      const ElementType e = random_element(no_four);
      keep(random_constant(e, random_shape()));
      return;
    }
    case 2: {
      const Val v = any(kNum | set_of(ElementType::I4), 2, 3);
      std::vector<int64_t> order(v.shape.size());
      for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
      for (size_t d = order.size(); d-- > 1;) std::swap(order[d], order[rng_.below(d + 1)]);
      Shape shape;
      for (const int64_t d : order) shape.push_back(v.shape[static_cast<size_t>(d)]);
      keep({emit1(Opcode::Permute, {{v.id}}, {attrs.ints(AttrTag::I32Array, order)}, {tile(v.e, shape)}), v.e, shape,
            v.bound});
      return;
    }
    case 3: {
      const Val a = any(no_four, 1, 3);
      if (count_of(a.shape) > 1024) return;
      const Val b = get(a.e, a.shape);
      const size_t d = rng_.below(a.shape.size());
      Shape shape = a.shape;
      shape[d] *= 2;
      const double bound = a.bound >= 0 && b.bound >= 0 ? std::max(a.bound, b.bound) : kUnknown;
      keep({emit1(Opcode::Cat, {{a.id}, {b.id}}, {attrs.integer(types().element(ElementType::I64), d)},
                  {tile(a.e, shape)}),
            a.e, shape, bound});
      return;
    }
    case 4:
    case 5: {
      const Val big = any(no_four, 0, 3);
      Shape part = big.shape;
      Ids indices;
      for (int64_t& x : part) {
        const int64_t slices = int64_t{1} << rng_.below(4);
        const int64_t n = x >= slices ? slices : 1;
        x /= n;
        const int64_t at = rng_.below(static_cast<uint64_t>(n));
        indices.push_back(rng_.chance(50) ? scalar(at).id
                                          : masked(rng_.chance(50) ? block_ : get(ElementType::I32, {}), n - 1).id);
      }
      if (rng_.chance(60)) {
        keep({emit1(Opcode::Extract, {{big.id}, indices}, {}, {tile(big.e, part)}), big.e, part, big.bound});
      } else {
        const Val source = get(big.e, part);
        const double bound = big.bound >= 0 && source.bound >= 0 ? std::max(big.bound, source.bound) : kUnknown;
        keep({emit1(Opcode::Insert, {{source.id}, {big.id}, indices}, {}, {type(big)}), big.e, big.shape, bound});
      }
      return;
    }
    case 6: {
      const Val v = any(ElementSet{(kNum.bits | set_of(ElementType::I4).bits) & ~set_of(ElementType::I8).bits}, 1, 1);
      const int64_t bits = (v.e == ElementType::TF32 ? 32 : info(v.e).bits) * v.shape[0];
      if (options_.exact && info(v.e).is_float && v.bound < 0) return;  // the bits of a NaN are open
      if (options_.exact && v.e == ElementType::I1) return;             // the GPU part does not take these
      if (bits % 8 != 0 || (v.e == ElementType::TF32 ? 32 : info(v.e).bits) == 8) return;
      const Shape shape{bits / 8};
      keep({emit1(Opcode::Pack, {{v.id}}, {}, {tile(ElementType::I8, shape)}), ElementType::I8, shape, kUnknown});
      return;
    }
    default: {
      // tf32 is left out: bytes with other low bits than zero are no tf32.
      const ElementType e = random_element(
          ElementSet{(kNum.bits | set_of(ElementType::I4).bits) & ~set_of(ElementType::I8, ElementType::TF32).bits});
      if (info(e).bits == 8 || (options_.exact && e == ElementType::I1)) return;
      const Shape from{int64_t{8} << rng_.below(4)}, to{from[0] * 8 / info(e).bits};
      const Val v = get(ElementType::I8, from);
      keep({emit1(Opcode::Unpack, {{v.id}}, {}, {tile(e, to)}), e, to, kUnknown});
      return;
    }
  }
}

Val Generator::no_negative_zero(const Val& v) {
  Val out = binary(Opcode::AddF, v, constant(v.e, v.shape, {0}), {0, 0});
  out.bound = v.bound;
  return out;
}

void Generator::combine(bool scan) {
  auto& attrs = program_.module.attrs;
  struct Body {
    Opcode op;
    Ids attrs;
    double identity;
    bool all_ones;
  };
  static const std::vector<Body> kIntBodies = {
      {Opcode::AddI, {0}, 0, false}, {Opcode::MulI, {0}, 1, false}, {Opcode::AndI, {}, 0, true},
      {Opcode::OrI, {}, 0, false},   {Opcode::XOrI, {}, 0, false},  {Opcode::MaxI, {0}, 0, false},
      {Opcode::MinI, {0}, 0, true},  {Opcode::MaxI, {1}, 0, false}, {Opcode::MinI, {1}, 0, false}};
  static const std::vector<Body> kFloatBodies = {{Opcode::AddF, {0, 0}, 0, false},
                                                 {Opcode::MaxF, {1, 0}, -HUGE_VAL, false},
                                                 {Opcode::MinF, {1, 0}, HUGE_VAL, false},
                                                 {Opcode::MaxF, {0, 0}, -HUGE_VAL, false}};
  Shape shape = random_shape();
  if (shape.empty()) shape.push_back(int64_t{1} << rng_.below(9));
  const uint32_t dim = rng_.below(shape.size());
  Shape out_shape = shape;
  if (!scan) out_shape.erase(out_shape.begin() + dim);
  const size_t n = 1 + rng_.chance(20) + rng_.chance(10);
  const bool arg = n == 2 && rng_.chance(60);  // the largest value and where it stands
  std::vector<Body> bodies;
  std::vector<Val> operands;
  Ids ids, args, out_types;
  std::vector<AttrId> identities;
  for (size_t k = 0; k < n; ++k) {
    const bool floats = rng_.chance(40) && !(arg && k == 1);
    const Body body = floats ? rng_.of(kFloatBodies) : rng_.of(kIntBodies);
    ElementType e = random_element(floats ? kBaseFloat : kInt);
    if (arg && k == 1) e = ElementType::I32;
    if (arg && !floats && k == 0) e = ElementType::I64;
    const bool sum = body.op == Opcode::AddF;
    Val v = arg && k == 1 ? reshape(positions(shape), shape) : get(e, shape, sum || (arg && floats));
    if (sum) {
      const double most = v.bound * static_cast<double>(shape[dim]);
      if (most > exact_limit(e)) v = spread(constant(e, {}, {1}), shape);
      v = no_negative_zero(v);
      if (most > exact_limit(e) && static_cast<double>(shape[dim]) > exact_limit(e)) return;
    }
    bodies.push_back(body);
    operands.push_back(v);
    ids.push_back(v.id);
    args.push_back(tile(e, {}));
    args.push_back(tile(e, {}));
    out_types.push_back(tile(e, out_shape));
    const unsigned width = info(e).bits;
    const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    uint64_t bits =
        info(e).is_float ? encode(e, body.identity) : static_cast<uint64_t>(static_cast<int64_t>(body.identity));
    if (body.all_ones) bits = mask;
    if (body.op == Opcode::MaxI && body.attrs[0] == 1) bits = uint64_t{1} << (width - 1);
    if (body.op == Opcode::MinI && body.attrs[0] == 1) bits = (uint64_t{1} << (width - 1)) - 1;
    if (arg) bits = k == 1 ? 0x7FFFFFFF : info(e).is_float ? encode(e, -HUGE_VAL) : uint64_t{1} << (width - 1);
    identities.push_back(e == ElementType::I1 ? attrs.boolean(bits & 1)
                         : info(e).is_float   ? attrs.floating(types().element(e), bits)
                                              : attrs.integer(types().element(e), bits & mask));
  }
  const AttrId dim_attr = attrs.integer(types().element(ElementType::I32), dim);
  Ids words{dim_attr};
  if (scan) words.push_back(rng_.chance(30));
  words.push_back(attrs.array(identities));
  const InstId i = emit(scan ? Opcode::Scan : Opcode::Reduce, {ids}, words, out_types);
  const ValueId first = b_->next_value();
  b_->begin_region(args);
  Ids yielded;
  if (arg) {
    // (value, place): the larger value, of equal ones the lower place. Associative, and one order of all pairs.
    const bool floats = info(operands[0].e).is_float;
    const TypeId i1 = tile(ElementType::I1, {});
    const auto compare = [&](uint32_t predicate) {
      return floats ? emit1(Opcode::CmpF, {{first}, {first + 1}}, {predicate, 1}, {i1})
                    : emit1(Opcode::CmpI, {{first}, {first + 1}}, {predicate, 1}, {i1});
    };
    const ValueId larger = compare(4), equal = compare(0);
    const ValueId lower = emit1(Opcode::CmpI, {{first + 2}, {first + 3}}, {2, 1}, {i1});
    const ValueId tie = emit1(Opcode::AndI, {{equal}, {lower}}, {}, {i1});
    const ValueId left = emit1(Opcode::OrI, {{larger}, {tie}}, {}, {i1});
    for (size_t k = 0; k < 2; ++k)
      yielded.push_back(emit1(
          Opcode::Select, {{left}, {first + static_cast<ValueId>(2 * k)}, {first + static_cast<ValueId>(2 * k + 1)}},
          {}, {args[2 * k]}));
  } else {
    for (size_t k = 0; k < n; ++k) {
      const auto left = static_cast<ValueId>(first + 2 * k);
      const bool swap = rng_.chance(20);
      yielded.push_back(
          emit1(bodies[k].op, {{swap ? left + 1 : left}, {swap ? left : left + 1}}, bodies[k].attrs, {args[2 * k]}));
    }
  }
  emit(Opcode::Yield, {yielded}, {}, {});
  b_->end_region();
  b_->end_op();
  for (size_t k = 0; k < n; ++k) keep({f().result(i, k), operands[k].e, out_shape, kUnknown});
}

void Generator::product() {
  const bool batched = rng_.chance(25), ints = rng_.chance(30);
  const auto extent = [&](unsigned most) {
    return int64_t{1} << (rng_.chance(20) ? rng_.below(3) : 3 + rng_.below(most));
  };
  const int64_t m = extent(3), n = extent(3), k = extent(3);
  const Shape batch = batched ? Shape{int64_t{1} << rng_.below(2)} : Shape{};
  const auto shape = [&](int64_t rows, int64_t columns) {
    Shape s = batch;
    s.push_back(rows);
    s.push_back(columns);
    return s;
  };
  const OpDef& row = op_def(ints ? Opcode::MmaI : Opcode::MmaF);
  for (int attempt = 0; attempt < 20; ++attempt) {
    const ElementType side = random_element(row.operands[0].elements), acc = random_element(row.operands[2].elements);
    if (!ints) {
      // The pairs that the validator takes: an accumulator at least as wide, f64 only with itself.
      const bool f16_acc = set_of(ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F16).has(side);
      if ((side == ElementType::F64) != (acc == ElementType::F64) || (acc == ElementType::F16 && !f16_acc)) continue;
    }
    Val a = get(side, shape(m, k), !ints), b = get(side, shape(k, n), !ints), c = get(acc, shape(m, n), !ints);
    double bound = kUnknown;
    if (!ints) {
      bound = a.bound * b.bound * static_cast<double>(k) + c.bound;
      if (bound > exact_limit(acc)) return;
      c = no_negative_zero(c);
    }
    const Ids attrs = ints ? Ids{rng_.below(2), rng_.below(2)} : Ids{rng_.chance(20)};
    keep({emit1(ints ? Opcode::MmaI : Opcode::MmaF, {{a.id}, {b.id}, {c.id}}, attrs, {tile(acc, c.shape)}), acc,
          c.shape, bound});
    return;
  }
}

// A product over tiles of two arrays: the loop that the GPU part feeds from stages in shared memory.
void Generator::product_loop() {
  static const std::vector<std::pair<ElementType, ElementType>> kTypes = {
      {ElementType::F16, ElementType::F32},      {ElementType::F16, ElementType::F16},
      {ElementType::BF16, ElementType::F32},     {ElementType::F32, ElementType::F32},
      {ElementType::TF32, ElementType::F32},     {ElementType::I8, ElementType::I32},
      {ElementType::F8E4M3FN, ElementType::F32}, {ElementType::F8E5M2, ElementType::F32},
      {ElementType::F64, ElementType::F64}};
  const std::pair<ElementType, ElementType> chosen = rng_.of(kTypes);
  const ElementType side = chosen.first, acc = chosen.second;
  const int64_t m = int64_t{8} << rng_.below(5), n = int64_t{8} << rng_.below(5), k = int64_t{8} << rng_.below(4),
                trips = rng_.below(6);
  const bool ragged = rng_.chance(30), dynamic = rng_.chance(40), flat = rng_.chance(20);
  // The last tile stays in part inside the array.
  const auto cut = [&](int64_t x, int64_t tile_extent) {
    return ragged && rng_.chance(60) ? x - rng_.below(static_cast<uint64_t>(tile_extent)) : x;
  };
  // The second array lies as k x n, or as n x k and is read through a dim_map or permuted.
  const unsigned form = rng_.below(3);
  const int64_t all_k = std::max<int64_t>(1, cut(k * std::max<int64_t>(trips, 1), k));
  const auto generator = [&] { return "randint(" + std::to_string(1 + rng_.below(1000)) + ",-3,4)"; };
  const auto both = [&](int64_t rows, int64_t columns, bool swap) {
    return swap ? Shape{columns, rows} : Shape{rows, columns};
  };
  const int64_t rows = m * static_cast<int64_t>(blocks());
  const ArrayParam a = array(side, {cut(rows, m), all_k}, generator(), 3, rng_.chance(30), dynamic);
  const ArrayParam b = array(side, both(all_k, cut(n, n), form != 0), generator(), 3, rng_.chance(30), dynamic);
  const uint32_t padding = ragged || rng_.chance(50) ? 0 : kNone;
  const ValueId va = partition_view(a, {m, k}, padding, {0, 1});
  const ValueId vb = form == 2 ? partition_view(b, {n, k}, padding, {0, 1})
                               : partition_view(b, {k, n}, padding,
                                                form == 1 ? std::vector<int32_t>{1, 0} : std::vector<int32_t>{0, 1});
  const Val zero = scalar(0), one = scalar(1), upper = scalar(trips);
  const Val start = rng_.chance(50) ? constant(acc, {m, n}, {0}) : spread(get(acc, {}, true), {m, n});
  const Val c = info(acc).is_float ? no_negative_zero(start) : start;
  const bool write_inside = writes_ && flat;
  Ids init{c.id}, types_of{type(c)}, args{tile(ElementType::I32, {}), type(c)};
  if (write_inside) {
    init.push_back(token_);
    types_of.push_back(types().token());
    args.push_back(types().token());
  }
  const InstId loop = emit(Opcode::For, {{zero.id}, {upper.id}, {one.id}, init}, {0}, types_of);
  const size_t mark = vals_.size();
  const bool writes = writes_;
  const ValueId outer_token = token_, iv = b_->next_value();
  b_->begin_region(args);
  writes_ = false;
  ++depth_;
  const auto load = [&](ValueId view, const Ids& index, const Shape& shape) {
    return Val{
        emit1(Opcode::LoadViewTko, {{view}, index, {}}, {0, kNone, kNone, kNone}, {tile(side, shape), types().token()}),
        side, shape, 3};
  };
  Val x = load(va, {block_.id, iv}, {m, k});
  Val y = form == 2 ? load(vb, {zero.id, iv}, {n, k}) : load(vb, {iv, zero.id}, {k, n});
  if (form == 2)
    y = {
        emit1(Opcode::Permute, {{y.id}}, {program_.module.attrs.ints(AttrTag::I32Array, {1, 0})}, {tile(side, {k, n})}),
        side,
        {k, n},
        3};
  if (kBaseFloat.has(side) && rng_.chance(20))
    x = {emit1(Opcode::MulF, {{x.id}, {constant(side, {m, k}, {2}).id}}, {0, 0}, {type(x)}), side, {m, k}, 6};
  const Ids attrs = side == ElementType::I8 ? Ids{rng_.below(2), rng_.below(2)} : Ids{0};
  const ValueId sum =
      emit1(side == ElementType::I8 ? Opcode::MmaI : Opcode::MmaF, {{x.id}, {y.id}, {iv + 1}}, attrs, {type(c)});
  Ids next{sum};
  if (write_inside) {
    token_ = iv + 2;
    writes_ = true;
    store_output({sum, acc, c.shape, kUnknown});
    next.push_back(token_);
  }
  emit(Opcode::Continue, {next}, {}, {});
  --depth_;
  b_->end_region();
  b_->end_op();
  vals_.resize(mark);
  writes_ = writes;
  token_ = write_inside ? f().result(loop, 1) : outer_token;
  Val out{f().result(loop, 0), acc, c.shape, 6.0 * 3 * static_cast<double>(k * trips) + c.bound};
  if (out.bound > exact_limit(acc)) out.bound = kUnknown;
  keep(out);
  store_output(out);
}

void Generator::scaled_product() {
  const bool four = rng_.chance(50);
  const ElementType side =
      four ? ElementType::F4E2M1FN : random_element(set_of(ElementType::F8E4M3FN, ElementType::F8E5M2));
  const ElementType scale = !four || rng_.chance(50)
                                ? ElementType::F8E8M0FNU
                                : random_element(set_of(ElementType::F8E4M3FN, ElementType::NV8E5M3FNU));
  const int64_t block = scale == ElementType::F8E4M3FN || (four && rng_.chance(50)) ? 16 : 32;
  const int64_t m = int64_t{8} << rng_.below(2), n = int64_t{8} << rng_.below(2), k = block << rng_.below(2);
  const Val a = get(side, {m, k}, true), b = get(side, {k, n}, true), c = get(ElementType::F32, {m, n}, true);
  const Val p = get(scale, {m, k / block}, true), q = get(scale, {k / block, n}, true);
  const double bound = a.bound * b.bound * p.bound * q.bound * static_cast<double>(k) + c.bound;
  if (bound > exact_limit(ElementType::F32)) return;
  keep({emit1(Opcode::MmaFScaled, {{a.id}, {b.id}, {no_negative_zero(c).id}, {p.id}, {q.id}}, {},
              {tile(ElementType::F32, {m, n})}),
        ElementType::F32,
        {m, n},
        bound});
}

}  // namespace tile::random_program
