// Unique names for the values of a function.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "assembler/printer.h"

namespace tile {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_char(char c) {
  return is_letter(c) || is_digit(c) || c == '$' || c == '.' || c == '_' || c == '-';
}

// A name that the text form can hold, or nothing where the value is to be numbered.
std::string spelled(std::string_view name) {
  if (std::all_of(name.begin(), name.end(), is_digit)) return {};
  std::string out(name);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return !is_name_char(c); }, '_');
  if (is_digit(out[0])) out.insert(0, "_");
  return out;
}

// Where each value is defined: its region, and for each region how deep it lies and in which region.
struct Scopes {
  std::vector<RegionId> of_value, parent;
  std::vector<uint32_t> depth;

  explicit Scopes(const Function& f)
      : of_value(f.value_types.size(), 0), parent(f.regions.size() + 1, kNone), depth(f.regions.size() + 1, 0) {
    std::vector<RegionId> of_inst(f.insts.size(), 0);
    for (RegionId r = 0; r < f.regions.size(); ++r) {
      const Region& region = f.regions[r];
      for (InstId i = region.begin; i < region.end && i < f.insts.size(); i = std::max(f.insts[i].next, i + 1))
        of_inst[i] = r;
      if (r > 0 && region.parent < f.insts.size() && of_inst[region.parent] < r) {
        parent[r] = of_inst[region.parent];
        depth[r] = depth[parent[r]] + 1;
      }
      put(region.first_arg, region.arg_count, r);
    }
    for (InstId i = 0; i < f.insts.size(); ++i) put(f.insts[i].first_result, f.insts[i].result_count, of_inst[i]);
  }

  /// True if `outer` is `r` or lies around it.
  [[nodiscard]] bool around(RegionId outer, RegionId r) const {
    while (depth[r] > depth[outer]) r = parent[r];
    return r == outer;
  }

  void put(ValueId first, uint32_t count, RegionId r) {
    for (size_t k = first; k < size_t{first} + count && k < of_value.size(); ++k) of_value[k] = r;
  }
};

class Namer {
 public:
  Namer(const Module& m, const Function& f) : m_(m), f_(f), scopes_(f) {}

  std::vector<std::string> all() {
    name_loop_indices();
    std::vector<std::string> names(f_.value_types.size());
    for (ValueId v = 0; v < names.size(); ++v) {
      enter(scopes_.of_value[v]);
      const std::string wanted = wish(v);
      names[v] = wanted.empty() ? std::to_string(next_number_++) : unique(wanted);
    }
    return names;
  }

 private:
  struct Open {
    RegionId region;
    std::vector<std::string> names;
  };

  // Values come in the order of the text, so a region that is left is never entered again: its names are free then.
  void enter(RegionId r) {
    if (!open_.empty() && open_.back().region == r) return;
    while (!open_.empty() && !scopes_.around(open_.back().region, r)) {
      for (const std::string& name : open_.back().names) live_.erase(name);
      open_.pop_back();
    }
    if (open_.empty() || open_.back().region != r) open_.push_back({r, {}});
  }

  std::string wish(ValueId v) const {
    if (v < f_.value_names.size() && f_.value_names[v] < m_.strings.size()) {
      std::string name = spelled(m_.strings.get(f_.value_names[v]));
      if (!name.empty()) return name;
    }
    if (v < f_.param_count) return "arg" + std::to_string(v);
    return loop_indices_.contains(v) ? "i" : "";
  }

  std::string unique(const std::string& wanted) {
    std::string name = wanted;
    while (!live_.insert(name).second) name = wanted + "_" + std::to_string(++tries_[wanted]);
    open_.back().names.push_back(name);
    return name;
  }

  void name_loop_indices() {
    for (const Inst& inst : f_.insts) {
      if (inst.op != Opcode::For || inst.first_region >= f_.regions.size()) continue;
      const Region& body = f_.regions[inst.first_region];
      if (body.arg_count > 0) loop_indices_.insert(body.first_arg);
    }
  }

  const Module& m_;
  const Function& f_;
  Scopes scopes_;
  std::vector<Open> open_;
  std::unordered_set<std::string> live_;
  std::unordered_map<std::string, uint32_t> tries_;
  std::unordered_set<ValueId> loop_indices_;
  uint64_t next_number_ = 0;
};

}  // namespace

ValueNames::ValueNames(const Module& m, const Function& f, bool pretty) {
  if (pretty) {
    names_ = Namer(m, f).all();
    return;
  }
  names_.reserve(f.value_types.size());
  for (ValueId v = 0; v < f.value_types.size(); ++v) names_.push_back(std::to_string(v));
}

}  // namespace tile
