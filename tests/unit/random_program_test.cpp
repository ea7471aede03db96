// Random programs through every form, the validator, and the reference machine with its checkers.
#include <doctest/doctest.h>

#include "assembler/assembler.h"
#include "assembler/tileirbc/tileirbc.h"
#include "tests/random/launch_program.h"
#include "vm/random/random_program.h"
#include "vm/codec/tilebc.h"
#include "vm/ir/valid_module.h"

namespace tile {
namespace {

using namespace random_program;

Program program_of(uint64_t seed) {
  Options options;
  options.seed = seed;
  options.size = 6 + static_cast<unsigned>(seed % 24);
  options.exact = seed % 3 == 0;
  return make(options);
}

}  // namespace

TEST_CASE("random programs are valid") {
  for (uint64_t seed = 1; seed <= 20000; ++seed) {
    Program p = program_of(seed);
    const std::string text = seed % 100 == 0 ? print_text(p.module) : std::string();
    Diagnostics diags;
    const bool ok = validate(std::move(p.module), diags).ok();
    INFO("seed ", seed, "\n", render(diags));
    REQUIRE(ok);
  }
}

TEST_CASE("equal seeds give equal programs") {
  const Program a = program_of(7), b = program_of(7), c = program_of(8);
  CHECK(print_text(a.module) == print_text(b.module));
  CHECK(a.args == b.args);
  CHECK(print_text(a.module) != print_text(c.module));
}

TEST_CASE("random programs go through every form") {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Program p = program_of(seed);
    Diagnostics diags;
    INFO("seed ", seed);
    const std::string text = print_text(p.module);
    const auto parsed = parse_text(std::make_shared<const Source>("k.tile", text), diags);
    INFO(render(diags));
    REQUIRE(parsed);
    CHECK(print_text(*parsed) == text);
    const auto bytes = encode_tilebc(p.module, diags);
    REQUIRE(bytes);
    const auto decoded = decode_tilebc(*bytes, "k", diags);
    REQUIRE(decoded);
    CHECK(encode_tilebc(*decoded) == *bytes);
    CHECK(print_text(*decoded) == text);
    const auto binary = write_tileirbc(p.module, v(13, 4), diags);
    INFO(render(diags));
    REQUIRE(binary);
    const auto of_text =
        write_tileirbc(*parsed, v(13, 4), diags);  // tilebc would differ: it keeps the names that the text has
    REQUIRE(of_text);
    CHECK(*of_text == *binary);
    const auto read = read_tileirbc(*binary, "k", diags);
    REQUIRE(read);
    const auto again = write_tileirbc(*read, v(13, 4), diags);
    REQUIRE(again);
    CHECK(*again == *binary);
  }
}

TEST_CASE("random programs break no rule and give the same with any number of threads") {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Program p = program_of(seed);
    Diagnostics diags;
    auto checked = validate(p.module, diags);
    REQUIRE(checked);
    const auto module = std::make_shared<const ValidModule>(*std::move(checked));
    const Outcome one = launch_on_cpu(module, p, {1, false}), two = launch_on_cpu(module, p, {3, false});
    INFO("seed ", seed, "\n", one.errors);
    REQUIRE(one.errors.empty());
    CHECK(difference(one, two) == "");
    const Outcome watched = launch_on_cpu(module, p, {1, true});
    INFO(watched.errors);
    CHECK(watched.errors.empty());
    CHECK(difference(one, watched) == "");
  }
}

}  // namespace tile
