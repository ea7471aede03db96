// The validator on modules built by hand: types, values, structure, limits, and that nothing is reported twice.
// Rules that text can break are tested by tests/files/validate.
#include "tests/unit/validate_kit.h"
#include "vm/validate/row_facts.h"

using namespace tile;
using namespace tile::validate_kit;

TEST_CASE("every row with a special rule has one, and few have") {
  size_t with_special = 0;
  for (const OpDef& def : op_rows()) {
    const auto& facts = validation::row_facts(static_cast<Opcode>(def.code));
    CHECK(facts.def->code == def.code);
    bool special = false;
    size_t whole = 0;
    for (const Rule& r : def.rules) {
      special |= r.kind == RuleKind::Special;
      whole += !between_positions(r.kind);
    }
    CHECK(facts.whole_count == whole);
    CHECK((validation::special_rule(static_cast<Opcode>(def.code)) != nullptr) == special);
    with_special += special;
  }
  CHECK(with_special == 16);
}

TEST_CASE("an entry that only returns is valid") {
  Kit k;
  k.entry({k.tile(ElementType::F32), k.ptrs(ElementType::F16)});
  k.ret();
  CHECK(codes(k.check()) == "");
}

TEST_CASE("operands of different types: message, note at the definition, and a conversion as help") {
  Kit k;
  const TypeId f32 = k.tile(ElementType::F32), f16 = k.tile(ElementType::F16);
  k.entry({f32, f16});
  k.f().value_names = {k.m.strings.add("a"), k.m.strings.add("b")};
  k.op(Opcode::AddF, {0, 1}, {0, 0}, {f32});
  k.ret();
  const Diagnostics d = k.check();
  REQUIRE(codes(d) == "E0504");
  CHECK(d.all()[0].message == "addf: rhs has type tile<f16>, expected tile<f32> (the type of lhs)");
  CHECK(d.all()[0].help == "insert a conversion: ftof %b : tile<f16> -> tile<f32>");
  REQUIRE(d.all()[0].notes.size() == 1);
  CHECK(d.all()[0].notes[0].message == "%b is defined here");
  CHECK(d.all()[0].place.instruction == 0);
  CHECK(d.all()[0].place.operand == 1);
}

TEST_CASE("an operand of a wrong element type takes no part in the rules") {
  Kit k;
  const TypeId f32 = k.tile(ElementType::F32), i32 = k.tile(ElementType::I32);
  k.entry({f32, i32});
  k.op(Opcode::AddF, {0, 1}, {0, 0}, {f32});
  k.op(Opcode::AddF, {1, 0}, {0, 0}, {f32});
  k.ret();
  CHECK(messages(k.check()) ==
        "addf: rhs has element type i32, expected f16, bf16, f32 or f64\n"
        "addf: lhs has element type i32, expected f16, bf16, f32 or f64");
}

TEST_CASE("values of a wrong kind") {
  Kit k;
  const TypeId f32 = k.tile(ElementType::F32);
  k.entry({f32});
  const ValueId t = k.op(Opcode::MakeToken, {}, {}, {k.token()});
  k.op(Opcode::AbsF, {t}, {}, {f32});
  k.op(Opcode::MakeToken, {}, {}, {f32});
  k.op(Opcode::JoinTokens, {t, 0}, {}, {k.token()});
  k.ret();
  CHECK(messages(k.check()) ==
        "absf: source has type token, expected a tile\n"
        "make_token: result has type tile<f32>, expected a token\n"
        "join_tokens: tokens[1] has type tile<f32>, expected a token");
}

TEST_CASE("an illegal type is reported once, where it is first used, and its values are left alone") {
  Kit k;
  const TypeId bad = k.tile(ElementType::F32, {3});
  k.entry();
  const ValueId a = k.constant(bad, std::string(4, '\0'));
  const ValueId b = k.op(Opcode::AbsF, {a}, {}, {bad});
  k.op(Opcode::AddF, {a, b}, {0, 0}, {k.tile(ElementType::F32)});
  k.ret();
  const Diagnostics d = k.check();
  CHECK(messages(d) == "illegal type tile<3xf32>: dimension 0 is 3, expected a power of two");
  CHECK(d.all()[0].place.instruction == 0);
}

TEST_CASE("types that no value can have, and types that nest without sense") {
  Kit k;
  k.m.version = v(13, 4);
  TypeId deep = k.m.types.element(ElementType::F32);
  for (int i = 0; i < 100000; ++i) deep = k.m.types.ptr(deep);
  const TypeId element = k.m.types.element(ElementType::F32), tile_of_deep = k.m.types.tile(deep);
  k.entry();
  for (const TypeId t : {element, k.m.types.ptr(element), tile_of_deep, TypeId{123456789}})
    k.op(Opcode::MakeToken, {}, {}, {t});
  k.ret();
  CHECK(messages(k.check()) ==
        "illegal type f32: a value must be a tile, a view or a token\n"
        "illegal type ptr<f32>: a value must be a tile, a view or a token\n"
        "illegal type <deeply nested type>: the pointee must be a number type other than i4\n"
        "illegal type <no type>: there is no such type");
}

