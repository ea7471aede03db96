// The operation table and the diagnostic codes as documents. spec/ops.md, spec/ops.json and spec/diagnostics.md are
// these strings.
#pragma once

#include <string>

#include "vm/base/diagnostics.h"
#include "vm/ops/op_table.h"

namespace tile {

/// One operation in full, as a section of Markdown.
[[nodiscard]] std::string op_markdown(const OpDef& op);
/// One operation as a JSON object.
[[nodiscard]] std::string op_json(const OpDef& op);

[[nodiscard]] std::string ops_markdown();
[[nodiscard]] std::string ops_json();
/// A message that a diagnostic code has.
[[nodiscard]] const char* diagnostic_example(Code code);
[[nodiscard]] std::string diagnostics_markdown();

}  // namespace tile
