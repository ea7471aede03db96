// The validator on modules built by hand: attributes, symbols, versions, debug scopes, and tables of modes by type.
#include "tests/unit/validate_kit.h"

using namespace tile;
using namespace tile::validate_kit;

TEST_CASE("attributes that are missing, out of range or of another kind") {
  Kit k;
  const TypeId f32 = k.tile(ElementType::F32), i32 = k.tile(ElementType::I32), m = k.tile(ElementType::I32, {2, 2});
  k.entry({f32, i32, k.ptrs(ElementType::I32)});
  const ValueId tile = k.constant(m, std::string(4, '\0'));
  k.op(Opcode::AddF, {0, 0}, {99, 0}, {f32});
  k.op(Opcode::AddF, {0, 0}, {4, 0}, {f32});
  k.op(Opcode::AddF, {0, 0}, {0, 2}, {f32});
  k.op(Opcode::DivI, {1, 1}, {kSigned, 0}, {i32});
  k.op(Opcode::MaxI, {1, 1}, {kNone}, {i32});
  k.op(Opcode::Permute, {tile}, {kNone}, {m});
  k.op(Opcode::Permute, {tile}, {k.integer(1)}, {m});
  k.op(Opcode::Permute, {tile}, {12345}, {m});
  k.op(Opcode::Assert, {k.flag()}, {54321}, {});
  k.op(Opcode::AtomicRMWTko, {2, 1}, {0, kNone, 3}, {i32, k.token()}, {1, 1, 0, 0});
  k.op(Opcode::LoadPtrTko, {2}, {0, kNone, k.integer(1)}, {i32, k.token()}, {1, 0, 0, 0});
  k.ret();
  CHECK(messages(k.check()) ==
        "addf: rounding_mode is ?, expected nearest_even, zero, negative_inf or positive_inf\n"
        "addf: rounding_mode is approx, expected nearest_even, zero, negative_inf or positive_inf\n"
        "addf: flush_to_zero is 2, expected 0 or 1\n"
        "divi: rounding is nearest_even, expected zero, negative_inf or positive_inf\n"
        "maxi: signedness is missing\n"
        "permute: permutation is missing\n"
        "permute: permutation is an attribute of another kind\n"
        "permute: permutation is missing\n"
        "assert: message is missing\n"
        "atomic_rmw_tko: memory_ordering_semantics is weak, expected relaxed, acquire, release or acq_rel\n"
        "atomic_rmw_tko: memory_scope is missing\n"
        "optimization_hints: found another attribute, expected a dictionary for each target");
}

TEST_CASE("constants have the type of their result, and all elements or one") {
  Kit k;
  const TypeId t = k.tile(ElementType::I16, {4});
  k.entry();
  k.constant(t, std::string(8, 'x'));
  k.constant(t, std::string(2, 'x'));
  k.constant(t, std::string(4, 'x'));
  k.constant(t, "");
  k.op(Opcode::Constant, {}, {k.m.attrs.dense(k.m.types, k.tile(ElementType::I32, {4}), std::string(4, '\0'))}, {t});
  k.ret();
  CHECK(messages(k.check()) ==
        "constant: value has 2 elements, expected 4 or 1\n"
        "constant: value has 0 elements, expected 4 or 1\n"
        "constant: value has type tile<4xi32>, expected tile<4xi16> (the type of result)");
}

TEST_CASE("entries, globals and calls of them in a body") {
  Kit k;
  k.entry();
  k.op(Opcode::Global, {}, {k.m.strings.add("g"), k.m.attrs.dense(k.m.types, k.tile(ElementType::I8), "x"), k.integer(0), 0, 0},
       {});
  k.ret();
  CHECK(messages(k.check()) == "global: belongs directly into a module, not into the body of an entry");
}

