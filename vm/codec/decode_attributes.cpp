// Attribute records of tilebc, and the words of operations that name them. Only the fields that a tag has are read.
#include <algorithm>
#include <cstring>

#include "vm/codec/decoder.h"

namespace tile {
namespace {

constexpr unsigned kTf32Shift = 13;  // a tf32 element is kept as f32 bits whose low bits are 0

bool is_number(AttrTag tag) {
  return tag == AttrTag::Integer || tag == AttrTag::Float || tag == AttrTag::Bool;
}

}  // namespace

bool TilebcDecoder::attributes() {
  const auto* all = root_.attributes();
  for (uint32_t i = 0; all && i < all->size(); ++i)
    if (!attribute(*all->Get(i), i)) return false;
  return true;
}

bool TilebcDecoder::attribute(const bc::Attribute& a, uint32_t index) {
  if (a.tag() > static_cast<uint8_t>(AttrTag::Opaque))
    return record_fault(Code::E0209, "attribute", index, "unknown tag " + std::to_string(a.tag()));
  if (!charge(sizeof(Attr)) || !charge_vector(a.items(), 4) || !charge_vector(a.entries(), sizeof(bc::Entry)) ||
      !charge_vector(a.bytes(), 1))
    return false;
  Attr out;
  out.tag = static_cast<AttrTag>(a.tag());
  attr_cost_.push_back(sizeof(Attr));
  attr_depth_.push_back(1);
  const char* fault = nullptr;
  switch (out.tag) {
    case AttrTag::Integer:
    case AttrTag::Float:
      if (!number(a, out, fault)) return false;
      break;
    case AttrTag::Bool:
      out.bits = a.bits();
      if (out.bits > 1) fault = "a truth value is 0 or 1";
      break;
    case AttrTag::Type:
      if (!type(a.type(), out.type)) return false;
      break;
    case AttrTag::String:
    case AttrTag::Opaque:
      if (!string(a.string(), "string", out.string)) return false;
      attr_cost_.back() += m_.str(out.string).size();
      break;
    case AttrTag::Array:
    case AttrTag::Dictionary:
      if (!items(a, index, out, fault)) return false;
      break;
    case AttrTag::Dense:
      if (!type(a.type(), out.type)) return false;
      fault = dense(a, out);
      break;
    case AttrTag::DivBy:
      out.bits = a.bits();
      if (!numbers(a.ints(), out.ints)) return false;
      if (!out.ints.empty() && out.ints.size() != 2) fault = "div_by has every and along, or neither";
      break;
    case AttrTag::Bounded:
      if (!numbers(a.ints(), out.ints)) return false;
      out.flags = a.flags();
      if (out.ints.size() != 2 || out.flags > 3) {
        fault = "bounded has two numbers and flags 0 to 3";
        break;
      }
      for (unsigned k = 0; k < 2; ++k)
        if (!(out.flags >> k & 1)) out.ints[k] = 0;
      break;
    case AttrTag::SameElements:
      if (!numbers(a.ints(), out.ints)) return false;
      break;
    case AttrTag::I32Array:
      if (!numbers(a.ints(), out.ints)) return false;
      if (std::any_of(out.ints.begin(), out.ints.end(), [](int64_t x) { return x < INT32_MIN || x > INT32_MAX; }))
        fault = "a number is beyond 32 bits";
      break;
    case AttrTag::BoolArray:
      if (!numbers(a.ints(), out.ints)) return false;
      if (std::any_of(out.ints.begin(), out.ints.end(), [](int64_t x) { return x != 0 && x != 1; }))
        fault = "a truth value is 0 or 1";
      break;
  }
  if (fault) return record_fault(Code::E0209, "attribute", index, fault);
  attr_cost_.back() += out.ints.size() * sizeof(int64_t) + out.bytes.size();
  attr_ids_.push_back(out.tag == AttrTag::Dense ? m_.attrs.dense(m_.types, out.type, std::move(out.bytes))
                                                : m_.attrs.add(std::move(out)));
  return true;
}

bool TilebcDecoder::number(const bc::Attribute& a, Attr& out, const char*& fault) {
  if (!type(a.type(), out.type)) return false;
  out.bits = a.bits();
  const Type& t = m_.types.get(out.type);
  const ElementInfo& e = info(t.element);
  const bool is_float = out.tag == AttrTag::Float;
  if (t.kind != TypeKind::Element || !(is_float ? e.is_float : e.is_int)) {
    fault = is_float ? "a float needs a float type" : "an integer needs an integer type";
  } else if (t.element == ElementType::TF32) {
    if (out.bits >> 32 != 0 || (out.bits & ((1u << kTf32Shift) - 1)) != 0)
      fault = "a tf32 number has bits outside of its sign, exponent and mantissa";
  } else if (e.bits < 64 && out.bits >> e.bits != 0) {
    fault = "the value is wider than its type";
  }
  if (!fault && t.element == ElementType::I1) {  // a truth value: one attribute, however it is written
    out.tag = AttrTag::Bool;
    out.type = kNone;
  }
  return true;
}

bool TilebcDecoder::items(const bc::Attribute& a, uint32_t index, Attr& out, const char*& fault) {
  // Sums of costs stay far below 2^64: each is at most the budget when it is used, and saturates here.
  const auto part = [&](uint32_t item, AttrId& id) {
    if (item >= attr_ids_.size())
      return record_fault(Code::E0209, "attribute", index,
                          "it contains attribute " + std::to_string(item) + ", expected an earlier one");
    id = attr_ids_[item];
    attr_cost_.back() = std::min<uint64_t>(attr_cost_.back() + attr_cost_[item], UINT64_MAX / 4);
    attr_depth_.back() = std::max(attr_depth_.back(), static_cast<uint16_t>(attr_depth_[item] + 1));
    return nested(attr_depth_.back(), "attributes");
  };
  if (out.tag == AttrTag::Array) {
    for (uint32_t k = 0; a.items() && k < a.items()->size(); ++k)
      if (!part(a.items()->Get(k), out.items.emplace_back())) return false;
    return true;
  }
  std::vector<StringId> keys;
  for (uint32_t k = 0; a.entries() && k < a.entries()->size(); ++k) {
    const bc::Entry& e = *a.entries()->Get(k);
    auto& [key, value] = out.entries.emplace_back();
    if (!string(e.key(), "string", key) || !part(e.value(), value)) return false;
    attr_cost_.back() += m_.str(key).size();
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) fault = "a dictionary has a key twice";
  return true;
}

/// Checks and copies the elements. The type is set already.
const char* TilebcDecoder::dense(const bc::Attribute& a, Attr& out) {
  if (!m_.types.is_tile(out.type)) return "a dense constant needs a tile type";
  const ElementType e = m_.types.element_of(out.type);
  if (e == ElementType::Ptr) return "a dense constant of pointers";
  if (a.bytes()) out.bytes.assign(reinterpret_cast<const char*>(a.bytes()->data()), a.bytes()->size());
  const uint64_t count = static_cast<uint64_t>(m_.types.element_count(out.type)), size = info(e).storage;
  if (out.bytes.size() != size && (count == 0 || count > out.bytes.size() || out.bytes.size() != count * size))
    return "its bytes are neither one element nor all of them";
  const uint8_t mask =
      static_cast<uint8_t>(info(e).bits < 8 ? ~0u << info(e).bits : 0);  // bits that no element may have
  if (mask != 0 &&
      std::any_of(out.bytes.begin(), out.bytes.end(), [&](char c) { return (static_cast<uint8_t>(c) & mask) != 0; }))
    return "an element is wider than its type";
  if (e == ElementType::TF32)
    for (size_t k = 0; k < out.bytes.size(); k += size)
      if (out.bytes[k] != 0 || (static_cast<uint8_t>(out.bytes[k + 1]) & ((1u << (kTf32Shift - 8)) - 1)) != 0)
        return "a tf32 element has bits below its mantissa";
  return nullptr;
}

/// Checks the word of an operation's attribute and makes it what Function::attr() gives.
bool TilebcDecoder::attr_word(const OpDef& d, const AttrDef& a, uint32_t& word) {
  const auto wrong = [&](const std::string& why) {
    return fail(Code::E0209, std::string(d.name) + ": " + std::string(a.name) + " " + why);
  };
  const uint32_t found = word;
  if (found == kNone) return a.optional || a.kind == AttrKind::BoolArray || wrong("is missing");
  switch (a.kind) {
    case AttrKind::Unit:
    case AttrKind::Bool:
      return found <= 1 || wrong("is " + std::to_string(found) + ", expected 0 or 1");
    case AttrKind::Enum: {
      const size_t values = enum_info(a.enum_kind).values.size();
      return found < values ||
             wrong("is " + std::to_string(found) + ", expected at most " + std::to_string(values - 1));
    }
    case AttrKind::String:
    case AttrKind::Symbol:
      return string(found, "string", word);
    default:
      break;
  }
  if (!use_attr(found, "attribute", word)) return false;
  const Attr& attr = m_.attrs.get(word);
  switch (a.kind) {
    case AttrKind::Int: {
      if (attr.tag != AttrTag::Integer && attr.tag != AttrTag::Bool) return wrong("is no integer");
      if (a.int_bits < 64 && attr.bits >> a.int_bits != 0)
        return wrong("is " + std::to_string(attr.bits) + ", expected at most " + std::to_string(a.int_bits) + " bits");
      const uint64_t bits = attr.bits;
      word = m_.attrs.integer(m_.types.element(a.int_bits == 32 ? ElementType::I32 : ElementType::I64), bits);
      return true;
    }
    case AttrKind::Dense:
      return attr.tag == AttrTag::Dense || wrong("is no dense constant");
    case AttrKind::I32Array:
      return attr.tag == AttrTag::I32Array || wrong("is no array of numbers");
    case AttrKind::BoolArray:
      if (attr.tag != AttrTag::BoolArray) return wrong("is no array of truth values");
      // All false is what no array at all means.
      if (std::all_of(attr.ints.begin(), attr.ints.end(), [](int64_t x) { return x == 0; })) word = kNone;
      return true;
    case AttrKind::AttrArray:
      if (attr.tag != AttrTag::Array) return wrong("is no array");
      return std::all_of(attr.items.begin(), attr.items.end(),
                         [&](AttrId item) { return is_number(m_.attrs.get(item).tag); }) ||
             wrong("has items that are no numbers");
    case AttrKind::Hints:
      return attr.tag == AttrTag::Dictionary || wrong("is no dictionary");
    default:
      return attr.tag == AttrTag::DivBy || attr.tag == AttrTag::SameElements || attr.tag == AttrTag::Bounded ||
             wrong("is no predicate");
  }
}

}  // namespace tile
