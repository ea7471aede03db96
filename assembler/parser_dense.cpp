// Dense constants in text.
#include "assembler/literals.h"
#include "assembler/parser.h"

namespace tile {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out;
  for (const int64_t d : shape) out += (out.empty() ? "" : "x") + std::to_string(d);
  return shape.empty() ? "a single value" : out;
}

}  // namespace

// <i32: [1, 2]> : tile<2xi32>
bool Parser::parse_dense(AttrId& out) {
  if (!expect(Tok::Less, "'<'")) return false;
  const uint32_t element_begin = tok_.begin;
  TypeId element = kNone, type = kNone;
  if (!parse_type(element)) return false;
  const Span element_span = span_from(element_begin);
  const Type& e = m_.types.get(element);
  const ElementType kind = e.element;
  if (e.kind != TypeKind::Element || !kNum.has(kind))
    return fail(Code::E0502, element_span,
                in_op("found element type " + type_text(element) + ", expected an integer (not i4) or float type"));
  if (!expect(Tok::Colon, "':'")) return false;

  // The type follows the values but says what their shape must be.
  const Token values = tok_;
  std::string bytes;
  std::vector<int64_t> shape;
  if (!parse_dense_body(kind, bytes, shape)) return false;
  const Span values_span = span_from(values.begin);
  if (!expect(Tok::Greater, "'>'") || !expect(Tok::Colon, "':'")) return false;
  const uint32_t type_begin = tok_.begin;
  if (!parse_type(type)) return false;
  const Span type_span = span_from(type_begin);
  if (!m_.types.is_tile(type))
    return fail(Code::E0506, type_span, in_op("found type " + type_text(type) + ", expected a tile"));
  if (m_.types.get(type).inner != element) {
    return fail_with_note(Code::E0501, type_span,
                          in_op("found element type " + type_text(m_.types.get(type).inner) + ", expected " +
                                type_text(element) + ", the type of the values"),
                          element_span, "the type of the values is written here");
  }
  return finish_dense(values, values_span, type, std::move(bytes), shape, out);
}

// <[1, 2]> of a type that is known.
bool Parser::parse_dense_list(TypeId type, AttrId& out) {
  if (!expect(Tok::Less, "'<'")) return false;
  const Token values = tok_;
  std::string bytes;
  std::vector<int64_t> shape;
  if (!parse_dense_body(m_.types.get(type).element, bytes, shape)) return false;
  const Span values_span = span_from(values.begin);
  return expect(Tok::Greater, "'>'") && finish_dense(values, values_span, type, std::move(bytes), shape, out);
}

bool Parser::parse_dense_body(ElementType type, std::string& bytes, std::vector<int64_t>& shape) {
  return accept(Tok::String) || parse_dense_values(type, bytes, shape, 0);
}

// `values` is the first token of the values: a string holds bytes, a bracket begins lists, everything else is a splat.
bool Parser::finish_dense(const Token& values, Span where, TypeId type, std::string bytes,
                          const std::vector<int64_t>& shape, AttrId& out) {
  const ElementType kind = m_.types.get(type).element;
  const std::vector<int64_t>& expected = m_.types.get(type).shape;
  if (values.kind == Tok::String) {
    std::string error;
    bytes = blob_elements(unescape(lexer_.text(values)), kind, m_.types.element_count(type), error);
    if (!error.empty()) return fail(Code::E0304, where, in_op(error));
  } else if (values.kind == Tok::LBracket && shape != expected) {
    return fail(Code::E0503, where,
                in_op("found values of shape " + shape_text(shape) + ", expected " + shape_text(expected)));
  }
  out = m_.attrs.dense(m_.types, type, std::move(bytes));
  return true;
}

// `depth` lists are open; the first list at each depth fixes the extent, which all others must have.
bool Parser::parse_dense_values(ElementType type, std::string& bytes, std::vector<int64_t>& shape, uint32_t depth) {
  if (!at(Tok::LBracket)) {
    if (depth != shape.size())
      return fail(Code::E0503, span(),
                  in_op("found a value, expected a list of " + std::to_string(shape[depth]) + " values"));
    return parse_dense_scalar(type, bytes);
  }
  const Span open = span();
  if (depth >= kMaxRank) return too_deep(open, "lists", static_cast<uint32_t>(kMaxRank));
  // The depth of the values is known once one has been read.
  const bool first = bytes.empty() && depth == shape.size();
  if (!first && depth >= shape.size()) return fail(Code::E0503, open, in_op("found a list, expected a value"));
  if (first) shape.push_back(-1);
  advance();
  if (at(Tok::RBracket)) return fail(Code::E0503, span_from(open.begin), in_op("a list is empty, expected values"));
  int64_t count = 0;
  for (;;) {
    if (!parse_dense_values(type, bytes, shape, depth + 1)) return false;
    ++count;
    if (!accept(Tok::Comma)) break;
  }
  if (!expect(Tok::RBracket, "']'")) return false;
  if (shape[depth] == -1) shape[depth] = count;
  if (shape[depth] == count) return true;
  return fail(Code::E0503, span_from(open.begin),
              in_op("found a list of " + std::to_string(count) + ", expected " + std::to_string(shape[depth]) +
                    " as in the list before"));
}

bool Parser::parse_dense_scalar(ElementType type, std::string& bytes) {
  const uint32_t begin = tok_.begin;
  if (at_word("true") || at_word("false")) {
    if (type != ElementType::I1)
      return fail(Code::E0304, span(), in_op(found() + " is not a value of " + std::string(info(type).name)));
    bytes += at_word("true") ? '\1' : '\0';
    advance();
    return true;
  }
  const bool negative = accept(Tok::Minus);
  if (!at(Tok::Int) && !at(Tok::Hex) && !at(Tok::Float)) {
    if (at(Tok::BareId) && info(type).is_float) {
      return fail(Code::E0304, span(), in_op("found " + found() + ", expected a number"),
                  "write infinities and NaN as bits, for example 0x7FC00000 for an f32 NaN");
    }
    return unexpected("a number");
  }
  const Literal literal = number_literal(type, tok_.kind, text(), negative);
  advance();
  if (!literal.error.empty()) {
    const Span where = span_from(begin);
    return fail(Code::E0304, where,
                in_op(std::string(lexer_.text().substr(begin, std::min(where.length, 40u))) + " " + literal.error),
                literal.help);
  }
  append_element(bytes, type, literal.bits);
  return true;
}

}  // namespace tile
