// Prints the operations of one function. The module around it is in printer.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assembler/format.h"
#include "assembler/printer.h"
#include "assembler/printer_debug.h"
#include "assembler/printer_values.h"

namespace tile {

/// Text of types, kept: a function names the same few again and again.
class TypeTexts {
 public:
  explicit TypeTexts(const Module& m) : m_(m) {}
  [[nodiscard]] const std::string& operator[](TypeId id) {
    std::string& text = texts_[id];
    if (text.empty()) text = m_.types.print(id);
    return text;
  }

 private:
  const Module& m_;
  std::unordered_map<TypeId, std::string> texts_;
};

/// What the functions of one text share.
struct PrintContext {
  const Module& m;
  TypeTexts types;
  std::string out;
  size_t limit;                         ///< bytes of `out` beyond which printing stops
  const DebugAliases* debug = nullptr;  ///< null: no locations
  bool elide_large = false;
  std::vector<Anchor>* anchors = nullptr;  ///< where to put them, if anybody asks

  void anchor(Span span) {
    if (anchors && span.valid()) anchors->push_back({span.begin, out.size()});
  }
  [[nodiscard]] bool full() const { return out.size() > limit; }
};

class FunctionPrinter {
 public:
  FunctionPrinter(PrintContext& c, const Function& f, const ValueNames& names)
      : c_(c), m_(c.m), f_(f), names_(names), attrs_(c.m, c.out, c.limit) {
    attrs_.elide_large = c.elide_large;
  }

  /// `entry @name(...) { ... }` with its newline.
  void entry(int indent);
  /// One operation without indentation, newline, regions and location.
  void inst(InstId i);

 private:
  // The words of an instruction, cut to what is there: a module that was never validated may say anything.
  struct Words {
    const OpDef* op = nullptr;
    std::span<const uint32_t> segments, operands, attrs;
  };
  [[nodiscard]] Words words(InstId i) const;
  [[nodiscard]] std::span<const ValueId> group(const Words& w, size_t g) const;
  [[nodiscard]] uint32_t attr(const Words& w, size_t a) const { return a < w.attrs.size() ? w.attrs[a] : kNone; }
  [[nodiscard]] bool differs(const Words& w, size_t a) const;
  [[nodiscard]] const Region* region(InstId i, size_t r) const;
  [[nodiscard]] TypeId type_of(ValueId v) const { return v < f_.value_types.size() ? f_.value_types[v] : kNone; }

  // Whole operations.
  void line(InstId i, int indent, int depth);
  void regions(InstId i, int indent, int depth);
  void body(const Region& r, Opcode parent, int indent, int depth);
  [[nodiscard]] bool hidden(InstId i, Opcode parent) const;
  void results(const Inst& inst);

  // The formats.
  struct Line {
    InstId id;
    Words w;
    bool glue = false;           ///< the next token stands directly behind the last one
    std::string_view last = {};  ///< the last literal word
  };
  void walk(Line& l, const std::vector<FormatNode>& nodes);
  void node(Line& l, const std::vector<FormatNode>& nodes, size_t k);
  void literal(Line& l, const std::string& text);
  void blank(Line& l);
  void attr_value(const OpDef& op, size_t a, uint32_t word);
  void dict(Line& l, bool with_keyword);
  [[nodiscard]] bool group_present(const Line& l, const FormatNode& n) const;
  [[nodiscard]] TypeId type_target(const Line& l, const FormatNode& n) const;

  // Operations written by hand.
  void custom(Line& l);
  void fold(Line& l);
  void counted_loop(Line& l);
  void endless_loop(Line& l);
  void tensor_view(Line& l);
  void shape_query(Line& l);
  void region_dict(InstId i);
  void iter_values(Line& l, std::span<const ValueId> inits, size_t first_arg);

  // Small pieces.
  void value(ValueId v) { c_.out += "%" + names_[v]; }
  void values(std::span<const ValueId> vs);
  void types_of(std::span<const ValueId> vs);
  void result_types(const Inst& inst);
  [[nodiscard]] std::vector<ValueId> result_values(const Inst& inst) const;

  PrintContext& c_;
  const Module& m_;
  const Function& f_;
  const ValueNames& names_;
  AttrWriter attrs_;
};

}  // namespace tile
