// Attributes and constants of tileirbc.
#include <algorithm>

#include "assembler/tileirbc/payload.h"
#include "assembler/tileirbc/reader.h"

namespace tile::tileirbc {

bool Reader::attribute(Cursor& c, AttrId& out, int depth) {
  const size_t at = c.pos();
  if (depth >= kMaxAttrNesting)
    return fail(Code::L0102, at, "attributes nest more than " + std::to_string(kMaxAttrNesting) + " levels deep");
  uint64_t tag;
  if (!c.varint(tag, "the tag of an attribute")) return false;
  if (tag < static_cast<uint64_t>(AttrCode::Integer) || tag >= static_cast<uint64_t>(AttrCode::MultimemKind)) {
    return fail(Code::E0115, at, "unknown attribute tag " + std::to_string(tag));
  }
  const auto code = static_cast<AttrCode>(tag);
  if (code == AttrCode::Dense) return fail(Code::E0115, at, "a constant stands inside an attribute");
  if (code == AttrCode::Dictionary || code == AttrCode::Hints) return dictionary(c, out, depth + 1);
  Attr a;
  if (!attribute_of(c, code, a, depth + 1)) return false;
  out = module_.attrs.add(std::move(a));
  return true;
}

bool Reader::attribute_of(Cursor& c, AttrCode code, Attr& out, int depth) {
  switch (code) {
    case AttrCode::Integer:
      return number_attribute(c, false, out);
    case AttrCode::Float:
      return number_attribute(c, true, out);
    case AttrCode::Bool: {
      uint8_t b = 0;
      if (!c.byte(b, "a truth value")) return false;
      out.tag = AttrTag::Bool;
      out.bits = b != 0;
      if (layout_) layout_->bool_as_integer.push_back(false);
      return true;
    }
    case AttrCode::Type:
      out.tag = AttrTag::Type;
      return value_type(c, out.type, "a type attribute");
    case AttrCode::String:
      out.tag = AttrTag::String;
      return string(c, out.string, "a string attribute");
    case AttrCode::Array:
      out.tag = AttrTag::Array;
      return array(c, out.items, depth);
    default:
      return predicate_attribute(c, code, out);
  }
}

bool Reader::number_attribute(Cursor& c, bool is_float, Attr& out) {
  const size_t at = c.pos();
  if (!type(c, out.type, "the type of a number")) return false;
  const Type& t = module_.types.get(out.type);
  const ElementInfo& e = tile::info(t.element);
  if (t.kind != TypeKind::Element || e.is_int == is_float) {
    return fail(Code::E0115, at,
                "a number of type " + module_.types.print(out.type) + ", expected " +
                    (is_float ? "a float" : "an integer") + " type");
  }
  const size_t bits_at = c.pos();
  if (is_float ? e.bits <= 8 : e.bits == 1) {
    uint8_t b = 0;
    if (!c.byte(b, "the value of a number")) return false;
    out.bits = b;
    if (!is_float) {
      // An i1 number is a truth value: text has one spelling for both.
      if (layout_) layout_->bool_as_integer.push_back(true);
      out.tag = AttrTag::Bool;
      out.type = kNone;
      out.bits = b != 0;
      return true;
    }
  } else if (is_float) {
    int64_t value;
    if (!c.zigzag(value, "the value of a number")) return false;
    out.bits = static_cast<uint64_t>(value);
  } else if (!c.varint(out.bits, "the value of a number")) {
    return false;
  }
  if (e.bits < 64 && out.bits >> e.bits != 0) {
    return fail(Code::E0115, bits_at,
                "a number does not fit the " + std::to_string(e.bits) + " bits of " + std::string(e.name));
  }
  if (t.element == ElementType::TF32) out.bits <<= kTf32Shift;
  out.tag = is_float ? AttrTag::Float : AttrTag::Integer;
  return true;
}

bool Reader::predicate_attribute(Cursor& c, AttrCode code, Attr& out) {
  const size_t at = c.pos();
  if (code == AttrCode::SameElements) {
    out.tag = AttrTag::SameElements;
    if (!ints(c, 8, out.ints, "the values of same_elements")) return false;
    for (int64_t x : out.ints)
      if (x == INT64_MIN || x == INT64_MAX)
        return fail(Code::E0603, at, "same_elements has the forbidden value " + std::to_string(x));
    return true;
  }
  const bool div_by = code == AttrCode::DivBy;
  out.tag = div_by ? AttrTag::DivBy : AttrTag::Bounded;
  if (div_by && !c.varint(out.bits, "the divisor")) return false;
  const size_t flags_at = c.pos();
  uint8_t flags = 0;
  if (!c.byte(flags, "the flags of a predicate")) return false;
  if (flags > 3)
    return fail(Code::E0115, flags_at,
                "the flags of a predicate are " + std::to_string(flags) + ", expected at most 3");
  int64_t first = 0, second = 0;
  if ((flags & 1) && !c.zigzag(first, div_by ? "every" : "the lower bound")) return false;
  if ((flags & 2) && !c.zigzag(second, div_by ? "along" : "the upper bound")) return false;
  if (div_by && (flags == 1 || flags == 2))
    return fail(Code::E0603, flags_at, "div_by has one of every and along, expected both or neither");
  if (!div_by) out.flags = flags;
  if (!div_by || flags != 0) out.ints = {first, second};
  return true;
}

bool Reader::array(Cursor& c, std::vector<AttrId>& out, int depth) {
  uint64_t count;
  if (!c.count(count, 2, Code::E0101, "the length of an array")) return false;
  for (uint64_t i = 0; i < count; ++i) {
    AttrId item;
    if (!attribute(c, item, depth)) return false;
    out.push_back(item);
  }
  return true;
}

bool Reader::dictionary(Cursor& c, AttrId& out, int depth) {
  Attr a;
  a.tag = AttrTag::Dictionary;
  const size_t at = c.pos();
  uint64_t count;
  if (!c.count(count, 3, Code::E0101, "the length of a dictionary")) return false;
  std::vector<StringId> keys;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t key_at = c.pos();
    StringId key;
    AttrId value;
    if (!string(c, key, "the key of a dictionary")) return false;
    if (module_.str(key).empty()) return fail(Code::E0115, key_at, "a dictionary has an empty key");
    if (!attribute(c, value, depth)) return false;
    keys.push_back(key);
    a.entries.emplace_back(key, value);
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end())
    return fail(Code::E0115, at, "a dictionary has the key \"" + std::string(module_.str(*twice)) + "\" twice");
  out = module_.attrs.add(std::move(a));
  return true;
}

