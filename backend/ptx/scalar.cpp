// Which elementwise operation is lowered where, and the forms that elements have in registers and memory.
#include "backend/ptx/scalar.h"

#include "backend/ptx/scalar_parts.h"
#include "vm/base/numeric.h"

namespace tile {
namespace {

bool is_wide_float(ElementType e) {
  return kBaseFloat.has(e) || e == ElementType::TF32;
}

Value* lower_offset(const ScalarOp& s, uint64_t bytes) {
  llvm::IRBuilder<>& b = s.d.b;
  return b.CreateAdd(s.x[0], b.CreateMul(b.CreateSExt(s.x[1], b.getInt64Ty()), b.getInt64(bytes)));
}

/// As integers: x86 would pass a chosen bf16 through float, which is a call into a library and changes a NaN.
Value* lower_select(const ScalarOp& s) {
  const auto word = [&](Value* v) { return to_memory(s.d, s.out, v); };
  if (s.out != ElementType::BF16) return s.d.b.CreateSelect(s.x[0], s.x[1], s.x[2]);
  return from_memory(s.d, s.out, s.d.b.CreateSelect(s.x[0], word(s.x[1]), word(s.x[2])));
}

Value* lower_bitcast(const ScalarOp& s) {
  if (info(s.in).bits != info(s.out).bits) return nullptr;
  return s.d.b.CreateBitCast(s.x[0], register_type(s.d.b.getContext(), s.out));
}

ScalarOp read_op(DeviceOps& d, const Module& m, const Function& f, InstId i, std::span<Value* const> operands) {
  const auto values = f.operands(i);
  ScalarOp s{d, f.insts[i].op, m.types.element_of(f.type(values[values.size() - 1])),
             m.types.element_of(f.type(f.result(i))), operands};
  const OpDef& def = f.def(i);
  for (size_t a = 0; a < def.attrs.size(); ++a) {
    const AttrDef& attr = def.attrs[a];
    const uint32_t word = f.attr(i, a);
    if (attr.kind == AttrKind::Unit) {
      if (attr.name == "flush_to_zero") s.ftz = word != 0;
      if (attr.name == "propagate_nan") s.propagate_nan = word != 0;
      if (attr.name == "saturating") s.saturating = word != 0;
    } else if (attr.kind == AttrKind::Enum) {
      if (attr.enum_kind == EnumKind::Rounding) s.round = static_cast<Round>(word);
      if (attr.enum_kind == EnumKind::Signedness) s.is_signed = word != 0;
      if (attr.enum_kind == EnumKind::Predicate) s.predicate = word;
      if (attr.enum_kind == EnumKind::Ordering) s.ordered = word != 0;
    }
  }
  return s;
}

}  // namespace

llvm::Type* register_type(llvm::LLVMContext& c, ElementType e) {
  switch (e) {
    case ElementType::I1:
      return llvm::Type::getInt1Ty(c);
    case ElementType::F16:
      return llvm::Type::getHalfTy(c);
    case ElementType::BF16:
      return llvm::Type::getBFloatTy(c);
    case ElementType::F32:
    case ElementType::TF32:
      return llvm::Type::getFloatTy(c);
    case ElementType::F64:
      return llvm::Type::getDoubleTy(c);
    default:
      return llvm::Type::getIntNTy(c, info(e).storage * 8);
  }
}

llvm::Type* memory_type(llvm::LLVMContext& c, ElementType e) {
  return llvm::Type::getIntNTy(c, info(e).storage * 8);
}

Value* to_memory(DeviceOps& d, ElementType e, Value* v) {
  llvm::Type* to = memory_type(d.b.getContext(), e);
  return e == ElementType::I1 ? d.b.CreateZExt(v, to) : d.b.CreateBitCast(v, to);
}

Value* from_memory(DeviceOps& d, ElementType e, Value* v) {
  if (e == ElementType::I1) return d.b.CreateICmpNE(v, llvm::ConstantInt::get(v->getType(), 0));
  return d.b.CreateBitCast(v, register_type(d.b.getContext(), e));
}

Value* constant_bits(DeviceOps& d, ElementType e, uint64_t bits) {
  llvm::Type* type = register_type(d.b.getContext(), e);
  if (!is_wide_float(e)) return llvm::ConstantInt::get(type, e == ElementType::I1 ? bits & 1 : bits);
  const llvm::APInt word(static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue()), bits);
  return llvm::ConstantFP::get(type->getContext(), llvm::APFloat(type->getFltSemantics(), word));
}

