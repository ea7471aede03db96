// Generators: the bits that tools/python/tile_generate.py computes, parameters, and their errors.
#include "vm/runtime/generate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "vm/runtime/array_source.h"

namespace tile {
namespace {

/// FNV-1a over the elements, stored bits, as wide as in a .npy file.
uint64_t digest(const ArrayView& a) {
  const int item = std::max(info(a.type).memory_bits / 8, 1);
  uint64_t hash = 0xCBF29CE484222325;
  for_each_element(a, [&](int64_t, int64_t position) {
    const uint64_t bits = load_bits(a.data, a.type, position);
    for (int i = 0; i < item; ++i) hash = (hash ^ (bits >> (8 * i) & 255)) * 0x100000001B3;
  });
  return hash;
}

Result<Array> made(const std::string& text, Diagnostics& diags) {
  const auto source = parse_array_source(text, {}, diags);
  if (!source) return Failed;
  return load_array(*source, "", {}, {}, diags);
}

std::string error_of(const std::string& text) {
  Diagnostics diags;
  CHECK_FALSE(made(text, diags));
  REQUIRE(diags.first_error() != nullptr);
  return std::string(code_info(diags.first_error()->code).name) + ": " + diags.first_error()->message + "|" +
         diags.first_error()->help;
}

TEST_CASE("generators give the bits of the Python twin") {
  // Each line: tile_generate.py --digest 'SOURCE'.
  const struct {
    const char* source;
    int64_t count;
    uint64_t digest;
  } cases[] = {
      {"f32[6]=normal(seed=1)", 6, 0x6d033dd14291a6ca},
      {"f16[1000]=normal(seed=1)", 1000, 0x6e6783aaf420cbaf},
      {"bf16[1000]=normal(seed=2, mean=1, std=3)", 1000, 0xa42a4c7eb0cfe7f0},
      {"f64[5000]=normal(seed=18446744073709551615,std=0.5)", 5000, 0xd7bf130869e09903},
      {"f32[1000]=uniform(seed=7,lo=-2,hi=3)", 1000, 0x85447ff8def03f66},
      {"f64[1000]=uniform", 1000, 0x61a8c32eaa365540},
      {"tf32[1000]=uniform(seed=4)", 1000, 0x17bc4248c5e1baee},
      {"f8E4M3FN[1000]=normal(seed=5,std=100)", 1000, 0xb8f7dca47af6781f},
      {"f8E5M2[1000]=normal(seed=5,std=100000)", 1000, 0x3860130f89606799},
      {"f8E8M0FNU[1000]=uniform(seed=6,lo=-1,hi=8)", 1000, 0xae6a93c097e561ac},
      {"f4E2M1FN[1001]=normal(seed=8,std=3)", 1001, 0x4b8e1eb274197aac},
      {"fnv8E5M3FNU[1000]=normal(seed=9,std=20)", 1000, 0x729a2f6b2df80c4c},
      {"f32[1000]=normal(seed=1,mean=1e-40,std=1e-39)", 1000, 0xf29ab87d7350e9a2},
      {"i8[1000]=randint(seed=1,lo=-128,hi=256)", 1000, 0x8e8aa1121f88ddff},
      {"i1[1000]=randint(seed=1,lo=0,hi=2)", 1000, 0xd2141582cf4841e4},
      {"i64[1000]=randint(seed=3,lo=-9223372036854775808,hi=9223372036854775807)", 1000, 0x637a6908a5d32859},
      {"f16[1000]=randint(seed=2,lo=-5,hi=6)", 1000, 0xec15dae3c223d00c},
      {"i32[1000]=bits(seed=11)", 1000, 0xc1189f973e1e387d},
      {"i1[1000]=bits(seed=11)", 1000, 0x72d54d177d93837f},
      {"tf32[1000]=bits(seed=12)", 1000, 0x913178e153231563},
      {"f4E2M1FN[1000]=bits(seed=13)", 1000, 0x2ad27c98d041ed3f},
      {"f64[1000]=bits(seed=0x10)", 1000, 0x7bb20f5abb8f1808},
      {"i16[1000]=arange(32760, step=3)", 1000, 0x03163575172f6149},
      {"i64[100]=arange(start=-5,step=-7)", 100, 0x1a36d6e6cbfa52f8},
      {"f16[1000]=arange(0.5,step=0.1)", 1000, 0x435e65880e12eed9},
      {"f8E4M3FN[600]=arange(step=-1)", 600, 0x9f6f5bf174792010},
      {"f8E8M0FNU[100]=arange", 100, 0x77ba9107b2088058},
      {"bf16[10]=full(0.1)", 10, 0x1b4d43e8105424e1},
      {"f32[4]=full(nan)", 4, 0x60c02e02c2c4a555},
      {"f16[4]=full(-inf)", 4, 0x4f5411fcb00820e5},
      {"tf32[4]=full(0.3)", 4, 0x192f2a53779ab79d},
      {"i32[4]=full(-7)", 4, 0x199fac7abc43aa05},
      {"f64[4]=full(0x3ff8000000000000)", 4, 0x0cf5ca4d3eb4a385},
      {"f4E2M1FN[4]=full(-1.5)", 4, 0x9f1128ca79982859},
      {"f16[5,7]=eye", 35, 0xfb53627124801dc9},
      {"i8[3,3]=eye", 9, 0x5f490f070d449c5c},
      {"f8E4M3FN[9]=ones", 9, 0xa78438fe82e91767},
      {"i64[4]=zeros", 4, 0x0c8210784d8af5a5},
  };
  for (const auto& c : cases) {
    CAPTURE(c.source);
    Diagnostics diags;
    const auto a = made(c.source, diags);
    REQUIRE(a);
    CHECK(a->view().count() == c.count);
    CHECK(digest(a->view()) == c.digest);
  }
}

TEST_CASE("SplitMix64 gives its published outputs") {
  CHECK(random_bits(1234567, 0) == 6457827717110365317u);
  CHECK(random_bits(1234567, 1) == 3203168211198807973u);
  CHECK(random_bits(1234567, 4) == 16408922859458223821u);
}

TEST_CASE("the quantile of the normal distribution meets its known points") {
  CHECK(normal_quantile(0.5) == 0);
  CHECK(std::fabs(normal_quantile(0.975) - 1.959963984540054) < 1e-14);
  CHECK(std::fabs(normal_quantile(0.025) + 1.959963984540054) < 1e-14);
  CHECK(std::fabs(normal_quantile(0x1p-53) + 8.209536151601386) < 1e-13);
}

TEST_CASE("contents go by the index, not by the layout") {
  Diagnostics diags;
  const auto rows = made("f32[4,3]=arange", diags), columns = made("f32[4,3]:strides(1,4)=arange", diags),
             gaps = made("f32[4,3]:strides(8,2)=arange", diags);
  REQUIRE(rows);
  REQUIRE(columns);
  REQUIRE(gaps);
  CHECK(digest(rows->view()) == digest(columns->view()));
  CHECK(digest(rows->view()) == digest(gaps->view()));
  CHECK(load_bits(columns->memory.data(), ElementType::F32, 1) == 0x40400000);  // element [1, 0] is 3
  CHECK(load_bits(gaps->memory.data(), ElementType::F32, 1) == 0xFFFFFFFF);
  const auto empty = made("f32[0,3]=normal(seed=1)", diags), scalar = made("i16[]=full(-2)", diags);
  REQUIRE(empty);
  CHECK(empty->memory.size() == 0);
  REQUIRE(scalar);
  CHECK(load_bits(scalar->memory.data(), ElementType::I16, 0) == 0xFFFE);
  CHECK(made("i32[4]:strides(0)=arange", diags)->memory.size() == 4);
}

TEST_CASE("parameters go by position or by name, and wrong ones are named") {
  Diagnostics diags;
  CHECK(digest(made("f32[9]=normal(3, std=2)", diags)->view()) ==
        digest(made("f32[9]=normal( std = 2 , seed = 3 )", diags)->view()));
  CHECK(digest(made("i8[9]=bits", diags)->view()) == digest(made("i8[9]=bits()", diags)->view()));
  CHECK(error_of("f32[2]=norml").find("E0804: there is no generator 'norml', expected one of zeros, ones") == 0);
  CHECK(error_of("f32[2]=norml").find("did you mean normal?") != std::string::npos);
  CHECK(error_of("f32[2]=normal(sed=1)") ==
        "E0804: normal has no parameter 'sed', expected normal(seed=1, mean=0, std=1)|did you mean seed?");
  CHECK(error_of("f32[2]=normal(1,seed=2)").find("given twice") != std::string::npos);
  CHECK(error_of("f32[2]=normal(seed=1,2)").find("without a name") != std::string::npos);
  CHECK(error_of("f32[2]=normal(1,2,3,4)").find("4 parameters are given") != std::string::npos);
  CHECK(error_of("f32[2]=normal(seed=-1)").find("the seed is '-1'") != std::string::npos);
  CHECK(error_of("f32[2]=normal(std=nan)").find("expected a finite number") != std::string::npos);
  CHECK(error_of("f32[2]=normal(std=,seed=1)").find("is empty") != std::string::npos);
  CHECK(error_of("f32[2]=normal(seed=1").find("not closed") != std::string::npos);
  CHECK(error_of("f32[2]=uniform(lo=-1e308,hi=1e308)").find("too large for f64") != std::string::npos);
  CHECK(error_of("f32[2]=full").find("the parameter value is missing, expected full(value)") != std::string::npos);
  CHECK(error_of("f16[2]=full(65520)").find("'65520' is too large for f16, the largest is 65504") != std::string::npos);
  CHECK(error_of("i8[2]=full(256)").find("too large for i8") != std::string::npos);
  CHECK(error_of("i8[2]=full(1.5)").find("is not an integer") != std::string::npos);
  CHECK(error_of("i32[2]=normal").find("E0803: normal makes floats, the element type is i32|use randint") == 0);
  CHECK(error_of("i8[2]=randint(hi=257)").find("randint makes 0 to 256, expected -128 to 255 for i8") !=
        std::string::npos);
  CHECK(error_of("i8[2]=randint(lo=3,hi=3)").find("expected lo below hi") != std::string::npos);
  CHECK(error_of("f32[2]=eye").find("expected two dimensions") != std::string::npos);
  CHECK(error_of("i4[2]=zeros").find("i4 cannot be in an array") != std::string::npos);
  CHECK(error_of("f32[99999999999]=zeros").find("L0103") == 0);
  CHECK(error_of("f32[99999999999]:strides(0)=zeros").find("L0103") == 0);
}

TEST_CASE("sources that cannot be read say why") {
  CHECK(error_of("").find("the array is missing") != std::string::npos);
  CHECK(error_of("f61[2]=zeros").find("there is no element type 'f61'") != std::string::npos);
  CHECK(error_of("u8[2]=zeros").find("did you mean i8?") != std::string::npos);
  CHECK(error_of("bf61:a.npy").find("there is no element type 'bf61'") != std::string::npos);
  CHECK(error_of("f32[2=zeros").find("the shape is not closed") != std::string::npos);
  CHECK(error_of("f32[-2]=zeros").find("'-2' is found in the shape") != std::string::npos);
  CHECK(error_of("f32[2,]=zeros").find("'' is found in the shape") != std::string::npos);
  CHECK(error_of("f32[2]").find("the argument ends behind the shape") != std::string::npos);
  CHECK(error_of("f32[2]:strides(1,2)=zeros").find("2 strides are given, expected 1") != std::string::npos);
  CHECK(error_of("f32[2]:stride(1)=zeros").find("expected =GENERATOR or :strides") != std::string::npos);
  CHECK(error_of("@1x").find("is not the name of an argument") != std::string::npos);
  CHECK(error_of("f32:").find("the file name is missing") != std::string::npos);
  CHECK(error_of("/no/such/file.npy").find("E0901: cannot read: no such file or directory") == 0);
  CHECK(error_of("/").find("it is a folder, expected a file") != std::string::npos);
}

}  // namespace
}  // namespace tile
