// Writes modules from a program: operations by name, attributes by word, types that follow from the operands left out.
// For frontends; readers, which have everything already, use FunctionBuilder. An example: examples/builder/build_kernel.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "vm/ir/function_builder.h"
#include "vm/ir/module.h"

namespace tile {

/// Mistakes are collected, in the diagnostics that the builder was given, and what is built from a wrong value is not
/// reported again. finish() hands the module out if there were none; validate() then checks the rules of the language.
class Builder {
 public:
  struct Value {
    ValueId id = kNone;  ///< kNone after a mistake
    TypeId type = kNone;
  };
  using Values = std::vector<Value>;

  /// One value for the next operand of the row that takes exactly one; or those of a named operand, which is how
  /// optional and variadic ones are given. The only variadic operand of a row also takes values without a name.
  struct Operand {
    Operand(Value value) : values{value} {}
    Operand(std::string_view operand, Value value) : name(operand), values{value} {}
    Operand(std::string_view operand, Values list) : name(operand), values(std::move(list)) {}
    std::string_view name;
    Values values;
  };
  /// An attribute by its name in the row (spec/ops.md): numbers, words of enumerations, strings; values made by attrs().
  struct Attribute {
    Attribute(std::string_view attr, std::string_view word) : name(attr), value(word) {}
    Attribute(std::string_view attr, const char* word) : name(attr), value(std::string_view(word)) {}
    Attribute(std::string_view attr, int64_t number) : name(attr), value(number) {}
    Attribute(std::string_view attr, int number) : name(attr), value(int64_t{number}) {}
    Attribute(std::string_view attr, bool set) : name(attr), value(int64_t{set}) {}
    Attribute(std::string_view attr, std::vector<int64_t> numbers) : name(attr), value(std::move(numbers)) {}
    Attribute(std::string_view attr, Attr made) : name(attr), value(std::move(made)) {}
    std::string_view name;
    std::variant<std::string_view, int64_t, std::vector<int64_t>, Attr> value;
  };
  /// A region: the types of its arguments, and what writes its operations.
  struct Body {
    std::vector<TypeId> types;
    std::function<void(const Values&)> write;
  };
  struct Param {
    std::string_view name;
    TypeId type;
  };

  Builder(std::string_view module_name, Diagnostics& diags);

  // Types.
  TypeId tile(ElementType e, std::vector<int64_t> shape = {}) { return m_.types.tile(e, shape); }
  /// A tile of pointers to elements of a type.
  TypeId pointers(ElementType e, std::vector<int64_t> shape = {}) {
    return m_.types.tile(m_.types.ptr(m_.types.element(e)), shape);
  }
  TypeId token() { return m_.types.token(); }
  [[nodiscard]] TypeTable& types() { return m_.types; }
  [[nodiscard]] AttrTable& attrs() { return m_.attrs; }
  [[nodiscard]] Module& module() { return m_; }

  /// An entry; `write` gets its parameters. A return is added where the body does not end in one.
  void entry(std::string_view name, const std::vector<Param>& params, const std::function<void(const Values&)>& write);

  /// Appends an operation. Result types that are left out must follow from the operands: tokens, types that a rule of
  /// the row makes equal to an operand's, what pointers point to, the tile of a view, comparisons.
  Values op(std::string_view name, const std::vector<Operand>& operands = {}, const std::vector<Attribute>& attributes = {},
            const std::vector<TypeId>& results = {}, const std::vector<Body>& bodies = {});
  /// The same, for operations with one result or whose first result is what is wanted.
  Value value(std::string_view name, const std::vector<Operand>& operands = {},
              const std::vector<Attribute>& attributes = {}, const std::vector<TypeId>& results = {},
              const std::vector<Body>& bodies = {});
  /// A tile with this number in every element, converted to the element type as C converts.
  Value constant(TypeId type, double number);
  Value constant(TypeId type, int64_t number);
  Value constant(TypeId type, int number) { return constant(type, int64_t{number}); }
  /// for: `write` gets the induction variable and the carried values, and returns their next ones.
  Values for_loop(Value lower, Value upper, Value step, const Values& carried,
                  const std::function<Values(Value, const Values&)>& write);

  /// Location of the operations that follow; kUnknownLoc for none.
  void at(LocId location) { loc_ = location; }
  /// Name that the printer gives a value.
  void name(Value value, std::string_view name);

  /// The module, once. Fails if anything was reported.
  [[nodiscard]] Result<Module> finish();

 private:
  void mistake(Code code, std::string message, std::string help = {});
  bool group_operands(const OpDef& row, const std::vector<Operand>& operands, std::vector<Values>& groups);
  bool attribute_words(const OpDef& row, const std::vector<Attribute>& attributes, std::vector<uint32_t>& words);
  bool attribute_word(const AttrDef& def, const Attribute& given, uint32_t& word);
  bool result_types(const OpDef& row, const std::vector<Values>& groups, std::vector<TypeId>& types);
  TypeId inferred(const OpDef& row, const ResultDef& result, const std::vector<Values>& groups);
  Value constant_bytes(TypeId type, uint64_t bits);

  Diagnostics& diags_;
  size_t errors_before_;
  Module m_;
  std::unique_ptr<FunctionBuilder> b_;  ///< of the open entry
  std::string op_;                      ///< being written, for messages
  LocId loc_ = kUnknownLoc;
};

}  // namespace tile
