// tileirbc: what the form leaves open is kept from the file, so that decoding and encoding gives the same bytes, and is
// never allowed to change what the module says.
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <set>

#include "assembler/tileirbc/layout.h"
#include "tests/unit/tileirbc_files.h"

namespace {

using namespace tile;
using namespace tile::tileirbc_test;
using tileirbc::Bytes;

std::string stem(const fs::path& p) {
  const std::string name = name_of(p);
  return name.substr(0, name.find('.'));
}

Module read_ok(const File& file, const std::string& name = "in") {
  Diagnostics diags;
  auto m = read_tileirbc(file, name, diags);
  REQUIRE_MESSAGE(m, render(diags));
  return std::move(m.value());
}

File write_ok(const Module& m, Version target) {
  Diagnostics diags;
  auto bytes = write_tileirbc(m, target, diags, {.provisional = true});
  REQUIRE_MESSAGE(bytes, render(diags));
  return std::move(bytes.value());
}
File write_ok(const Module& m) {
  return write_ok(m, *m.version);
}

Module without_layout(Module m) {
  m.tileirbc_layout = nullptr;
  return m;
}

bool lacks_region(const Module& m) {
  for (const Function& f : m.functions)
    for (const Region& r : f.regions)
      if (!r.present) return true;
  return false;
}

/// What is written says the same as the module, and is a fixed point.
void check_written(const Module& m, const File& written) {
  const Module again = read_ok(written);
  CHECK(text_of(again) == text_of(m));
  CHECK(write_ok(again) == written);
}

/// The module with its layout changed by `change`.
template <class Change>
Module with_layout(const Module& m, Change change) {
  Module out = m;
  auto layout = std::make_shared<TileirbcLayout>(*m.tileirbc_layout);
  change(*layout);
  out.tileirbc_layout = std::move(layout);
  return out;
}

}  // namespace

TEST_CASE("tileirbc round trip: files come back byte for byte") {
  size_t same = 0;
  for (const auto& path : files("tileirbc")) {
    CAPTURE(path);
    const File bytes = load(path);
    const Module m = read_ok(bytes, name_of(path));
    const File written = write_ok(m);
    check_written(m, written);
    // Its negative f64 identities have more bits than the form has (section "Self-contained attributes").
    if (stem(path) == "float64_reductions") continue;
    CHECK(written == bytes);
    same += written == bytes;
  }
  CHECK(same > 150);
}

TEST_CASE("tileirbc round trip: unusual files come back unless they waste bytes") {
  const std::set<std::string> differ = {
      "bool_byte_2",                  // true is written 1
      "float64_identity_of_65_bits",  // more bits than there are
      "padding_zero",                 // two kinds of padding
      "section_twice",                // the first of them does not count
      "unused_table_entries",         // an unused type of a kind nobody knows
      "varint_10_bytes",              // written short
      "varint_not_shortest",          // written short
  };
  std::set<std::string> different;
  for (const auto& path : files("odd")) {
    CAPTURE(path);
    const File bytes = load(path);
    const Module m = read_ok(bytes, name_of(path));
    const File written = write_ok(m);
    check_written(m, written);
    if (written != bytes) different.insert(stem(path));
  }
  CHECK(different == differ);
}

TEST_CASE("tileirbc round trip: the writer's own choices are those of another writer") {
  // Debug records that nothing uses, and identities that the other writer damages.
  const std::set<std::string> differ = {"atomics_int", "philox_dropout", "float64_reductions"};
  size_t same = 0;
  for (const auto& path : files("tileirbc")) {
    if (name_of(path).starts_with("raw_")) continue;
    CAPTURE(path);
    const File bytes = load(path);
    const Module m = without_layout(read_ok(bytes));
    const File written = write_ok(m);
    check_written(m, written);
    CHECK((written == bytes) != differ.contains(stem(path)));
    same += written == bytes;
  }
  CHECK(same > 90);
}

