// Which hand-written rule belongs to which operation.
#include "vm/validate/special.h"

namespace tile::validation {
namespace {

struct Entry {
  Opcode op;
  SpecialRule rule;
};
constexpr Entry kSpecial[] = {
    {Opcode::For, check_for},
    {Opcode::Loop, check_loop},
    {Opcode::If, check_if},
    {Opcode::Break, check_terminator},
    {Opcode::Continue, check_terminator},
    {Opcode::Yield, check_terminator},
    {Opcode::Return, check_return},
    {Opcode::Reduce, check_combine},
    {Opcode::Scan, check_combine},
    {Opcode::DivI, check_divi},
    {Opcode::AddF, check_float_modifiers},
    {Opcode::SubF, check_float_modifiers},
    {Opcode::MulF, check_float_modifiers},
    {Opcode::DivF, check_float_modifiers},
    {Opcode::Fma, check_float_modifiers},
    {Opcode::MaxF, check_float_modifiers},
    {Opcode::MinF, check_float_modifiers},
    {Opcode::TanH, check_float_modifiers},
    {Opcode::Exp, check_float_modifiers},
    {Opcode::Exp2, check_float_modifiers},
    {Opcode::Rsqrt, check_float_modifiers},
    {Opcode::Sqrt, check_float_modifiers},
    {Opcode::FToF, check_ftof},
    {Opcode::IToF, check_itof},
    {Opcode::Constant, check_constant},
    {Opcode::Iota, check_iota},
    {Opcode::Permute, check_permute},
    {Opcode::Cat, check_cat},
    {Opcode::Extract, check_extract},
    {Opcode::Insert, check_insert},
    {Opcode::Pack, check_pack},
    {Opcode::Unpack, check_pack},
    {Opcode::GetGlobal, check_get_global},
    {Opcode::Assume, check_assume},
    {Opcode::MmaF, check_mma},
    {Opcode::MmaI, check_mma},
    {Opcode::MmaFScaled, check_mma_scaled},
    {Opcode::JoinTokens, check_join_tokens},
    {Opcode::LoadPtrTko, check_pointer_access},
    {Opcode::StorePtrTko, check_pointer_access},
    {Opcode::AtomicCASTko, check_pointer_access},
    {Opcode::AtomicRMWTko, check_atomic_rmw},
    {Opcode::Alloca, check_alloca},
    {Opcode::PrintTko, check_print},
    {Opcode::MakeTensorView, check_make_tensor_view},
    {Opcode::MakePartitionView, check_make_view},
    {Opcode::MakeStridedView, check_make_view},
    {Opcode::MakeGatherScatterView, check_make_view},
    {Opcode::GetTensorShape, check_get_shape},
    {Opcode::GetIndexSpaceShape, check_get_shape},
    {Opcode::LoadViewTko, check_view_access},
    {Opcode::StoreViewTko, check_view_access},
    {Opcode::AtomicRedViewTko, check_atomic_red_view},
    {Opcode::MultimemLoadReduceViewTko, check_multimem},
    {Opcode::MultimemReduceViewTko, check_multimem},
    {Opcode::MultimemStoreViewTko, check_multimem},
};

}  // namespace

SpecialRule special_rule(Opcode op) {
  for (const Entry& e : kSpecial)
    if (e.op == op) return e.rule;
  return nullptr;
}

}  // namespace tile::validation
