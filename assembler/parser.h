// The parser of the text form: one pass over the tokens, straight into a module. Split by subject over parser_*.cpp.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "assembler/format.h"
#include "assembler/lexer.h"
#include "assembler/text_map.h"
#include "vm/base/diagnostics.h"
#include "vm/ir/function_builder.h"
#include "vm/ir/module.h"

namespace tile {

// Limits; beyond them L0101 and L0102. Every recursion of the parser is bounded by one of them.
inline constexpr size_t kMaxTextSize = size_t{256} << 20;
inline constexpr uint32_t kMaxRegionDepth = 400;
inline constexpr uint32_t kMaxTypeDepth = 64;
inline constexpr uint32_t kMaxAttrDepth = 64;
inline constexpr uint32_t kMaxLocDepth = 60;  // below the longest chain that LocTable follows
/// Nodes of a location, and of an attribute behind an alias, with all aliases expanded: what printing and scope
/// searches cost.
inline constexpr uint32_t kMaxLocNodes = 4096;
inline constexpr uint32_t kMaxAliasNodes = 256;
inline constexpr size_t kMaxRank = 64;  ///< of written types, for the same reason

class Parser {
 public:
  Parser(std::shared_ptr<const Source> source, Diagnostics& diags);
  [[nodiscard]] Result<Module> run();

 private:
  struct Operand {
    ValueId value = kNone;  ///< kNone after an error
    TypeId type = kNone;    ///< kNone: not known, which fits every type
    Span span;
    uint8_t group = 0;
  };
  struct ResultName {
    StringId name;
    Span span;
    uint32_t count;
  };
  struct Arg {
    StringId name = kNone;
    Span span;
    TypeId type = kNone;
    AttrId attrs = kNone;
  };
  /// What an attribute can stand for.
  struct AttrValue {
    enum class Kind : uint8_t { Attr, Enum, Unit, Symbol, Loc, Scope } kind = Kind::Attr;
    EnumKind enum_kind = EnumKind::None;
    uint32_t id = kNone;  ///< AttrId, enum value, StringId of a symbol, LocId, ScopeId
    Span span;
  };
  struct AttrAlias {
    AttrValue value;
    Span name;
    uint32_t end = 0;     ///< where the definition ends, if it was read ahead
    uint32_t nodes = 1;   ///< with aliases expanded
    bool busy = false;    ///< being read
    bool broken = false;  ///< an error is reported already
  };
  struct TypeAlias {
    TypeId type = kNone;
    Span name;
  };
  /// What a name is bound to. count 0: nothing. first kNone: an error is reported already.
  struct Binding {
    ValueId first = kNone;
    uint32_t count = 0;
    Span span;
  };
  /// The operation that is being read; regions are read when it is done with.
  struct OpState {
    const OpDef* def = nullptr;
    Span mnemonic;
    bool by_alias = false;
    std::vector<Operand> operands;
    std::array<uint32_t, 6> attrs{};
    std::array<Span, 6> attr_spans{};
    std::array<bool, 6> attr_set{};
    std::vector<TypeId> results;
    std::vector<std::pair<StringId, AttrId>> extra;
    LocId loc = kUnknownLoc;
  };