TEST_CASE("tiles have at most 2^24 elements and 64 dimensions") {
  const auto check = [](std::vector<int64_t> shape, ElementType e = ElementType::I32) {
    Kit k;
    const TypeId t = k.tile(e, std::move(shape));
    k.entry();
    k.constant(t, std::string(info(e).storage, '\0'));
    k.ret();
    return messages(k.check());
  };
  CHECK(check({1 << 24}) == "");
  CHECK(check({1 << 12, 1 << 12}) == "");
  CHECK(check({1 << 13, 1 << 12}).find("more than 16777216 elements") != std::string::npos);
  CHECK(check({int64_t{1} << 62, int64_t{1} << 62}).find("more than 16777216 elements") != std::string::npos);
  CHECK(check(std::vector<int64_t>(64, 1)) == "");
  CHECK(check(std::vector<int64_t>(65, 1)).find("rank is 65") != std::string::npos);
  CHECK(check({1, 1}, ElementType::F4E2M1FN).find("even number") != std::string::npos);
  CHECK(check({1, 2}, ElementType::F4E2M1FN) == "");
  CHECK(check({}, ElementType::F4E2M1FN).find("even number") != std::string::npos);
}

TEST_CASE("a value is visible after its definition, inside its region, and nowhere else") {
  Kit k;
  const TypeId i32 = k.tile(ElementType::I32);
  k.entry();
  const ValueId c = k.flag();
  ValueId inside = 0, outer = 0;
  k.op(Opcode::If, {c}, {}, {});
  k.region({}, [&](ValueId) {
    inside = k.op(Opcode::Iota, {}, {}, {k.tile(ElementType::I32, {4})});
    k.op(Opcode::Yield, {}, {}, {});
  });
  k.region({}, [&](ValueId) {
    k.op(Opcode::NegI, {inside}, {0}, {k.tile(ElementType::I32, {4})});  // of the sibling region
    k.op(Opcode::Yield, {}, {}, {});
  });
  k.b->end_op();
  k.op(Opcode::NegI, {inside}, {0}, {k.tile(ElementType::I32, {4})});  // of a closed region
  k.op(Opcode::NegI, {k.b->next_value()}, {0}, {i32});                 // its own result
  k.op(Opcode::NegI, {k.b->next_value() + 1}, {0}, {i32});             // a later one
  outer = k.op(Opcode::Loop, {}, {}, {i32});
  k.region({}, [&](ValueId) { k.op(Opcode::Break, {outer}, {}, {}); });  // the result of the loop itself
  k.b->end_op();
  k.op(Opcode::NegI, {0xFFFFFFF0u}, {0}, {i32});
  k.ret();
  const Diagnostics d = k.check();
  CHECK(codes(d) == "E0405 E0405 E0405 E0405 E0405 E0405");
  CHECK(d.all()[0].message == "negi: source %1 is defined in a region that does not contain this use");
  CHECK(d.all()[2].message == "negi: source %" + std::to_string(inside + 3) + " is used before its definition");
  CHECK(d.all()[5].message == "negi: source is a value that does not exist");
}

TEST_CASE("a body without terminator, and operations behind one") {
  Kit k;
  k.entry({}, "empty");
  k.b->finish();
  k.entry({}, "open");
  k.number();
  k.b->finish();
  k.entry({}, "late");
  k.ret();
  k.number();
  k.number();
  k.b->finish();
  k.entry({}, "inner");
  const ValueId c = k.flag();
  k.op(Opcode::If, {c}, {}, {});
  k.region({}, [&](ValueId) { k.number(); });
  k.b->absent_region();
  k.b->end_op();
  k.op(Opcode::If, {c}, {}, {});
  k.b->absent_region();
  k.b->absent_region();
  k.b->end_op();
  k.ret();
  CHECK(messages(k.check()) ==
        "entry @empty: its body does not end with a terminator, expected return\n"
        "entry @open: its body does not end with a terminator, expected return\n"
        "constant: follows a terminator and is never reached\n"
        "if: its region does not end with a terminator, expected yield, break, continue or return\n"
        "if: its region has no block");
}

TEST_CASE("a function without any region") {
  Kit k;
  k.m.functions.emplace_back().name = k.m.strings.add("k");
  CHECK(messages(k.check()) == "entry @k: it has no body");
}

