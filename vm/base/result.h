// Result of an operation that can fail: a value, or nothing with the reason already reported to a Diagnostics.
// Not an error carrier: the reason lives in the Diagnostics that the failing function was given.
#pragma once

#include <optional>
#include <utility>

namespace tile {

struct FailedTag {};
inline constexpr FailedTag Failed{};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(FailedTag) {}
  explicit operator bool() const { return value_.has_value(); }
  bool ok() const { return value_.has_value(); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& value() & { return value_.value(); }
  T&& value() && { return std::move(value_.value()); }

 private:
  std::optional<T> value_;
};

/// Success or failure without a value.
class [[nodiscard]] Status {
 public:
  Status() : ok_(true) {}
  Status(FailedTag) : ok_(false) {}
  explicit operator bool() const { return ok_; }
  bool ok() const { return ok_; }

 private:
  bool ok_;
};

}  // namespace tile