  // Tokens and errors (parser.cpp).
  void advance() {
    if (tok_.kind == Tok::LBrace) ++open_braces_;
    if (tok_.kind == Tok::RBrace) --open_braces_;
    previous_end_ = tok_.end();
    alternative_count_ = 0;
    tok_ = lexer_.next();
  }
  void restart(uint32_t position) {
    lexer_.seek(position);
    advance();
  }
  [[nodiscard]] bool at(Tok kind) const { return tok_.kind == kind; }
  [[nodiscard]] std::string_view text() const { return lexer_.text(tok_); }
  [[nodiscard]] bool at_word(std::string_view word) const { return at(Tok::BareId) && text() == word; }
  [[nodiscard]] Span span() const { return {tok_.begin, tok_.length}; }
  [[nodiscard]] Span span_from(uint32_t begin) const { return {begin, previous_end_ - begin}; }
  [[nodiscard]] Token peek();  ///< the token after the current one
  /// Where the reading stands, for the few forms whose end must be known first.
  struct Position {
    Token tok;
    uint32_t previous_end;
    int32_t open_braces;
  };
  [[nodiscard]] Position position() const { return {tok_, previous_end_, open_braces_}; }
  void go_to(const Position& p) {
    lexer_.seek(p.tok.end());
    tok_ = p.tok;
    previous_end_ = p.previous_end;
    open_braces_ = p.open_braces;
    alternative_count_ = 0;
  }
  bool accept(Tok kind);
  bool accept_word(std::string_view word);
  bool expect(Tok kind, std::string_view what);
  bool expect_word(std::string_view word);
  /// Remembers what could stand here too, for the message of an error at this token.
  void alternative(std::string_view word) {
    if (alternative_count_ < alternatives_.size()) alternatives_[alternative_count_++] = word;
  }
  void alternatives(EnumKind kind);
  [[nodiscard]] Place place(Span span) const { return {.source = source_, .span = span}; }
  bool fail(Code code, Span span, std::string message, std::string help = {});
  bool fail_with_note(Code code, Span span, std::string message, Span note, std::string note_text,
                      std::string help = {});
  /// Reports that the current token is wrong; `what` and the alternatives were possible.
  bool unexpected(std::string_view what, Code code = Code::E0302);
  bool too_deep(Span span, std::string_view what, uint32_t limit);
  [[nodiscard]] std::string found() const;
  [[nodiscard]] std::string in_op(std::string message) const;
  [[nodiscard]] static std::string wrong_count(size_t types, size_t expected, std::string_view of);
  [[nodiscard]] bool stopped() const { return fatal_ || diags_.full(); }
  enum class Level : uint8_t { Top, Module, Body };
  struct Statement {
    uint32_t begin;
    int32_t open_braces;
  };
  Statement begin_statement();
  void recover(Level level, const Statement& broken);
  [[nodiscard]] std::string_view op_word() const;  ///< the current word without the dialect's prefix
  [[nodiscard]] bool starts_statement(Level level);
  [[nodiscard]] bool starts_item() const;
  void unclosed(const Token& open);
  bool misplaced_op(std::string_view word, std::string_view where);

  // Files, modules, globals, entries (parser_module.cpp).
  void top_level(bool nested);
  bool top_op(bool nested);
  bool builtin_module();
  bool cuda_module();
  bool item();
  bool alias_definition();
  bool entry();
  bool global();
  bool parse_args(std::vector<Arg>& args, bool names_optional);
  bool module_attributes(bool cuda);
  bool module_items(const Token& open);
  bool entry_attributes(Function& f);
  bool global_attributes(Global& g);

  // Names (parser_names.cpp).
  [[nodiscard]] size_t scope_mark() const { return bound_.size(); }
  void scope_restore(size_t mark);
  void define(StringId name, Span span, ValueId first, uint32_t count);
  bool parse_operand(Operand& out);
  bool parse_operands(uint8_t group);
  bool parse_result_names();
  void name_results(size_t base, InstId inst);
  void drop_results(size_t base);
  StringId name_id(const Token& value);

  // Types (parser_types.cpp).
  bool parse_type(TypeId& out);
  bool parse_type_body(TypeId& out);
  bool parse_dims(std::vector<int64_t>& dims, bool dynamic, bool trailing_x);
  bool parse_pointer(TypeId& out);
  bool parse_tensor_view(TypeId& out);
  bool parse_view(TypeKind kind, TypeId& out);
  bool parse_tile_shape(std::vector<int64_t>& dims);
  bool parse_sint(int64_t& out, int64_t low = INT64_MIN, int64_t high = INT64_MAX);
  bool parse_sint_list(std::vector<int64_t>& out);
  bool parse_enum_in_angles(EnumKind kind, uint32_t& out);
  TypeId element_type(ElementType e) {
    TypeId& id = element_types_[static_cast<size_t>(e)];
    return id != kNone ? id : id = m_.types.element(e);
  }
  TypeId token_type() { return token_type_ != kNone ? token_type_ : token_type_ = m_.types.token(); }
  [[nodiscard]] std::string type_text(TypeId type) const { return m_.types.print(type); }