TEST_CASE("entries and globals share one table of names, and the later one in the text is wrong") {
  Kit k;
  k.entry({}, "x");
  k.ret();
  k.m.globals.push_back({.name = k.m.strings.add("x"), .value = k.m.attrs.dense(k.m.types, k.tile(ElementType::I8, {1}), "a")});
  CHECK(codes(k.check()) == "E0404");
  k.b.reset();
  k.m.order = {0, Module::kGlobalBit | 0};
  const Diagnostics d = k.check();
  REQUIRE(codes(d) == "E0404");
  CHECK(d.all()[0].message == "symbol @x is defined twice");
  CHECK(d.all()[0].place.function == "");
  CHECK(d.all()[0].notes[0].place.function == "x");
}

TEST_CASE("globals are tiles of rank 1 of numbers") {
  Kit k;
  k.m.version = v(13, 4);
  const auto global = [&](const char* name, TypeId type, std::string bytes) {
    k.m.globals.push_back({.name = k.m.strings.add(name), .value = k.m.attrs.dense(k.m.types, type, std::move(bytes))});
  };
  global("ok", k.tile(ElementType::I16, {2}), "abcd");
  global("splat", k.tile(ElementType::I16, {2}), "ab");
  global("scalar", k.tile(ElementType::I16), "ab");
  global("matrix", k.tile(ElementType::I16, {2, 2}), "ab");
  global("short", k.tile(ElementType::I16, {4}), "abcd");
  global("i4", k.tile(ElementType::I4, {2}), "a");
  global("dim", k.tile(ElementType::I8, {3}), "a");
  k.m.globals.push_back({.name = k.m.strings.add("nothing")});
  CHECK(messages(k.check()) ==
        "global @scalar: it has type tile<i16>, expected a tile of rank 1\n"
        "global @matrix: it has type tile<2x2xi16>, expected a tile of rank 1\n"
        "global @short: its value has 2 elements, expected 4\n"
        "global @i4: it has element type i4, expected a number type other than i4\n"
        "illegal type tile<3xi8>: dimension 0 is 3, expected a power of two\n"
        "global @nothing: it has no value");
}

TEST_CASE("alignments of globals fit a signed number") {
  const auto check = [](uint64_t alignment) {
    Kit k;
    k.m.globals.push_back(
        {.name = k.m.strings.add("g"), .value = k.m.attrs.dense(k.m.types, k.tile(ElementType::I8, {1}), "a"), .alignment = alignment});
    return messages(k.check());
  };
  CHECK(check(INT64_MAX) == "");
  CHECK(check(uint64_t{1} << 63) == "global @g: its alignment is 9223372036854775808, expected at most 2^63 - 1");
}

TEST_CASE("parts of predicates that text always writes") {
  const auto check = [](Attr predicate) {
    Kit k;
    const TypeId i32 = k.tile(ElementType::I32, {8});
    k.entry();
    const ValueId x = k.op(Opcode::Iota, {}, {}, {i32});
    k.op(Opcode::Assume, {x}, {k.m.attrs.add(std::move(predicate))}, {i32});
    k.ret();
    return messages(k.check());
  };
  CHECK(check({.tag = AttrTag::DivBy, .bits = 4, .flags = 3, .ints = {2, 0}}) == "");
  CHECK(check({.tag = AttrTag::DivBy, .bits = 4, .flags = 1, .ints = {2}}) ==
        "assume: div_by has only one of every and along, expected both or neither");
  CHECK(check({.tag = AttrTag::Bounded, .flags = 3, .ints = {1}}) == "assume: bounded has 1 bound, expected 2");
}

