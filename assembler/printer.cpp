// Prints whole modules, and the entry points for single instructions and attributes.
#include "assembler/printer.h"

#include "assembler/printer_ops.h"

namespace tile {
namespace {

constexpr size_t kShortLimit = size_t{1} << 20;  // one instruction or attribute

// Values can be shared by all instructions, so text can be far larger than the module. No honest module comes near
// this.
size_t text_limit(const Module& m) {
  size_t size = 0;
  for (const Function& f : m.functions)
    size += f.insts.size() * sizeof(Inst) + f.words.size() * sizeof(uint32_t) + f.value_types.size() * sizeof(TypeId);
  for (AttrId a = 0; a < m.attrs.size(); ++a) size += m.attrs.get(a).bytes.size() + sizeof(Attr);
  for (StringId s = 0; s < m.strings.size(); ++s) size += m.strings.get(s).size();
  return (size_t{64} << 20) + size * 64;
}

void put_global(PrintContext& c, const Global& g, int indent) {
  c.anchor(g.span);
  c.out.append(static_cast<size_t>(indent), ' ');
  c.out += "global ";
  if (g.visibility != 0) c.out += std::string(enum_word(EnumKind::Visibility, g.visibility)) + " ";
  if (g.constant) c.out += "constant ";
  put_symbol(c.out, g.name < c.m.strings.size() ? c.m.strings.get(g.name) : std::string_view());
  if (g.alignment != 0) c.out += " alignment = " + std::to_string(g.alignment);
  c.out += ' ';
  AttrWriter(c.m, c.out, c.limit).in_format(g.value);
  c.out += "\n";
}

std::string print(const Module& m, const PrintOptions& options, std::vector<Anchor>* anchors) {
  PrintContext c{m, TypeTexts(m), {}, text_limit(m)};
  c.anchors = anchors;
  std::optional<DebugAliases> debug;
  if (options.debug_info) {
    debug.emplace(m);
    c.debug = &*debug;
    c.out += debug->scope_definitions();
  }
  int indent = 0;
  if (options.module_wrapper) {
    c.out += "cuda_tile.module ";
    put_symbol(c.out, m.name < m.strings.size() ? m.strings.get(m.name) : std::string_view("kernels"));
    if (m.producer < m.strings.size()) {
      c.out += " attributes {producer = ";
      put_string(c.out, m.strings.get(m.producer));
      c.out += "}";
    }
    c.out += " {\n";
    indent = 2;
  }

  const auto function = [&](size_t index) {
    const Function& f = m.functions[index];
    FunctionPrinter(c, f, ValueNames(m, f, options.pretty_names)).entry(indent);
  };
  std::vector<bool> function_done(m.functions.size()), global_done(m.globals.size());
  for (const uint32_t item : m.order) {
    if (c.full()) break;
    const size_t index = item & ~Module::kGlobalBit;
    if (item & Module::kGlobalBit) {
      if (index >= m.globals.size() || global_done[index]) continue;
      global_done[index] = true;
      put_global(c, m.globals[index], indent);
    } else {
      if (index >= m.functions.size() || function_done[index]) continue;
      function_done[index] = true;
      function(index);
    }
  }
  for (size_t g = 0; g < m.globals.size() && !c.full(); ++g)
    if (!global_done[g]) put_global(c, m.globals[g], indent);
  for (size_t f = 0; f < m.functions.size() && !c.full(); ++f)
    if (!function_done[f]) function(f);

  if (options.module_wrapper) c.out += "}\n";
  if (debug) c.out += debug->loc_definitions();
  if (c.full()) c.out += "\n// the text ends here: it would be out of proportion to the module\n";
  return std::move(c.out);
}

}  // namespace

std::string print_text(const Module& m, const PrintOptions& options) {
  return print(m, options, nullptr);
}

std::string print_text(const Module& m, const PrintOptions& options, std::vector<Anchor>& anchors) {
  return print(m, options, &anchors);
}

std::string print_inst(const Module& m, const Function& f, InstId i, const ValueNames& names) {
  if (i >= f.insts.size()) return {};
  PrintContext c{m, TypeTexts(m), {}, kShortLimit};
  c.elide_large = true;
  FunctionPrinter(c, f, names).inst(i);
  return std::move(c.out);
}

std::string print_inst(const Module& m, const Function& f, InstId i) {
  return print_inst(m, f, i, ValueNames(m, f));
}

std::string print_attr(const Module& m, AttrId id) {
  std::string out;
  AttrWriter(m, out, kShortLimit).in_format(id);
  return out;
}

void install_inst_printer() {
  Module::inst_printer = print_inst;
}

}  // namespace tile
