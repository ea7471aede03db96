// What each GPU target can do. Facts only; which of them a kernel uses is the plan's business.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tile {

struct Target {
  std::string name;             ///< as the user wrote it: "sm_90a"
  unsigned sm = 90;             ///< 75, 80, 86, 89, 90, 100, 103, 120
  bool arch_specific = false;   ///< the `a` suffix
  std::string llvm_cpu;         ///< what LLVM 19 is told ("sm_90" for newer ones)
  std::string ptx_version;      ///< e.g. "8.5"
  std::string ptx_target;       ///< .target line
  bool emulated = false;        ///< host emulation of this target

  [[nodiscard]] bool cp_async() const { return sm >= 80; }
  [[nodiscard]] bool bf16() const { return sm >= 80; }         ///< bf16 mma and fma
  [[nodiscard]] bool fp8_cvt() const { return sm >= 89; }
  [[nodiscard]] bool native_bf16_arith() const { return sm >= 90; }
  [[nodiscard]] bool wgmma() const { return sm == 90 && arch_specific; }
  [[nodiscard]] bool tma() const { return sm >= 90; }
  [[nodiscard]] unsigned max_shared() const {                   ///< bytes a block can have
    switch (sm) {
      case 75: return 64 * 1024;
      case 86: case 89: case 120: return 99 * 1024;
      case 80: return 163 * 1024;
      default: return 227 * 1024;
    }
  }
};

/// The target of that name; nullopt if there is none.
[[nodiscard]] std::optional<Target> find_target(std::string_view name);
[[nodiscard]] std::string target_names();

}  // namespace tile
