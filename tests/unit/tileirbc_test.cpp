// tileirbc: every file of tests/corpus decodes or fails as its class says, damaged files never crash, and what is
// written is read back equal.
#include "assembler/tileirbc/tileirbc.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "assembler/tileirbc/reader.h"
#include "tests/unit/tileirbc_files.h"

namespace {

using namespace tile;
using namespace tile::tileirbc_test;
using tileirbc::Bytes;

std::string subclass(const Diagnostics& diags) {
  const Diagnostic* first = diags.first_error();
  return first == nullptr ? "none" : code_info(first->code).subclass;
}

std::string codes_of(const File& file) {
  Diagnostics diags;
  const auto m = read_tileirbc(file, "small", diags);
  return m ? "ok" : code_info(diags.first_error()->code).name;
}

}  // namespace

TEST_CASE("tileirbc: every file of the corpus decodes and prints") {
  REQUIRE(files("tileirbc").size() > 150);
  for (const char* folder : {"tileirbc", "odd"}) {
    for (const auto& path : files(folder)) {
      CAPTURE(path);
      Diagnostics diags;
      const File bytes = load(path);
      CHECK(is_tileirbc(bytes));
      const auto m = read_tileirbc(bytes, name_of(path), diags);
      CHECK_MESSAGE(m, render(diags));
      if (!m) continue;
      CHECK(m->version == v(13, bytes[9]));
      CHECK(m->file == name_of(path));
      CHECK_FALSE(text_of(*m).empty());
    }
  }
}

TEST_CASE("tileirbc: every invalid file is rejected with its class") {
  std::ifstream expected(corpus("invalid/EXPECTED"));
  std::string cls, name;
  size_t seen = 0;
  while (expected >> cls >> name) {
    CAPTURE(name);
    ++seen;
    Diagnostics diags;
    const auto m = read_tileirbc(load(corpus("invalid") / (name + ".tileirbc")), name, diags);
    if (cls == "Verify") {
      // Well-formed: validate() rejects it, unless a Module cannot hold it at all.
      static const std::set<std::string> kUnrepresentable = {"assume_div_by_every_without_along",
                                                             "assume_same_elements_of_scalar",
                                                             "function_private",
                                                             "function_with_results",
                                                             "region_with_two_blocks",
                                                             "type_tile_of_tile"};
      CHECK(m.ok() != kUnrepresentable.contains(name));
      continue;
    }
    CHECK_FALSE(m);
    CHECK(subclass(diags) == cls);
    CHECK(diags.error_count() == 1);
    if (diags.has_errors()) {
      CHECK(diags.first_error()->place.file == name);
      CHECK(diags.first_error()->place.byte_offset >= 0);
    }
  }
  CHECK(seen == 161);
}

TEST_CASE("tileirbc: a wrong magic number, and a version that is unknown") {
  File bytes = load(corpus("tileirbc") / "vector_add.13.4.tileirbc");
  REQUIRE_FALSE(bytes.empty());
  const auto with = [&](size_t at, uint8_t value) {
    File changed = bytes;
    changed[at] = value;
    return codes_of(changed);
  };
  CHECK(with(0, 0x7E) == "E0102");
  CHECK(with(7, 1) == "E0102");
  CHECK(with(8, 14) == "E0103");
  CHECK(with(9, 0) == "E0103");
  CHECK(with(9, 6) == "E0103");
  CHECK(with(10, 1) == "E0103");
}

TEST_CASE("tileirbc: an error in a body names function, instruction and operation") {
  Diagnostics diags;
  CHECK_FALSE(read_tileirbc(load(corpus("invalid/operand_from_closed_region.tileirbc")), "bad", diags));
  const Place& p = diags.first_error()->place;
  CHECK(p.function == "simple");
  CHECK(p.instruction == 4);
  CHECK(p.op == "absi");
  CHECK(p.byte_offset > 0);
}

TEST_CASE("tileirbc: every truncation of a file is rejected") {
  for (const char* name :
       {"raw_control_flow.13.4", "raw_debug_records.13.5", "raw_globals.13.3", "print_and_assert.13.2"}) {
    const File bytes = load(corpus("tileirbc") / (std::string(name) + ".tileirbc"));
    REQUIRE_FALSE(bytes.empty());
    for (size_t n = 0; n < bytes.size(); ++n) {
      Diagnostics diags;
      // A copy of exactly this size lets a sanitizer see the first byte behind it.
      const File part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      CHECK_FALSE(read_tileirbc(part, name, diags));
      CHECK(diags.error_count() == 1);
    }
  }
}

