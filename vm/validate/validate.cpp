// Entry point of the validator.
#include "vm/ir/valid_module.h"
#include "vm/validate/checker.h"

namespace tile {

Result<ValidModule> validate(Module module, Diagnostics& diags) {
  const size_t before = diags.error_count();
  validation::Checker(module, diags).check_module();
  if (diags.error_count() != before) return Failed;
  return ValidModule(std::move(module));
}

}  // namespace tile