TEST_CASE("region arguments must have the types of what the operation carries") {
  Kit k;
  const TypeId i32 = k.tile(ElementType::I32), i64 = k.tile(ElementType::I64), f32 = k.tile(ElementType::F32);
  k.entry({i32, f32});
  k.op(Opcode::For, {0, 0, 0, 1}, {0}, {f32});
  k.region({i64, i32},
           [&](ValueId) { k.op(Opcode::Continue, {0}, {}, {}); });  // not compared: the operation itself is wrong
  k.b->end_op();
  k.op(Opcode::For, {0, 0, 0}, {0}, {});
  k.region({}, [&](ValueId) { k.op(Opcode::Continue, {}, {}, {}); });
  k.b->end_op();
  k.op(Opcode::Loop, {0}, {}, {});
  k.region({f32}, [&](ValueId) { k.op(Opcode::Break, {}, {}, {}); });
  k.b->end_op();
  const ValueId v = k.op(Opcode::Iota, {}, {}, {k.tile(ElementType::I32, {4})});
  const AttrId zero = k.m.attrs.integer(k.m.types.element(ElementType::I32), 0);
  for (const Ids& args : {Ids{i32}, Ids{i32, f32}, Ids{k.tile(ElementType::I32, {4}), i32}}) {
    k.op(Opcode::Reduce, {v}, {k.integer(0, ElementType::I32), k.m.attrs.array({zero})}, {i32});
    k.region(args, [&](ValueId) { k.op(Opcode::Yield, {0}, {}, {}); });
    k.b->end_op();
  }
  k.op(Opcode::If, {k.flag()}, {}, {});
  k.region({i32}, [&](ValueId) { k.op(Opcode::Yield, {}, {}, {}); });
  k.b->absent_region();
  k.b->end_op();
  k.ret();
  CHECK(messages(k.check()) ==
        "for: argument 1 of its region has type tile<i32>, expected tile<f32> (the type of initValues[0])\n"
        "for: its induction variable has type tile<i64>, expected tile<i32> (the type of lowerBound)\n"
        "for: its region has 0 arguments, expected 1\n"
        "loop: argument 0 of its region has type tile<f32>, expected tile<i32> (the type of initValues[0])\n"
        "reduce: its region has 1 argument, expected 2 (two for each operand)\n"
        "reduce: argument 1 of its region has type tile<f32>, expected tile<i32>\n"
        "reduce: argument 0 of its region has type tile<4xi32>, expected tile<i32>\n"
        "if: its region has 1 argument, expected none");
}

TEST_CASE("counts of operands, groups and results") {
  Kit k;
  const TypeId i32 = k.tile(ElementType::I32);
  k.entry({i32, k.ptrs(ElementType::I32)});
  k.op(Opcode::AddI, {0}, {0}, {i32});
  k.op(Opcode::AddI, {0, 0}, {0}, {});
  k.op(Opcode::AddI, {0, 0}, {0}, {i32, i32});
  k.op(Opcode::For, {0, 0}, {0}, {});
  k.region({i32}, [&](ValueId) { k.op(Opcode::Continue, {}, {}, {}); });
  k.b->end_op();
  k.op(Opcode::GdcWaitTko, {0, 0}, {}, {k.token()});
  k.op(Opcode::LoadPtrTko, {1, 0}, {0, kNone, kNone}, {i32, k.token()}, {2, 0, 0, 0});
  k.op(Opcode::LoadPtrTko, {1, 0}, {0, kNone, kNone}, {i32, k.token()}, {1, 0, 0, 0});
  k.op(Opcode::LoadPtrTko, {1, 0}, {0, kNone, kNone}, {i32, k.token()}, {1, 0xFFFFFFFFu, 1, 1});
  k.ret();
  CHECK(messages(k.check()) ==
        "addi: has 1 operand, expected 2\n"
        "addi: has 0 results, expected 1\n"
        "addi: has 2 results, expected 1\n"
        "for: has 2 operands, expected at least 3\n"
        "gdc_wait_tko: has 2 operands, expected 0\n"
        "load_ptr_tko: has 2 values for source, expected 1\n"
        "load_ptr_tko: has 2 operands, but its groups have 1\n"
        "load_ptr_tko: has 4294967295 values for mask, expected at most 1");
}

TEST_CASE("print_tko has no token before 13.2 and must have one after") {
  const auto check = [](std::optional<Version> version) {
    Kit k;
    k.m.version = version;
    k.entry();
    k.op(Opcode::PrintTko, {}, {k.m.strings.add("x")}, {}, {0, 0});
    k.ret();
    return codes(k.check());
  };
  CHECK(check(v(13, 1)) == "");
  CHECK(check(std::nullopt) == "");
  CHECK(check(v(13, 2)) == "E0507");
}
