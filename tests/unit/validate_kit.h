// Modules built by hand for tests of the validator: what text cannot say can be said here.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vm/ir/function_builder.h"
#include "vm/ir/valid_module.h"

namespace tile::validate_kit {

using Ids = std::vector<uint32_t>;

/// A module with one entry @k, and shortcuts for its parts.
struct Kit {
  Module m;
  std::unique_ptr<FunctionBuilder> b;

  TypeId tile(ElementType e, std::vector<int64_t> shape = {}) { return m.types.tile(e, shape); }
  TypeId ptrs(ElementType e, std::vector<int64_t> shape = {}, uint32_t attr = kNone) {
    return m.types.tile(m.types.ptr(m.types.element(e), attr), shape);
  }
  TypeId token() { return m.types.token(); }
  AttrId integer(int64_t value, ElementType e = ElementType::I64) {
    const uint64_t bits = static_cast<uint64_t>(value);
    return m.attrs.integer(m.types.element(e), e == ElementType::I32 ? bits & 0xFFFFFFFFu : bits);
  }

  FunctionBuilder& entry(const Ids& params = {}, std::string_view name = "k") {
    if (m.functions.empty()) m.functions.reserve(8);  // builders hold references
    Function& f = m.functions.emplace_back();
    f.name = m.strings.add(name);
    b = std::make_unique<FunctionBuilder>(f, params);
    return *b;
  }
  Function& f() { return m.functions.back(); }

  /// Appends an operation; gives its first result.
  ValueId op(Opcode op, const Ids& operands, const Ids& attrs, const Ids& results, const Ids& segments = {},
             LocId loc = kUnknownLoc) {
    const InstId i = b->op(
        {.op = op, .operands = operands, .segments = segments, .attrs = attrs, .result_types = results, .loc = loc});
    return f().insts[i].first_result;
  }
  void region(const Ids& args, const std::function<void(ValueId)>& body) {
    const ValueId first = b->next_value();
    b->begin_region(args);
    body(first);
    b->end_region();
  }
  void ret() { op(Opcode::Return, {}, {}, {}); }
  ValueId constant(TypeId type, std::string bytes) {
    return op(Opcode::Constant, {}, {m.attrs.dense(m.types, type, std::move(bytes))}, {type});
  }
  ValueId number(int32_t x = 0) {
    return constant(tile(ElementType::I32), std::string(reinterpret_cast<const char*>(&x), 4));
  }
  ValueId flag() { return constant(tile(ElementType::I1), std::string(1, '\1')); }

  Diagnostics check() {
    if (b) b->finish();
    Diagnostics diags;
    const bool ok = validate(m, diags).ok();
    CHECK(ok != diags.has_errors());
    return diags;
  }
};

inline std::string codes(const Diagnostics& diags) {
  std::string out;
  for (const Diagnostic& d : diags.all()) out += (out.empty() ? "" : " ") + std::string(code_info(d.code).name);
  return out;
}
inline std::string messages(const Diagnostics& diags) {
  std::string out;
  for (const Diagnostic& d : diags.all()) out += (out.empty() ? "" : "\n") + d.message;
  return out;
}

inline constexpr uint32_t kSigned = 1;

}  // namespace tile::validate_kit
