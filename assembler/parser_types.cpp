// Types in text. Short and long spellings mix freely; a type that was read once is found again by its text.
#include <algorithm>

#include "assembler/literals.h"
#include "assembler/parser.h"

namespace tile {
namespace {

constexpr std::string_view kPrefix = "cuda_tile.";
constexpr uint32_t kLongestCachedType = 256;

const ElementType* element_by_name(std::string_view word) {
  static constexpr auto types = [] {
    std::array<ElementType, kElementTypes> all{};
    for (size_t i = 0; i < kElementTypes; ++i) all[i] = static_cast<ElementType>(i);
    return all;
  }();
  for (const ElementType& t : types)
    if (t != ElementType::Ptr && info(t).name == word) return &t;
  return nullptr;
}

// Length of `tile<...>` at the beginning of `text`, if it stands on one line and has nothing but names, signs and
// digits; else 0.
uint32_t plain_type_length(std::string_view text) {
  const size_t size = std::min<size_t>(text.size(), kLongestCachedType);
  int depth = 0;
  for (size_t i = 0; i < size; ++i) {
    switch (text[i]) {
      case '<':
        ++depth;
        break;
      case '>':
        if (--depth == 0) return static_cast<uint32_t>(i + 1);
        break;
      case '\n':
      case '"':
      case '/':
      case '#':
      case '%':
      case '{':
        return 0;
      default:
        break;
    }
  }
  return 0;
}

}  // namespace

bool Parser::parse_type(TypeId& out) {
  const uint32_t begin = tok_.begin;
  uint32_t length = 0;
  if ((at(Tok::BareId) || at(Tok::Bang)) && lexer_.position() < lexer_.text().size() &&
      lexer_.text()[lexer_.position()] == '<') {
    length = plain_type_length(lexer_.text().substr(begin));
    if (length > 0) {
      out = types_by_text_.find(lexer_.text().substr(begin, length));
      if (out != TextMap::kMissing) {
        tok_.length = length;
        restart(begin + length);
        return true;
      }
    }
  }
  if (type_depth_ >= kMaxTypeDepth) return too_deep(span(), "types", kMaxTypeDepth);
  ++type_depth_;
  const bool ok = parse_type_body(out);
  --type_depth_;
  if (!ok) return false;
  // Aliases make chains longer than the text is deep.
  uint32_t depth = 0;
  for (TypeId t = out; t != kNone; t = m_.types.get(t).inner)
    if (++depth > kMaxTypeDepth) return too_deep(span_from(begin), "types", kMaxTypeDepth);
  if (length > 0 && previous_end_ == begin + length) types_by_text_.insert(lexer_.text().substr(begin, length), out);
  return true;
}

bool Parser::parse_type_body(TypeId& out) {
  const Span where = span();
  std::string_view word = text();
  if (at(Tok::Bang)) {
    word.remove_prefix(1);
    if (word.find('.') == std::string_view::npos) {
      const auto alias = type_aliases_.find(word);
      if (alias == type_aliases_.end())
        return fail(Code::E0401, where, "type alias !" + std::string(word) + " is not defined before this use");
      out = alias->second.type;
      advance();
      return true;
    }
    if (!word.starts_with(kPrefix))
      return fail(Code::E0306, where, "found " + found() + ", expected a type of cuda_tile");
    word.remove_prefix(kPrefix.size());
  } else if (!at(Tok::BareId)) {
    return unexpected("a type");
  } else if (const ElementType* element = element_by_name(word)) {
    out = element_type(*element);
    advance();
    return true;
  }
  if (word == "token") {
    out = token_type();
    advance();
    return true;
  }
  static constexpr std::pair<std::string_view, TypeKind> kinds[] = {
      {"ptr", TypeKind::Ptr},
      {"tile", TypeKind::Tile},
      {"tensor_view", TypeKind::TensorView},
      {"partition_view", TypeKind::PartitionView},
      {"strided_view", TypeKind::StridedView},
      {"gather_scatter_view", TypeKind::GatherScatterView}};
  const auto kind = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return k.first == word; });
  if (kind == std::end(kinds)) {
    std::vector<std::string_view> names = {"token"};
    for (const auto& k : kinds) names.push_back(k.first);
    for (const ElementInfo& e : kElementInfo) names.push_back(e.name);
    const std::string near = nearest(word, names);
    return fail(Code::E0306, where, in_op("found " + found() + ", expected a type"),
                near.empty() ? "" : "did you mean '" + near + "'?");
  }
  advance();
  if (!expect(Tok::Less, "'<'")) return false;
  switch (kind->second) {
    case TypeKind::Ptr:
      if (!parse_pointer(out)) return false;
      break;
    case TypeKind::Tile: {
      std::vector<int64_t> dims;
      TypeId element = kNone;
      const uint32_t begin = tok_.begin;
      if (!parse_dims(dims, false, true)) return false;
      const uint32_t element_begin = tok_.begin;
      if (!parse_type(element)) return false;
      const TypeKind k = m_.types.get(element).kind;
      if (k != TypeKind::Element && k != TypeKind::Ptr)
        return fail(Code::E0505, span_from(std::max(begin, element_begin)),
                    "found element type " + type_text(element) + ", expected a number or pointer type");
      out = m_.types.tile(element, dims);
      break;
    }
    case TypeKind::TensorView:
      if (!parse_tensor_view(out)) return false;
      break;
    default:
      if (!parse_view(kind->second, out)) return false;
      break;
  }
  return expect(Tok::Greater, "'>'");
}

