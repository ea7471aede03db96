// Follows views back to the entry's arguments.
#include "backend/plan/array_map.h"

#include <optional>
#include <span>

namespace tile {
namespace {

class ArrayMapper {
 public:
  ArrayMapper(const Module& m, const Function& f, const std::vector<InstId>& def) : m_(m), f_(f), def_(def) {}

  /// The instruction behind assumptions, if it is `op`.
  [[nodiscard]] InstId through(ValueId v, Opcode op) const {
    while (def_[v] != kNone && f_.insts[def_[v]].op == Opcode::Assume) v = f_.operands(def_[v])[0];
    return def_[v] != kNone && f_.insts[def_[v]].op == op ? def_[v] : kNone;
  }
  /// The parameter behind a value, through assumptions; -1 if it is none.
  [[nodiscard]] int32_t parameter(ValueId v) const {
    while (def_[v] != kNone) {
      if (f_.insts[def_[v]].op != Opcode::Assume) return -1;
      v = f_.operands(def_[v])[0];
    }
    return v < f_.param_count ? static_cast<int32_t>(v) : -1;
  }
  [[nodiscard]] std::optional<int64_t> constant(ValueId v) const {
    const InstId i = through(v, Opcode::Constant);
    if (i == kNone) return std::nullopt;
    const std::string& bytes = m_.attrs.get(f_.attr(i, 0)).bytes;
    uint64_t out = 0;
    for (size_t k = 0; k < bytes.size() && k < 8; ++k) out |= uint64_t{static_cast<uint8_t>(bytes[k])} << (8 * k);
    return static_cast<int64_t>(out);
  }
  /// Extents or strides; false if one is computed.
  bool numbers(const std::vector<int64_t>& given, std::span<const ValueId> dynamic, std::vector<TensorMapSpec::Number>& to) const {
    size_t next = 0;
    for (const int64_t n : given) {
      if (n != kDynamic) {
        to.push_back({n, -1});
        continue;
      }
      const ValueId v = dynamic[next++];
      const int32_t p = parameter(v);
      const auto c = constant(v);
      if (p < 0 && !c) return false;
      to.push_back({c ? *c : 0, c ? -1 : p});
    }
    return true;
  }

 private:
  const Module& m_;
  const Function& f_;
  const std::vector<InstId>& def_;
};

}  // namespace

bool map_of_array(const Module& m, const Function& f, const std::vector<InstId>& def, ValueId view, size_t inner_dim, const std::string& whose, TensorMapSpec& map,
                  std::vector<int>& tile_dim, std::string& why) {
  const ArrayMapper at(m, f, def);
  const auto bad = [&](std::string text) {
    why = std::move(text);
    return false;
  };
  const InstId partition = at.through(view, Opcode::MakePartitionView);
  if (partition == kNone) return bad(whose + " view comes from elsewhere");
  const InstId make = at.through(f.operands(partition)[0], Opcode::MakeTensorView);
  if (make == kNone) return bad(whose + " array comes from elsewhere");
  const int32_t base = at.parameter(f.operand(make, 0));
  if (base < 0) return bad(whose + " address is computed in the kernel");
  map.base = static_cast<uint32_t>(base);
  const Type& tensor = m.types.get(f.type(f.result(make)));
  std::vector<TensorMapSpec::Number> dims, strides;
  if (!at.numbers(tensor.shape, f.group(make, 1), dims) || !at.numbers(tensor.strides, f.group(make, 2), strides))
    return bad("an array's extents or strides are computed in the kernel");
  std::vector<size_t> order{inner_dim};
  for (size_t d = tensor.shape.size(); d-- > 0;)
    if (d != inner_dim) order.push_back(d);
  const Type& t = m.types.get(f.type(view));
  for (const size_t d : order) {
    map.dims.push_back(dims[d]);
    map.strides.push_back(strides[d]);
    int of_tile = -1;
    for (size_t k = 0; k < t.dim_map.size(); ++k)
      if (static_cast<size_t>(t.dim_map[k]) == d) of_tile = static_cast<int>(k);
    tile_dim.push_back(of_tile);
  }
  return true;
}

}  // namespace tile