TEST_CASE("tileirbc round trip: a changed module is written as if it had no layout") {
  const File bytes = load(corpus("tileirbc/raw_debug_records.13.4.tileirbc"));
  const Module m = read_ok(bytes);
  REQUIRE(m.tileirbc_layout);
  CHECK(write_ok(m) == bytes);
  CHECK(write_ok(without_layout(m)) != bytes);
  const auto check_changed = [](const Module& changed) {
    CHECK(write_ok(changed) == write_ok(without_layout(changed)));
    check_written(changed, write_ok(changed));
  };
  Module changed = m;
  changed.functions[0].insts[1].loc = kUnknownLoc;
  check_changed(changed);
  changed = m;
  changed.functions.pop_back();
  changed.order.pop_back();
  check_changed(changed);
  changed = m;
  changed.producer = changed.strings.add("somebody else");
  check_changed(changed);
  CHECK(write_ok(m) == bytes);
}

TEST_CASE("tileirbc round trip: another version is written without the layout") {
  const Module m = read_ok(load(corpus("tileirbc/raw_control_flow.13.3.tileirbc")));
  CHECK(write_ok(m, v(13, 4)) == write_ok(without_layout(m), v(13, 4)));
  CHECK(write_ok(m, v(13, 3)) != write_ok(without_layout(m), v(13, 3)));
}

TEST_CASE("tileirbc round trip: a layout is kept only on request") {
  Diagnostics diags;
  const File bytes = load(corpus("tileirbc/raw_shapes.13.4.tileirbc"));
  CHECK(read_tileirbc(bytes, "in", diags)->tileirbc_layout);
  CHECK_FALSE(read_tileirbc(bytes, "in", diags, {.layout = false})->tileirbc_layout);
}

TEST_CASE("tileirbc round trip: a layout that does not fit never changes the module") {
  uint64_t state = 0x853C49E6748FEA9Bull;
  const auto random = [&state](size_t below) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>((state >> 33) % below);
  };
  for (const char* name :
       {"tileirbc/raw_control_flow.13.4", "tileirbc/raw_debug_records.13.5", "tileirbc/raw_constants.13.4",
        "tileirbc/raw_identities.13.4", "tileirbc/raw_globals.13.3", "odd/duplicate_table_entries",
        "odd/debug_more_slots_than_operations", "odd/debug_unknown_record_kind", "tileirbc/vector_add.13.4"}) {
    CAPTURE(name);
    const Module m = read_ok(load(corpus(name + std::string(".tileirbc"))));
    REQUIRE(m.tileirbc_layout);
    for (int round = 0; round < 60; ++round) {
      CAPTURE(round);
      const Module odd = with_layout(m, [&](TileirbcLayout& l) {
        for (auto* stream : {&l.string_uses, &l.type_uses, &l.constant_uses}) {
          stream->resize(random(200));
          for (uint32_t& x : *stream) x = random(20);
        }
        l.bool_as_integer.resize(random(20));
        for (size_t i = 0; i < l.bool_as_integer.size(); ++i) l.bool_as_integer[i] = random(2) != 0;
        for (auto& f : l.functions) f.location = random(l.lists.size() + 3);
        for (auto& list : l.lists) {
          list.skipped = random(5);
          list.slots.resize(random(30));
          for (uint32_t& slot : list.slots) slot = random(l.debug.size() + 1);
        }
        if (random(2) == 0) l.functions.resize(random(4));
        if (random(2) == 0) l.sections.resize(random(l.sections.size() + 1));
        if (random(2) == 0) l.strings = {};
        if (random(2) == 0) l.debug = {};
        if (random(2) == 0) l.constants = {};
        if (random(2) == 0) l.types = {};
        if (l.strings.size() == 0) l.debug = {};
        if (l.debug.empty()) l.lists = {};
        l.functions_padded = random(2) != 0;
        l.padding = static_cast<uint8_t>(random(256));
        l.globals = {random(50), random(50), random(50), random(50)};
      });
      check_written(m, write_ok(odd));
    }
  }
}

TEST_CASE("tileirbc round trip: what damaged files decode to is written as it is") {
  for (const char* name : {"raw_control_flow.13.4", "raw_debug_records.13.5", "raw_assumptions.13.1"}) {
    CAPTURE(name);
    File bytes = load(corpus("tileirbc") / (std::string(name) + ".tileirbc"));
    size_t decoded = 0;
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      CAPTURE(bit);
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      Diagnostics diags;
      if (const auto m = read_tileirbc(bytes, "in", diags)) {
        if (const auto written = write_tileirbc(*m, *m->version, diags, {.provisional = true})) {
          ++decoded;
          const auto again = read_tileirbc(*written, "in", diags);
          CHECK_MESSAGE(again, render(diags));
          // An else without a block is written as one that does nothing.
          if (again && bit % 4 == 0 && !lacks_region(*m)) CHECK(text_of(*again) == text_of(*m));
          if (again) CHECK(*write_tileirbc(*again, *m->version, diags, {.provisional = true}) == *written);
        }
      }
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    }
    CHECK(decoded > 100);
  }
}

