// tilebc: every module of tests/corpus comes back from its bytes, bytes do not depend on how a module was made, damaged
// files never crash and are rejected with the right code, limits hold at their value, and files of released versions
// stay readable.
#include "vm/codec/tilebc.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "assembler/assembler.h"
#include "assembler/tileirbc/tileirbc.h"
#include "vm/codec/tilebc_format.h"
#include "vm/ir/function_builder.h"
#include "vm/ir/valid_module.h"

namespace {

using namespace tile;
namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

fs::path test_folder(const std::string& folder) {
#ifdef TILE_TEST_SOURCE_DIR
  const fs::path root = TILE_TEST_SOURCE_DIR;
#else
  const char* root_name = std::getenv("TILE_TEST_SOURCE_DIR");
  const fs::path root = root_name != nullptr ? root_name : ".";
#endif
  return root / "tests" / folder;
}

Bytes load(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> files(const std::string& folder, const std::string& extension) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(test_folder(folder)))
    if (entry.is_regular_file() && (extension.empty() || entry.path().extension() == extension))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string text_of(const Module& m) {
  return print_text(m, {.debug_info = true});
}

Module parse_ok(const std::string& text) {
  Diagnostics diags;
  auto m = parse_text(std::make_shared<const Source>("test.tile", text), diags);
  INFO(render(diags));
  REQUIRE(m.ok());
  return std::move(m).value();
}

Bytes encode_ok(const Module& m) {
  Diagnostics diags;
  auto bytes = encode_tilebc(m, diags);
  INFO(render(diags));
  REQUIRE(bytes.ok());
  return std::move(bytes).value();
}

Module decode_ok(const Bytes& bytes) {
  Diagnostics diags;
  auto m = decode_tilebc(bytes, "test.tilebc", diags);
  INFO(render(diags));
  REQUIRE(m.ok());
  return std::move(m).value();
}

/// Code and message of the error that decoding gives.
std::string rejected(const Bytes& bytes) {
  Diagnostics diags;
  const bool ok = decode_tilebc(bytes, "test.tilebc", diags).ok();
  if (ok || !diags.has_errors()) return ok ? "accepted" : "rejected without a reason";
  return std::string(code_info(diags.first_error()->code).name) + ": " + diags.first_error()->message;
}

std::string refused(const Module& m) {
  Diagnostics diags;
  const bool ok = encode_tilebc(m, diags).ok();
  if (ok || !diags.has_errors()) return ok ? "accepted" : "refused without a reason";
  return code_info(diags.first_error()->code).name;
}

/// Says if `bytes` are rejected with a code and a message that contains `words`.
void check_rejected(const Bytes& bytes, const std::string& code, const std::string& words = {}) {
  const std::string found = rejected(bytes);
  CHECK_MESSAGE((found.starts_with(code + ": ") && found.find(words) != std::string::npos), found, ", expected ", code,
                ": ..", words);
}

/// What any input must do: be rejected with a reason, or be a module that prints, validates and keeps its bytes from
/// now on.
bool survives(const Bytes& bytes) {
  Diagnostics diags;
  auto m = decode_tilebc(bytes, "damaged", diags);
  if (!m) return diags.has_errors();
  const std::string text = text_of(*m);
  const Bytes again = encode_tilebc(*m);
  const auto second = decode_tilebc(again, "again", diags);
  // Writing merges equal records, so a module near the limit on shared use may pass it then.
  if (!second) return code_info(diags.first_error()->code).cls == FailureClass::Exhausted;
  const bool same = encode_tilebc(*second) == again && text_of(*second) == text;
  (void)validate(std::move(*m), diags);
  return same;
}

/// Finds the bytes of a field, following the FlatBuffers layout: tables start with the distance back to their vtable,
/// which holds the place of each field; offsets point forwards.
class Patch {
 public:
  explicit Patch(Bytes bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] size_t root() const { return read(0, 4); }
  /// True if field `id` of a table is stored; those with their default are not.
  [[nodiscard]] bool has(size_t table, size_t id) const {
    return slot(table, id) + 2 <= vtable(table) + read(vtable(table), 2) && read(slot(table, id), 2) != 0;
  }
  [[nodiscard]] size_t field(size_t table, size_t id) const {
    REQUIRE(has(table, id));
    return table + read(slot(table, id), 2);
  }
  /// The length of a vector field, in front of its elements.
  [[nodiscard]] size_t vector(size_t table, size_t id) const {
    const size_t at = field(table, id);
    return at + read(at, 4);
  }
  [[nodiscard]] size_t element(size_t table, size_t id, size_t index, size_t size) const {
    REQUIRE(index < read(vector(table, id), 4));
    return vector(table, id) + 4 + index * size;
  }
  [[nodiscard]] size_t child(size_t table, size_t id, size_t index) const {
    const size_t at = element(table, id, index, 4);
    return at + read(at, 4);
  }
  [[nodiscard]] uint64_t read(size_t at, size_t size) const {
    uint64_t x = 0;
    for (size_t k = 0; k < size; ++k) x |= uint64_t{bytes_.at(at + k)} << (8 * k);
    return x;
  }
  [[nodiscard]] Bytes with(size_t at, size_t size, uint64_t value) const {
    Bytes out = bytes_;
    for (size_t k = 0; k < size; ++k) out.at(at + k) = static_cast<uint8_t>(value >> (8 * k));
    return out;
  }
  [[nodiscard]] size_t vtable(size_t table) const {  // before or behind the table, which others may share it with
    return table - static_cast<size_t>(static_cast<int32_t>(read(table, 4)));
  }
  [[nodiscard]] size_t slot(size_t table, size_t id) const { return vtable(table) + 4 + 2 * id; }
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// Field ids of schema/tile.fbs.
namespace module_field {
enum {
  kMajor,
  kMinor,
  kVersion,
  kName,
  kProducer,
  kStrings,
  kTypes,
  kAttributes,
  kScopes,
  kLocs,
  kGlobals,
  kFunctions,
  kOrder
};
}
namespace function_field {
enum { kName, kLoc, kHints, kArgAttrs, kParams, kInsts, kWords, kRegions, kValueNames, kExtras };
}
namespace type_field {
enum { kKind, kElement, kInner, kShape };
}
namespace attribute_field {
enum { kTag, kType, kBits, kFlags, kString, kInts, kItems, kEntries, kBytes };
}
namespace loc_field {
enum { kKind, kFile, kLine, kColumn, kEndLine, kEndColumn, kScope, kCallee, kCaller, kParts };
}
constexpr size_t kInstBytes = 12, kRegionBytes = 12;
constexpr uint32_t kHuge = 1000000;

const char* const kKernel = R"(cuda_tile.module @test {
  global @table alignment = 8 <i32: [3, 4]> : tile<2xi32>
  entry @kernel(%a: tile<ptr<f32>>, %n: tile<i32>) optimization_hints=<sm_90 = {num_cta_in_cga = 2}> {
    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %sum = for %i in (%zero to %n, step %one) : tile<i32> iter_values(%acc = %zero) -> (tile<i32>) {
      %next = addi %acc, %i : tile<i32>
      continue %next : tile<i32>
    }
    %less = cmpi less_than %sum, %n, signed : tile<i32> -> tile<i1>
    if %less {
      %p = assume div_by<16>, %a : tile<ptr<f32>>
      %v, %t = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
      yield
    }
    return
  }
}
)";

