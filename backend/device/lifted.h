// What assemblers say of a kernel, at the operations that it is about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/compile.h"
#include "backend/cuda/cubin.h"
#include "vm/base/diagnostics.h"

namespace tile {

/// Replaces errors and warnings in `said`, whose places are lines of PTX, by those in `of_lines`, which are about `ptx` with the instructions' numbers
/// as lines (CompileOptions::instruction_lines), at the operations. Where none can be placed, the places of `said` stay. Errors that name the kernel
/// without a line are said of the entry.
void lift_places(const Module& module, const Function& entry, const std::string& ptx, const Diagnostics& of_lines, Diagnostics& said);

/// Whether one of the messages is about a line of PTX.
[[nodiscard]] bool has_lines(const Diagnostics& said);

/// Advice such as "(C7510) Potential Performance Loss: ...", and spills, as remarks: on products that use wgmma if they are about these; spills on the
/// operation whose result takes most registers of a thread.
/// @param remarks  of the kernel: they tell the unit of every product
[[nodiscard]] std::vector<Remark> lift_advice(const Module& module, const Function& entry, unsigned threads, const std::vector<Remark>& remarks, const std::vector<std::string>& advice,
                                              const std::optional<cuda::Spills>& spills);

}  // namespace tile
