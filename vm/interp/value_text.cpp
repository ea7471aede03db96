// Formatting of tiles, pointers and views.
#include "vm/interp/value_text.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "vm/base/numeric.h"
#include "vm/interp/eval.h"

namespace tile {
namespace {

template <class T>
std::string shortest(T value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

int64_t integer_value(ElementType e, uint64_t bits) {
  return e == ElementType::I1 ? static_cast<int64_t>(bits & 1) : sign_extend(bits, info(e).bits);
}

std::string float_text(ElementType e, double value) {
  if (std::isnan(value)) return "nan";
  return e == ElementType::F64 ? shortest(value) : shortest(static_cast<float>(value));  // every other type fits in f32
}

class TileText {
 public:
  TileText(const Memory& memory, ElementType e, const std::byte* data) : memory_(memory), e_(e), data_(data) {}

  [[nodiscard]] std::string element(size_t i) const {
    const uint64_t b = bits(i);
    if (e_ == ElementType::Ptr) return address_text(memory_, b);
    return info(e_).is_float ? float_text(e_, decode(e_, b)) : std::to_string(integer_value(e_, b));
  }
  void nested(std::string& out, const std::vector<int64_t>& shape, size_t dim, size_t& at) const {
    if (dim == shape.size()) {
      out += element(at++);
      return;
    }
    out += "[";
    for (int64_t k = 0; k < shape[dim]; ++k) {
      if (k > 0) out += ", ";
      nested(out, shape, dim + 1, at);
    }
    out += "]";
  }
  /// " min -1 max 9 nan 2", " ones 3"; nothing for pointers.
  [[nodiscard]] std::string summary(size_t n) const {
    if (e_ == ElementType::Ptr) return {};
    if (e_ == ElementType::I1) {
      size_t ones = 0;
      for (size_t i = 0; i < n; ++i) ones += bits(i) & 1;
      return " ones " + std::to_string(ones);
    }
    if (!info(e_).is_float) {
      int64_t low = INT64_MAX, high = INT64_MIN;
      for (size_t i = 0; i < n; ++i) {
        const int64_t v = integer_value(e_, bits(i));
        low = std::min(low, v);
        high = std::max(high, v);
      }
      return " min " + std::to_string(low) + " max " + std::to_string(high);
    }
    double low = 0, high = 0;
    size_t nans = 0;
    for (size_t i = 0; i < n; ++i) {
      const double v = decode(e_, bits(i));
      if (std::isnan(v)) {
        ++nans;
        continue;
      }
      if (i == nans) low = high = v;  // the first that is a number
      if (v < low) low = v;
      if (v > high) high = v;
    }
    std::string out;
    if (nans < n) out = " min " + float_text(e_, low) + " max " + float_text(e_, high);
    if (nans > 0) out += " nan " + std::to_string(nans);
    return out;
  }

 private:
  [[nodiscard]] uint64_t bits(size_t i) const { return read_bits(data_, info(e_).storage, i); }

  const Memory& memory_;
  ElementType e_;
  const std::byte* data_;
};

std::string view_text(const Memory& memory, const Type& view, const std::byte* data, size_t rank) {
  const auto word = [&](size_t i) { return read_bits(data, 8, i); };
  std::string shape, strides;
  for (size_t k = 0; k < rank; ++k) {
    shape += (k ? ", " : "") + std::to_string(word(1 + k));
    strides += (k ? ", " : "") + std::to_string(word(1 + rank + k));
  }
  std::string out = "view " + address_text(memory, word(0)) + " [" + shape + "] strides [" + strides + "]";
  if (view.kind == TypeKind::TensorView) return out;
  out += " tiles [";
  for (size_t k = 0; k < view.shape.size(); ++k) out += (k ? ", " : "") + std::to_string(view.shape[k]);
  return out + "]";
}

}  // namespace

std::string address_text(const Memory& memory, uint64_t address) {
  const Memory::Allocation* a = memory.find(address);
  if (a) return a->name + "+" + std::to_string(address & Memory::kOffsetMask);
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(address));
  return buffer;
}

size_t value_bytes(const Module& module, TypeId type) {
  const Type& t = module.types.get(type);
  switch (t.kind) {
    case TypeKind::Tile:
      return static_cast<size_t>(module.types.element_count(type)) * info(module.types.element_of(type)).storage;
    case TypeKind::TensorView:
    case TypeKind::PartitionView:
    case TypeKind::StridedView:
    case TypeKind::GatherScatterView:
      return view_bytes(t.shape.size());
    default:
      return 0;
  }
}

std::string value_text(const Module& module, const Memory& memory, TypeId type, const std::byte* data,
                       const ValueStyle& style) {
  const Type& t = module.types.get(type);
  if (t.kind == TypeKind::Token) return "token";
  if (!data) return "?";
  if (t.kind != TypeKind::Tile) return view_text(memory, t, data, t.shape.size());
  const TileText text(memory, module.types.element_of(type), data);
  const size_t n = static_cast<size_t>(module.types.element_count(type));
  std::string out;
  if (n <= style.whole) {
    size_t at = 0;
    text.nested(out, t.shape, 0, at);
    return out;
  }
  out = module.types.print(type) + " [";
  for (size_t i = 0; i < style.first; ++i) out += text.element(i) + ", ";
  return out + "...]" + text.summary(n);
}

}  // namespace tile
