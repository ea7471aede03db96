// The generic form of operations.
#include "assembler/parser.h"

namespace tile {

bool Parser::parse_generic(size_t) { return fail(Code::E0302, span(), "operations in generic form are not read, expected the name of an operation"); }

bool Parser::parse_generic_list(AttrValue&) { return fail(Code::E0302, span(), "array<...> and dense<...> are not read here"); }

}  // namespace tile
