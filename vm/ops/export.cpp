// Rows in words: Markdown for readers, JSON for programs.
#include "vm/ops/export.h"

#include <iterator>
#include <vector>

#include "vm/ops/enums.h"

namespace tile {
namespace {

std::string text(Version version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

std::string hex(uint16_t code) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return std::string("0x") + kDigits[code >> 4 & 15] + kDigits[code & 15];
}

std::vector<std::string> names_of(ElementSet set) {
  std::vector<std::string> names;
  for (size_t t = 0; t < kElementTypes; ++t)
    if (set.has(static_cast<ElementType>(t))) names.emplace_back(info(static_cast<ElementType>(t)).name);
  return names;
}

std::string joined(const std::vector<std::string>& items, const char* separator) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += (i ? separator : "") + items[i];
  return out;
}

// The sets that spec/types.md names, and the others as lists.
std::string set_text(ElementSet set) {
  struct Named {
    ElementSet set;
    const char* name;
  };
  static constexpr Named kNamed[] = {{kInt, "Int"},           {kInt4, "Int or i4"},    {kBaseFloat, "BaseFloat"},
                                     {kAnyFloat, "AnyFloat"}, {kNum, "Int, AnyFloat"}, {kAny, "any element"}};
  for (const Named& n : kNamed)
    if (n.set == set) return n.name;
  return joined(names_of(set), ", ");
}

const char* kind_word(ValueKind kind) {
  switch (kind) {
    case ValueKind::Tile:
      return "tile";
    case ValueKind::Scalar:
      return "scalar tile";
    case ValueKind::TensorView:
      return "tensor view";
    case ValueKind::View:
      return "view";
    case ValueKind::TileOrView:
      return "tile or tensor view";
    case ValueKind::Token:
      return "token";
    case ValueKind::Any:
      return "any value";
  }
  return "";
}

const char* arity_word(Arity arity) {
  switch (arity) {
    case Arity::One:
      return "one";
    case Arity::Optional:
      return "optional";
    case Arity::Variadic:
      return "any number";
  }
  return "";
}

const char* attr_word(AttrKind kind) {
  switch (kind) {
    case AttrKind::Unit:
      return "unit";
    case AttrKind::Enum:
      return "enum";
    case AttrKind::Int:
      return "int";
    case AttrKind::Bool:
      return "bool";
    case AttrKind::String:
      return "string";
    case AttrKind::Symbol:
      return "symbol";
    case AttrKind::Dense:
      return "dense constant";
    case AttrKind::I32Array:
      return "array of i32";
    case AttrKind::BoolArray:
      return "array of bool";
    case AttrKind::AttrArray:
      return "array of attributes";
    case AttrKind::Hints:
      return "hints";
    case AttrKind::Predicate:
      return "predicate";
  }
  return "";
}

const char* effect_word(Effect effect) {
  switch (effect) {
    case Effect::Pure:
      return "none";
    case Effect::NotSpeculatable:
      return "none, but must not run where the program does not";
    case Effect::Read:
      return "reads memory";
    case Effect::Write:
      return "writes memory";
    case Effect::ReadWrite:
      return "reads and writes memory";
    case Effect::Token:
      return "orders";
    case Effect::Control:
      return "control flow";
    case Effect::Symbol:
      return "defines a symbol";
  }
  return "";
}

const char* tolerance_word(Tolerance tolerance) {
  switch (tolerance) {
    case Tolerance::Exact:
      return "exact";
    case Tolerance::Ulp:
      return "ulp";
    case Tolerance::Sum:
      return "sum";
    case Tolerance::None:
      return "none";
  }
  return "";
}

const char* rule_word(RuleKind kind) {
  switch (kind) {
    case RuleKind::SameType:
      return "same type";
    case RuleKind::SameShape:
      return "same shape";
    case RuleKind::SameElement:
      return "same element type";
    case RuleKind::PointeeOf:
      return "pointers to elements of";
    case RuleKind::WiderThan:
      return "narrower, wider";
    case RuleKind::SameBits:
      return "same width of elements";
    case RuleKind::SameCount:
      return "same number of elements";
    case RuleKind::SplatTo:
      return "same rank, extents 1 or equal";
    case RuleKind::DifferentType:
      return "different element types";
    case RuleKind::ViewTile:
      return "view and the tile that it selects";
    case RuleKind::FloatModifiers:
      return "approx, full and flush_to_zero need f32";
    case RuleKind::HandsOver:
      return "what the parent takes";
    case RuleKind::Combines:
      return "operands, results, identities and body of a reduction";
    case RuleKind::Slices:
      return "parts of equal shape";
    case RuleKind::PackedBits:
      return "vectors of equally many bits";
    case RuleKind::Product:
      return "M x K, K x N, M x N, and an accumulator for the sides";
    case RuleKind::SeveralTokens:
      return "two or more";
    case RuleKind::NotMulticast:
      return "not multicast";
    case RuleKind::Multicast:
      return "a partition view of multicast memory";
    case RuleKind::ModeFitsElement:
      return "a mode for the element type";
    case RuleKind::MakesView:
      return "a view of the operand";
    case RuleKind::OnePerDimension:
      return "a result for each dimension, of one type";
    case RuleKind::Indices:
      return "an index for each dimension of the view";
    case RuleKind::Special:
      return "special";
  }
  return "";
}

// The words that an enum attribute may have here.
std::vector<std::string> allowed_words(const AttrDef& a) {
  std::vector<std::string> words;
  const auto values = enum_info(a.enum_kind).values;
  for (size_t i = 0; i < values.size(); ++i)
    if (a.allowed >> i & 1) words.emplace_back(values[i].word);
  return words;
}

std::string default_text(const AttrDef& a) {
  if (a.optional) return "absent";
  if (a.kind == AttrKind::Unit) return "absent";
  if (a.def == kRequired) return "";
  switch (a.kind) {
    case AttrKind::Enum:
      return std::string(enum_word(a.enum_kind, static_cast<uint32_t>(a.def)));
    case AttrKind::Bool:
      return a.def ? "true" : "false";
    case AttrKind::BoolArray:
      return "all false";
    default:
      return std::to_string(a.def);
  }
}

// Stars in formulas are not Markdown's.
std::string without_emphasis(std::string_view s) {
  std::string out;
  for (const char c : s) {
    if (c == '*' || c == '_') out += '\\';
    out += c;
  }
  return out;
}

std::string value_row(const OperandDef& o, Version since, const char* role) {
  std::string out = "| `" + std::string(o.name) + "` | " + role + " | ";
  if (o.arity != Arity::One) out += std::string(arity_word(o.arity)) + ": ";
  out += kind_word(o.kind);
  if (o.kind != ValueKind::Token && o.kind != ValueKind::Any) out += " of " + set_text(o.elements);
  return out + " | " + (o.since > since ? text(o.since) : "") + " |\n";
}

std::string escaped(std::string_view s) {
  std::string out;
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}
std::string quoted(std::string_view s) {
  return "\"" + escaped(s) + "\"";
}

std::string quoted_list(const std::vector<std::string>& items) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + quoted(items[i]);
  return out + "]";
}

