// Kernel prints and assertions. Conversions follow C printf; a tile prints as nested brackets with the conversion applied to each element.
#include "vm/interp/eval.h"
#include "vm/interp/print_text.h"

namespace tile {
namespace {

struct PrintData : StepData {
  std::vector<PrintPiece> pieces;
  std::vector<Slot> slots;
  std::vector<PrintValue> values;  // without data
};

Flow eval_print(Exec& x, const Step& s) {
  const auto& d = static_cast<const PrintData&>(*s.data);
  std::vector<PrintValue> values = d.values;
  for (size_t a = 0; a < values.size(); ++a) values[a].data = x.at<std::byte>(d.slots[a]);
  x.print(print_text(d.pieces, values));
  return Flow::Next;
}

struct AssertData : StepData {
  std::vector<int64_t> shape;
  std::string message;
};

Flow eval_assert(Exec& x, const Step& s) {
  const auto& d = static_cast<const AssertData&>(*s.data);
  const uint8_t* condition = x.at<uint8_t>(s.in[0]);
  const Module& m = x.plan.module();
  bool failed = false;
  for (size_t i = 0; i < s.n; ++i) {
    if (condition[i]) continue;
    failed = true;
    std::string position;
    size_t rest = i;
    std::vector<int64_t> at(d.shape.size());
    for (size_t k = d.shape.size(); k-- > 0;) {
      at[k] = static_cast<int64_t>(rest % static_cast<size_t>(d.shape[k]));
      rest /= static_cast<size_t>(d.shape[k]);
    }
    for (size_t k = 0; k < at.size(); ++k) position += (k ? ", " : "") + std::to_string(at[k]);
    std::string where = m.loc_text(x.plan.function().insts[s.inst].loc);
    if (const size_t colon = where.rfind(':'); colon != std::string::npos) where.resize(colon);  // file:line
    x.print((where.empty() ? m.file : where) + ": tile block: [" + std::to_string(x.block[0]) + ", " + std::to_string(x.block[1]) + ", " +
            std::to_string(x.block[2]) + "], position: [" + position + "]: " + d.message + "\n");
  }
  if (!failed) return Flow::Next;
  return x.trap(Code::T0102, s, "assert: " + d.message);
}

}  // namespace

bool compile_print(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  PrintData* d = b.data<PrintData>();
  for (const ValueId v : f.group(i, 0)) {
    d->slots.push_back(b.slot(v));
    d->values.push_back({b.element(v), b.type(v).shape, nullptr});
  }
  d->pieces = parse_print_format(b.module.str(f.attr(i, 0)));
  b.step(i, eval_print).data = d;
  return true;
}

bool compile_assert(PlanBuilder& b, InstId i) {
  const ValueId condition = b.f.operands(i)[0];
  AssertData* d = b.data<AssertData>();
  d->shape = b.type(condition).shape;
  d->message = b.module.str(b.f.attr(i, 0));
  Step& s = b.step(i, eval_assert);
  s.in[0] = b.slot(condition);
  s.data = d;
  s.n = b.count(condition);
  return true;
}

}  // namespace tile
