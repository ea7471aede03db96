// Reading the facts from rows and regions.
#include "vm/interp/check_facts.h"

namespace tile {
namespace {

// Encodings of spec/types.md.
enum : uint32_t { kWeak = 0, kAcquire = 2, kRelease = 3, kAcqRel = 4 };
enum : uint32_t { kBlockScope = 0 };

}  // namespace

uint32_t CheckFacts::attr(InstId i, std::string_view name, uint32_t absent) const {
  const int a = attr_index(f.def(i), name);
  return a < 0 ? absent : f.attr(i, static_cast<size_t>(a));
}

CheckFacts::CheckFacts(const std::shared_ptr<const ValidModule>& valid, const Plan& plan)
    : module(**valid),
      f(plan.function()),
      steps(plan),
      slots_(value_slots(valid, plan.function())),
      ops_(f.insts.size()) {
  std::vector<uint8_t> body(f.regions.size(), 0);
  for (RegionId r = 0; r < f.regions.size(); ++r) {
    const InstId parent = f.regions[r].parent;
    if (parent != kNone)
      body[r] = ops_[parent].in_body || f.insts[parent].op == Opcode::Reduce || f.insts[parent].op == Opcode::Scan;
    for (InstId i = f.regions[r].begin; i < f.regions[r].end; i = f.insts[i].next) ops_[i].in_body = body[r] != 0;
  }
  const auto operand = [&](InstId i, std::initializer_list<std::string_view> names) {
    for (const auto name : names)
      if (const int g = operand_index(f.def(i), name); g >= 0) return f.operand(i, static_cast<size_t>(g));
    return kNone;
  };
  for (ValueId v = 0; v < f.value_types.size(); ++v) {
    counts_.push_back(module.types.is_tile(f.type(v)) ? static_cast<size_t>(module.types.element_count(f.type(v))) : 0);
    elements_.push_back(is_token(v) ? ElementType::kCount : module.types.element_of(f.type(v)));
  }
  for (InstId i = 0; i < f.insts.size(); ++i) operands_.push_back(f.operands(i));
  for (InstId i = 0; i < f.insts.size(); ++i) {
    ops_[i].control = f.def(i).regions > 0 && f.insts[i].op != Opcode::Reduce && f.insts[i].op != Opcode::Scan;
    ops_[i].inbounds = attr(i, "inbounds");
    for (const ValueId v : f.operands(i))
      if (is_token(v)) ops_[i].tokens.push_back(v);
    for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
      if (is_token(f.result(i, k))) ops_[i].token = f.result(i, k);
    const uint32_t ordering = attr(i, "memory_ordering_semantics"), scope = attr(i, "memory_scope");
    if (ordering == kNone) continue;
    Op& o = ops_[i];
    const OpDef& def = f.def(i);
    o.memory = true;
    o.reads = def.effect != Effect::Write;
    o.writes = def.effect != Effect::Read;
    o.strong = ordering != kWeak;
    o.device = o.strong && scope != kBlockScope && scope != kNone;
    o.acquire = ordering == kAcquire || ordering == kAcqRel;
    o.release = ordering == kRelease || ordering == kAcqRel;
    o.ordinal = accesses_++;
    synchronises_ = synchronises_ || (o.device && (o.acquire || o.release));
    o.pointers = operand(i, {"source", "destination", "pointers"});
    o.view = operand(i, {"view"});
    o.mask = operand(i, {"mask"});
    o.padding = operand(i, {"paddingValue"});
    o.value = operand(i, {"value", "tile", "arg", "val"});
    for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
      if (is_tile(f.result(i, k))) o.loaded = f.result(i, k);
    const TypeId through = f.type(o.view != kNone ? o.view : o.pointers);
    o.element_bits =
        info(module.types.element_of(o.view != kNone ? through : module.types.pointee_of(through))).memory_bits;
  }
  carries();
}

void CheckFacts::carries() {
  std::vector<InstId> parents(f.insts.size(), kNone);  // the operation around each
  for (const Region& r : f.regions)
    for (InstId i = r.begin; i < r.end; i = f.insts[i].next) parents[i] = r.parent;
  const auto enclosing = [&](InstId i, auto... ops) {
    InstId at = parents[i];
    while (at != kNone && !((f.insts[at].op == ops) || ...)) at = parents[at];
    return at;
  };
  for (InstId i = 0; i < f.insts.size(); ++i) {
    if (ops_[i].in_body) continue;
    const auto operands = f.operands(i);
    const auto to_args = [&](InstId loop, size_t skip_operands) {
      const Region& r = f.region(loop);
      const uint32_t iv = f.insts[loop].op == Opcode::For ? 1 : 0;
      for (uint32_t k = 0; k + iv < r.arg_count; ++k)
        ops_[i].before.push_back({operands[skip_operands + k], r.first_arg + iv + k});
    };
    const auto to_results = [&](InstId op) {
      for (uint32_t k = 0; k < f.insts[op].result_count; ++k) ops_[i].before.push_back({operands[k], f.result(op, k)});
    };
    switch (f.insts[i].op) {
      case Opcode::For:
        to_args(i, 3);
        for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
          ops_[i].after.push_back({f.region(i).first_arg + 1 + k, f.result(i, k)});
        break;
      case Opcode::Loop:
        to_args(i, 0);
        break;
      case Opcode::Continue:
        to_args(enclosing(i, Opcode::For, Opcode::Loop), 0);
        break;
      case Opcode::Break:
        to_results(enclosing(i, Opcode::Loop));
        break;
      case Opcode::Yield:
        to_results(parents[i]);
        break;
      default:
        break;
    }
    for (std::vector<Carry>* moves : {&ops_[i].before, &ops_[i].after})
      for (Carry& c : *moves) c.token = is_token(c.from);
  }
}

}  // namespace tile
