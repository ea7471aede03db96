// Typed access to JSON values with complaints at their place; shared by the two readers of launch descriptions.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/diagnostics.h"
#include "vm/runtime/compare.h"
#include "vm/runtime/json_tree.h"

namespace tile {

/// Every member reports E0807 and returns nothing, or false, where the value is not what it must be.
class JsonFields {
 public:
  JsonFields(std::shared_ptr<const Source> source, Diagnostics& diags) : source_(std::move(source)), diags_(diags) {}

  [[nodiscard]] Place place(uint32_t begin) const;
  FailedTag bad(const JsonValue& at, std::string message, std::string help = {});

  /// `value` is an object with no keys but `known`.
  [[nodiscard]] bool object(const JsonValue& value, std::string_view what,
                            std::initializer_list<std::string_view> known);
  /// The value of a key that must be there.
  [[nodiscard]] const JsonValue* required(const JsonValue& object, std::string_view key);

  [[nodiscard]] std::optional<std::string> text(const JsonValue& value, std::string_view what);
  [[nodiscard]] std::optional<int64_t> integer(const JsonValue& value, std::string_view what, int64_t least,
                                               int64_t most);
  [[nodiscard]] std::optional<double> allowance(const JsonValue& value, std::string_view what);
  [[nodiscard]] std::optional<std::vector<int64_t>> integers(const JsonValue& value, std::string_view what,
                                                             int64_t least, int64_t most);
  [[nodiscard]] bool is_list(const JsonValue& value, std::string_view what);

  /// {"rule": "bits|exact|ulp|close|bound|order_free", ...}; "bound" also sets `bound_path`.
  [[nodiscard]] std::optional<CompareRule> rule(const JsonValue& value, std::string& bound_path);

  [[nodiscard]] Diagnostics& diags() { return diags_; }

 private:
  std::shared_ptr<const Source> source_;
  Diagnostics& diags_;
};

}  // namespace tile