  // Attributes (parser_attributes.cpp, dense constants in parser_dense.cpp, aliases in parser_aliases.cpp).
  bool parse_attr(AttrValue& out);
  bool parse_attr_inner(AttrValue& out);
  bool parse_number_attr(AttrId& out);
  bool parse_array_attr(std::vector<AttrId>& items);
  bool parse_key(StringId& key, const char* what);
  bool parse_dict(std::vector<std::pair<StringId, AttrValue>>& entries);
  bool parse_dict_attr(AttrId& out);
  bool parse_hash_attr(AttrValue& out, bool ahead);
  bool parse_dialect_attr(std::string_view word, AttrValue& out);
  bool parse_predicate(AttrId& out);
  bool parse_predicate_body(std::string_view word, AttrId& out);
  bool parse_hints(AttrId& out);
  bool parse_hints_inner(AttrId& out);
  bool parse_dense(AttrId& out);
  bool parse_dense_list(TypeId type, AttrId& out);
  bool parse_dense_body(ElementType type, std::string& bytes, std::vector<int64_t>& shape);
  bool finish_dense(const Token& values, Span where, TypeId type, std::string bytes, const std::vector<int64_t>& shape,
                    AttrId& out);
  bool parse_dense_values(ElementType type, std::string& bytes, std::vector<int64_t>& shape, uint32_t depth);
  bool parse_dense_scalar(ElementType type, std::string& bytes);
  bool parse_string(StringId& out);
  bool parse_bool(bool& out);
  bool to_attr(const AttrValue& value, AttrId& out);
  bool use_alias(std::string_view name, Span span, bool ahead, AttrAlias*& out);
  bool read_alias(std::string_view name, Span name_span, bool ahead);
  void index_aliases_ahead();

  // Locations and debug records (parser_locations.cpp).
  bool parse_trailing_location(LocId& out);
  bool match_printed_location(LocId& out);
  bool parse_location(LocId& out);  ///< loc(...)
  bool parse_location_body(LocId& out);
  bool parse_location_inner(LocId& out);
  bool parse_file_location(LocId& out);
  bool parse_file_location(Loc& l);
  bool parse_di_loc(LocId& out);
  bool parse_scope_attr(std::string_view word, ScopeId& out);
  bool parse_scope_ref(ScopeId& out, std::initializer_list<DebugScope::Kind> kinds, std::string_view what);
  bool parse_u32(uint32_t& out);
  bool add_location(Loc loc, Span span, LocId& out);
  bool add_scope(DebugScope scope, Span span, ScopeId& out);

  // Operations (parser_ops.cpp, their attributes in parser_op_attrs.cpp).
  /// A region from brace to brace; its arguments are defined already. `implicit` is added where the last operation is
  /// no terminator; Opcode::Module stands for nothing.
  bool parse_body(Opcode implicit);
  bool parse_op(bool& terminator);
  const OpDef* known_op(std::string_view word);
  void start_op(const OpDef& def, Span mnemonic, std::string_view word);
  bool walk(const std::vector<FormatNode>& nodes);
  bool walk_group(const FormatNode& group);
  bool walk_units(const std::vector<FormatNode>& nodes, size_t& i);
  bool walk_operand(const FormatNode& node);
  bool walk_type(const FormatNode& node);
  bool walk_types(const FormatNode& node);
  bool walk_index_types(const FormatNode& node);
  bool walk_attr(size_t index);
  bool parse_attr_word(const AttrDef& def, uint32_t& word);
  bool parse_op_dict(InstId inst = kNone);
  bool set_attr(size_t index, const AttrValue& value, InstId inst);
  bool attr_word(const AttrDef& def, const AttrValue& value, uint32_t& word);
  bool check_type(const Operand& operand, TypeId written, Span span);
  bool check_count(size_t names_base);
  bool infer_results();
  bool default_attrs();
  void mark_attr(size_t index, uint32_t word, Span span);
  AttrId int_attr(const AttrDef& def, int64_t value);
  [[nodiscard]] size_t group_count(int group) const;
  [[nodiscard]] bool definition_ahead();
  bool emit(size_t names_base, InstId& inst);
  void add_extra(InstId inst);

  // Operations with their own form (parser_custom.cpp).
  bool parse_custom(size_t names_base);
  bool parse_reduce(size_t names_base);
  bool parse_if(size_t names_base);
  bool parse_for(size_t names_base);
  bool parse_loop(size_t names_base);
  bool parse_make_tensor_view(size_t names_base);
  bool parse_extents(std::string_view word, uint8_t group, std::vector<std::pair<int64_t, Span>>& out);
  bool check_extents(const std::vector<std::pair<int64_t, Span>>& written, std::span<const int64_t> shape, Span list,
                     std::string_view what);
  bool parse_shape_query(size_t names_base);
  bool parse_assignments(uint8_t group, std::vector<Arg>& args);
  bool parse_carried_types(uint8_t group, size_t first_arg, std::vector<Arg>& args, std::vector<TypeId>& types);
  bool parse_type_list(std::vector<TypeId>& types, std::vector<Span>& spans);
  bool parse_region(const std::vector<Arg>& args, Opcode implicit);
  bool finish_region_op(bool parsed, InstId inst, size_t names_base);

