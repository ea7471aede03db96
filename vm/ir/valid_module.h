// A module that the validator has accepted. Interpreter and backend take only this.
#pragma once

#include <utility>

#include "vm/ir/module.h"

namespace tile {

class ValidModule {
 public:
  [[nodiscard]] const Module& operator*() const { return module_; }
  [[nodiscard]] const Module* operator->() const { return &module_; }

 private:
  explicit ValidModule(Module m) : module_(std::move(m)) {}
  Module module_;
  friend Result<ValidModule> validate(Module module, Diagnostics& diags);
};

/// Checks every rule of the language and hands the module back as valid. Reports as many independent errors as it can.
/// @error E04xx..E07xx
/// @source spec/operations.md, spec/types.md
[[nodiscard]] Result<ValidModule> validate(Module module, Diagnostics& diags);

}  // namespace tile
