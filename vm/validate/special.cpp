// Which rule of whole operations belongs to which word of the rows, and the hand-written ones of single operations.
#include "vm/validate/special.h"

#include <iterator>

namespace tile::validation {
namespace {

struct Entry {
  Opcode op;
  OperationRule rule;
};
constexpr Entry kSpecial[] = {
    {Opcode::For, check_for},
    {Opcode::Loop, check_loop},
    {Opcode::If, check_if},
    {Opcode::DivI, check_divi},
    {Opcode::FToF, check_ftof},
    {Opcode::Constant, check_constant},
    {Opcode::Iota, check_iota},
    {Opcode::Permute, check_permute},
    {Opcode::Cat, check_cat},
    {Opcode::GetGlobal, check_get_global},
    {Opcode::Assume, check_assume},
    {Opcode::MmaFScaled, check_mma_scaled},
    {Opcode::Alloca, check_alloca},
    {Opcode::PrintTko, check_print},
    {Opcode::MakeTensorView, check_make_tensor_view},
    {Opcode::AtomicRedViewTko, check_atomic_red_view},
};

/// In the order of RuleKind, from the first one of whole operations.
constexpr OperationRule kShared[] = {
    check_float_modifiers, check_terminator, check_combine,   check_slice,           check_pack,     check_mma,    check_join_tokens,
    check_not_multicast,   check_multimem,   check_mode_fits, check_make_view,       check_get_shape, check_view_indices,
};
static_assert(std::size(kShared) == static_cast<size_t>(RuleKind::Special) - static_cast<size_t>(RuleKind::FloatModifiers));

}  // namespace

OperationRule special_rule(Opcode op) {
  for (const Entry& e : kSpecial)
    if (e.op == op) return e.rule;
  return nullptr;
}

OperationRule operation_rule(RuleKind kind, Opcode op) {
  if (kind == RuleKind::Special) return special_rule(op);
  return kShared[static_cast<size_t>(kind) - static_cast<size_t>(RuleKind::FloatModifiers)];
}

}  // namespace tile::validation