std::string value_json(const OperandDef& o) {
  std::string out = "{\"name\": " + quoted(o.name) + ", \"kind\": " + quoted(kind_word(o.kind)) +
                    ", \"arity\": " + quoted(arity_word(o.arity));
  if (o.kind != ValueKind::Token) out += ", \"elements\": " + quoted_list(names_of(o.elements));
  return out + ", \"since\": " + quoted(text(o.since)) + "}";
}

std::string attr_json(const AttrDef& a) {
  std::string out = "{\"name\": " + quoted(a.name) + ", \"kind\": " + quoted(attr_word(a.kind));
  if (a.kind == AttrKind::Enum)
    out += ", \"enum\": " + quoted(enum_info(a.enum_kind).name) + ", \"values\": " + quoted_list(allowed_words(a));
  if (a.kind == AttrKind::Int) out += ", \"bits\": " + std::to_string(a.int_bits);
  if (const std::string def = default_text(a); !def.empty()) out += ", \"default\": " + quoted(def);
  return out + ", \"since\": " + quoted(text(a.since)) + "}";
}

template <class Items, class ToText>
std::string json_list(const Items& items, ToText to_text) {
  std::string out = "[";
  bool first = true;
  for (const auto& item : items) {
    out += (first ? "" : ", ") + to_text(item);
    first = false;
  }
  return out + "]";
}