TEST_CASE("assumptions that contradict each other or a constant are remarked upon, and legal") {
  Kit k;
  const TypeId i32 = k.tile(ElementType::I32);
  const auto assume = [&](ValueId x, Attr predicate) {
    return k.op(Opcode::Assume, {x}, {k.m.attrs.add(std::move(predicate))}, {i32});
  };
  const auto bounded = [&](ValueId x, std::vector<int64_t> bounds, uint8_t present = 3) {
    return assume(x, {.tag = AttrTag::Bounded, .flags = present, .ints = std::move(bounds)});
  };
  k.entry({i32});
  const ValueId a = bounded(0, {0, 8}), b = bounded(a, {4, 100}), c = assume(b, {.tag = AttrTag::DivBy, .bits = 4});
  bounded(c, {4, 8});
  bounded(c, {0, 4});
  bounded(c, {0, 3});
  bounded(c, {9, 0}, 1);
  bounded(k.number(-3), {-3, -3});
  bounded(k.number(-3), {0, 0}, 1);
  bounded(0, {9, 9});  // not of that chain
  k.ret();
  const Diagnostics d = k.check();
  CHECK(!d.has_errors());
  CHECK(messages(d) ==
        "assume: bounds are 0 to 3, but those of %3 are 4 to 8\n"
        "assume: bounds are 9 to 2147483647, but those of %3 are 4 to 8\n"
        "assume: bounds are 0 to 2147483647, but those of %10 are -3 to -3");
  CHECK(d.all()[0].notes.size() == 1);
}

TEST_CASE("argument attributes are one dictionary for each parameter, or none") {
  const auto check = [](size_t dictionaries, bool number) {
    Kit k;
    k.entry({k.tile(ElementType::I32), k.tile(ElementType::I32)});
    k.ret();
    const AttrId item = number ? k.integer(1) : k.m.attrs.add({.tag = AttrTag::Dictionary});
    k.f().arg_attrs = k.m.attrs.array(std::vector<AttrId>(dictionaries, item));
    return messages(k.check());
  };
  CHECK(check(0, false) == "");
  CHECK(check(2, false) == "");
  CHECK(check(1, false) == "entry @k: it has argument attributes for 1 parameter, expected 2");
  CHECK(check(2, true) == "entry @k: its argument attributes are not an array of dictionaries");
}

TEST_CASE("hints are dictionaries by target; what they hold is not judged") {
  Kit k;
  k.entry();
  k.ret();
  const AttrId inner =
      k.m.attrs.add({.tag = AttrTag::Dictionary, .entries = {{k.m.strings.add("speed"), k.integer(7)}}});
  k.f().hints = k.m.attrs.add({.tag = AttrTag::Dictionary, .entries = {{k.m.strings.add("sm_1"), inner}}});
  CHECK(codes(k.check()) == "");
  k.b.reset();
  k.f().hints = k.m.attrs.add({.tag = AttrTag::Dictionary, .entries = {{k.m.strings.add("sm_90"), k.integer(1)}}});
  CHECK(messages(k.check()) == "optimization_hints: the value of sm_90 is not a dictionary");
}