Patch kernel() {
  return Patch(encode_ok(parse_ok(kKernel)));
}

/// Index of the kernel's first instruction with a mnemonic.
size_t find_inst(const char* mnemonic) {
  const Module m = parse_ok(kKernel);
  const Function& f = m.functions[0];
  for (InstId i = 0; i < f.insts.size(); ++i)
    if (f.def(i).name == mnemonic) return i;
  FAIL("no such operation");
  return 0;
}

/// A module with one entry whose body `fill` appends.
Module build(const std::function<void(Module&, FunctionBuilder&)>& fill) {
  Module m;
  m.name = m.strings.add("built");
  m.functions.emplace_back().name = m.strings.add("kernel");
  m.order.push_back(0);
  FunctionBuilder builder(m.functions[0], {});
  fill(m, builder);
  builder.op({.op = Opcode::Return});
  builder.finish();
  return m;
}

Module nested_loops(uint32_t depth) {
  return build([&](Module&, FunctionBuilder& b) {
    for (uint32_t i = 0; i < depth; ++i) {
      b.op({.op = Opcode::Loop});
      (void)b.begin_region({});
    }
    for (uint32_t i = 0; i < depth; ++i) {
      b.op({.op = Opcode::Break});
      b.end_region();
      b.end_op();
    }
  });
}

Module with_extra(const std::function<AttrId(Module&)>& make) {
  return build([&](Module& m, FunctionBuilder& b) {
    const AttrId inner = make(m);
    const AttrId dictionary = m.attrs.add({.tag = AttrTag::Dictionary, .entries = {{m.strings.add("key"), inner}}});
    b.function().extra_attrs.emplace_back(0, dictionary);
  });
}

Module with_location(const std::function<LocId(Module&)>& make) {
  Module m = build([](Module&, FunctionBuilder&) {});
  m.functions[0].loc = make(m);
  return m;
}

