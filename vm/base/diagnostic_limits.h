// How much text diagnostics keep and show. Names in the input may be as long as the input, and each of many errors repeats them:
// without bounds the errors of a small file took more memory than 64 times its size.
#pragma once

#include <cstddef>

namespace tile {

inline constexpr size_t kMaxDiagnosticMessage = 1024;     ///< bytes of a message, note or help; longer ones end in "..."
inline constexpr size_t kMaxDiagnosticName = 256;         ///< of a function, operand, argument or source location
inline constexpr size_t kMaxDiagnosticInstruction = 512;  ///< of an instruction as text; rendering shows less
inline constexpr size_t kMaxDiagnosticNotes = 8;          ///< notes of one diagnostic, before one that counts the others
inline constexpr size_t kDiagnosticTextShare = 512;       ///< bytes of text, of all that are kept together, for each that Diagnostics::limit allows
inline constexpr size_t kMaxWarnings = 16;                ///< that are kept, and no more than Diagnostics::limit
inline constexpr size_t kMaxRenderedDiagnostics = size_t{48} << 10;  ///< bytes of text after which no more are rendered

}  // namespace tile