TEST_CASE("bodies of reduce are pure; 13.5 allows branches and division in them, but no loop and no assumption") {
  const auto check = [](Version version, const std::function<void(Kit&, ValueId)>& body) {
    Kit k;
    k.m.version = version;
    const TypeId i32 = k.tile(ElementType::I32);
    k.entry({i32, k.ptrs(ElementType::I32)});
    const ValueId x = k.op(Opcode::Iota, {}, {}, {k.tile(ElementType::I32, {4})});
    k.op(Opcode::Reduce, {x},
         {k.integer(0, ElementType::I32), k.m.attrs.array({k.m.attrs.integer(k.m.types.element(ElementType::I32), 0)})},
         {i32});
    k.region({i32, i32}, [&](ValueId a) {
      body(k, a);
      k.op(Opcode::Yield, {a}, {}, {});
    });
    k.b->end_op();
    k.ret();
    return codes(k.check());
  };
  const auto divi = [](Kit& k, ValueId a) { k.op(Opcode::DivI, {a, a}, {kSigned, 1}, {k.tile(ElementType::I32)}); };
  const auto load = [](Kit& k, ValueId) {
    k.op(Opcode::LoadPtrTko, {1}, {0, kNone, kNone}, {k.tile(ElementType::I32), k.token()}, {1, 0, 0, 0});
  };
  const auto branch = [&](Kit& k, ValueId a) {
    k.op(Opcode::If, {k.flag()}, {}, {});
    k.region({}, [&](ValueId) {
      divi(k, a);
      k.op(Opcode::Yield, {}, {}, {});
    });
    k.b->absent_region();
    k.b->end_op();
  };
  const auto branch_load = [&](Kit& k, ValueId) {
    k.op(Opcode::If, {k.flag()}, {}, {});
    k.region({}, [&](ValueId a) {
      load(k, a);
      k.op(Opcode::Yield, {}, {}, {});
    });
    k.b->absent_region();
    k.b->end_op();
  };
  CHECK(check(v(13, 4), [](Kit& k, ValueId a) { k.op(Opcode::AddI, {a, 0}, {0}, {k.tile(ElementType::I32)}); }) == "");
  CHECK(check(v(13, 4), divi) == "E0702");
  CHECK(check(v(13, 4), load) == "E0702");
  CHECK(check(v(13, 4), branch) == "E0702");  // what the branch holds would only follow
  CHECK(check(v(13, 5), divi) == "");
  CHECK(check(v(13, 5), branch) == "");
  CHECK(check(v(13, 5), load) == "E0702");
  CHECK(check(v(13, 5), [](Kit& k, ValueId a) {
          k.op(Opcode::Assume, {a}, {k.m.attrs.add({.tag = AttrTag::DivBy, .bits = 4})}, {k.tile(ElementType::I32)});
        }) == "E0702");
  CHECK(check(v(13, 5), [](Kit& k, ValueId) {
          k.op(Opcode::Loop, {}, {}, {});
          k.region({}, [&](ValueId) { k.op(Opcode::Break, {}, {}, {}); });
          k.b->end_op();
        }) == "E0702");
  CHECK(check(v(13, 5), branch_load) == "E0702");
}

TEST_CASE("other rules that depend on the version of the file") {
  const auto nearest_away = [](Version version) {
    Kit k;
    k.m.version = version;
    k.entry({k.tile(ElementType::F32)});
    k.op(Opcode::FToF, {0}, {7}, {k.tile(ElementType::TF32)});
    k.ret();
    return messages(k.check());
  };
  CHECK(nearest_away(v(13, 3)) == "ftof: rounding_mode is nearest_away, which needs version 13.4");
  CHECK(nearest_away(v(13, 4)) == "");

  const auto alloca_tf32 = [](Version version, int64_t alignment) {
    Kit k;
    k.m.version = version;
    k.entry();
    k.op(Opcode::Alloca, {}, {0, k.integer(4), k.integer(alignment)}, {k.ptrs(ElementType::TF32)});
    k.ret();
    return codes(k.check());
  };
  CHECK(alloca_tf32(v(13, 4), 1) == "E0601");
  CHECK(alloca_tf32(v(13, 4), 2) == "");
  CHECK(alloca_tf32(v(13, 5), 2) == "E0601");
  CHECK(alloca_tf32(v(13, 5), 4) == "");

  const auto f4_pointers = [](Version version) {
    Kit k;
    k.m.version = version;
    const TypeId one = k.ptrs(ElementType::F4E2M1FN), four = k.ptrs(ElementType::F4E2M1FN, {1});
    k.entry({one});
    k.op(Opcode::Reshape, {0}, {}, {four});
    k.ret();
    return messages(k.check());
  };
  CHECK(f4_pointers(v(13, 4)) == "");
  CHECK(f4_pointers(v(13, 5)) == "illegal type tile<1xptr<f4E2M1FN>>: a tile of pointers to f4E2M1FN must have rank 0");
}

TEST_CASE("a dim of reduce below zero is read with its sign") {
  Kit k;
  const TypeId i32 = k.tile(ElementType::I32);
  k.entry();
  const ValueId x = k.op(Opcode::Iota, {}, {}, {k.tile(ElementType::I32, {4})});
  k.op(Opcode::Reduce, {x}, {k.integer(-1, ElementType::I32), k.m.attrs.array({})}, {i32});
  k.region({i32, i32}, [&](ValueId a) { k.op(Opcode::Yield, {a}, {}, {}); });
  k.b->end_op();
  k.ret();
  CHECK(messages(k.check()) == "reduce: dim is -1, expected a dimension below the rank 1 of its operands");
}