bool Reader::dense(Cursor& c, TypeId tile_type, AttrId& out) {
  const size_t at = c.pos();
  uint64_t index;
  if (!c.varint(index, "the index of a constant")) return false;
  if (index >= constants_.count) {
    return fail(Code::E0109, at,
                "constant " + std::to_string(index) + ", but there are only " + std::to_string(constants_.count));
  }
  if (layout_) layout_->constant_uses.push_back(static_cast<uint32_t>(index));
  const auto [it, is_new] = dense_ids_.try_emplace(uint64_t{tile_type} << 32 | index, kNone);
  if (is_new && !decode_dense(index, at, tile_type, it->second)) return false;
  out = it->second;
  return charge(module_.attrs.get(out).bytes.size(), at);
}

bool Reader::decode_dense(uint64_t index, size_t at, TypeId tile_type, AttrId& out) {
  Cursor r = record(constants_, index);
  const size_t record_at = r.pos();
  uint64_t length;
  if (!r.varint(length, "the length of a constant")) return false;
  if (length > r.left()) {
    return fail(Code::E0101, record_at,
                "constant " + std::to_string(index) + " has " + std::to_string(length) + " bytes, but only " +
                    std::to_string(r.left()) + " are left");
  }
  if (!charge(length * 8, at)) return false;
  const Type& t = module_.types.get(tile_type);
  if (t.kind != TypeKind::Tile || t.element == ElementType::Ptr) {
    return fail(Code::E0109, at,
                "a constant of type " + module_.types.print(tile_type) + ", expected a tile of numbers");
  }
  const std::string_view payload(reinterpret_cast<const char*>(r.data()), static_cast<size_t>(length));
  std::string bytes;
  if (!decode_payload(t.element, module_.types.element_count(tile_type), payload, bytes)) {
    return fail(
        Code::E0109, at,
        "the constant has " + std::to_string(length) + " bytes, which do not fit " + module_.types.print(tile_type));
  }
  constants_differ_ |= encode_payload(t.element, bytes) != payload;
  out = module_.attrs.dense(module_.types, tile_type, std::move(bytes));
  constants_differ_ |= constant_of_.try_emplace(out, index).first->second != index;
  return true;
}