TEST_SUITE("tilebc") {
  TEST_CASE("every tileirbc module of the corpus comes back from its bytes") {
    const auto inputs = files("corpus/tileirbc", ".tileirbc");
    REQUIRE(inputs.size() > 100);
    for (const fs::path& path : inputs) {
      CAPTURE(path.filename().string());
      Diagnostics diags;
      const auto m = read_tileirbc(load(path), "input", diags);
      REQUIRE(m.ok());
      const Bytes bytes = encode_ok(*m);
      CHECK(is_tilebc(bytes));
      const Module again = decode_ok(bytes);
      CHECK(again.version == required_version(*m));
      CHECK(text_of(again) == text_of(*m));
      CHECK(encode_ok(again) == bytes);
    }
  }

  TEST_CASE("every text of the corpus comes back from its bytes, names included") {
    for (const fs::path& path : files("corpus/text", "")) {
      CAPTURE(path.filename().string());
      const Bytes text = load(path);
      const Module m = parse_ok(std::string(text.begin(), text.end()));
      const Bytes bytes = encode_ok(m);
      const Module again = decode_ok(bytes);
      CHECK(text_of(again) == text_of(m));
      CHECK(encode_ok(again) == bytes);
    }
  }

  TEST_CASE("bytes depend neither on other entries of the tables nor on their order") {
    const auto fill = [](Module& m, FunctionBuilder& b) {
      const TypeId i32 = m.types.tile(ElementType::I32);
      const uint32_t value[] = {m.attrs.dense(m.types, i32, std::string("\7\0\0\0", 4))};
      const TypeId result[] = {i32};
      b.op({.op = Opcode::Constant, .attrs = value, .result_types = result});
      b.name_value(0, m.strings.add("seven"));
    };
    const Module plain = build(fill);
    const Module crowded = build([&](Module& m, FunctionBuilder& b) {
      (void)m.strings.add("unused");
      (void)m.strings.add("seven");
      (void)m.attrs.boolean(true);
      (void)m.types.tile(ElementType::F64);
      (void)m.locs.add({.kind = Loc::Kind::Named, .file = 0});
      fill(m, b);
    });
    const Bytes bytes = encode_ok(plain);
    CHECK(encode_ok(crowded) == bytes);
    CHECK(encode_tilebc(crowded) == bytes);
  }

  TEST_CASE("an order that is not the usual one is kept") {
    Module m = parse_ok(kKernel);
    m.order = {0, Module::kGlobalBit};
    const Bytes bytes = encode_ok(m);
    CHECK(decode_ok(bytes).order == m.order);
    m.order = {Module::kGlobalBit, 0};
    CHECK(encode_ok(m).size() < bytes.size());
    m.order.clear();  // as a frontend may leave it
    CHECK(decode_ok(encode_ok(m)).order == std::vector<uint32_t>{Module::kGlobalBit, 0});
  }

  TEST_CASE("no truncated file crashes") {
    for (const char* name : {"matmul_f16.13.4.tileirbc", "raw_constants.13.4.tileirbc", "raw_globals.13.5.tileirbc"}) {
      CAPTURE(name);
      Diagnostics diags;
      const auto m = read_tileirbc(load(test_folder("corpus/tileirbc") / name), name, diags);
      REQUIRE(m.ok());
      const Bytes bytes = encode_ok(*m);
      for (size_t length = 0; length < bytes.size(); ++length) {
        if (!survives(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length))))
          FAIL_CHECK("length ", length);
      }
    }
  }

  TEST_CASE("no damaged file crashes, and what is still accepted is a module") {
    std::mt19937 random(20240607);
    const auto inputs = files("corpus/tileirbc", ".tileirbc");
    const size_t flips =
        std::getenv("TILE_TEST_FLIPS") ? std::strtoull(std::getenv("TILE_TEST_FLIPS"), nullptr, 10) : 30;
    for (const fs::path& path : inputs) {
      CAPTURE(path.filename().string());
      Diagnostics diags;
      const auto m = read_tileirbc(load(path), "input", diags);
      REQUIRE(m.ok());
      const Bytes bytes = encode_ok(*m);
      for (size_t k = 0; k < flips; ++k) {
        Bytes damaged = bytes;
        for (size_t edits = 1 + random() % 3; edits > 0; --edits) {
          const size_t at = random() % damaged.size();
          if (random() % 2)
            damaged[at] ^= static_cast<uint8_t>(1u << random() % 8);
          else
            damaged[at] = static_cast<uint8_t>(random() % 4 ? random() % 12 : 0xFF);
        }
        if (!survives(damaged)) FAIL_CHECK("round ", k);
      }
    }
  }

  TEST_CASE("a file at an odd address decodes") {
    Bytes bytes = kernel().bytes();
    bytes.insert(bytes.begin(), 0);
    Diagnostics diags;
    CHECK(decode_tilebc(std::span(bytes).subspan(1), "test.tilebc", diags).ok());
  }

  TEST_CASE("containers: size, identifier, version, structure") {
    const Patch p = kernel();
    const size_t root = p.root();
    check_rejected({}, "E0201");
    check_rejected(Bytes(p.bytes().begin(), p.bytes().begin() + 7), "E0201");
    check_rejected(p.with(4, 1, 'X'), "E0202");
    check_rejected(p.with(p.field(root, module_field::kMajor), 2, 2), "E0203", "tilebc 2");
    check_rejected(p.with(p.field(root, module_field::kMajor), 2, 0), "E0203", "tilebc 0.0");
    // The minor version is 0 and so not stored; let its place be that of the major version.
    const size_t major = p.field(root, module_field::kMajor) - root;
    check_rejected(p.with(p.slot(root, module_field::kMinor), 2, major), "E0203",
                   "tilebc 1.1, this program reads up to 1.0");
    check_rejected(p.with(p.field(root, module_field::kVersion), 1, 0), "E0203", "13.0");
    check_rejected(p.with(p.field(root, module_field::kVersion), 1, 6), "E0203", "13.6");
    check_rejected(p.with(0, 4, kHuge), "E0204");
    check_rejected(p.with(p.field(root, module_field::kFunctions), 4, kHuge), "E0204");
    check_rejected(p.with(p.vector(root, module_field::kFunctions), 4, kHuge), "E0204");
  }

  TEST_CASE("a vector of 64-bit numbers must be aligned") {
    const Patch p = kernel();
    const size_t root = p.root();
    for (size_t i = 0; i < p.read(p.vector(root, module_field::kTypes), 4); ++i) {
      const size_t type = p.child(root, module_field::kTypes, i);
      if (!p.has(type, type_field::kShape)) continue;
      // The shape is [2]. Moved on by 4 bytes, the vector has the length 2 and its elements stand between two places.
      const size_t shape = p.field(type, type_field::kShape);
      check_rejected(p.with(shape, 4, p.read(shape, 4) + 4), "E0204", "not aligned");
      return;
    }
    FAIL("no type has a shape");
  }

  TEST_CASE("an index beyond its table is rejected") {
    const Patch p = kernel();
    const size_t root = p.root(), function = p.child(root, module_field::kFunctions, 0),
                 global = p.child(root, module_field::kGlobals, 0);
    check_rejected(p.with(p.field(root, module_field::kName), 4, kHuge), "E0205", "string 1000000");
    check_rejected(p.with(p.field(function, function_field::kName), 4, kHuge), "E0205", "string");
    check_rejected(p.with(p.field(function, function_field::kHints), 4, kHuge), "E0205", "attribute");
    check_rejected(p.with(p.element(function, function_field::kParams, 0, 4), 4, kHuge), "E0205", "type");
    check_rejected(p.with(p.element(function, function_field::kValueNames, 0, 8), 4, kHuge), "E0205", "value 1000000");
    check_rejected(p.with(p.element(function, function_field::kValueNames, 0, 8) + 4, 4, kHuge), "E0205", "string");
    check_rejected(p.with(p.field(global, 0), 4, kNone), "E0205", "string is missing");
    const size_t first_word = p.element(function, function_field::kWords, 0, 4);  // constant: value, type, location
    check_rejected(p.with(first_word, 4, kHuge), "E0205", "attribute");
    check_rejected(p.with(first_word + 4, 4, kHuge), "E0205", "type");
    check_rejected(p.with(first_word + 8, 4, kHuge), "E0205", "location");
    CHECK(find_inst("constant") == 0);
  }

  TEST_CASE("an operand must be defined before") {
    const Bytes bytes = encode_ok(build([](Module& m, FunctionBuilder& b) {
      const TypeId type[] = {m.types.token()};
      b.op({.op = Opcode::MakeToken, .result_types = type});
      const ValueId tokens[] = {0};
      b.op({.op = Opcode::JoinTokens, .operands = tokens, .result_types = type});
    }));
    const Patch p(bytes);
    const size_t function = p.child(p.root(), module_field::kFunctions, 0);
    const size_t operand =
        p.element(function, function_field::kWords, 2, 4);  // after the type and location of make_token
    REQUIRE(p.read(operand, 4) == 0);
    check_rejected(p.with(operand, 4, 1), "E0205", "operand 0 is value 1, but only 1 are defined here");
  }

  TEST_CASE("instructions: opcode, reserved field, counts") {
    const Patch p = kernel();
    const size_t function = p.child(p.root(), module_field::kFunctions, 0);
    const size_t constant = p.element(function, function_field::kInsts, 0, kInstBytes);
    const size_t add = p.element(function, function_field::kInsts, find_inst("addi"), kInstBytes);
    check_rejected(p.with(constant, 2, 0x7F), "E0206", "unknown opcode 127");
    check_rejected(p.with(constant, 2, 0xFFFF), "E0206", "unknown opcode 65535");
    check_rejected(p.with(constant, 2, static_cast<uint16_t>(Opcode::Entry)), "E0206", "inside a function");
    check_rejected(p.with(constant + 2, 2, 1), "E0206", "reserved");
    check_rejected(p.with(add + 4, 4, 3), "E0207", "addi with 3 operands");
    check_rejected(p.with(add + 4, 4, kHuge), "E0207", "words");
    check_rejected(p.with(add + 8, 4, 0), "E0207", "addi with 0 results");
    check_rejected(p.with(add + 8, 4, 0xFFFFFFFF), "E0207", "words");
    const size_t words = p.vector(function, function_field::kWords);
    check_rejected(p.with(words, 4, p.read(words, 4) - 1), "E0207", "return has 1 words, but only 0 are left");
    const size_t insts = p.vector(function, function_field::kInsts);
    check_rejected(p.with(insts, 4, p.read(insts, 4) - 1), "E0207", "1 words are left over");
  }

  TEST_CASE("operand groups must add up") {
    // load_ptr_tko has three optional operands, so its words begin with four counts.
    const Patch p(
        encode_ok(parse_ok("cuda_tile.module @m { entry @k(%p: tile<ptr<f32>>) { %v, %t = load_ptr_tko weak %p : "
                           "tile<ptr<f32>> -> tile<f32>, token\n return } }")));
    const size_t words = p.element(p.child(p.root(), module_field::kFunctions, 0), function_field::kWords, 0, 4);
    REQUIRE(p.read(words, 4) == 1);
    check_rejected(p.with(words, 4, 0), "E0207", "source has 0 values");
    check_rejected(p.with(words + 4, 4, 2), "E0207", "mask has 2 values");
    check_rejected(p.with(words + 4, 4, 1), "E0207", "with 1 operands");
  }

  TEST_CASE("regions must fit what surrounds them") {
    const Patch p = kernel();
    const size_t function = p.child(p.root(), module_field::kFunctions, 0);
    const size_t loop = p.element(function, function_field::kRegions, 0, kRegionBytes);
    const size_t otherwise = p.element(function, function_field::kRegions, 2, kRegionBytes);  // the absent else
    REQUIRE(p.read(loop, 4) == 2);
    REQUIRE(p.read(otherwise + 8, 1) == 0);
    check_rejected(p.with(loop, 4, kHuge), "E0208", "1000000 instructions");
    check_rejected(p.with(loop + 4, 4, kHuge), "E0208", "1000000 arguments");
    check_rejected(p.with(otherwise, 4, 1), "E0208", "without a block");
    const size_t regions = p.vector(function, function_field::kRegions);
    check_rejected(p.with(regions, 4, 2), "E0208", "no record");
  }

  TEST_CASE("a region table with a record too many is rejected") {
    // Turning the first loop into a break leaves its region without an owner.
    const Patch p(encode_ok(nested_loops(1)));
    const size_t function = p.child(p.root(), module_field::kFunctions, 0);
    const size_t loop = p.element(function, function_field::kInsts, 0, kInstBytes);
    check_rejected(p.with(loop, 2, static_cast<uint16_t>(Opcode::Break)), "E0208",
                   "1 regions, but its operations only 0");
  }

  TEST_CASE("attribute records must be readable and fit their place") {
    const Patch p = kernel();
    const size_t root = p.root(), function = p.child(root, module_field::kFunctions, 0);
    const size_t count = p.read(p.vector(root, module_field::kAttributes), 4);
    size_t tried = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t attribute = p.child(root, module_field::kAttributes, i);
      if (!p.has(attribute, attribute_field::kTag)) continue;
      const size_t tag = p.field(attribute, attribute_field::kTag);
      check_rejected(p.with(tag, 1, 200), "E0209", "unknown tag 200");
      ++tried;
    }
    CHECK(tried > 2);
    const size_t table = p.child(root, module_field::kAttributes, 0);  // the value of the global
    check_rejected(p.with(p.vector(table, attribute_field::kBytes), 4, 7), "E0209",
                   "neither one element nor all of them");
    check_rejected(p.with(p.field(function, function_field::kHints), 4, 0), "E0209", "no dictionary");
    const Patch compare(
        encode_ok(parse_ok("cuda_tile.module @m { entry @k(%a: tile<i32>) { %c = cmpi less_than %a, %a, signed : "
                           "tile<i32> -> tile<i1>\n return } }")));
    const size_t words =
        compare.element(compare.child(compare.root(), module_field::kFunctions, 0), function_field::kWords, 0, 4);
    check_rejected(compare.with(words + 8, 4, 99), "E0209", "comparison_predicate is 99, expected at most 5");
    check_rejected(compare.with(words + 8, 4, kNone), "E0209", "comparison_predicate is missing");
  }

  TEST_CASE("type records must be readable") {
    const Patch p = kernel();
    const size_t root = p.root();
    const size_t count = p.read(p.vector(root, module_field::kTypes), 4);
    size_t inner = 0, elements = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t type = p.child(root, module_field::kTypes, i);
      if (!p.has(type, type_field::kKind)) {  // an element type
        if (!p.has(type, type_field::kElement)) continue;
        check_rejected(p.with(p.field(type, type_field::kElement), 1, 99), "E0210", "element type tag 99");
        ++elements;
        continue;
      }
      check_rejected(p.with(p.field(type, type_field::kKind), 1, 8), "E0210", "unknown kind 8");
      if (!p.has(type, type_field::kInner)) continue;
      check_rejected(p.with(p.field(type, type_field::kInner), 4, i), "E0210", "expected an earlier one");
      ++inner;
    }
    CHECK(inner > 2);
    CHECK(elements > 1);
  }

  TEST_CASE("limit on the size of a file") {
    // Zeros that take no memory until they are read, which the check of the identifier does to the first few.
    void* const zeros = mmap(nullptr, kMaxTilebcBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(zeros != MAP_FAILED);
    Diagnostics at_limit;
    CHECK(!decode_tilebc(std::span(static_cast<const uint8_t*>(zeros), kMaxTilebcBytes), "big", at_limit).ok());
    CHECK(code_info(at_limit.first_error()->code).cls == FailureClass::Malformed);
    munmap(zeros, kMaxTilebcBytes);
    // Nothing is read before the size is checked, so the bytes behind the first need not exist.
    const uint8_t byte = 0;
    Diagnostics diags;
    CHECK(!decode_tilebc(std::span(&byte, kMaxTilebcBytes + 1), "big", diags).ok());
    REQUIRE(diags.has_errors());
    CHECK(diags.first_error()->code == Code::L0101);
  }

  TEST_CASE("limit on the number of tables") {
    // A list of types that all are one table, which is no legal type: what the verifier lets through ends at the first.
    const Patch p = kernel();
    const size_t field = p.field(p.root(), module_field::kTypes);
    size_t others = 1;  // the root
    for (const size_t list : {module_field::kAttributes, module_field::kScopes, module_field::kLocs, module_field::kGlobals,
                              module_field::kFunctions})
      if (p.has(p.root(), list)) others += p.read(p.vector(p.root(), list), 4);
    const auto with_types = [&](size_t n) {
      const size_t list = (p.bytes().size() + 3) / 4 * 4, vtable = list + 4 + 4 * n, table = vtable + 8;
      Bytes file = p.bytes();
      file.resize(table + 8);
      const auto put = [&](size_t at, uint32_t value) { std::memcpy(file.data() + at, &value, sizeof value); };
      put(field, static_cast<uint32_t>(list - field));
      put(list, static_cast<uint32_t>(n));
      for (size_t at = list + 4; at < vtable; at += 4) put(at, static_cast<uint32_t>(table - at));
      put(vtable, 6 | 8 << 16);  // the sizes of the vtable and of the table
      put(vtable + 4, 4);        // the place of `kind`
      put(table, 8);             // back to the vtable
      put(table + 4, 200);
      return file;
    };
    check_rejected(with_types(kMaxTilebcTables - others), "E0210");
    check_rejected(with_types(kMaxTilebcTables - others + 1), "E0204");
  }

  TEST_CASE("limit on nested regions") {
    CHECK(decode_ok(encode_ok(nested_loops(kMaxTilebcNesting))).functions[0].insts.size() == 2 * kMaxTilebcNesting + 1);
    CHECK(refused(nested_loops(kMaxTilebcNesting + 1)) == "L0102");
    CHECK(encode_tilebc(nested_loops(kMaxTilebcNesting + 1)).empty());
    // A file beyond the limit: the break behind the innermost region becomes a loop whose region holds nothing.
    const Patch p(encode_ok(nested_loops(kMaxTilebcNesting)));
    const size_t function = p.child(p.root(), module_field::kFunctions, 0);
    const size_t innermost = p.element(function, function_field::kInsts, kMaxTilebcNesting, kInstBytes);
    REQUIRE(p.read(innermost, 2) == static_cast<uint16_t>(Opcode::Break));
    check_rejected(p.with(innermost, 2, static_cast<uint16_t>(Opcode::Loop)), "L0102", "regions");
  }

  TEST_CASE("limit on nested attributes, locations and scopes") {
    const auto arrays = [](uint32_t depth) {
      return with_extra([&](Module& m) {
        AttrId a = m.attrs.boolean(true);
        for (uint32_t i = 1; i < depth; ++i) a = m.attrs.array({a});
        return a;
      });
    };
    CHECK(decode_ok(encode_ok(arrays(kMaxTilebcNesting - 1))).functions.size() == 1);  // the dictionary is one level
    CHECK(refused(arrays(kMaxTilebcNesting)) == "L0102");
    const auto names = [](uint32_t depth) {
      return with_location([&](Module& m) {
        LocId l = kNone;
        for (uint32_t i = 0; i < depth; ++i) l = m.locs.add({.kind = Loc::Kind::Named, .file = 0, .callee = l});
        return l;
      });
    };
    CHECK(decode_ok(encode_ok(names(kMaxTilebcNesting))).functions.size() == 1);
    CHECK(refused(names(kMaxTilebcNesting + 1)) == "L0102");
    CHECK(refused(names(100000)) == "L0102");
    const auto blocks = [](uint32_t depth) {
      return with_location([&](Module& m) {
        ScopeId s = kNone;
        for (uint32_t i = 0; i < depth; ++i) s = m.locs.add_scope({.kind = DebugScope::Kind::LexicalBlock, .scope = s});
        return m.locs.add({.kind = Loc::Kind::Scoped, .file = 0, .scope = s});
      });
    };
    CHECK(decode_ok(encode_ok(blocks(kMaxTilebcNesting))).functions.size() == 1);
    CHECK(refused(blocks(kMaxTilebcNesting + 1)) == "L0102");
  }

  TEST_CASE("limit on fused locations") {
    // Twelve levels of two stand for 8191 locations, eleven for 4095.
    const auto fused = [](uint32_t levels) {
      return encode_ok(with_location([&](Module& m) {
        LocId l = m.locs.add({.kind = Loc::Kind::Named, .file = 0});
        for (uint32_t i = 0; i < levels; ++i) l = m.locs.add({.kind = Loc::Kind::Fused, .parts = {l, l}});
        return l;
      }));
    };
    CHECK(rejected(fused(11)) == "accepted");
    check_rejected(fused(12), "L0102", "stands for more than 4096 others");
    const auto flat = [](uint32_t places) {
      return encode_ok(with_location([&](Module& m) {
        const LocId l = m.locs.add({.kind = Loc::Kind::Named, .file = 0});
        return m.locs.add({.kind = Loc::Kind::Fused, .parts = std::vector<LocId>(places, l)});
      }));
    };
    CHECK(rejected(flat(kMaxTilebcFused - 1)) == "accepted");  // and the fused location itself
    check_rejected(flat(kMaxTilebcFused), "L0102", "stands for more than 4096 others");
  }

  TEST_CASE("limit on the rank of types") {
    const auto ranked = [](size_t rank) {
      return encode_ok(with_extra([&](Module& m) {
        const std::vector<int64_t> ones(rank, 1);
        return m.attrs.add({.tag = AttrTag::Type, .type = m.types.tile(ElementType::F32, ones)});
      }));
    };
    CHECK(rejected(ranked(kMaxTilebcRank)) == "accepted");
    check_rejected(ranked(kMaxTilebcRank + 1), "E0210", "more than 64 dimensions");
  }

  TEST_CASE("a small file cannot stand for an enormous module") {
    const auto doubled = [](uint32_t levels) {
      return encode_ok(with_extra([&](Module& m) {
        AttrId a = m.attrs.boolean(true);
        for (uint32_t i = 0; i < levels; ++i) a = m.attrs.array({a, a});
        return a;
      }));
    };
    CHECK(rejected(doubled(10)) == "accepted");
    check_rejected(doubled(60), "L0103", "shared so often");
    // All functions become the first one, which holds a long name.
    Module m = build([](Module&, FunctionBuilder&) {});
    m.functions[0].name = m.strings.add(std::string(100000, 'x'));
    for (uint32_t i = 1; i < 3000; ++i) m.functions.push_back(m.functions[0]);
    m.order.clear();
    check_rejected(encode_ok(m), "L0103");
  }

  TEST_CASE("what has several spellings is one module") {
    const auto bytes_of = [](const std::function<AttrId(Module&)>& make) {
      return encode_ok(decode_ok(encode_ok(with_extra(make))));
    };
    const Bytes splat =
        bytes_of([](Module& m) { return m.attrs.dense(m.types, m.types.tile(ElementType::I8, std::vector<int64_t>{4}), "\5"); });
    // Past dense(), as a file of another writer may have it.
    CHECK(bytes_of([](Module& m) {
            const TypeId type = m.types.tile(ElementType::I8, std::vector<int64_t>{4});
            return m.attrs.add({.tag = AttrTag::Dense, .type = type, .bytes = "\5\5\5\5"});
          }) == splat);
    const Bytes truth = bytes_of([](Module& m) { return m.attrs.boolean(true); });
    CHECK(bytes_of([](Module& m) { return m.attrs.integer(m.types.element(ElementType::I1), 1); }) == truth);
  }

  TEST_CASE("equal elements are one element in the table") {
    Module m;
    const auto constant = [&](ElementType e, std::vector<int64_t> shape, const std::string& bytes) {
      return m.attrs.dense(m.types, m.types.tile(e, shape), bytes);
    };
    CHECK(constant(ElementType::I8, {4}, "aaaa") == constant(ElementType::I8, {4}, "a"));
    CHECK(constant(ElementType::I16, {2, 2}, "abababab") == constant(ElementType::I16, {2, 2}, "ab"));
    CHECK(constant(ElementType::I16, {4}, "aabbaabb") != constant(ElementType::I16, {4}, "aa"));
    CHECK(constant(ElementType::I8, {1}, "a") == constant(ElementType::I8, {1}, "a"));
    // What does not fit its type is not touched, so that the validator sees it.
    for (const std::string bytes : {"aa", "aaaaa", ""})
      CHECK(m.attrs.get(constant(ElementType::I8, {4}, bytes)).bytes == bytes);
    CHECK(m.attrs.get(m.attrs.dense(m.types, m.types.token(), "aa")).bytes == "aa");
  }

  TEST_CASE("constants that are no elements of their type are rejected") {
    const auto constant = [](ElementType e, std::string bytes, std::vector<int64_t> shape = {2}) {
      return rejected(encode_ok(with_extra([&](Module& m) {
               const TypeId f32 = m.types.element(ElementType::F32);
               return m.attrs.dense(m.types, m.types.tile(e == ElementType::Ptr ? m.types.ptr(f32) : m.types.element(e), shape),
                                    bytes);
             })))
          .substr(0, 5);
    };
    CHECK(constant(ElementType::I1, {"\1\0", 2}) == "accep");
    CHECK(constant(ElementType::I1, {"\2\0", 2}) == "E0209");
    CHECK(constant(ElementType::F4E2M1FN, {"\1\17", 2}) == "accep");
    CHECK(constant(ElementType::F4E2M1FN, {"\1\20", 2}) == "E0209");
    CHECK(constant(ElementType::TF32, {"\0\x20\0\0", 4}) == "accep");
    CHECK(constant(ElementType::TF32, {"\0\x10\0\0", 4}) == "E0209");
    CHECK(constant(ElementType::I16, {"\0\1\2", 3}) == "E0209");
    CHECK(constant(ElementType::I16, {}) == "E0209");
    CHECK(constant(ElementType::Ptr, std::string(8, '\0')) == "E0209");
    CHECK(constant(ElementType::I8, "abc", {INT64_MAX, INT64_MAX}) == "E0209");
    CHECK(constant(ElementType::I8, "abc", {-1, -3}) == "E0209");
  }

  TEST_CASE("a file of an older version has no words for newer fields") {
    // tanh got a rounding mode in 13.2 or later; the word appears only when the module needs such a version.
    const std::string head = "cuda_tile.module @m { entry @k(%x: tile<f32>) { ", tail = " return } }";
    const Bytes old = encode_ok(parse_ok(head + "%y = tanh %x : tile<f32>\n" + tail));
    const Bytes newer = encode_ok(parse_ok(head + "%y = tanh %x rounding<approx> : tile<f32>\n" + tail));
    CHECK(decode_ok(old).version == v(13, 1));
    CHECK(decode_ok(newer).version > v(13, 1));
    const auto words = [](const Bytes& bytes) {
      const Patch p(bytes);
      return p.read(p.vector(p.child(p.root(), module_field::kFunctions, 0), function_field::kWords), 4);
    };
    CHECK(words(newer) == words(old) + 1);
  }

  TEST_CASE("golden files of version 1.0 decode, validate and keep their bytes") {
    const auto golden = files("golden", ".tilebc");
    REQUIRE(golden.size() >= 6);
    for (const fs::path& path : golden) {
      CAPTURE(path.filename().string());
      const Bytes bytes = load(path);
      Module m = decode_ok(bytes);
      CHECK(encode_ok(m) == bytes);
      Diagnostics diags;
      const auto source =
          read_tileirbc(load(test_folder("corpus/tileirbc") / (path.stem().string() + ".tileirbc")), "input", diags);
      REQUIRE(source.ok());
      CHECK(text_of(m) == text_of(*source));
      CHECK(validate(std::move(m), diags).ok());
    }
  }
}

}  // namespace