TEST_CASE("views cannot be carried by loops or leave branches, and are reported once") {
  Kit k;
  const std::vector<int64_t> shape = {8}, strides = {1};
  const TypeId tv = k.m.types.tensor_view(k.m.types.element(ElementType::F32), shape, strides);
  k.entry({k.ptrs(ElementType::F32)});
  const ValueId view = k.op(Opcode::MakeTensorView, {0}, {}, {tv}, {1, 0, 0});
  const ValueId c = k.flag();
  k.op(Opcode::If, {c}, {}, {tv});
  for (int i = 0; i < 2; ++i) k.region({}, [&](ValueId) { k.op(Opcode::Yield, {view}, {}, {}); });
  k.b->end_op();
  k.op(Opcode::Loop, {view}, {}, {});
  k.region({tv}, [&](ValueId) { k.op(Opcode::Break, {}, {}, {}); });
  k.b->end_op();
  k.ret();
  CHECK(messages(k.check()) ==
        "if: result 0 has type tensor_view<8xf32, strides=[1]>, expected a tile or token\n"
        "loop: initValues[0] has type tensor_view<8xf32, strides=[1]>, expected a tile or token");
}

TEST_CASE("tokens can be carried") {
  Kit k;
  k.entry();
  const ValueId t = k.op(Opcode::MakeToken, {}, {}, {k.token()});
  k.op(Opcode::Loop, {t}, {}, {k.token()});
  k.region({k.token()}, [&](ValueId a) { k.op(Opcode::Break, {a}, {}, {}); });
  k.b->end_op();
  k.ret();
  CHECK(codes(k.check()) == "");
}

TEST_CASE("debug scopes: one report an entry") {
  Kit k;
  const auto subprogram = [&](const char* name) {
    return k.m.locs.add_scope(
        {.kind = DebugScope::Kind::Subprogram, .name = k.m.strings.add(name), .linkage_name = k.m.strings.add(name)});
  };
  const auto at = [&](ScopeId scope) { return k.m.locs.add({.kind = Loc::Kind::Scoped, .line = 1, .scope = scope}); };
  const ScopeId mine = subprogram("k"), other = subprogram("other");
  const ScopeId block = k.m.locs.add_scope({.kind = DebugScope::Kind::LexicalBlock, .scope = mine});
  const ScopeId lost = k.m.locs.add_scope({.kind = DebugScope::Kind::LexicalBlock});
  const LocId here = at(mine), inside = at(block), there = at(other);
  const LocId inlined = k.m.locs.add({.kind = Loc::Kind::CallSite, .callee = there, .caller = inside});
  const LocId fused =
      k.m.locs.add({.kind = Loc::Kind::Fused,
                    .parts = {kUnknownLoc, k.m.locs.add({.kind = Loc::Kind::Named, .callee = there}), here}});

  const auto check = [&](LocId function, const std::vector<LocId>& ops) {
    k.m.functions.clear();
    k.entry();
    k.f().loc = function;
    for (const LocId l : ops) k.op(Opcode::MakeToken, {}, {}, {k.token()}, {}, l);
    k.ret();
    return messages(k.check());
  };
  CHECK(check(here, {here, inside, inlined, kUnknownLoc}) == "");
  CHECK(check(kUnknownLoc, {kUnknownLoc}) == "");
  CHECK(check(kUnknownLoc, {here, here}) == "make_token: it has a debug scope, but entry @k has none");
  CHECK(check(here, {there, there}) == "make_token: its debug scope belongs to subprogram \"other\", expected \"k\"");
  CHECK(check(here, {fused}) == "make_token: its debug scope belongs to subprogram \"other\", expected \"k\"");
  CHECK(check(here, {at(lost)}) == "make_token: its debug scope is in no subprogram");
  CHECK(check(inside, {here}) == "entry @k: its debug scope is not a subprogram");
  CHECK(check(there, {here}) == "entry @k: its subprogram has the linkage name \"other\", expected \"k\"");
  CHECK(check(inlined, {}) == "entry @k: its location is a call site, expected a place in a file");
}

