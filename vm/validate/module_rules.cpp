// Rules of the module: symbols, globals, entries, hints.
#include "vm/validate/checker.h"

#include <algorithm>
#include <limits>

namespace tile::validation {

Checker::Checker(Module& module, Diagnostics& diagnostics) : m(module), diags(diagnostics), version_(module.version) {
  type_state_.resize(m.types.size());
  hints_state_.resize(m.attrs.size());
}

Version Checker::version() {
  if (!version_) version_ = std::max(kNewestStableVersion, required_version(m));
  return *version_;
}

void Checker::check_module() {
  scan_scopes();
  check_symbols();
  for (const Global& g : m.globals) {
    if (diags.full()) return;
    check_global(g);
  }
  for (const Function& fn : m.functions) {
    if (diags.full()) return;
    f = &fn;
    check_entry(fn);
    walk(fn);
  }
}

void Checker::check_symbols() {
  const auto add = [&](StringId name, Symbol symbol) {
    const auto [it, fresh] = symbols.emplace(name, symbol);
    if (fresh || diags.full()) return;
    const auto place = [&](const Symbol& s) { return s.entry ? m.place(*s.entry) : m.place(*s.global); };
    Diagnostic d{Code::E0404, place(symbol), "symbol @" + std::string(m.str(name)) + " is defined twice", {}, {}, {}};
    d.notes.push_back({place(it->second), "first defined here"});
    diags.error(std::move(d));
  };
  // In the order of the text, so that the later one is the one that is wrong.
  if (m.order.size() == m.functions.size() + m.globals.size()) {
    for (const uint32_t item : m.order) {
      const size_t index = item & ~Module::kGlobalBit;
      if (item & Module::kGlobalBit) {
        if (index < m.globals.size()) add(m.globals[index].name, {nullptr, &m.globals[index]});
      } else if (index < m.functions.size()) {
        add(m.functions[index].name, {&m.functions[index], nullptr});
      }
    }
    return;
  }
  for (const Global& g : m.globals) add(g.name, {nullptr, &g});
  for (const Function& fn : m.functions) add(fn.name, {&fn, nullptr});
}

void Checker::check_global(const Global& g) {
  const auto fail = [&](const std::string& what) {
    diags.error(Code::E0705, m.place(g), "global @" + std::string(m.str(g.name)) + ": " + what);
  };
  if (m.str(g.name).empty()) return fail("it has no name");
  // Text and tileirbc carry the number as a signed one.
  if (g.alignment > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return fail("its alignment is " + std::to_string(g.alignment) + ", expected at most 2^63 - 1");
  if (g.value >= m.attrs.size() || m.attrs.get(g.value).tag != AttrTag::Dense) return fail("it has no value");
  const Attr& value = m.attrs.get(g.value);
  if (!legal_type(value.type, [&] { return m.place(g); })) return;
  const Type& type = m.types.get(value.type);
  if (type.kind != TypeKind::Tile || type.shape.size() != 1)
    return fail("it has type " + type_text(value.type) + ", expected a tile of rank 1");
  if (!kNum.has(type.element))
    return fail("it has element type " + type_text(type.inner) + ", expected a number type other than i4");
  const size_t element = info(type.element).storage;
  if (value.bytes.size() != element &&
      value.bytes.size() != element * static_cast<uint64_t>(m.types.element_count(value.type)))
    return fail("its value has " + counted(value.bytes.size() / element, "element") + ", expected " +
                std::to_string(m.types.element_count(value.type)));
}

void Checker::check_entry(const Function& fn) {
  const std::string entry = "entry @" + std::string(m.str(fn.name)) + ": ";
  if (m.str(fn.name).empty()) diags.error(Code::E0704, m.place(fn), entry + "it has no name");
  for (ValueId p = 0; p < fn.param_count; ++p) {
    if (diags.full()) return;
    if (!legal_value(p) || m.types.is_scalar(fn.type(p))) continue;
    diags.error(Code::E0704, m.place_value(fn, p),
                entry + "parameter " + std::to_string(p) + " has type " + type_text(fn.type(p)) +
                    ", expected a tile of rank 0");
  }
  check_hints(fn.hints, [&] { return m.place(fn); });
  if (fn.arg_attrs != kNone) {
    const Attr* a = fn.arg_attrs < m.attrs.size() ? &m.attrs.get(fn.arg_attrs) : nullptr;
    const auto is_dictionary = [&](AttrId id) {
      return id < m.attrs.size() && m.attrs.get(id).tag == AttrTag::Dictionary;
    };
    if (!a || a->tag != AttrTag::Array || !std::all_of(a->items.begin(), a->items.end(), is_dictionary))
      diags.error(Code::E0704, m.place(fn), entry + "its argument attributes are not an array of dictionaries");
    else if (!a->items.empty() && a->items.size() != fn.param_count)
      diags.error(Code::E0704, m.place(fn),
                  entry + "it has argument attributes for " + counted(a->items.size(), "parameter") + ", expected " +
                      std::to_string(fn.param_count));
  }
  check_entry_scope(fn);
}

void Checker::check_hints(AttrId hints, const std::function<Place()>& place) {
  if (hints >= m.attrs.size() || hints_state_[hints]) return;
  hints_state_[hints] = 1;
  const Attr& a = m.attrs.get(hints);
  if (a.tag != AttrTag::Dictionary) {
    diags.error(Code::E0601, place(),
                "optimization_hints: found another attribute, expected a dictionary for each target");
    return;
  }
  for (const auto& [key, value] : a.entries) {
    if (value < m.attrs.size() && m.attrs.get(value).tag == AttrTag::Dictionary) continue;
    diags.error(Code::E0601, place(),
                "optimization_hints: the value of " + std::string(m.str(key)) + " is not a dictionary");
  }
}

}  // namespace tile::validation
