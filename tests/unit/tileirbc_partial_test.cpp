// tileirbc: a file of a version that does not exist yet is read as far as it can be understood, if asked to.
#include <doctest/doctest.h>

#include "tests/unit/tileirbc_files.h"

namespace {

using namespace tile;
using namespace tile::tileirbc_test;

constexpr uint8_t kNewer = 9;  // minor version
const std::string kToken("\x44\1", 2), kUnknown("\xff\1", 2);

struct Reading {
  Diagnostics diags;
  Result<Module> module = Failed;
  Reading(const File& bytes, bool partial) { module = read_tileirbc(bytes, "new", diags, {.partial = partial}); }
  [[nodiscard]] std::string warning(size_t i = 0) const {
    return i < diags.all().size() ? diags.all()[i].message : "none";
  }
};

}  // namespace

TEST_CASE("tileirbc partial: without the option a newer version is refused, and the newest known one is named") {
  File bytes = load(corpus("tileirbc/raw_control_flow.13.5.tileirbc"));
  bytes[9] = kNewer;
  const Reading r(bytes, false);
  CHECK_FALSE(r.module);
  const Diagnostic& d = *r.diags.first_error();
  CHECK(d.code == Code::E0103);
  CHECK(d.message == "bytecode version 13.9, expected 13.1 to 13.5");
  CHECK(d.help.find("13.5 is the newest version known") == 0);
}

TEST_CASE("tileirbc partial: another major version and known versions are as without the option") {
  File bytes = load(corpus("tileirbc/raw_control_flow.13.5.tileirbc"));
  bytes[8] = 14;
  CHECK(Reading(bytes, true).diags.first_error()->code == Code::E0103);
  CHECK(Reading(small_file({kSignature, "\x11"}, kUnknown), true).diags.first_error()->code == Code::E0112);
}

TEST_CASE("tileirbc partial: what is known is read as the newest version") {
  for (const char* name : {"raw_control_flow", "raw_debug_records", "raw_globals", "raw_views", "vector_add"}) {
    CAPTURE(name);
    File bytes = load(corpus("tileirbc") / (std::string(name) + ".13.5.tileirbc"));
    const Reading now(bytes, true);
    bytes[9] = kNewer;
    const Reading r(bytes, true);
    REQUIRE(now.module);
    REQUIRE(r.module);
    CHECK(r.diags.all().empty());
    CHECK(r.module->version == v(13, kNewer));
    CHECK_FALSE(r.module->tileirbc_layout);
    CHECK(text_of(*r.module) == text_of(*now.module));
  }
}

TEST_CASE("tileirbc partial: an unknown operation ends its function, not the file") {
  const File bytes = small_file({kSignature, "\x11"}, {kToken + kToken + kUnknown + kToken + kReturn, kReturn}, kNewer);
  const Reading r(bytes, true);
  REQUIRE(r.module);
  REQUIRE(r.diags.all().size() == 1);
  CHECK_FALSE(r.diags.has_errors());
  CHECK(r.warning() == "unknown opcode 255; the rest of the function is not decoded");
  const Place& p = r.diags.all()[0].place;
  CHECK(p.function == "f");
  CHECK(p.instruction == 2);
  REQUIRE(p.byte_offset > 0);
  CHECK(bytes[static_cast<size_t>(p.byte_offset)] == 0xFF);
  REQUIRE(r.module->functions.size() == 2);
  CHECK(r.module->functions[0].insts.size() == 2);
  CHECK(r.module->functions[1].insts.size() == 1);
  const std::string text = text_of(*r.module);
  CHECK(text.find("not_decoded = \"byte " + std::to_string(p.byte_offset) + ": unknown opcode 255\"") !=
        std::string::npos);
}

TEST_CASE("tileirbc partial: open regions are closed where reading stops") {
  // A loop with one block of three operations, of which the last is not known; then a loop whose block is missing.
  const std::string loop("\x41\0\0\1\1\0\3", 7);
  const Reading inside(small_file({kSignature, "\x11"}, kToken + loop + kToken + loop + kToken + kUnknown, kNewer),
                       true);
  REQUIRE(inside.module);
  const Function& f = inside.module->functions[0];
  CHECK(f.insts.size() == 5);
  CHECK(f.insts[1].next == 5);
  CHECK(f.regions[0].end == 5);
  CHECK(f.region(1).end == 5);
  CHECK(f.region(3).begin == 4);
  CHECK_FALSE(text_of(*inside.module).empty());

  for (const std::string& header : {std::string("\x41\0\0\1\2", 5), std::string("\x41\0\0\2", 4)}) {
    const Reading missing(small_file({kSignature, "\x11"}, kToken + loop + kToken + header, kNewer), true);
    REQUIRE(missing.module);
    const Function& g = missing.module->functions[0];
    CHECK(g.insts.size() == 3);
    CHECK(g.regions.size() == 2);
    CHECK(g.region(1).end == 3);
    CHECK(g.insts[1].next == 3);
    CHECK_FALSE(text_of(*missing.module).empty());
  }
}

TEST_CASE("tileirbc partial: an unknown type ends the function that uses it") {
  const std::string unknown("\xc8\1", 2);
  const Reading r(
      small_file({kSignature, "\x11", unknown}, {kToken + std::string("\x44\2", 2) + kReturn, kReturn}, kNewer), true);
  REQUIRE(r.module);
  CHECK(r.warning() == "unknown type tag 200; the rest of the function is not decoded");
  CHECK(r.module->functions[0].insts.size() == 1);
  CHECK(r.module->functions.size() == 2);
}

TEST_CASE("tileirbc partial: an unknown section is passed over") {
  File bytes = small_file({kSignature}, kReturn, kNewer);
  bytes.pop_back();
  for (uint8_t b : {9, 2, 1, 1, 0}) bytes.push_back(b);
  const Reading r(bytes, true);
  REQUIRE(r.module);
  CHECK(r.warning() == "unknown section 9; its 2 bytes are not decoded");
  CHECK(r.module->functions.size() == 1);
  bytes[9] = 4;
  CHECK(Reading(bytes, true).diags.first_error()->code == Code::E0105);
}

TEST_CASE("tileirbc partial: a function whose head is not understood is the last") {
  File bytes = small_file({kSignature}, {kReturn, kReturn}, kNewer);
  // The flags of the second function, behind the first: name, type, flags, location, hints, attributes, length, return.
  const size_t first = 16, flags = first + 1 + 12 + 2;
  REQUIRE(bytes[flags] == 2);
  bytes[flags] = 0x42;
  const Reading r(bytes, true);
  REQUIRE(r.module);
  CHECK(r.warning() == "function flags 66 have unknown bits; the other functions are not decoded");
  CHECK(r.module->functions.size() == 1);
}

TEST_CASE("tileirbc partial: damaged files of a newer version never crash") {
  for (const char* name : {"raw_control_flow.13.5", "raw_debug_records.13.5", "raw_globals.13.5"}) {
    File bytes = load(corpus("tileirbc") / (std::string(name) + ".tileirbc"));
    REQUIRE_FALSE(bytes.empty());
    bytes[9] = kNewer;
    size_t decoded = 0;
    for (size_t bit = 12 * 8; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      const Reading r(bytes, true);
      if (r.module) {
        ++decoded;
        CHECK_FALSE(r.diags.has_errors());
        if (bit % 4 == 0) CHECK_FALSE(text_of(*r.module).empty());
      }
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    }
    CHECK(decoded > bytes.size() * 4);
  }
}