  // Modules, entries and globals in generic form (parser_generic_items.cpp).
  struct GenericItem {
    std::vector<std::pair<StringId, AttrValue>> attrs;
    Span name;
    LocId loc = kUnknownLoc;
  };
  bool generic_item(bool in_module);
  bool generic_module(GenericItem& item, const OpDef* def);
  bool generic_entry(GenericItem& item);
  bool generic_entry_end(Function& f, const std::vector<Arg>& args, GenericItem& item);
  bool generic_global(GenericItem& item);
  bool generic_attrs(GenericItem& item);
  bool generic_tail(GenericItem& item);
  [[nodiscard]] const AttrValue* generic_attr(const GenericItem& item, std::string_view name) const;
  bool generic_string(const GenericItem& item, std::string_view name, bool required, StringId& out);
  bool parse_function_type(AttrId& out);
  bool entry_body(Function& f, const std::vector<Arg>& args, Opcode implicit, GenericItem* item);
  bool global_attribute(Global& g, std::string_view name, const AttrValue& value);
  bool add_global(const Global& g, LocId loc, Span loc_span);
  static constexpr uint32_t kMaxModuleDepth = 16;

  // Generic form (parser_generic.cpp).
  bool parse_generic(size_t names_base);
  bool parse_generic_dict(std::vector<uint32_t>& sizes);
  bool parse_generic_region();
  bool parse_generic_list(AttrValue& out);
  bool group_operands(std::vector<uint32_t> sizes, Span where);
  bool skip_dense();
  bool skip_regions();

  std::shared_ptr<const Source> source_;
  Diagnostics& diags_;
  Lexer lexer_;
  Token tok_;
  uint32_t previous_end_ = 0, statement_begin_ = 0;
  int32_t open_braces_ = 0;
  std::array<std::string_view, 24> alternatives_;
  size_t alternative_count_ = 0;
  bool fatal_ = false;

  Module m_;
  bool module_seen_ = false, bare_items_ = false;
  Function* function_ = nullptr;
  FunctionBuilder* builder_ = nullptr;
  uint32_t region_depth_ = 0, type_depth_ = 0, attr_depth_ = 0, loc_depth_ = 0, top_depth_ = 0;
  bool unwinding_ = false;  ///< a region lacks its brace: leave all regions of the entry
  bool end_reported_ = false;
  bool braces_skipped_ = false;  ///< by recovery: what then looks unclosed may well not be

  OpState op_;
  std::vector<ResultName> names_;  ///< result names of the operations that are open
  std::vector<ValueId> value_words_;
  std::vector<Span> operand_spans_, result_spans_;
  std::vector<uint32_t> segments_;

  std::vector<Binding> bindings_;                    ///< by StringId
  std::vector<std::pair<StringId, Binding>> bound_;  ///< what a definition replaced, innermost last
  std::array<TypeId, kElementTypes> element_types_;
  TypeId token_type_ = kNone;
  TextMap names_by_text_, types_by_text_, ops_by_text_;
  std::unordered_map<std::string_view, TypeAlias> type_aliases_;
  std::unordered_map<std::string_view, AttrAlias> attr_aliases_;
  std::unordered_map<uint32_t, Position> regions_end_;  ///< generic form: behind a list of regions, by where it begins
  std::unordered_map<std::string_view, Token> ahead_;   ///< attribute aliases defined behind the first use of one
  bool ahead_known_ = false, reading_ahead_ = false, in_hints_ = false;
  uint32_t expanded_ = 0;                                ///< nodes of the attribute or location being read
  std::vector<std::pair<uint16_t, uint32_t>> loc_cost_;  ///< depth and nodes, by LocId
  std::vector<uint16_t> scope_depth_;                    ///< by ScopeId
  std::string_view last_scope_, last_file_;              ///< of match_printed_location()
  ScopeId last_scope_id_ = kNone;
  StringId last_file_id_ = kNone;
};

}  // namespace tile