uint32_t Reader::default_word(const AttrDef& def) {
  switch (def.kind) {
    case AttrKind::Unit:
      return 0;
    case AttrKind::Enum:
    case AttrKind::Bool:
      return def.optional || def.def == kRequired ? kNone : static_cast<uint32_t>(def.def);
    default:
      return kNone;
  }
}

bool Reader::attribute_word(Cursor& c, const AttrDef& def, TypeId tile_type, uint32_t& out) {
  const size_t at = c.pos();
  switch (def.kind) {
    case AttrKind::Unit:
      out = 1;
      return true;
    case AttrKind::Enum:
      return enum_value(c, def.enum_kind, Code::E0115, out);
    case AttrKind::Int: {
      uint64_t value;
      if (!c.varint(value, "an integer attribute")) return false;
      if (def.int_bits < 64 && value >> def.int_bits != 0) {
        return fail(Code::E0115, at,
                    std::string(def.name) + " is " + std::to_string(value) + ", expected at most " +
                        std::to_string(def.int_bits) + " bits");
      }
      out =
          module_.attrs.integer(module_.types.element(def.int_bits == 32 ? ElementType::I32 : ElementType::I64), value);
      return true;
    }
    case AttrKind::Bool: {
      uint8_t b = 0;
      if (!c.byte(b, "a truth value")) return false;
      out = b != 0;
      return true;
    }
    case AttrKind::String:
    case AttrKind::Symbol:
      return string(c, out, "a string attribute");
    case AttrKind::Dense:
      return dense(c, tile_type, out);
    case AttrKind::Hints:
      return dictionary(c, out);
    case AttrKind::I32Array:
    case AttrKind::BoolArray: {
      const bool bools = def.kind == AttrKind::BoolArray;
      std::vector<int64_t> values;
      if (!ints(c, bools ? 1 : 4, values, "an array attribute")) return false;
      bool any = false;
      for (int64_t& x : values) {
        if (!bools && (x == INT32_MIN || x == INT32_MAX))
          return fail(Code::E0115, at, std::string(def.name) + " has the forbidden value " + std::to_string(x));
        if (bools) x = x != 0;
        any |= x != 0;
      }
      // All false is what an older file has, and what no array at all means.
      out =
          bools && !any ? kNone : module_.attrs.ints(bools ? AttrTag::BoolArray : AttrTag::I32Array, std::move(values));
      return true;
    }
    case AttrKind::AttrArray: {
      std::vector<AttrId> items;
      if (!array(c, items, 1)) return false;
      for (AttrId item : items) {
        const AttrTag tag = module_.attrs.get(item).tag;
        if (tag != AttrTag::Integer && tag != AttrTag::Float && tag != AttrTag::Bool) {
          return fail(Code::E0115, at, std::string(def.name) + " hold an attribute of another kind, expected numbers");
        }
      }
      out = module_.attrs.array(std::move(items));
      return true;
    }
    case AttrKind::Predicate: {
      if (!attribute(c, out)) return false;
      const AttrTag tag = module_.attrs.get(out).tag;
      return tag == AttrTag::DivBy || tag == AttrTag::SameElements || tag == AttrTag::Bounded ||
             fail(Code::E0115, at,
                  std::string(def.name) + " has another kind, expected div_by, same_elements or bounded");
    }
  }
  return false;
}

}  // namespace tile::tileirbc
