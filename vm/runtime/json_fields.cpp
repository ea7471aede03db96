// Typed access to JSON values.
#include "vm/runtime/json_fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tile {

Place JsonFields::place(uint32_t begin) const {
  Place p;
  p.source = source_;
  p.span = {begin, 1};
  return p;
}

FailedTag JsonFields::bad(const JsonValue& at, std::string message, std::string help) {
  return diags_.error(Code::E0807, place(at.begin), std::move(message), std::move(help));
}

bool JsonFields::object(const JsonValue& value, std::string_view what, std::initializer_list<std::string_view> known) {
  if (value.kind != JsonValue::Kind::Object) {
    (void)bad(value, std::string(what) + " is " + describe(value) + ", expected an object");
    return false;
  }
  bool ok = true;
  for (const auto& [name, begin] : value.keys) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    ok = false;
    std::string all;
    for (const auto& key : known) all += (all.empty() ? "" : ", ") + std::string(key);
    const std::string near = nearest(name, std::vector<std::string_view>(known));
    (void)diags_.error(Code::E0807, place(begin),
                       std::string(what) + " has the unknown key '" + name.substr(0, 60) + "', expected " + all,
                       near.empty() ? "" : "did you mean " + near + "?");
    if (diags_.full()) break;
  }
  return ok;
}

const JsonValue* JsonFields::required(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) (void)bad(object, "the key '" + std::string(key) + "' is missing");
  return value;
}

std::optional<std::string> JsonFields::text(const JsonValue& value, std::string_view what) {
  if (value.kind == JsonValue::Kind::String && value.text.find('\0') == std::string::npos) return value.text;
  (void)bad(value, std::string(what) + (value.kind == JsonValue::Kind::String
                                            ? " holds a zero byte"
                                            : " is " + describe(value) + ", expected a text"));
  return std::nullopt;
}

std::optional<int64_t> JsonFields::integer(const JsonValue& value, std::string_view what, int64_t least, int64_t most) {
  const bool is_integer =
      value.kind == JsonValue::Kind::Integer || (value.kind == JsonValue::Kind::Unsigned && value.integer >= 0);
  if (is_integer && value.integer >= least && value.integer <= most) return value.integer;
  (void)bad(value, std::string(what) + " is " + describe(value) + ", expected a whole number from " +
                       std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

std::optional<double> JsonFields::allowance(const JsonValue& value, std::string_view what) {
  std::optional<double> number;
  if (value.kind == JsonValue::Kind::Float) number = value.number;
  if (value.kind == JsonValue::Kind::Unsigned) number = static_cast<double>(static_cast<uint64_t>(value.integer));
  if (number && *number >= 0 && std::isfinite(*number)) return number;
  (void)bad(value, std::string(what) + " is " + describe(value) + ", expected a number of at least 0");
  return std::nullopt;
}

bool JsonFields::is_list(const JsonValue& value, std::string_view what) {
  if (value.kind == JsonValue::Kind::Array) return true;
  (void)bad(value, std::string(what) + " is " + describe(value) + ", expected a list");
  return false;
}

std::optional<std::vector<int64_t>> JsonFields::integers(const JsonValue& value, std::string_view what, int64_t least,
                                                         int64_t most) {
  if (!is_list(value, what)) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const auto& item : value.items) {
    const auto number = integer(item, std::string("an entry of ") + std::string(what), least, most);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<CompareRule> JsonFields::rule(const JsonValue& value, std::string& bound_path) {
  if (value.kind != JsonValue::Kind::Object) {
    (void)bad(value, "compare is " + describe(value) + ", expected an object such as {\"rule\": \"exact\"}");
    return std::nullopt;
  }
  const JsonValue* name = required(value, "rule");
  if (name == nullptr) return std::nullopt;
  const auto word = text(*name, "rule");
  if (!word) return std::nullopt;
  CompareRule rule;
  auto number = [&](std::string_view key, double& to) {
    const JsonValue* given = required(value, key);
    const auto v = given ? allowance(*given, key) : std::nullopt;
    if (v) to = *v;
    return v.has_value();
  };
  auto count = [&](std::string_view key, int64_t least, int64_t& to) {
    const JsonValue* given = required(value, key);
    const auto v = given ? integer(*given, key, least, INT64_MAX) : std::nullopt;
    if (v) to = *v;
    return v.has_value();
  };
  bool ok = false;
  if (*word == "bits" || *word == "exact") {
    rule.kind = *word == "bits" ? CompareRule::Kind::Bits : CompareRule::Kind::Exact;
    ok = object(value, "compare", {"rule", "why"});
  } else if (*word == "ulp") {
    rule.kind = CompareRule::Kind::Ulp;
    ok = object(value, "compare", {"rule", "n", "why"}) && number("n", rule.ulps);
  } else if (*word == "close") {
    rule.kind = CompareRule::Kind::Close;
    ok = object(value, "compare", {"rule", "abs", "rel", "why"}) && number("abs", rule.abs) && number("rel", rule.rel);
  } else if (*word == "bound") {
    rule.kind = CompareRule::Kind::Bound;
    ok = object(value, "compare", {"rule", "file", "why"});
    const JsonValue* file = ok ? required(value, "file") : nullptr;
    const auto path = file ? text(*file, "file") : std::nullopt;
    ok = path.has_value();
    if (path) bound_path = *path;
  } else if (*word == "order_free") {
    rule.kind = CompareRule::Kind::Bits;
    ok = object(value, "compare", {"rule", "count", "unit", "why"}) && count("count", 0, rule.free_count) &&
         count("unit", 1, rule.free_unit);
  } else {
    const std::string near = nearest(*word, {"bits", "exact", "ulp", "close", "bound", "order_free"});
    (void)bad(*name,
              "there is no rule '" + word->substr(0, 60) + "', expected bits, exact, ulp, close, bound or order_free",
              near.empty() ? "" : "did you mean " + near + "?");
  }
  if (!ok) return std::nullopt;
  return rule;
}

}  // namespace tile
