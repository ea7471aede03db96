// Memory that a program writes and reads again, atomics, globals, and questions about views.
#include <algorithm>

#include "vm/random/generator.h"
#include "vm/base/numeric.h"

namespace tile::random_program {
namespace {

// Encodings of vm/ops/enums.cpp.
constexpr uint32_t kRelaxed = 1, kAcqRel = 4, kDevice = 1, kAddF = 4, kXchg = 9;

constexpr ElementSet kWords = set_of(ElementType::I32, ElementType::I64);
constexpr ElementSet kInMemory = ElementSet{kNum.bits & ~set_of(ElementType::F4E2M1FN).bits};

}  // namespace

void Generator::store_memory() {
  if (!writes_ || outputs_ >= 12) return;
  const Val v = any(kInMemory, 0, 3);
  ++outputs_;
  const int64_t n = count_of(v.shape);
  const ArrayParam a = array(v.e, {static_cast<int64_t>(blocks()) * n}, "zeros", kUnknown, false, rng_.chance(30));
  const Val first = binary(Opcode::MulI, block_, scalar(n), {0});
  const TypeId token = types().token();
  const auto write_pointers = [&] {
    const Val p = pointers(a, binary(Opcode::AddI, positions(v.shape), spread(first, v.shape), {0}));
    token_ = emit1(Opcode::StorePtrTko, {{p.id}, {v.id}, {}, {token_}}, {0, kNone, kNone}, {token});
  };
  const auto flat_view = [&](int64_t extent) { return partition_view(a, {extent}, kNone, {0}); };
  if (rng_.chance(50)) {
    write_pointers();
  } else {
    const Val flat = reshape(v, {n});
    token_ = emit1(Opcode::StoreViewTko, {{flat.id}, {flat_view(n)}, {block_.id}, {token_}}, {0, kNone, kNone, kNone},
                   {token});
  }
  Val out{kNone, v.e, v.shape, v.bound};
  if (rng_.chance(50)) {
    // In another order: what the threads of a block hand each other through memory.
    Val order = positions(v.shape);
    const auto all = constant(ElementType::I32, v.shape, {static_cast<double>(n - 1)});
    order = rng_.chance(50)
                ? binary(Opcode::SubI, all, order, {0})
                : masked(binary(Opcode::MulI, order,
                                constant(ElementType::I32, v.shape, {static_cast<double>(2 * rng_.below(8) + 1)}), {0}),
                         n - 1);
    const Val p = pointers(a, binary(Opcode::AddI, order, spread(first, v.shape), {0}));
    const InstId load = emit(Opcode::LoadPtrTko, {{p.id}, {}, {}, {token_}}, {0, kNone, kNone}, {type(out), token});
    out.id = f().result(load, 0);
    token_ = f().result(load, 1);
  } else {
    const int64_t part = int64_t{1} << rng_.below(4);
    const int64_t extent = n >= part && v.e != ElementType::F4E2M1FN ? n / part : n;
    out.shape = {extent};
    const Val index = binary(Opcode::AddI, binary(Opcode::MulI, block_, scalar(n / extent), {0}),
                             scalar(rng_.below(static_cast<uint64_t>(n / extent))), {0});
    const InstId load = emit(Opcode::LoadViewTko, {{flat_view(extent)}, {index.id}, {token_}}, {0, kNone, kNone, kNone},
                             {type(out), token});
    out.id = f().result(load, 0);
    token_ = f().result(load, 1);
  }
  keep(out);
}

void Generator::local_memory() {
  if (!writes_ || !options_.local_memory) return;
  const Val v = any(kInMemory, 0, 2);
  const int64_t n = count_of(v.shape);
  ArrayParam a{kNone, v.e, {n}, {1}, kUnknown, {}, {}};
  auto& attrs = program_.module.attrs;
  const TypeId i64 = types().element(ElementType::I64);
  const TypeId pointer = types().tile(types().ptr(types().element(v.e)));
  a.base = emit1(Opcode::Alloca, {},
                 {rng_.below(2), attrs.integer(i64, static_cast<uint64_t>(n)), attrs.integer(i64, 16)}, {pointer});
  const TypeId token = types().token();
  token_ = emit1(Opcode::StorePtrTko, {{pointers(a, positions(v.shape)).id}, {v.id}, {}, {token_}}, {0, kNone, kNone},
                 {token});
  const Val back =
      binary(Opcode::SubI, constant(ElementType::I32, v.shape, {static_cast<double>(n - 1)}), positions(v.shape), {0});
  const InstId load =
      emit(Opcode::LoadPtrTko, {{pointers(a, back).id}, {}, {}, {token_}}, {0, kNone, kNone}, {type(v), token});
  token_ = f().result(load, 1);
  keep({f().result(load, 0), v.e, v.shape, v.bound});
}

// All blocks change the same elements, in one way that has no order: results of the operation are not looked at.
void Generator::atomic_shared() {
  if (!writes_ || outputs_ >= 12) return;
  ++outputs_;
  const bool floats = rng_.chance(25);
  const ElementType e = floats ? random_element(set_of(ElementType::F32, ElementType::F64)) : random_element(kWords);
  const Val v = get(e, random_shape(2), floats);
  const int64_t extent = int64_t{1} << rng_.below(6);
  const ArrayParam a =
      array(e, {extent}, "randint(" + std::to_string(1 + rng_.below(1000)) + ",-4,5)", 4, false, false);
  const Val spread_out = binary(Opcode::AddI, positions(v.shape), spread(block_, v.shape), {0});
  const Val p = pointers(a, masked(spread_out, extent - 1));
  const Ids mask = rng_.chance(40) ? Ids{get(ElementType::I1, v.shape).id} : Ids{};
  constexpr uint32_t kModes[] = {0, 1, 2, 3, 5, 6, 7, 8};
  const uint32_t mode = floats ? kAddF : kModes[rng_.below(std::size(kModes))];
  token_ = f().result(emit(Opcode::AtomicRMWTko, {{p.id}, {v.id}, mask, {token_}},
                           {kRelaxed + rng_.below(kAcqRel), kDevice + rng_.below(2), mode}, {type(v), types().token()}),
                      1);
}

// Each block has elements of its own and each element is changed once: the old values are results.
void Generator::atomic_private() {
  if (!writes_ || outputs_ >= 12) return;
  ++outputs_;
  const bool swap = rng_.chance(35);
  const ElementType e =
      swap ? random_element(kWords | set_of(ElementType::F32, ElementType::F64)) : random_element(kWords);
  const Val v = get(e, random_shape(2));
  const int64_t n = count_of(v.shape);
  const ArrayParam a = array(e, {static_cast<int64_t>(blocks()) * n},
                             "randint(" + std::to_string(1 + rng_.below(1000)) + ",-2,3)", kUnknown, false, false);
  const Val first = spread(binary(Opcode::MulI, block_, scalar(n), {0}), v.shape);
  const Val p = pointers(a, binary(Opcode::AddI, positions(v.shape), first, {0}));
  const uint32_t order = kRelaxed + rng_.below(kAcqRel), scope = rng_.below(3);
  InstId i;
  if (swap && rng_.chance(60)) {
    const Val expected = get(e, v.shape, info(e).is_float);  // compared as bits, which a NaN leaves open
    const Ids mask = rng_.chance(40) ? Ids{get(ElementType::I1, v.shape).id} : Ids{};
    i = emit(Opcode::AtomicCASTko, {{p.id}, {expected.id}, {v.id}, mask, {token_}}, {order, scope},
             {type(v), types().token()});
  } else {
    const uint32_t modes[] = {0, 1, 2, 3, 5, 6, 7, 8, kXchg};
    const uint32_t mode = swap ? kXchg : modes[rng_.below(std::size(modes))];
    i = emit(Opcode::AtomicRMWTko, {{p.id}, {v.id}, {}, {token_}}, {order, scope, mode}, {type(v), types().token()});
  }
  token_ = f().result(i, 1);
  keep({f().result(i, 0), e, v.shape, kUnknown});
}

void Generator::atomic_view() {
  if (!writes_ || outputs_ >= 12) return;
  ++outputs_;
  const bool floats = rng_.chance(25);
  const ElementType e = floats ? random_element(set_of(ElementType::F32, ElementType::F64)) : random_element(kWords);
  Shape shape = random_shape(3);
  if (shape.empty()) shape = {4};
  const Val v = get(e, shape, floats);
  Shape extents = shape;
  for (int64_t& x : extents)
    if (rng_.chance(30)) x -= rng_.below(static_cast<uint64_t>(x));
  const ArrayParam a = array(e, extents, "randint(" + std::to_string(1 + rng_.below(1000)) + ",-4,5)", 4,
                             rng_.chance(30), rng_.chance(30));
  std::vector<int32_t> map(shape.size());
  for (size_t d = 0; d < map.size(); ++d) map[d] = static_cast<int32_t>(d);
  const ValueId view = partition_view(a, shape, kNone, map);
  constexpr uint32_t kModes[] = {0, 1, 2, 3, 5, 6, 7, 8};
  const uint32_t mode = floats ? kAddF : kModes[rng_.below(std::size(kModes))];
  const Ids index(shape.size(), scalar(0).id);
  token_ = emit1(Opcode::AtomicRedViewTko, {{view}, index, {v.id}, {token_}}, {kRelaxed, kDevice, mode, kNone},
                 {types().token()});
}

void Generator::global_constant() {
  Module& m = program_.module;
  if (m.globals.size() >= 3) return;
  const ElementType e = random_element(kInt | kBaseFloat);
  const int64_t n = int64_t{1} << (1 + rng_.below(5));
  const TypeId t = tile(e, {n});
  std::string bytes;
  for (int64_t k = 0; k < n; ++k) {
    const double x = static_cast<double>(rng_.below(9)) - 4;
    const uint64_t bits = e == ElementType::I1 ? rng_.below(2)
                          : info(e).is_int     ? static_cast<uint64_t>(static_cast<int64_t>(x))
                                               : encode(e, x);
    for (unsigned b = 0; b < info(e).storage; ++b) bytes.push_back(static_cast<char>(bits >> (8 * b)));
  }
  Global g;
  g.name = m.strings.add("g" + std::to_string(m.globals.size()));
  g.value = dense(t, bytes);
  g.alignment = 16;
  g.constant = rng_.chance(50);
  m.order.insert(m.order.begin() + static_cast<std::ptrdiff_t>(m.globals.size()),
                 Module::kGlobalBit | static_cast<uint32_t>(m.globals.size()));
  m.globals.push_back(g);
  ArrayParam a{kNone, e, {n}, {1}, kUnknown, {}, {}};
  a.base = emit1(Opcode::GetGlobal, {}, {g.name}, {types().tile(types().ptr(types().element(e)))});
  const Shape shape = random_shape(2);
  const Val p = pointers(a, masked(binary(Opcode::AddI, positions(shape), spread(block_, shape), {0}), n - 1));
  keep({emit1(Opcode::LoadPtrTko, {{p.id}, {}, {}, {}}, {0, kNone, kNone}, {tile(e, shape), types().token()}), e, shape,
        4});
}

void Generator::queries() {
  const ElementType e = random_element(set_of(ElementType::I32, ElementType::I64));
  const TypeId t = tile(e, {});
  InstId i;
  size_t n = 3;
  if (rng_.chance(25)) {
    const TypeId i32 = tile(ElementType::I32, {});
    i = emit(rng_.chance(50) ? Opcode::GetNumTileBlocks : Opcode::GetTileBlockId, {}, {}, {i32, i32, i32});
    for (size_t r = 0; r < n; ++r) keep({f().result(i, r), ElementType::I32, {}, kUnknown});
    return;
  }
  n = 1 + rng_.below(3);
  Shape extents(n), parts(n);
  std::vector<int32_t> map(n);
  for (size_t d = 0; d < n; ++d) {
    extents[d] = 1 + rng_.below(20);
    parts[d] = int64_t{1} << rng_.below(4);
    map[d] = static_cast<int32_t>(d);
  }
  std::swap(map[0], map[rng_.below(n)]);
  const ArrayParam a = array(random_element(kInMemory), extents, "zeros", kUnknown, rng_.chance(50), rng_.chance(70));
  if (rng_.chance(40))
    i = emit(Opcode::GetTensorShape, {{tensor_view(a)}}, {}, Ids(n, t));
  else
    i = emit(Opcode::GetIndexSpaceShape, {{partition_view(a, parts, kNone, map)}}, {}, Ids(n, t));
  for (size_t r = 0; r < n; ++r) keep({f().result(i, r), e, {}, 20});
}

void Generator::promises() {
  auto& attrs = program_.module.attrs;
  const Val v = get(random_element(ElementSet{kInt.bits & ~set_of(ElementType::I1).bits}), random_shape(2));
  Val known = masked(v, 7);
  const unsigned form = rng_.below(4);
  if (form == 0) {
    const Val holds{
        emit1(Opcode::CmpI, {{known.id}, {constant(v.e, v.shape, {8}).id}}, {2, 1}, {tile(ElementType::I1, v.shape)}),
        ElementType::I1, v.shape, kUnknown};
    emit(Opcode::Assert, {{holds.id}}, {program_.module.strings.add("seven is the most")}, {});
    keep(holds);
    return;
  }
  Attr predicate;
  if (form == 1) {
    predicate.tag = AttrTag::Bounded;
    predicate.ints = {0, 7};
    predicate.flags = 3;
  } else if (form == 2) {
    predicate.tag = AttrTag::DivBy;
    predicate.bits = uint64_t{1} << rng_.below(3);
    known = binary(Opcode::ShLI, known, constant(v.e, v.shape, {2}), {0});
    known.bound = 28;
  } else {
    known = constant(v.e, v.shape, {3});
    predicate.tag = AttrTag::SameElements;
    predicate.ints = v.shape;
  }
  known.id = emit1(Opcode::Assume, {{known.id}}, {attrs.add(predicate)}, {type(known)});
  keep(known);
}

}  // namespace tile::random_program