std::vector<std::string> rule_names(const Rule& r) {
  std::vector<std::string> names;
  for (const std::string_view name : r.at) names.emplace_back(name);
  return names;
}

}  // namespace

std::string op_markdown(const OpDef& op) {
  std::string out = "## " + std::string(op.name) + "\n\n" + std::string(op.summary) + "\n\n";
  if (!op.semantics.empty()) out += "Result: " + without_emphasis(op.semantics) + ".\n\n";
  out += "Opcode " + hex(op.code) + ", since " + text(op.since) + ". Effect: " + effect_word(op.effect) +
         ". Comparison of results: " + tolerance_word(op.tolerance) + ".";
  if (!op.alias.empty()) out += " Also read as `" + std::string(op.alias) + "`.";
  if (op.regions > 0) out += " Regions: " + std::to_string(op.regions) + ".";
  if (op.terminator) out += " Ends a region.";
  if (op.in_reduce) out += " Allowed in the body of `reduce` and `scan`.";
  out += "\n\n";
  if (!op.format.empty() && op.format != "@custom")
    out += "```\n" + std::string(op.name) + " " + std::string(op.format) + "\n```\n\n";
  if (!op.operands.empty() || !op.attrs.empty() || !op.results.empty()) {
    out += "| name | role | what | since |\n| --- | --- | --- | --- |\n";
    for (const OperandDef& o : op.operands) out += value_row(o, op.since, "operand");
    for (const AttrDef& a : op.attrs) {
      out += "| `" + std::string(a.name) + "` | attribute | " + attr_word(a.kind);
      if (a.kind == AttrKind::Enum) out += ": " + joined(allowed_words(a), ", ");
      if (const std::string def = default_text(a); !def.empty()) out += "; default " + def;
      out += std::string(" | ") + (a.since > op.since ? text(a.since) : "") + " |\n";
    }
    for (const ResultDef& r : op.results) out += value_row(r, op.since, "result");
    out += "\n";
  }
  std::vector<std::string> rules;
  for (const Rule& r : op.rules)
    if (r.kind != RuleKind::Special)
      rules.push_back(std::string(rule_word(r.kind)) + (r.at.empty() ? "" : " (" + joined(rule_names(r), ", ") + ")"));
  if (!rules.empty()) out += "Types: " + joined(rules, "; ") + ".\n\n";
  return out;
}

std::string op_json(const OpDef& op) {
  std::string out = "{\"name\": " + quoted(op.name);
  if (!op.alias.empty()) out += ", \"alias\": " + quoted(op.alias);
  out += ", \"opcode\": " + std::to_string(op.code) + ", \"since\": " + quoted(text(op.since)) +
         ",\n   \"summary\": " + quoted(op.summary) + ",\n   \"semantics\": " + quoted(op.semantics) +
         ",\n   \"operands\": " + json_list(op.operands, value_json) +
         ",\n   \"attributes\": " + json_list(op.attrs, attr_json) +
         ",\n   \"results\": " + json_list(op.results, value_json) +
         ",\n   \"rules\": " + json_list(op.rules, [](const Rule& r) {
           return "{\"kind\": " + quoted(rule_word(r.kind)) + ", \"at\": " + quoted_list(rule_names(r)) + "}";
         });
  out += ",\n   \"regions\": " + std::to_string(op.regions) +
         ", \"terminator\": " + (op.terminator ? "true" : "false") +
         ", \"in_reduce\": " + (op.in_reduce ? "true" : "false") + ", \"effect\": " + quoted(effect_word(op.effect)) +
         ", \"tolerance\": " + quoted(tolerance_word(op.tolerance)) + ",\n   \"format\": " + quoted(op.format) + "}";
  return out;
}