TEST_CASE("locations that share their parts many times over cost no time") {
  Kit k;
  LocId l = k.m.locs.add({.kind = Loc::Kind::FileLineCol, .line = 1});
  for (int i = 0; i < 200; ++i)
    l = k.m.locs.add({.kind = Loc::Kind::Fused, .line = static_cast<uint32_t>(i), .parts = {l, l}});
  k.entry();
  k.op(Opcode::MakeToken, {}, {}, {k.token()}, {}, l);
  k.ret();
  CHECK(codes(k.check()) == "");
}

TEST_CASE("regions may nest as deep as memory allows") {
  constexpr int kDepth = 100000;
  Kit k;
  const TypeId i32 = k.tile(ElementType::I32);
  k.entry();
  for (int i = 0; i < kDepth; ++i) {
    k.op(Opcode::Loop, {}, {}, {});
    k.b->begin_region({});
  }
  k.op(Opcode::NegI, {k.number()}, {0}, {i32});
  for (int i = 0; i < kDepth; ++i) {
    k.op(Opcode::Break, {}, {}, {});
    k.b->end_region();
    k.b->end_op();
  }
  k.ret();
  CHECK(codes(k.check()) == "");
}

TEST_CASE("all independent errors of a run are reported, up to the limit") {
  Kit k;
  const TypeId f32 = k.tile(ElementType::F32), i32 = k.tile(ElementType::I32);
  k.entry({f32, i32});
  for (int i = 0; i < 5; ++i) k.op(Opcode::AbsF, {1}, {}, {f32});
  k.op(Opcode::Iota, {}, {}, {f32});
  k.op(Opcode::MakeToken, {}, {}, {i32});
  CHECK(codes(k.check()) == "E0502 E0502 E0502 E0502 E0502 E0502 E0506 E0701");

  Kit many;
  many.entry({f32});
  const TypeId wrong = many.tile(ElementType::I32), right = many.tile(ElementType::F32);
  for (int i = 0; i < 1000; ++i) many.op(Opcode::AbsF, {0}, {}, {i == 0 ? right : wrong});
  many.ret();
  const Diagnostics d = many.check();
  CHECK(d.full());
  CHECK(d.all().size() == d.limit);
}

TEST_CASE("errors from before do not make a valid module invalid") {
  Kit k;
  k.entry();
  k.ret();
  k.b->finish();
  Diagnostics diags;
  (void)diags.error(Code::E0901, {}, "something else");
  CHECK(validate(k.m, diags).ok());
}

TEST_CASE("multicast pointers are for multimem operations alone") {
  Kit k;
  const uint32_t multicast = 2;
  const TypeId i32 = k.tile(ElementType::I32), p = k.ptrs(ElementType::I32, {}, multicast),
               plain = k.ptrs(ElementType::I32);
  k.entry({p, i32});
  const TypeId tok = k.token();
  k.op(Opcode::LoadPtrTko, {0}, {0, kNone, kNone}, {i32, tok}, {1, 0, 0, 0});
  k.op(Opcode::StorePtrTko, {0, 1}, {0, kNone, kNone}, {tok}, {1, 1, 0, 0});
  k.op(Opcode::AtomicRMWTko, {0, 1}, {1, 1, 3}, {i32, tok}, {1, 1, 0, 0});
  k.op(Opcode::AtomicCASTko, {0, 1, 1}, {1, 1}, {i32, tok}, {1, 1, 1, 0, 0});
  const ValueId q = k.op(Opcode::PtrToPtr, {0}, {}, {plain});
  k.op(Opcode::LoadPtrTko, {q}, {0, kNone, kNone}, {i32, tok}, {1, 0, 0, 0});
  k.ret();
  CHECK(codes(k.check()) == "E0506 E0506 E0506 E0506");
}