TEST_CASE("tileirbc: a flipped bit is decoded or rejected, and what is decoded prints and writes") {
  for (const char* name :
       {"raw_control_flow.13.4", "raw_debug_records.13.5", "raw_assumptions.13.1", "vector_add.13.4"}) {
    File bytes = load(corpus("tileirbc") / (std::string(name) + ".tileirbc"));
    REQUIRE_FALSE(bytes.empty());
    size_t decoded = 0, rejected = 0;
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      Diagnostics diags;
      if (const auto m = read_tileirbc(bytes, name, diags)) {
        ++decoded;
        if (bit % 16 == 0) CHECK_FALSE(text_of(*m).empty());
        (void)write_tileirbc(*m, kNewestStableVersion, diags);
      } else {
        ++rejected;
        CHECK(diags.error_count() == 1);
      }
      bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    }
    CHECK(decoded > 0);
    CHECK(rejected > 0);
  }
}

TEST_CASE("tileirbc: a module written for any version that can hold it reads back equal") {
  for (const char* folder : {"tileirbc", "odd"}) {
    for (const auto& path : files(folder)) {
      CAPTURE(path);
      Diagnostics diags;
      const auto m = read_tileirbc(load(path), name_of(path), diags);
      REQUIRE(m);
      const std::string text = text_of(*m);
      for (uint8_t minor = 1; minor <= 5; ++minor) {
        CAPTURE(int{minor});
        const Version target = v(13, minor);
        const auto bytes = write_tileirbc(*m, target, diags, {.provisional = true});
        if (!bytes) {
          CHECK(target < required_version(*m));
          CHECK(subclass(diags) == "Since");
          diags.clear();
          continue;
        }
        const auto again = read_tileirbc(*bytes, name_of(path), diags);
        CHECK_MESSAGE(again, render(diags));
        if (!again) continue;
        // Old versions have no producer, and their prints no tokens.
        if (m->producer == again->producer && (minor >= 2) == (*m->version >= v(13, 2))) CHECK(text_of(*again) == text);
        CHECK(*write_tileirbc(*again, target, diags, {.provisional = true}) == *bytes);
      }
    }
  }
}

TEST_CASE("tileirbc: what a version lacks is refused with its place and the first version that has it") {
  const std::map<std::string, std::pair<std::string, Version>> cases = {
      {"atan2 is not in 13.1; the first version that has it is 13.2", {"raw_float_ops.13.5", v(13, 1)}},
      {"saturating of ftoi is not in 13.3; the first version that has it is 13.4", {"raw_conversions.13.4", v(13, 3)}},
      {"ptr_attr unicast is not in 13.4; the first version that has it is 13.5", {"raw_pointer_kinds.13.5", v(13, 4)}},
      {"type f8E8M0FNU is not in 13.1; the first version that has it is 13.2", {"raw_conversions.13.2", v(13, 1)}},
      {"global @hidden is private, which 13.2 cannot say; the first version that can is 13.3",
       {"raw_globals.13.3", v(13, 2)}},
      {"token of print_tko is not in 13.1; the first version that has it is 13.2",
       {"print_and_assert.13.2", v(13, 1)}}};
  for (const auto& entry : cases) {
    const std::string& message = entry.first;
    const auto& input = entry.second;
    CAPTURE(message);
    Diagnostics diags;
    const auto m = read_tileirbc(load(corpus("tileirbc") / (input.first + ".tileirbc")), "in", diags);
    REQUIRE(m);
    CHECK_FALSE(write_tileirbc(*m, input.second, diags));
    const auto& all = diags.all();
    const auto it = std::find_if(all.begin(), all.end(), [&](const Diagnostic& d) { return d.message == message; });
    REQUIRE(it != all.end());
    CHECK(it->code == Code::E0607);
    // A global belongs to no function, and the pointer is a parameter.
    if (!message.starts_with("global")) CHECK_FALSE(it->place.function.empty());
    if (!message.starts_with("global") && !message.starts_with("ptr_attr")) CHECK(it->place.instruction >= 0);
  }
}

TEST_CASE("tileirbc: provisional versions are written only on request") {
  Diagnostics diags;
  const auto m = read_tileirbc(load(corpus("tileirbc/vector_add.13.5.tileirbc")), "in", diags);
  REQUIRE(m);
  CHECK_FALSE(write_tileirbc(*m, v(13, 5), diags));
  CHECK(subclass(diags) == "Since");
  diags.clear();
  CHECK(write_tileirbc(*m, v(13, 5), diags, {.provisional = true}));
  CHECK_FALSE(write_tileirbc(*m, v(13, 6), diags, {.provisional = true}));
  CHECK_FALSE(write_tileirbc(*m, v(13, 0), diags));
}

TEST_CASE("tileirbc: constants take the storage form, and full ones with equal elements become splats") {
  Diagnostics diags;
  const auto m = read_tileirbc(load(corpus("odd/splat_written_in_full.tileirbc")), "in", diags);
  REQUIRE(m);
  CHECK(m->attrs.get(m->functions[0].attr(0, 0)).bytes == std::string("\3\0\0\0", 4));
}

