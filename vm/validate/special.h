// The rules of whole operations, shared (RuleKind) or of a single one. Each runs for an operation whose counts, kinds, element types and row rules were found right.
#pragma once

#include "vm/validate/checker.h"

namespace tile::validation {

// special_control.cpp
void check_for(Checker& c);
void check_loop(Checker& c);
void check_if(Checker& c);
void check_terminator(Checker& c);
void check_combine(Checker& c);  ///< reduce, scan
/// Compares what a terminator hands over with what its parent takes. The walk calls it once the place is right.
void check_handed_over(Checker& c);

// special_arith.cpp
void check_divi(Checker& c);
void check_float_modifiers(Checker& c);
void check_ftof(Checker& c);

// special_shape.cpp
void check_constant(Checker& c);
void check_iota(Checker& c);
void check_permute(Checker& c);
void check_cat(Checker& c);
void check_slice(Checker& c);  ///< extract, insert
void check_pack(Checker& c);  ///< pack, unpack
void check_get_global(Checker& c);
void check_assume(Checker& c);

// special_matrix.cpp
void check_mma(Checker& c);  ///< mmaf, mmai
void check_mma_scaled(Checker& c);

// special_memory.cpp
void check_join_tokens(Checker& c);
void check_not_multicast(Checker& c);  ///< of pointers, or of a view
void check_mode_fits(Checker& c);
/// The mode of an atomic operation against the element type of `group`.
void check_mode(Checker& c, size_t group);
void check_alloca(Checker& c);
void check_print(Checker& c);

// special_view.cpp
void check_make_tensor_view(Checker& c);
void check_make_view(Checker& c);
void check_get_shape(Checker& c);
void check_view_indices(Checker& c);
void check_atomic_red_view(Checker& c);
void check_multimem(Checker& c);

}  // namespace tile::validation