std::string ops_markdown() {
  std::string out =
      "# Operations\n\n"
      "Exported from the operation table by `tileasm ops --write spec`; edit the rows in `vm/ops/`, not this page.\n"
      "Words for sets of element types: Int is i1, i8, i16, i32, i64; BaseFloat is f16, bf16, f32, f64; AnyFloat adds "
      "tf32, the f8 formats\n"
      "and f4E2M1FN. Formats are written in the notation of `assembler/format.h`; operations without one have a form "
      "of their own in\n"
      "`spec/text.md`. Comparison of results: *exact* to the bit, *ulp* within an error bound, *sum* within the bound "
      "of a reordered sum.\n\n"
      "| operation | opcode | since | what it does |\n| --- | --- | --- | --- |\n";
  for (const OpDef& op : op_rows())
    out += "| [" + std::string(op.name) + "](#" + std::string(op.name) + ") | " + hex(op.code) + " | " +
           text(op.since) + " | " + std::string(op.summary) + " |\n";
  out += "\n";
  for (const OpDef& op : op_rows()) out += op_markdown(op);
  out.pop_back();  // one newline at the end
  return out;
}

std::string ops_json() {
  std::string out = "{\"operations\": [\n";
  bool first = true;
  for (const OpDef& op : op_rows()) {
    out += (first ? "  " : ",\n  ") + op_json(op);
    first = false;
  }
  return out + "\n]}\n";
}

const char* diagnostic_example(Code code) {
  static constexpr const char* kExamples[] = {
#define TILE_EXAMPLE(code, text) text,
#include "vm/ops/diag_examples.inc"
#undef TILE_EXAMPLE
  };
  static constexpr Code kCodes[] = {
#define TILE_EXAMPLE(code, text) Code::code,
#include "vm/ops/diag_examples.inc"
#undef TILE_EXAMPLE
  };
  for (size_t i = 0; i < std::size(kCodes); ++i)
    if (kCodes[i] == code) return kExamples[i];
  return "";
}

std::string diagnostics_markdown() {
  std::string out =
      "# Diagnostics\n\n"
      "Exported from `vm/base/diag_codes.inc` and `vm/ops/diag_examples.inc` by `tileasm ops --write spec`. A code means one thing for "
      "ever. The class decides\n"
      "the exit status of the programs; the subclass is a stable word for programs that read the JSON form. The example is one of the "
      "messages that a code\n"
      "has, without the place in front of it; messages may change. `tileasm explain CODE` shows the same. A run shows at most 64 errors and "
      "16 warnings,\n"
      "and fewer where their text is long; names and messages that are very long end in `...` (`vm/base/diagnostic_limits.h`).\n\n"
      "| code | class | subclass | exit status | meaning | example |\n| --- | --- | --- | --- | --- | --- |\n";
  for (size_t c = 0; c < static_cast<size_t>(Code::kCount); ++c) {
    const CodeInfo& i = code_info(static_cast<Code>(c));
    const std::string example = diagnostic_example(static_cast<Code>(c));
    out += std::string("| ") + i.name + " | " + class_name(i.cls) + " | " + i.subclass + " | " +
           std::to_string(exit_code(i.cls)) + " | " + i.meaning + " | " + (example.empty() ? "" : "`" + example + "`") + " |\n";
  }
  return out;
}

}  // namespace tile