TEST_CASE("tileirbc: values are numbered before the regions of their operation") {
  Diagnostics diags;
  const auto m = read_tileirbc(load(corpus("tileirbc/nested_control.13.4.tileirbc")), "in", diags);
  REQUIRE(m);
  const Function& f = m->functions[0];
  size_t nested = 0;
  for (InstId i = 0; i < f.insts.size(); ++i) {
    for (ValueId o : f.operands(i)) CHECK(o < f.insts[i].first_result);
    if (f.def(i).regions > 0 && f.region(i).arg_count > 0) {
      CHECK(f.region(i).first_arg == f.insts[i].first_result + f.insts[i].result_count);
      ++nested;
    }
  }
  CHECK(nested > 0);
}

TEST_CASE("tileirbc: regions nest up to the limit and not beyond") {
  // A loop in a loop in a loop: no results, no operands, one region with one block of two operations; `break` ends
  // each.
  const auto nested = [](size_t levels) {
    const std::string open("\x41\0\0\1\1\0\2", 7), first("\x41\0\0\1\1\0\1", 7), leaf("\x0a\0\0", 3);
    std::string body;
    for (size_t i = 0; i < levels; ++i) body += i + 1 == levels ? first : open;
    for (size_t i = 0; i < levels; ++i) body += leaf;
    return small_file({kSignature}, body + kReturn);
  };
  CHECK(codes_of(nested(1)) == "ok");
  CHECK(codes_of(nested(tileirbc::kMaxRegionNesting)) == "ok");
  CHECK(codes_of(nested(tileirbc::kMaxRegionNesting + 1)) == "L0102");
}

TEST_CASE("tileirbc: types nest up to the limit and not beyond") {
  const auto pointers = [](int levels) {
    // Type 0 is the signature, the last one i32, and each pointer points to the type after it.
    std::vector<std::string> types{kSignature};
    for (int i = 1; i < levels; ++i) types.push_back(std::string("\x0c\0", 2) + static_cast<char>(i + 1));
    types.push_back("\3");
    return small_file(types, std::string("\x44\1", 2) + kReturn);
  };
  CHECK(codes_of(pointers(2)) == "ok");
  CHECK(codes_of(pointers(tileirbc::kMaxTypeNesting)) == "ok");
  CHECK(codes_of(pointers(tileirbc::kMaxTypeNesting + 1)) == "L0102");
}

TEST_CASE("tileirbc: attributes nest up to the limit and not beyond") {
  const auto arrays = [](int levels) {
    // assume with a predicate of arrays in arrays: too deep, or else no predicate.
    std::string body("\x06\1", 2);
    for (int i = 1; i < levels; ++i) body += std::string("\6\1", 2);
    body += std::string("\3\0", 2);
    return small_file({kSignature, "\3"}, body + std::string(40, '\0'));
  };
  CHECK(codes_of(arrays(tileirbc::kMaxAttrNesting)) == "E0115");
  CHECK(codes_of(arrays(tileirbc::kMaxAttrNesting + 1)) == "L0102");
}

TEST_CASE("tileirbc: ranks up to the limit and not beyond") {
  const auto ranked = [](uint64_t rank) {
    Bytes tile;
    tile.varint(13);
    tile.varint(2);
    tile.varint(rank);
    for (uint64_t i = 0; i < rank; ++i) tile.fixed(1, 8);
    return small_file({kSignature, tile.str(), "\3"}, std::string("\x44\1", 2) + kReturn);
  };
  CHECK(codes_of(ranked(tileirbc::kMaxRank)) == "ok");
  CHECK(codes_of(ranked(tileirbc::kMaxRank + 1)) == "E0108");
}

TEST_CASE("tileirbc: parameters up to the limit and not beyond") {
  const auto with_params = [](uint64_t n) {
    Bytes signature;
    signature.varint(16);
    signature.varint(n);
    for (uint64_t i = 0; i < n; ++i) signature.varint(1);
    signature.varint(0);
    return small_file({signature.str(), "\3"}, kReturn);
  };
  CHECK(codes_of(with_params(tileirbc::kMaxParams)) == "ok");
  CHECK(codes_of(with_params(tileirbc::kMaxParams + 1)) == "L0103");
}

