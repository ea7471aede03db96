// Launch arguments: text form, references, the calling convention, grids, and what each error says.
#include "vm/runtime/launch_args.h"

#include <doctest/doctest.h>

#include <string>

namespace tile {
namespace {

std::string error_text(const Diagnostics& diags) {
  std::string text;
  for (const auto& d : diags.all()) {
    text += std::string(code_info(d.code).name) + " " + d.place.argument + ": " + d.message + "|" + d.help + "\n";
  }
  return text;
}

uint64_t bits_of(const std::string& text) {
  Diagnostics diags;
  const auto spec = parse_arg(text, 0, {}, diags);
  CAPTURE(text);
  CAPTURE(error_text(diags));
  REQUIRE(spec);
  CHECK(spec->kind == ArgSpec::Kind::Scalar);
  return spec->bits;
}

std::string error_of(const std::string& text) {
  Diagnostics diags;
  CAPTURE(text);
  CHECK_FALSE(parse_args({{text}}, diags));
  return error_text(diags);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("scalars of every type") {
  CHECK(bits_of("i32:128") == 128);
  CHECK(bits_of("i64:-5") == 0xFFFFFFFFFFFFFFFB);
  CHECK(bits_of("i32:-1") == 0xFFFFFFFF);
  CHECK(bits_of("i32:4294967295") == 0xFFFFFFFF);
  CHECK(bits_of("i64:18446744073709551615") == ~uint64_t{0});
  CHECK(bits_of("i64:-9223372036854775808") == uint64_t{1} << 63);
  CHECK(bits_of("i8:-128") == 0x80);
  CHECK(bits_of("i4:-8") == 8);
  CHECK(bits_of("i1:true") == 1);
  CHECK(bits_of("i1:0") == 0);
  CHECK(bits_of("f16:0x3c00") == 0x3C00);
  CHECK(bits_of("i16:0XfFfF") == 0xFFFF);
  CHECK(bits_of("f32:0.5") == 0x3F000000);
  CHECK(bits_of("f32:-0") == 0x80000000);
  CHECK(bits_of("f32:1e-46") == 0);
  CHECK(bits_of("f64:+0.1") == 0x3FB999999999999A);
  CHECK(bits_of("f16:65519") == 0x7BFF);
  CHECK(bits_of("f16:inf") == 0x7C00);
  CHECK(bits_of("f32:-inf") == 0xFF800000);
  CHECK(bits_of("f8E5M2:-inf") == 0xFC);
  CHECK(bits_of("f8E4M3FN:448") == 0x7E);
  CHECK(bits_of("f8E8M0FNU:4") == 129);
  CHECK(bits_of("f4E2M1FN:-6") == 0xF);
  CHECK(bits_of("bf16:1") == 0x3F80);
  CHECK(bits_of("tf32:0.3") == 0x3E99A000);
  CHECK(bits_of("n=i32:7") == 7);
}

TEST_CASE("scalars that do not fit say why") {
  CHECK(has(error_of("i32:4294967296"),
            "E0804 argument 0: '4294967296' is too large for i32, the largest is 4294967295|"));
  CHECK(has(error_of("i8:-129"), "too small for i8, the smallest is -128"));
  CHECK(has(error_of("i64:-9223372036854775809"), "is not an integer of 64 bits"));
  CHECK(has(error_of("i1:2"), "too large for i1"));
  CHECK(has(error_of("i1:-1"), "too small for i1"));
  CHECK(has(error_of("i1:yes"), "expected true, false, 0 or 1"));
  CHECK(has(error_of("i32:1.5"), "is not an integer"));
  CHECK(has(error_of("i32:"), "'' is not an integer"));
  CHECK(has(error_of("i32: 5"), "is not an integer"));
  CHECK(has(error_of("i32"), "the value is missing"));
  CHECK(has(error_of("f16:65520"), "the largest is 65504"));
  CHECK(has(error_of("f16:1e999"), "is not a number"));
  CHECK(has(error_of("f32:nan(1)"), "is not a number"));
  CHECK(has(error_of("f32:1,5"), "is not a number"));
  CHECK(has(error_of("f16:0x10000"), "has more bits than the 16 of f16"));
  CHECK(has(error_of("f16:0xg"), "is not a hexadecimal number"));
  CHECK(has(error_of("tf32:0x3f800001"), "bits below the 19 of tf32"));
  CHECK(has(error_of("f8E4M3FN:inf"), "has no form in f8E4M3FN"));
  CHECK(has(error_of("f4E2M1FN:nan"), "has no form in f4E2M1FN"));
  CHECK(has(error_of("f8E8M0FNU:0"), "positive numbers only"));
  CHECK(has(error_of("f8E8M0FNU:-1"), "positive numbers only"));
}

TEST_CASE("kinds of argument") {
  Diagnostics diags;
  auto spec = parse_arg("x=array64:bf16:dir/a.npy", 2, {}, diags);
  REQUIRE(spec);
  CHECK(spec->name == "x");
  CHECK(spec->kind == ArgSpec::Kind::Array64);
  CHECK(spec->source.type == ElementType::BF16);
  CHECK(spec->source.path == "dir/a.npy");
  spec = parse_arg("ptr:./f32:a=b+1.npy", 0, {}, diags);
  REQUIRE(spec);
  CHECK(spec->source.path == "./f32:a=b+1.npy");
  CHECK(spec->byte_offset == 0);
  spec = parse_arg("ptr:@x+64", 0, {}, diags);
  REQUIRE(spec);
  CHECK(spec->source.reference == "x");
  CHECK(spec->byte_offset == 64);
  spec = parse_arg("ptr:i32:@x+4", 0, {}, diags);
  REQUIRE(spec);
  CHECK(spec->source.type == ElementType::I32);
  CHECK(spec->byte_offset == 4);
  CHECK(diags.all().empty());
  CHECK(has(error_of("list:a.npy"), "list arguments are not supported"));
  CHECK(has(error_of("list:a.npy"), "ptr:i64[ITEMS,1+2*RANK]"));
  CHECK(has(error_of("a.npy"), "did you mean array:a.npy?"));
  CHECK(has(error_of("arry:a.npy"), "did you mean array?"));
  CHECK(has(error_of("u32:5"), "did you mean i32?"));
  CHECK(has(error_of("float:5"), "did you mean f32?"));
  CHECK(has(error_of("ptr:@x+y"), "expected a number of bytes"));
  CHECK(has(error_of("array:"), "the array is missing"));
  CHECK(has(error_of("array:f32:@x"), "an array that refers to another has its element type"));
  CHECK(has(error_of(""), "'' is no kind of argument"));
  CHECK(has(error_of("1x=i32:5"), "'1x=i32' is no kind of argument"));
}

TEST_CASE("names differ and references lead to an array") {
  auto errors = [](std::vector<std::string> texts) {
    Diagnostics diags;
    CHECK_FALSE(parse_args(texts, diags));
    return error_text(diags);
  };
  CHECK(errors({"x=i32:1", "x=i32:2"}) == "E0804 argument 1 (x): the name x is already that of argument 0|\n");
  CHECK(errors({"ptr:@x"}) == "E0804 argument 0: there is no argument 'x', no argument has a name|\n");
  CHECK(errors({"y=i32:1", "ptr:@x"}) == "E0804 argument 1: there is no argument 'x', expected one of y|\n");
  CHECK(errors({"y=i32:1", "ptr:@y"}) ==
        "E0804 argument 1: the argument 'y' is a scalar, expected an array or a pointer|\n");
  CHECK(has(errors({"x=ptr:@y", "y=ptr:@x"}), "the argument refers to itself"));
  CHECK(has(errors({"x=ptr:@x"}), "the argument refers to itself"));
  CHECK(errors({"i32:x", "f16:y"}).find("argument 1") != std::string::npos);
  Diagnostics diags;
  CHECK_FALSE(parse_args(std::vector<std::string>(kMaxLaunchArguments + 1, "i1:1"), diags));
  CHECK(diags.first_error()->code == Code::E0802);
  CHECK(parse_args(std::vector<std::string>(kMaxLaunchArguments, "i1:1"), diags));
}

const ElementType I32 = ElementType::I32, I64 = ElementType::I64, P = ElementType::Ptr, F16 = ElementType::F16;

Result<LaunchArguments> expanded(const std::vector<std::string>& texts, const std::vector<ParamType>& params,
                                 Diagnostics& diags) {
  const auto specs = parse_args(texts, diags);
  if (!specs) return Failed;
  return expand(*specs, params, {"", "k", ArrayLimits{1 << 20}}, diags);
}

TEST_CASE("an array becomes pointer, sizes and strides in elements") {
  Diagnostics diags;
  const auto args =
      expanded({"a=array:f16[8,4]:strides(1,8)=zeros", "i32:5", "array64:f32[3]=ones", "ptr:@a+16", "b=array:@a"},
               {{P, F16, "a"},
                {I32, {}, ""},
                {I32, {}, ""},
                {I32, {}, ""},
                {I32, {}, ""},
                {I32, {}, "n"},
                {P, ElementType::F32, ""},
                {I64, {}, ""},
                {I64, {}, ""},
                {P, F16, ""},
                {P, F16, ""},
                {I32, {}, ""},
                {I32, {}, ""},
                {I32, {}, ""},
                {I32, {}, ""}},
               diags);
  CAPTURE(error_text(diags));
  REQUIRE(args);
  REQUIRE(args->params.size() == 15);
  const uint64_t expected[] = {0, 8, 4, 1, 8, 5, 0, 3, 1, 0, 0, 8, 4, 1, 8};
  for (size_t i = 0; i < 15; ++i) CHECK(args->params[i].bits == expected[i]);
  CHECK(args->buffers.size() == 2);
  CHECK(args->params[0].buffer == 0);
  CHECK(args->params[1].buffer == -1);
  CHECK(args->params[6].buffer == 1);
  CHECK(args->params[9].buffer == 0);
  CHECK(args->params[9].byte_offset == 16);
  CHECK(args->params[10].buffer == 0);
  CHECK(args->bindings[2].first == 6);
  CHECK(args->bindings[2].count == 3);
  CHECK(args->bindings[1].buffer == -1);
  CHECK(args->bindings[4].buffer == 0);
}

TEST_CASE("a wrong number of parameters shows what each argument gives") {
  Diagnostics diags;
  CHECK_FALSE(expanded({"a=array:f16[4]=zeros", "i32:5"}, {{P, F16, "p"}, {I32, {}, "n"}}, diags));
  REQUIRE(diags.all().size() == 1);
  const Diagnostic& d = diags.all()[0];
  CHECK(d.code == Code::E0802);
  CHECK(d.message == "2 arguments give 4 parameters, @k takes 2");
  REQUIRE(d.notes.size() == 3);
  CHECK(d.notes[0].place.argument == "argument 0 (a)");
  CHECK(d.notes[0].message == "a=array:f16[4]=zeros gives parameters 0 to 2: ptr<f16>, i32, i32");
  CHECK(d.notes[1].message == "i32:5 gives parameter 3: i32");
  CHECK(d.notes[2].message == "@k takes 2: ptr<f16> %p, i32 %n");
  diags.clear();
  CHECK_FALSE(expanded({"i32:5"}, {{P, F16, "p"}, {I32, {}, "n"}}, diags));
  CHECK(diags.all()[0].message ==
        "1 argument gives 1 parameter, @k takes 2; the first that does not fit is parameter 0 (%p): the value gives "
        "i32, expected ptr<f16>");
  diags.clear();
  CHECK_FALSE(expanded({}, {{I32, {}, ""}}, diags));
  CHECK(diags.all()[0].code == Code::E0802);
  diags.clear();
  CHECK(expanded({}, {}, diags));
}

TEST_CASE("wrong types name argument, parameter, both types and the remedy") {
  auto errors = [](const std::vector<std::string>& texts, const std::vector<ParamType>& params) {
    Diagnostics diags;
    CHECK_FALSE(expanded(texts, params, diags));
    return error_text(diags);
  };
  CHECK(errors({"n=i32:5"}, {{I64, {}, "n"}}) ==
        "E0803 argument 0 (n): the value gives i32 for parameter 0 (%n), expected i64|write i64:5\n");
  CHECK(errors({"array:f16[2]=zeros"}, {{P, ElementType::F32, ""}, {I32, {}, ""}, {I32, {}, ""}}) ==
        "E0803 argument 0: the base address gives ptr<f16> for parameter 0, expected ptr<f32>|the array must have "
        "element type f32\n");
  CHECK(has(errors({"array:f16[2]=zeros"}, {{P, F16, ""}, {I64, {}, ""}, {I64, {}, ""}}),
            "|array64: passes sizes and strides as i64"));
  CHECK(has(errors({"array:f16[2]=zeros"}, {{P, F16, ""}, {I64, {}, ""}, {I64, {}, ""}}),
            "the stride of dimension 0 gives i32"));
  CHECK(has(errors({"i32:5"}, {{P, F16, ""}}), "|pass an array"));
  CHECK(has(errors({"a=ptr:f32[2]=zeros", "ptr:@a"}, {{P, ElementType::F32, ""}, {P, I32, ""}}),
            "|ptr:i32:@a passes the same memory"));
  Diagnostics diags;
  CHECK(expanded({"a=ptr:f32[2]=zeros", "ptr:i32:@a"}, {{P, ElementType::F32, ""}, {P, I32, ""}}, diags));
  CHECK(has(errors({"array:f32[2,2]:strides(3000000000,0)=zeros"}, {}), "L0103"));
  CHECK(has(errors({"array:f32[1,2]:strides(3000000000,1)=zeros"}, {}),
            "E0803 argument 0: the stride of dimension 0 is 3000000000, expected at most 2147483647 for i32|array64:"));
  CHECK(has(errors({"a=ptr:f32[2]=zeros", "ptr:@a+9"}, {{P, ElementType::F32, ""}, {P, ElementType::F32, ""}}),
            "the offset is 9 bytes, the array has 8"));
  CHECK(has(
      errors({"ptr:i8[600000]=zeros", "ptr:i8[600000]=zeros"}, {{P, ElementType::I8, ""}, {P, ElementType::I8, ""}}),
      "L0103"));
  CHECK(has(errors({"ptr:/no/such.npy", "ptr:/no/other.npy"}, {}), "cannot read"));
}

TEST_CASE("outputs are found by name or number") {
  Diagnostics diags;
  const auto specs = parse_args(std::vector<std::string>{"i32:1", "out=array:f32[2]=zeros"}, diags);
  REQUIRE(specs);
  CHECK(parse_out("out=c.npy", *specs, diags)->argument == 1);
  CHECK(parse_out("1=dir/c=1.npy", *specs, diags)->path == "dir/c=1.npy");
  CHECK(diags.all().empty());
  CHECK_FALSE(parse_out("0=c.npy", *specs, diags));
  CHECK_FALSE(parse_out("2=c.npy", *specs, diags));
  CHECK_FALSE(parse_out("outt=c.npy", *specs, diags));
  CHECK_FALSE(parse_out("out", *specs, diags));
  CHECK_FALSE(parse_out("out=", *specs, diags));
  CHECK_FALSE(parse_out("=c.npy", *specs, diags));
  const std::string text = error_text(diags);
  CHECK(has(text, "E0804 --out 0=c.npy: argument 0 is a scalar, expected an array or a pointer"));
  CHECK(has(text, "there is no argument 2, expected a number below 2; they count from 0"));
  CHECK(has(text, "there is no argument 'outt', expected one of out|did you mean out?"));
  CHECK(has(text, "no file is given, expected ARG=FILE"));
}

TEST_CASE("grids") {
  Diagnostics diags;
  CHECK(*parse_grid("4", diags) == LaunchGrid{4, 1, 1});
  CHECK(*parse_grid("4,2", diags) == LaunchGrid{4, 2, 1});
  CHECK(*parse_grid("4x2x16777215", diags) == LaunchGrid{4, 2, 16777215});
  CHECK(diags.all().empty());
  CHECK_FALSE(parse_grid("0,16777216,-1", diags));
  REQUIRE(diags.all().size() == 3);
  CHECK(diags.all()[0].message == "the grid's extent along x is 0, expected 1 to 16777215");
  CHECK(diags.all()[0].code == Code::E0805);
  diags.clear();
  for (const char* text : {"", "a", "1,", "1,,1", "1,1,1,1", "1 ,1", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_grid(text, diags));
  }
  CHECK(diags.first_error()->code == Code::E0804);
}

TEST_CASE("no bytes harm the parser") {
  const std::string base = "x=array:f16[8,4]:strides(1,8)=normal(seed=1,std=2)";
  for (size_t at = 0; at < base.size(); ++at) {
    for (int c = 0; c < 256; ++c) {
      std::string text = base;
      text[at] = static_cast<char>(c);
      Diagnostics diags;
      const bool ok = parse_arg(text, 0, {}, diags).ok();
      CHECK(ok == diags.all().empty());
    }
    Diagnostics diags;
    const bool ok = parse_arg(base.substr(0, at), 0, {}, diags).ok();
    CHECK(ok == diags.all().empty());
  }
}

}  // namespace
}  // namespace tile
