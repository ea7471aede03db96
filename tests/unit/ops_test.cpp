// The operation table agrees with itself, with the record layouts of tileirbc, and with the documents exported from it.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "assembler/format.h"
#include "vm/ops/enums.h"
#include "vm/ops/export.h"
#include "vm/ops/op_table.h"

using namespace tile;

namespace {

struct Layout {
  uint16_t code;
  std::string_view since, fields;
};

// The record of each operation, as public bytecode has it: results | flags | attributes | operands | regions.
// Results: 1 for each, v for any number, * in front if the record says how many. Flags: bit 0 first, @ where the word
// is younger than the operation. Attributes: name, ? if a flag says that it is there, kind, @ where the field is
// younger. Operands: ? if a flag says that it is there, * with a count of its own; + in front: one count of all
// instead.
// clang-format off: one record a line
constexpr Layout kLayouts[] = {
    {0x00, "13.1", "1 | | | source"},
    {0x01, "13.1", "1 | | | source"},
    {0x02, "13.1", "1 | flush_to_zero | rounding_mode:rounding | lhs rhs"},
    {0x03, "13.1", "1 | | overflow:overflow | lhs rhs"},
    {0x04, "13.1", "1 | | | lhs rhs"},
    {0x05, "13.1", "| | message:text | condition"},
    {0x06, "13.1", "1 | | predicate:predicate | value"},
    {0x07, "13.1",
     "11 | mask token | memory_ordering_semantics:memory_ordering_semantics memory_scope:memory_scope | pointers cmp "
     "val mask? token?"},
    {0x08, "13.1",
     "11 | mask token | memory_ordering_semantics:memory_ordering_semantics memory_scope:memory_scope "
     "mode:atomic_rmw_mode | pointers arg mask? token?"},
    {0x09, "13.1", "1 | | | source"},
    {0x0A, "13.1", "* | | | + operands*"},
    {0x0B, "13.1", "1 | | | source"},
    {0x0C, "13.1", "1 | | dim:int | lhs rhs"},
    {0x0D, "13.1", "1 | | | source"},
    {0x0E, "13.1", "1 | | comparison_predicate:comparison_predicate comparison_ordering:comparison_ordering | lhs rhs"},
    {0x0F, "13.1", "1 | | comparison_predicate:comparison_predicate signedness:signedness | lhs rhs"},
    {0x10, "13.1", "1 | | value:dense |"},
    {0x11, "13.1", "* | | | + operands*"},
    {0x12, "13.1", "1 | | | source"},
    {0x13, "13.1", "1 | | | source"},
    {0x14, "13.1", "1 | flush_to_zero | rounding_mode:rounding | lhs rhs"},
    {0x15, "13.1", "1 | | signedness:signedness rounding:rounding | lhs rhs"},
    {0x17, "13.1", "1 | | rounding_mode:rounding@13.3 | source"},
    {0x18, "13.1", "1 | flush_to_zero | | source"},
    {0x25, "13.1", "1 | | signedness:signedness | from"},
    {0x26, "13.1", "*1 | | | + source indices*"},
    {0x27, "13.1", "1 | | | source"},
    {0x28, "13.1", "1 | flush_to_zero | rounding_mode:rounding | lhs rhs acc"},
    {0x29, "13.1", "*v | unsignedCmp @13.2 | | + lowerBound upperBound step initValues* | 1"},
    {0x2A, "13.1", "1 | | rounding_mode:rounding | from"},
    {0x2B, "13.1", "1 | saturating @13.4 | signedness:signedness rounding_mode:rounding | from"},
    {0x2C, "13.1", "1 | | name:text |"},
    {0x2D, "13.1", "*v | | | src"},
    {0x2E, "13.1", "111 | | |"},
    {0x2F, "13.1", "*v | | | src"},
    {0x30, "13.1", "111 | | |"},
    {0x32, "13.1", "*v | | | condition | 2"},
    {0x33, "13.1", "1 | | | source"},
    {0x3A, "13.1", "1 | | |"},
    {0x3B, "13.1", "1 | | signedness:signedness rounding_mode:rounding | from"},
    {0x3C, "13.1", "*1 | | | + tokens*"},
    {0x3D, "13.1",
     "11 | memory_scope optimization_hints mask paddingValue token | "
     "memory_ordering_semantics:memory_ordering_semantics memory_scope?:memory_scope optimization_hints?:hints | "
     "source mask? paddingValue? token?"},
    {0x3E, "13.1",
     "*11 | memory_scope optimization_hints token | memory_ordering_semantics:memory_ordering_semantics "
     "memory_scope?:memory_scope optimization_hints?:hints inbounds:bools@13.4 | view index* token?"},
    {0x3F, "13.1", "1 | | | source"},
    {0x40, "13.1", "1 | | | source"},
    {0x41, "13.1", "*v | | | + initValues* | 1"},
    {0x42, "13.1", "1 | | | tensor_view"},
    {0x43, "13.1", "*1 | | | base dynamicShape* dynamicStrides*"},
    {0x44, "13.1", "1 | | |"},
    {0x45, "13.1", "1 | propagate_nan flush_to_zero | | lhs rhs"},
    {0x46, "13.1", "1 | | signedness:signedness | lhs rhs"},
    {0x47, "13.1", "1 | propagate_nan flush_to_zero | | lhs rhs"},
    {0x48, "13.1", "1 | | signedness:signedness | lhs rhs"},
    {0x49, "13.1", "1 | fast_acc @13.3 | | lhs rhs acc"},
    {0x4A, "13.1", "1 | | signedness_lhs:signedness signedness_rhs:signedness | lhs rhs acc"},
    {0x4C, "13.1", "1 | flush_to_zero | rounding_mode:rounding | lhs rhs"},
    {0x4D, "13.1", "1 | | | x y"},
    {0x4E, "13.1", "1 | | overflow:overflow | lhs rhs"},
    {0x4F, "13.1", "1 | | | source"},
    {0x50, "13.1", "1 | | overflow:overflow@13.2 | source"},
    {0x51, "13.1", "1 | | | ptr offset"},
    {0x52, "13.1", "1 | | | lhs rhs"},
    {0x53, "13.1", "1 | | permutation:i32s | source"},
    {0x54, "13.1", "1 | | | source exponent"},
    {0x55, "13.1", "*1@13.2 | token @13.2 | str:text | args* token?"},
    {0x56, "13.1", "1 | | | source"},
    {0x57, "13.1", "1 | | | source"},
    {0x58, "13.1", "*v | | dim:int identities:list | + operands* | 1"},
    {0x59, "13.1", "1 | | | lhs rhs"},
    {0x5A, "13.1", "1 | | signedness:signedness | lhs rhs"},
    {0x5B, "13.1", "1 | | | source"},
    {0x5C, "13.1", "* | | | + operands*"},
    {0x5D, "13.1", "1 | flush_to_zero | | source"},
    {0x5E, "13.1", "*v | | dim:int reverse:bool identities:list | + operands* | 1"},
    {0x5F, "13.1", "1 | | | cond val_if_true val_if_false"},
    {0x60, "13.1", "1 | | overflow:overflow | lhs rhs"},
    {0x61, "13.1", "1 | | signedness:signedness | lhs rhs"},
    {0x62, "13.1", "1 | | | source"},
    {0x63, "13.1", "1 | | | source"},
    {0x64, "13.1", "1 | flush_to_zero | rounding_mode:rounding | source"},
    {0x65, "13.1",
     "1 | memory_scope optimization_hints mask token | memory_ordering_semantics:memory_ordering_semantics "
     "memory_scope?:memory_scope optimization_hints?:hints | destination value mask? token?"},
    {0x66, "13.1",
     "*1 | memory_scope optimization_hints token | memory_ordering_semantics:memory_ordering_semantics "
     "memory_scope?:memory_scope optimization_hints?:hints inbounds:bools@13.4 | tile view index* token?"},
    {0x67, "13.1", "1 | flush_to_zero | rounding_mode:rounding | lhs rhs"},
    {0x68, "13.1", "1 | | overflow:overflow | lhs rhs"},
    {0x69, "13.1", "1 | | | source"},
    {0x6A, "13.1", "1 | | rounding_mode:rounding@13.2 | source"},
    {0x6B, "13.1", "1 | | overflow:overflow | from"},
    {0x6C, "13.1", "1 | | | lhs rhs"},
    {0x6D, "13.1", "* | | | + operands*"},
    {0x6E, "13.2", "1 | | | x y"},
    {0x6F, "13.3", "1 | | | source"},
    {0x70, "13.3", "1 | | | source"},
    {0x71, "13.3", "1 | global | num_elem:int alignment:int |"},
    {0x72, "13.3", "1 | | | lhs rhs acc lhs_scale rhs_scale"},
    {0x73, "13.3", "1 | | | tensor_view"},
    {0x74, "13.3", "1 | | | tensor_view"},
    {0x75, "13.3",
     "*1 | token | memory_ordering_semantics:memory_ordering_semantics memory_scope:memory_scope mode:atomic_rmw_mode "
     "inbounds:bools@13.5 | view index* value token?"},
    {0x76, "13.4", "*1 | | | + source destination indices*"},
    {0x77, "13.4", "1 | | | + token?"},
    {0x78, "13.4", "1 | | | + token?"},
    {0x79, "13.4", "1 | | | source exponent"},
    {0x7A, "13.4", "1 | | | token"},
    {0x7B, "13.5",
     "*11 | memory_scope token | memory_ordering_semantics:memory_ordering_semantics memory_scope?:memory_scope "
     "reduction:multimem_reduction_kind inbounds:bools | view index* token?"},
    {0x7C, "13.5",
     "*1 | token | memory_ordering_semantics:memory_ordering_semantics memory_scope:memory_scope "
     "reduction:multimem_reduction_kind inbounds:bools | view tile index* token?"},
    {0x7D, "13.5",
     "*1 | memory_scope token | memory_ordering_semantics:memory_ordering_semantics memory_scope?:memory_scope "
     "inbounds:bools | view tile index* token?"},
};
// clang-format on

std::string text(Version version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

std::string kind_of(const AttrDef& a) {
  switch (a.kind) {
    case AttrKind::Enum:
      return std::string(enum_info(a.enum_kind).name);
    case AttrKind::Int:
      return "int";
    case AttrKind::Bool:
      return "bool";
    case AttrKind::String:
    case AttrKind::Symbol:
      return "text";
    case AttrKind::Dense:
      return "dense";
    case AttrKind::I32Array:
      return "i32s";
    case AttrKind::BoolArray:
      return "bools";
    case AttrKind::AttrArray:
      return "list";
    case AttrKind::Hints:
      return "hints";
    case AttrKind::Predicate:
      return "predicate";
    case AttrKind::Unit:
      break;
  }
  return "unit";
}

std::string layout_of(const OpDef& op) {
  std::string out = counts_results(op) ? "*" : "";
  for (const ResultDef& r : op.results) {
    out += r.arity == Arity::Variadic ? "v" : "1";
    if (r.since > op.since) out += "@" + text(r.since);
  }
  out += out.empty() ? "|" : " |";
  Version oldest = kNewestVersion;
  for (const FlagBit& bit : flag_bits(op)) {
    out += " " + std::string(bit.is_operand ? op.operands[bit.index].name : op.attrs[bit.index].name);
    oldest = std::min(oldest, bit.since);
  }
  if (!flag_bits(op).empty() && oldest > op.since) out += " @" + text(oldest);
  out += " |";
  for (const AttrDef& a : op.attrs) {
    if (a.kind == AttrKind::Unit) continue;
    out += " " + std::string(a.name) + (a.optional ? "?" : "") + ":" + kind_of(a);
    if (a.since > op.since) out += "@" + text(a.since);
  }
  out += variable_operands(op) == 1 ? " | +" : " |";
  for (const OperandDef& o : op.operands)
    out += " " + std::string(o.name) + (o.arity == Arity::Optional ? "?" : o.arity == Arity::Variadic ? "*" : "");
  if (op.regions > 0) out += " | " + std::to_string(op.regions);
  return out;
}

bool has_record(const OpDef& op) {
  return op.effect != Effect::Symbol;
}

// What a format names.
struct Named {
  std::set<size_t> operands, attrs, results;
  bool dict = false, custom = false;
};
void collect(const std::vector<FormatNode>& nodes, Named& named) {
  using Kind = FormatNode::Kind;
  for (const FormatNode& n : nodes) {
    if (n.kind == Kind::Operand) named.operands.insert(static_cast<size_t>(n.index));
    if (n.kind == Kind::Attr) named.attrs.insert(static_cast<size_t>(n.index));
    for (const auto& target : n.targets)
      if (target.is_result) named.results.insert(static_cast<size_t>(target.index));
    named.dict = named.dict || n.kind == Kind::Dict || n.kind == Kind::Attributes;
    named.custom = named.custom || n.kind == Kind::Custom;
    collect(n.children, named);
  }
}

std::string file(const char* path) {
  std::ifstream in(std::string(TILE_TEST_SOURCE_DIR) + "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("opcodes and mnemonics are unique and find their rows") {
  std::set<std::string_view> names;
  const OpDef* last = nullptr;
  for (const OpDef& op : op_rows()) {
    CAPTURE(op.name);
    CHECK((!last || last->code < op.code));
    last = &op;
    CHECK(names.insert(op.name).second);
    if (!op.alias.empty()) {
      CHECK(names.insert(op.alias).second);
      CHECK(find_op(op.alias) == &op);
    }
    CHECK(find_op(op.name) == &op);
    CHECK(find_op(uint32_t{op.code}) == &op);
    CHECK_FALSE(op.summary.empty());
    CHECK(op.summary.ends_with("."));
  }
  CHECK(find_op("nothing") == nullptr);
  CHECK(find_op(uint32_t{0x19}) == nullptr);
  CHECK(find_op(uint32_t{0xFFFFFFFF}) == nullptr);
}

TEST_CASE("names inside a row are unique") {
  for (const OpDef& op : op_rows()) {
    CAPTURE(op.name);
    std::set<std::string_view> names;
    for (const OperandDef& o : op.operands) CHECK(names.insert(o.name).second);
    for (const AttrDef& a : op.attrs) CHECK(names.insert(a.name).second);
    for (const ResultDef& r : op.results) CHECK(names.insert(r.name).second);
  }
}

TEST_CASE("formats read, and every operand, attribute and result has a place in them") {
  for (const OpDef& op : op_rows()) {
    CAPTURE(op.name);
    Named named;
    collect(op_format(op), named);
    if (named.custom) {
      CHECK(op_format(op).size() == 1);
      continue;
    }
    for (size_t o = 0; o < op.operands.size(); ++o) CHECK_MESSAGE(named.operands.contains(o), op.operands[o].name);
    for (size_t a = 0; a < op.attrs.size(); ++a)
      CHECK_MESSAGE((named.attrs.contains(a) || named.dict), op.attrs[a].name);
    const bool dense =
        std::any_of(op.attrs.begin(), op.attrs.end(), [](const AttrDef& a) { return a.kind == AttrKind::Dense; });
    for (size_t r = 0; r < op.results.size(); ++r)
      CHECK_MESSAGE((named.results.contains(r) || dense || op.results[r].kind == ValueKind::Token), op.results[r].name);
  }
}

TEST_CASE("rules name operands and results of their row") {
  for (const OpDef& op : op_rows()) {
    CAPTURE(op.name);
    for (const Rule& rule : op.rules) {
      CHECK(between_positions(rule.kind) != rule.at.empty());
      for (const std::string_view name : rule.at)
        CHECK_MESSAGE((operand_index(op, name) >= 0 || result_index(op, name) >= 0), name);
    }
  }
}

TEST_CASE("defaults of enums are allowed values") {
  for (const OpDef& op : op_rows()) {
    CAPTURE(op.name);
    for (const AttrDef& a : op.attrs) {
      CHECK((a.kind == AttrKind::Enum) == (a.enum_kind != EnumKind::None));
      if (a.kind != AttrKind::Enum || a.def == kRequired) continue;
      CHECK(static_cast<size_t>(a.def) < enum_info(a.enum_kind).values.size());
      CHECK((a.allowed >> a.def & 1) == 1);
    }
  }
}

TEST_CASE("record layouts follow from the rows") {
  size_t records = 0;
  for (const OpDef& op : op_rows()) records += has_record(op) ? 1 : 0;
  CHECK(records == std::size(kLayouts));
  for (const Layout& expected : kLayouts) {
    const OpDef* op = find_op(uint32_t{expected.code});
    REQUIRE(op != nullptr);
    CAPTURE(op->name);
    CHECK(text(op->since) == expected.since);
    CHECK(layout_of(*op) == expected.fields);
  }
}

TEST_CASE("words of enums read back") {
  for (int k = 1; k <= static_cast<int>(EnumKind::MultimemKind); ++k) {
    const auto kind = static_cast<EnumKind>(k);
    const auto values = enum_info(kind).values;
    CHECK_FALSE(values.empty());
    for (uint32_t i = 0; i < values.size(); ++i) {
      CHECK(enum_value(kind, values[i].word) == i);
      CHECK(enum_word(kind, i) == values[i].word);
    }
    CHECK(enum_word(kind, static_cast<uint32_t>(values.size())) == "?");
    CHECK_FALSE(enum_value(kind, "no such word").has_value());
  }
}

TEST_CASE("the documents in spec/ are those that the table exports") {
  // tileasm ops --write spec makes them anew.
  CHECK(file("spec/ops.md") == ops_markdown());
  CHECK(file("spec/ops.json") == ops_json());
  CHECK(file("spec/diagnostics.md") == diagnostics_markdown());
}