bool is_scalar_op(Opcode op) {
  switch (op) {
    case Opcode::AbsI:
    case Opcode::AddI:
    case Opcode::SubI:
    case Opcode::MulI:
    case Opcode::MulhiI:
    case Opcode::NegI:
    case Opcode::DivI:
    case Opcode::RemI:
    case Opcode::MaxI:
    case Opcode::MinI:
    case Opcode::ShLI:
    case Opcode::ShRI:
    case Opcode::AndI:
    case Opcode::OrI:
    case Opcode::XOrI:
    case Opcode::CmpI:
    case Opcode::ExtI:
    case Opcode::TruncI:
    case Opcode::AddF:
    case Opcode::SubF:
    case Opcode::MulF:
    case Opcode::DivF:
    case Opcode::RemF:
    case Opcode::Fma:
    case Opcode::AbsF:
    case Opcode::NegF:
    case Opcode::MaxF:
    case Opcode::MinF:
    case Opcode::CmpF:
    case Opcode::Ceil:
    case Opcode::Floor:
    case Opcode::Sqrt:
    case Opcode::Rsqrt:
    case Opcode::Exp:
    case Opcode::Exp2:
    case Opcode::Log:
    case Opcode::Log2:
    case Opcode::Sin:
    case Opcode::Cos:
    case Opcode::Tan:
    case Opcode::SinH:
    case Opcode::CosH:
    case Opcode::TanH:
    case Opcode::FPowF:
    case Opcode::Atan2:
    case Opcode::FPowI:
    case Opcode::FToF:
    case Opcode::FToI:
    case Opcode::IToF:
    case Opcode::Select:
    case Opcode::Bitcast:
    case Opcode::IntToPtr:
    case Opcode::PtrToInt:
    case Opcode::PtrToPtr:
    case Opcode::Offset:
    case Opcode::Assume:
      return true;
    default:
      return false;
  }
}

Value* lower_scalar(DeviceOps& d, const Module& m, const Function& f, InstId i, std::span<Value* const> operands,
                    std::string& why) {
  const ScalarOp s = read_op(d, m, f, i, operands);
  switch (s.op) {
    case Opcode::Assume:
    case Opcode::IntToPtr:
    case Opcode::PtrToInt:
    case Opcode::PtrToPtr:
      return operands[0];
    case Opcode::Select:
      return lower_select(s);
    case Opcode::Bitcast:
      if (Value* v = lower_bitcast(s)) return v;
      break;
    case Opcode::Offset: {
      const unsigned bits = info(m.types.element_of(m.types.pointee_of(f.type(f.operands(i)[0])))).memory_bits;
      if (bits != 0 && bits % 8 == 0) return lower_offset(s, bits / 8);
      why = "pointers to elements of " + std::to_string(bits) + " bits cannot be moved by elements";
      return nullptr;
    }
    default:
      for (auto* lower : {lower_integer, lower_arithmetic, lower_conversion, lower_math}) {
        if (Value* v = lower(s)) return v;
      }
  }
  why = "element types " + std::string(info(s.in).name) + " -> " + std::string(info(s.out).name);
  return nullptr;
}

Value* convert_float(DeviceOps& d, ElementType from, ElementType to, Value* v) {
  if (from == to) return v;
  return encoded(d, to, decoded(d, from, {&d.b, v}), Round::NearestEven);
}

}  // namespace tile