TEST_CASE("a view maker gives the view of its name, over the tensor_view that it is given") {
  Kit k;
  const std::vector<int64_t> shape = {8}, strides = {1}, other = {16};
  const TypeId e = k.m.types.element(ElementType::F32);
  const TypeId tv = k.m.types.tensor_view(e, shape, strides), tv16 = k.m.types.tensor_view(e, other, strides);
  const TypeId part = k.m.types.add({.kind = TypeKind::PartitionView, .inner = tv, .shape = {4}, .dim_map = {0}});
  const TypeId part16 = k.m.types.add({.kind = TypeKind::PartitionView, .inner = tv16, .shape = {4}, .dim_map = {0}});
  k.entry({k.ptrs(ElementType::F32)});
  const ValueId view = k.op(Opcode::MakeTensorView, {0}, {}, {tv}, {1, 0, 0});
  k.op(Opcode::MakePartitionView, {view}, {}, {part});
  k.op(Opcode::MakePartitionView, {view}, {}, {part16});
  k.op(Opcode::MakeStridedView, {view}, {}, {part});
  k.op(Opcode::MakeGatherScatterView, {view}, {}, {part});
  k.op(Opcode::GetTensorShape, {view}, {}, {k.tile(ElementType::I32), k.tile(ElementType::I32)});
  k.ret();
  CHECK(codes(k.check()) == "E0504 E0506 E0506 E0507");
}

TEST_CASE("illegal tensor views, alone and in a view, and views and tiles of something else") {
  const auto check = [](bool in_view, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    Kit k;
    TypeId id = k.m.types.tensor_view(k.m.types.element(ElementType::F32), shape, strides);
    if (in_view) id = k.m.types.add({.kind = TypeKind::PartitionView, .inner = id, .shape = {4}, .dim_map = {0}});
    k.entry();
    k.op(Opcode::MakeToken, {}, {}, {id});
    k.ret();
    const std::string text = messages(k.check());
    return text.substr(text.find(">: ") + 3);
  };
  CHECK(check(false, {0}, {1}) == "dimension 0 is 0, expected at least 1");
  CHECK(check(false, {8}, {-1}) == "stride 0 is -1, expected at least 1");
  CHECK(check(true, {0}, {1}) == "its tensor_view is illegal: dimension 0 is 0, expected at least 1");
  CHECK(check(false, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1)) == "rank is 65, at most 64 is supported");

  Kit k;
  const TypeId f32 = k.m.types.element(ElementType::F32);
  k.entry();
  for (const Type& t : {Type{.kind = TypeKind::PartitionView, .inner = f32, .shape = {4}, .dim_map = {0}},
                        Type{.kind = TypeKind::Tile, .inner = k.token()}, Type{.kind = TypeKind::Tile, .inner = 12345}})
    k.op(Opcode::MakeToken, {}, {}, {k.m.types.add(t)});
  k.ret();
  const std::string text = messages(k.check());
  CHECK(text.find(": it must have a tensor_view\n") != std::string::npos);
  CHECK(text.find(": the element must be a number type or a pointer\n") != std::string::npos);
  CHECK(text.ends_with(": it has no element type"));
}

TEST_CASE("the four kinds of illegal views that text cannot write") {
  const auto check = [](Type t) {
    Kit k;
    const std::vector<int64_t> shape = {8, 8}, strides = {8, 1};
    t.inner = k.m.types.tensor_view(k.m.types.element(ElementType::F32), shape, strides);
    const TypeId id = k.m.types.add(t);
    k.entry();
    k.op(Opcode::MakeToken, {}, {}, {id});
    k.ret();
    const std::string text = messages(k.check());
    return text.substr(text.find(">: ") + 3);
  };
  CHECK(check({.kind = TypeKind::PartitionView, .shape = {4, 4}, .dim_map = {0}}) ==
        "dim_map has 1 value, expected 2 (the rank)");
  CHECK(check({.kind = TypeKind::PartitionView, .shape = {4, 4}, .dim_map = {0, 2}}) ==
        "dim_map value 1 is 2, expected a dimension below the rank");
  CHECK(check({.kind = TypeKind::PartitionView, .shape = {}, .dim_map = {}}) ==
        "its tile has rank 0, expected at least 1");
  CHECK(check({.kind = TypeKind::StridedView, .shape = {4, 4}, .strides = {1}, .dim_map = {0, 1}}) ==
        "it has 1 traversal stride, expected 2 (its rank)");
}

