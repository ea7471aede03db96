// Divisibility, forwards through the entry; what loops carry is unknown but for their counters.
#include "backend/plan/facts.h"

#include <algorithm>

namespace tile {
namespace {

uint64_t power_of(uint64_t n) { return n == 0 ? Facts::kMost : std::min(n & (~n + 1), Facts::kMost); }

}  // namespace

Facts::Facts(const Module& m, const Function& f) : divisor_(f.value_types.size(), 1), array_of_(f.value_types.size(), -1) {
  const auto of = [&](ValueId v) { return divisor_[v]; };
  const auto product = [](uint64_t a, uint64_t b) { return std::min(a * b, kMost); };
  // Operations stand in pre-order: operands come before their uses.
  for (InstId i = 0; i < f.insts.size(); ++i) {
    const Inst& inst = f.insts[i];
    const auto operands = f.operands(i);
    if (inst.op == Opcode::For) {
      divisor_[f.region(i).first_arg] = std::min(of(operands[0]), of(operands[2]));
      continue;
    }
    if (inst.result_count == 0) continue;
    const ValueId r = f.result(i);
    switch (inst.op) {
      case Opcode::MakeTensorView: {
        const Type& t = m.types.get(f.type(r));
        Array a;
        a.base = of(f.operand(i, 0));
        const auto fill = [&](const std::vector<int64_t>& numbers, std::span<const ValueId> dynamic, std::vector<uint64_t>& to) {
          size_t next = 0;
          for (const int64_t n : numbers) to.push_back(n == kDynamic ? of(dynamic[next++]) : power_of(static_cast<uint64_t>(n)));
        };
        fill(t.shape, f.group(i, 1), a.shape);
        fill(t.strides, f.group(i, 2), a.strides);
        array_of_[r] = static_cast<int>(arrays_.size());
        arrays_.push_back(std::move(a));
        continue;
      }
      case Opcode::MakePartitionView: case Opcode::MakeStridedView: case Opcode::MakeGatherScatterView: array_of_[r] = array_of_[operands[0]]; continue;
      case Opcode::Assume: {
        const Attr& p = m.attrs.get(f.attr(i, 0));
        const uint64_t promised = p.tag == AttrTag::DivBy && p.ints.empty() ? power_of(p.bits) : 1;
        if (!m.types.is_tile(f.type(r))) {
          array_of_[r] = array_of_[operands[0]];
          if (array_of_[r] >= 0 && promised > 1) {
            Array a = arrays_[static_cast<size_t>(array_of_[r])];
            a.base = std::max(a.base, promised);
            array_of_[r] = static_cast<int>(arrays_.size());
            arrays_.push_back(std::move(a));
          }
        } else if (m.types.is_scalar(f.type(r))) {
          divisor_[r] = std::max(of(operands[0]), promised);
        }
        continue;
      }
      default: break;
    }
    if (!m.types.is_tile(f.type(r)) || !m.types.is_scalar(f.type(r))) continue;
    const ElementType e = m.types.element_of(f.type(r));
    if (!info(e).is_int && e != ElementType::Ptr) continue;
    switch (inst.op) {
      case Opcode::Constant: {
        const std::string& bytes = m.attrs.get(f.attr(i, 0)).bytes;
        uint64_t n = 0;
        for (size_t k = 0; k < bytes.size() && k < 8; ++k) n |= uint64_t{static_cast<uint8_t>(bytes[k])} << (8 * k);
        divisor_[r] = power_of(n);
        break;
      }
      case Opcode::MulI: divisor_[r] = product(of(operands[0]), of(operands[1])); break;
      case Opcode::AddI: case Opcode::SubI: case Opcode::MaxI: case Opcode::MinI: case Opcode::OrI: case Opcode::XOrI:
        divisor_[r] = std::min(of(operands[0]), of(operands[1]));
        break;
      case Opcode::AndI: divisor_[r] = std::max(of(operands[0]), of(operands[1])); break;
      case Opcode::Select: divisor_[r] = std::min(of(operands[1]), of(operands[2])); break;
      case Opcode::ExtI: case Opcode::TruncI: case Opcode::Reshape: case Opcode::NegI: divisor_[r] = of(operands[0]); break;
      case Opcode::Offset: {
        const unsigned bits = info(m.types.element_of(m.types.pointee_of(f.type(r)))).memory_bits;
        divisor_[r] = bits % 8 != 0 ? 1 : std::min(of(operands[0]), product(of(operands[1]), power_of(bits / 8)));
        break;
      }
      default: break;
    }
  }
}

const Facts::Array& Facts::array(ValueId view) const {
  static const Array kNothing;
  const int at = view < array_of_.size() ? array_of_[view] : -1;
  return at < 0 ? kNothing : arrays_[static_cast<size_t>(at)];
}

std::string Facts::print(const Array& a) {
  const auto list = [](const std::vector<uint64_t>& divisors) {
    std::string s;
    for (const uint64_t d : divisors) s += (s.empty() ? "" : " ") + (d == kMost ? std::string("0") : std::to_string(d));
    return "[" + s + "]";
  };
  return "address " + std::to_string(a.base) + ", shape " + list(a.shape) + ", strides " + list(a.strides);
}

}  // namespace tile