// Extents, each followed by x if `trailing_x`, else with x between them. Here 4x8xf32 is cut at every x, and 0x8 is 0
// and x8.
bool Parser::parse_dims(std::vector<int64_t>& dims, bool dynamic, bool trailing_x) {
  for (;;) {
    if (at(Tok::Question) && dynamic) {
      dims.push_back(kDynamic);
      advance();
    } else if (at(Tok::Int) || at(Tok::Hex) || at(Tok::Float)) {
      uint32_t end = tok_.begin;
      while (end < tok_.end() && lexer_.text()[end] >= '0' && lexer_.text()[end] <= '9') ++end;
      const Span where{tok_.begin, end - tok_.begin};
      const std::optional<int64_t> extent =
          int_literal(Tok::Int, lexer_.text().substr(where.begin, where.length), false);
      if (!extent) return fail(Code::E0304, where, "an extent does not fit 64 bits");
      if (*extent == 0) return fail(Code::E0505, where, "found extent 0, expected at least 1");
      dims.push_back(*extent);
      if (dims.size() > kMaxRank)
        return fail(Code::E0505, where, "found more than " + std::to_string(kMaxRank) + " dimensions");
      tok_.length = where.length;
      restart(end);
    } else if (trailing_x) {
      return true;
    } else {
      return unexpected("an extent");
    }
    if (!at(Tok::BareId) || text()[0] != 'x') {
      if (!trailing_x) return true;
      return unexpected("'x'");
    }
    const uint32_t behind = tok_.begin + 1;
    tok_.length = 1;
    restart(behind);
  }
}

bool Parser::parse_sint(int64_t& out, int64_t low, int64_t high) {
  const uint32_t begin = tok_.begin;
  const bool negative = low < 0 && accept(Tok::Minus);
  if (!at(Tok::Int) && !at(Tok::Hex)) return unexpected("an integer");
  const std::optional<int64_t> value = int_literal(tok_.kind, text(), negative);
  advance();
  if (!value || *value < low || *value > high) {
    return fail(Code::E0304, span_from(begin),
                in_op("found " + std::string(lexer_.text().substr(begin, std::min(previous_end_ - begin, 40u))) +
                      ", expected a value from " + std::to_string(low) + " to " + std::to_string(high)));
  }
  out = *value;
  return true;
}

bool Parser::parse_sint_list(std::vector<int64_t>& out) {
  if (!expect(Tok::LBracket, "'['")) return false;
  if (accept(Tok::RBracket)) return true;
  do {
    int64_t value = 0;
    if (!parse_sint(value)) return false;
    out.push_back(value);
  } while (accept(Tok::Comma));
  return expect(Tok::RBracket, "']'");
}

bool Parser::parse_enum_in_angles(EnumKind kind, uint32_t& out) {
  if (!expect(Tok::Less, "'<'")) return false;
  alternatives(kind);
  const std::optional<uint32_t> value = at(Tok::BareId) ? enum_value(kind, text()) : std::nullopt;
  if (!value) return unexpected({});
  out = *value;
  advance();
  return expect(Tok::Greater, "'>'");
}

// Behind ptr<
bool Parser::parse_pointer(TypeId& out) {
  TypeId pointee = kNone;
  uint32_t attr = kNone;
  if (!parse_type(pointee)) return false;
  if (accept(Tok::Comma) && !parse_enum_in_angles(EnumKind::PtrAttr, attr)) return false;
  out = m_.types.ptr(pointee, attr);
  return true;
}