TEST_CASE("ftof accepts exactly the modes of its table, for every pair of types") {
  using E = ElementType;
  // Digits are encodings: 0 nearest_even, 1 zero, 2 negative_inf, 3 positive_inf, 7 nearest_away. Narrow: the last five
  // types but f8E8M0FNU.
  struct Row {
    E from;
    const char *f16, *bf16, *tf32, *f32, *f64, *narrow, *e8m0;
  };
  const Row rows[] = {{E::F4E2M1FN, "01237", "01237", "01237", "01237", "01237", "0", "13"},
                      {E::F8E4M3FN, "01237", "01237", "01237", "01237", "01237", "0", "13"},
                      {E::F8E5M2, "01237", "01237", "01237", "01237", "01237", "0", "13"},
                      {E::F8E8M0FNU, "01", "01", "01", "01", "01237", "0", ""},
                      {E::NV8E5M3FNU, "01", "01237", "01237", "01237", "01237", "0", "13"},
                      {E::F16, "", "01", "01237", "01237", "01237", "0", "13"},
                      {E::BF16, "01", "", "01237", "01237", "01237", "0", "13"},
                      {E::TF32, "01", "01", "", "01237", "01237", "0", "13"},
                      {E::F32, "01", "01", "017", "", "01237", "0", "13"},
                      {E::F64, "01", "01", "01", "0123", "", "0", "13"}};
  for (const Row& row : rows) {
    for (const E to :
         {E::F16, E::BF16, E::TF32, E::F32, E::F64, E::F8E4M3FN, E::F8E5M2, E::F8E8M0FNU, E::F4E2M1FN, E::NV8E5M3FNU}) {
      std::string accepted;
      for (uint32_t mode = 0; mode < 8; ++mode) {
        Kit k;
        const TypeId from_type = k.tile(row.from, {2}), to_type = k.tile(to, {2});
        k.entry();
        const ValueId x = k.constant(from_type, std::string(info(row.from).storage, '\0'));
        k.op(Opcode::FToF, {x}, {mode}, {to_type});
        k.ret();
        if (codes(k.check()).empty()) accepted += static_cast<char>('0' + mode);
      }
      const char* want = to == E::F16         ? row.f16
                         : to == E::BF16      ? row.bf16
                         : to == E::TF32      ? row.tf32
                         : to == E::F32       ? row.f32
                         : to == E::F64       ? row.f64
                         : to == E::F8E8M0FNU ? row.e8m0
                                              : row.narrow;
      INFO(info(row.from).name, " to ", info(to).name);
      CHECK(accepted == (row.from == to ? "" : want));
    }
  }
}

TEST_CASE("atomic modes go with exactly the element types of their table") {
  using E = ElementType;
  const std::string want[] = {"i32 i64", "i32 i64", "i32 i64", "i32 i64", "f16 bf16 f32 f64",
                              "i32 i64", "i32 i64", "i32 i64", "i32 i64", "i32 i64 f32 f64"};
  for (uint32_t mode = 0; mode < 10; ++mode) {
    std::string accepted;
    for (const E e : {E::I1, E::I8, E::I16, E::I32, E::I64, E::F16, E::BF16, E::F32, E::TF32, E::F64, E::F8E5M2}) {
      Kit k;
      k.entry({k.ptrs(e), k.tile(e)});
      k.op(Opcode::AtomicRMWTko, {0, 1}, {1, 0, mode}, {k.tile(e), k.token()}, {1, 1, 0, 0});
      k.ret();
      if (codes(k.check()).empty()) accepted += (accepted.empty() ? "" : " ") + std::string(info(e).name);
    }
    CHECK(accepted == want[mode]);
  }
}