TEST_CASE("tileirbc round trip: equal records stay apart, and each use names the one it named") {
  // Types 1 and 3 are tokens; the operations name 3, 1, 3.
  const File bytes = small_file({kSignature, "\x11", "\x03", "\x11"}, std::string("\x44\3\x44\1\x44\3", 6) + kReturn);
  const Module m = read_ok(bytes);
  CHECK(m.tileirbc_layout->type_uses.size() == 4);
  CHECK(write_ok(m) == bytes);
}

TEST_CASE("tileirbc round trip: streams are kept only where there is a choice") {
  for (const char* name : {"vector_add.13.4", "raw_control_flow.13.4", "matmul_f16.13.4"}) {
    CAPTURE(name);
    const Module m = read_ok(load(corpus("tileirbc") / (std::string(name) + ".tileirbc")));
    const TileirbcLayout& l = *m.tileirbc_layout;
    CHECK(l.string_uses.empty());
    CHECK(l.type_uses.empty());
    for (const auto& list : l.lists) CHECK(list.slots.empty());
  }
  const Module identities = read_ok(load(corpus("tileirbc/raw_identities.13.4.tileirbc")));
  CHECK_FALSE(identities.tileirbc_layout->bool_as_integer.empty());
}

TEST_CASE("tileirbc round trip: types that nothing can use are no danger") {
  // Pointers to themselves, to each other, in a chain deeper than the limit, to nowhere, and an unknown kind.
  std::vector<std::string> types = {kSignature,
                                    std::string("\x0c\0\1", 3),
                                    std::string("\x0c\0\3", 3),
                                    std::string("\x0c\0\2", 3),
                                    std::string("\x0c\0\x7f", 3),
                                    "\x7f"};
  for (char next = static_cast<char>(types.size() + 1); next < 100; ++next)
    types.push_back(std::string("\x0c\0", 2) + next);
  types.push_back("\3");
  const File bytes = small_file(types, kReturn);
  const Module m = read_ok(bytes);
  const File written = write_ok(m);
  check_written(m, written);
  // Types 4 and 5 cannot be read: records without bytes stand for them.
  CHECK(written.size() < bytes.size());
}

TEST_CASE("tileirbc round trip: a file of too many types has no layout") {
  const auto with_types = [](uint64_t n) {
    return read_ok(small_file(std::vector<std::string>(n, kSignature), kReturn));
  };
  CHECK(with_types(tileirbc::kMaxLayoutTypes).tileirbc_layout);
  const Module m = with_types(tileirbc::kMaxLayoutTypes + 1);
  CHECK_FALSE(m.tileirbc_layout);
  check_written(m, write_ok(m));
}

TEST_CASE("tileirbc round trip: alignments of sections are kept up to the limit") {
  const auto aligned = [](uint64_t alignment) { return small_file({kSignature}, std::vector<std::string>{kReturn}, 4, alignment); };
  const File most = aligned(tileirbc::kMaxLayoutAlignment), more = aligned(2 * tileirbc::kMaxLayoutAlignment);
  CHECK(write_ok(read_ok(most)) == most);
  const Module m = read_ok(more);
  const File written = write_ok(m);
  CHECK(written.size() < 1000);
  check_written(m, written);
}

TEST_CASE("tileirbc round trip: a file of too many debug records has no layout") {
  const auto with_records = [](uint64_t n) {
    Bytes debug;
    for (size_t alignment : {4, 8}) {  // no lists, no locations
      debug.varint(0);
      debug.align(alignment);
    }
    debug.varint(n);
    debug.align(4);
    for (uint64_t i = 0; i < n; ++i) debug.fixed(i, 4);
    for (uint64_t i = 0; i < n; ++i) debug.byte(0);  // the unknown location
    return read_ok(small_file({kSignature}, std::vector<std::string>{kReturn}, 4, 8, &debug));
  };
  CHECK(with_records(tileirbc::kMaxLayoutDebugRecords).tileirbc_layout);
  CHECK_FALSE(with_records(tileirbc::kMaxLayoutDebugRecords + 1).tileirbc_layout);
}