TEST_CASE("tileirbc: a file has at most 256 MiB") {
  // Zeros that take no memory until they are read.
  constexpr size_t kSize = tileirbc::kMaxFileBytes + 1;
  void* const zeros = mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(zeros != MAP_FAILED);
  const auto first = [&](size_t size) {
    Diagnostics diags;
    CHECK_FALSE(read_tileirbc(std::span(static_cast<const uint8_t*>(zeros), size), "big", diags));
    return std::string(code_info(diags.first_error()->code).name) + " " + diags.first_error()->message;
  };
  CHECK(first(tileirbc::kMaxFileBytes).starts_with("E0102"));
  CHECK(first(kSize).starts_with("L0101"));
  CHECK(first(kSize).find(std::to_string(tileirbc::kMaxFileBytes)) != std::string::npos);
  munmap(zeros, kSize);
}

TEST_CASE("tileirbc: debug records nest up to the limit and not beyond") {
  const auto blocks = [](int levels) {
    Diagnostics diags;
    Module m;
    const StringId name = m.strings.add("f");
    m.name = name;
    const ScopeId file = m.locs.add_scope({.kind = DebugScope::Kind::File, .name = name, .directory = name});
    const ScopeId unit = m.locs.add_scope({.kind = DebugScope::Kind::CompileUnit, .file = file});
    ScopeId scope = m.locs.add_scope({.kind = DebugScope::Kind::Subprogram, .name = name, .linkage_name = name, .file = file, .compile_unit = unit});
    for (int i = 0; i < levels; ++i)
      scope = m.locs.add_scope({.kind = DebugScope::Kind::LexicalBlock, .file = file, .scope = scope, .line = 1});
    Function& f = m.functions.emplace_back();
    f.name = name;
    f.loc = m.locs.add({.kind = Loc::Kind::Scoped, .file = name, .line = 1, .scope = scope});
    FunctionBuilder b(f, {});
    (void)b.op({.op = Opcode::Return, .loc = f.loc});
    b.finish();
    const auto bytes = write_tileirbc(m, kNewestStableVersion, diags);
    REQUIRE(bytes);
    return codes_of(*bytes);
  };
  // The location, the subprogram and its unit are levels too; the file is read before, where the outermost block names it.
  CHECK(blocks(tileirbc::kMaxDebugNesting - 3) == "ok");
  CHECK(blocks(tileirbc::kMaxDebugNesting - 2) == "L0102");
}

TEST_CASE("tileirbc: a string used everywhere counts every time") {
  // An assert with a message of a mebibyte, so often that the text would have more bytes than the limit allows, or just
  // as many.
  const auto asserts = [](uint64_t uses) {
    Diagnostics diags;
    Module m;
    m.name = m.strings.add("kernels");
    const StringId message = m.strings.add(std::string(1 << 20, 'x'));
    Function f;
    f.name = m.strings.add("f");
    const TypeId flag = m.types.tile(ElementType::I1);
    m.functions.push_back(f);
    const TypeId params[] = {flag};
    FunctionBuilder b(m.functions.back(), params);
    const ValueId condition[] = {0};
    const uint32_t words[] = {message};
    for (uint64_t i = 0; i < uses; ++i) (void)b.op({.op = Opcode::Assert, .operands = condition, .attrs = words});
    (void)b.op({.op = Opcode::Return});
    b.finish();
    const auto bytes = write_tileirbc(m, kNewestStableVersion, diags);
    REQUIRE(bytes);
    return codes_of(*bytes);
  };
  const uint64_t uses = (tileirbc::kUseFloor >> 20) + tileirbc::kUsePerByte;
  CHECK(codes_of(load(corpus("tileirbc/vector_add.13.4.tileirbc"))) == "ok");
  CHECK(asserts(uses) == "ok");
  CHECK(asserts(uses + 8) == "L0103");
}

TEST_CASE("tileirbc: enormous counts cost nothing") {
  const std::string huge("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 10);
  for (const std::string& body : {"\x5c" + huge, std::string("\x5c\0", 2) + huge, "\x41" + huge,
                                  std::string("\x41\0", 2) + huge, std::string("\x41\0\0\1\1", 5) + huge,
                                  std::string("\x41\0\0\1\1\0", 6) + huge, std::string("\x55\1\1\0\0", 5) + huge}) {
    CHECK(codes_of(small_file({kSignature, "\x11"}, body)) != "ok");
  }
  CHECK(codes_of(small_file({std::string("\x10", 1) + huge}, kReturn)) == "E0101");
  CHECK(codes_of(small_file({kSignature, "\x0d" + std::string(1, '\2') + huge, "\3"},
                            std::string("\x44\1", 2) + kReturn)) == "E0101");
}

TEST_CASE("tileirbc: a file of many operations is read in one pass") {
  std::string body;
  for (int i = 0; i < 200000; ++i) body += std::string("\x44\1", 2);
  Diagnostics diags;
  const auto m = read_tileirbc(small_file({kSignature, "\x11"}, body + kReturn), "long", diags);
  REQUIRE(m);
  CHECK(m->functions[0].insts.size() == 200001);
}
