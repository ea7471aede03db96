// Targets by name.
#include "backend/plan/target.h"

namespace tile {
namespace {

struct Row {
  const char* name;
  unsigned sm;
  bool arch;
  const char* cpu;      // the newest that LLVM 19 knows and that the target runs
  const char* version;  // first PTX version with all that is used
};
constexpr Row kRows[] = {
    {"sm_75", 75, false, "sm_75", "7.0"},  {"sm_80", 80, false, "sm_80", "7.8"},   {"sm_86", 86, false, "sm_86", "7.8"},
    {"sm_89", 89, false, "sm_89", "8.1"},  {"sm_90", 90, false, "sm_90", "8.0"},   {"sm_90a", 90, true, "sm_90a", "8.3"},
    {"sm_100a", 100, true, "sm_90", "8.6"}, {"sm_103a", 103, true, "sm_90", "8.8"}, {"sm_120a", 120, true, "sm_90", "8.7"},
};

}  // namespace

std::optional<Target> find_target(std::string_view name) {
  for (const Row& r : kRows)
    if (name == r.name) {
      Target t;
      t.name = r.name;
      t.sm = r.sm;
      t.arch_specific = r.arch;
      t.llvm_cpu = r.cpu;
      t.ptx_version = r.version;
      t.ptx_target = r.name;
      return t;
    }
  return std::nullopt;
}

std::string target_names() {
  std::string out;
  for (const Row& r : kRows) out += (out.empty() ? "" : ", ") + std::string(r.name);
  return out;
}

}  // namespace tile