// Behind tensor_view<
bool Parser::parse_tensor_view(TypeId& out) {
  std::vector<int64_t> dims, strides;
  TypeId element = kNone;
  uint32_t ptr_attr = kNone;
  if (!parse_dims(dims, true, true)) return false;
  const uint32_t element_begin = tok_.begin;
  if (!parse_type(element)) return false;
  const TypeKind kind = m_.types.get(element).kind;
  if (kind != TypeKind::Element && kind != TypeKind::Ptr)
    return fail(Code::E0505, span_from(element_begin),
                "found element type " + type_text(element) + ", expected a number type");
  const Span element_span = span_from(element_begin);
  bool comma = accept(Tok::Comma), with_strides = false;
  if (comma && at_word("strides")) {
    const Span word = span();
    if (dims.empty()) return fail(Code::E0505, word, "strides are written for a tensor_view without dimensions");
    with_strides = true;
    advance();
    if (!expect(Tok::Equal, "'='") || !expect(Tok::LBracket, "'['")) return false;
    do {
      const Span where = span();
      int64_t stride = kDynamic;
      if (!accept(Tok::Question) && !parse_sint(stride, 0)) return false;
      if (stride == 0) return fail(Code::E0505, where, "found stride 0, expected at least 1");
      strides.push_back(stride);
      if (strides.size() > kMaxRank)
        return fail(Code::E0505, where, "found more than " + std::to_string(kMaxRank) + " strides");
    } while (accept(Tok::Comma));
    if (!expect(Tok::RBracket, "']'")) return false;
    if (strides.size() != dims.size()) {
      return fail(Code::E0505, word,
                  "found " + std::to_string(strides.size()) + " strides, expected one for each of " +
                      std::to_string(dims.size()) + " dimensions");
    }
    comma = accept(Tok::Comma);
  }
  if (!dims.empty() && !with_strides)
    return fail(Code::E0505, element_span,
                "a tensor_view with dimensions has no strides, expected ', strides=[...]' behind the element type");
  if (comma) {
    AttrValue value;
    if (!parse_attr(value)) return false;
    if (value.kind != AttrValue::Kind::Enum || value.enum_kind != EnumKind::PtrAttr)
      return fail(Code::E0601, value.span, "expected an attribute #cuda_tile.ptr_attr<...>");
    ptr_attr = value.id;
  }
  out = m_.types.tensor_view(element, dims, strides, ptr_attr);
  return true;
}

// tile=(4x8)
bool Parser::parse_tile_shape(std::vector<int64_t>& dims) {
  return expect_word("tile") && expect(Tok::Equal, "'='") && expect(Tok::LParen, "'('") &&
         parse_dims(dims, false, false) && expect(Tok::RParen, "')'");
}

// Behind partition_view<, strided_view< or gather_scatter_view<
bool Parser::parse_view(TypeKind kind, TypeId& out) {
  Type t;
  t.kind = kind;
  if (!parse_tile_shape(t.shape) || !expect(Tok::Comma, "','")) return false;
  if (kind == TypeKind::StridedView) {
    if (!expect_word("traversal_strides") || !expect(Tok::Equal, "'='") || !parse_sint_list(t.strides) ||
        !expect(Tok::Comma, "','"))
      return false;
    if (t.strides.size() > kMaxRank)
      return fail(Code::E0505, span(), "found more than " + std::to_string(kMaxRank) + " traversal strides");
  }
  if (accept_word("padding_value")) {
    if (!expect(Tok::Equal, "'='")) return false;
    alternatives(EnumKind::Padding);
    const std::optional<uint32_t> value = at(Tok::BareId) ? enum_value(EnumKind::Padding, text()) : std::nullopt;
    if (!value) return unexpected({});
    t.padding = *value;
    advance();
    if (!expect(Tok::Comma, "','")) return false;
  }
  const uint32_t inner_begin = tok_.begin;
  if (!parse_type(t.inner)) return false;
  if (!m_.types.is_tensor_view(t.inner))
    return fail(Code::E0505, span_from(inner_begin), "found " + type_text(t.inner) + ", expected a tensor_view");
  if (kind == TypeKind::GatherScatterView) {
    int64_t dim = 0;
    if (!expect(Tok::Comma, "','") || !expect_word("sparse_dim") || !expect(Tok::Equal, "'='") ||
        !parse_sint(dim, 0, INT32_MAX))
      return false;
    t.sparse_dim = static_cast<uint32_t>(dim);
  } else if (accept(Tok::Comma)) {
    std::vector<int64_t> map;
    const Span word = span();
    if (!expect_word("dim_map") || !expect(Tok::Equal, "'='") || !parse_sint_list(map)) return false;
    if (map.size() > kMaxRank)
      return fail(Code::E0505, word, "found more than " + std::to_string(kMaxRank) + " entries of dim_map");
    for (const int64_t d : map) {
      if (d < INT32_MIN || d > INT32_MAX) return fail(Code::E0304, word, "an entry of dim_map does not fit 32 bits");
      t.dim_map.push_back(static_cast<int32_t>(d));
    }
  } else {
    for (size_t i = 0; i < t.shape.size(); ++i) t.dim_map.push_back(static_cast<int32_t>(i));
  }
  out = m_.types.add(t);
  return true;
}

}  // namespace tile
