// Rebuilding a function without some of its instructions.
#include "tests/random/reduce_program.h"

#include <algorithm>
#include <vector>

#include "vm/ir/function_builder.h"

namespace tile::random_program {
namespace {

using Ids = std::vector<uint32_t>;

bool zero_possible(const TypeTable& types, TypeId t) {
  return types.is_tile(t) && kNum.has(types.element_of(t));
}

/// Which instructions something visible depends on.
class Liveness {
 public:
  explicit Liveness(const Function& f)
      : f_(f), live(f.insts.size()), definition_(f.value_types.size(), kNone), parent_(f.insts.size(), kNone) {
    for (InstId i = 0; i < f.insts.size(); ++i) {
      for (uint32_t r = 0; r < f.insts[i].result_count; ++r) definition_[f.result(i, r)] = i;
      for (uint8_t r = 0; r < f.def(i).regions; ++r) {
        const Region& region = f.region(i, r);
        for (uint32_t a = 0; a < region.arg_count; ++a) definition_[region.first_arg + a] = i;
        for (InstId k = region.begin; k < region.end; k = f.insts[k].next) parent_[k] = i;
      }
    }
    for (InstId i = 0; i < f.insts.size(); ++i) {
      const Effect effect = f.def(i).effect;
      const bool top = parent_[i] == kNone && f.def(i).terminator;
      if (top || effect == Effect::Write || effect == Effect::ReadWrite || f.insts[i].op == Opcode::Assert) mark(i);
    }
  }

 private:
  void mark(InstId i) {
    if (i == kNone || live[i]) return;
    live[i] = true;
    mark(parent_[i]);
    for (const ValueId v : f_.operands(i)) mark(definition_[v]);
    // What hands values out of its regions; a break may stand inside an if.
    const bool loop = f_.insts[i].op == Opcode::For || f_.insts[i].op == Opcode::Loop;
    for (InstId k = i + 1; k < f_.insts[i].next; ++k)
      if (f_.def(k).terminator && (parent_[k] == i || (loop && f_.insts[k].op != Opcode::Yield))) mark(k);
    // The body of a reduction is looked at as a whole.
    if (f_.insts[i].op == Opcode::Reduce || f_.insts[i].op == Opcode::Scan)
      for (InstId k = i + 1; k < f_.insts[i].next; ++k) mark(k);
  }

  const Function& f_;

 public:
  std::vector<bool> live;

 private:
  std::vector<InstId> definition_, parent_;
};

class Rebuild {
 public:
  Rebuild(const Function& f, Module& out, Function& to, const Edit& edit, const std::vector<bool>* live)
      : f_(f),
        out_(out),
        edit_(edit),
        live_(live),
        value_(f.value_types.size()),
        b_(to, std::span(f.value_types.data(), f.param_count)) {
    for (ValueId v = 0; v < f.param_count; ++v) value_[v] = v;
  }
  bool run() {
    region(f_.regions[0]);
    if (ok_) b_.finish();
    return ok_;
  }

 private:
  void region(const Region& r) {
    for (InstId i = r.begin; i < r.end && ok_; i = f_.insts[i].next) inst(i);
  }
  bool token(ValueId v) const { return out_.types.is_token(f_.type(v)); }

  bool replaced(InstId i) {
    if (edit_.kind == Edit::Kind::None || edit_.inst != i) return false;
    const auto operands = f_.operands(i);
    ValueId token_in = kNone;
    for (const ValueId v : operands)
      if (token(v)) token_in = value_[v];
    for (uint32_t r = 0; r < f_.insts[i].result_count; ++r) {
      const ValueId v = f_.result(i, r);
      if (token(v)) {
        if (token_in == kNone) {
          value_[v] = b_.next_value();
          const Ids types{out_.types.token()};
          b_.op({.op = Opcode::MakeToken, .operands = {}, .segments = {}, .attrs = {}, .result_types = types});
        } else {
          value_[v] = token_in;
        }
      } else if (edit_.kind == Edit::Kind::Drop) {
        value_[v] = kNone;
      } else if (edit_.kind == Edit::Kind::ToOperand) {
        if (edit_.operand >= operands.size() || f_.type(operands[edit_.operand]) != f_.type(v)) return fail();
        value_[v] = value_[operands[edit_.operand]];
      } else if (edit_.kind == Edit::Kind::ToZeros && zero_possible(out_.types, f_.type(v))) {
        const ElementType e = out_.types.element_of(f_.type(v));
        const Ids types{f_.type(v)}, attrs{out_.attrs.dense(out_.types, f_.type(v), std::string(info(e).storage, '\0'))};
        value_[v] = b_.next_value();
        b_.op({.op = Opcode::Constant, .operands = {}, .segments = {}, .attrs = attrs, .result_types = types});
      } else {
        return fail();
      }
    }
    return true;
  }
  bool fail() {
    ok_ = false;
    return true;
  }

  void inst(InstId i) {
    if (live_ && !(*live_)[i]) return;
    if (replaced(i)) return;
    const Inst& in = f_.insts[i];
    Ids operands, types;
    for (const ValueId v : f_.operands(i)) operands.push_back(value_[v]);
    for (uint32_t r = 0; r < in.result_count; ++r) {
      types.push_back(f_.type(f_.result(i, r)));
      value_[f_.result(i, r)] = b_.next_value() + r;
    }
    const Ids segments(f_.words.begin() + in.word, f_.words.begin() + in.word + f_.segment_words(i));
    const auto attrs = std::span(f_.words).subspan(f_.attr_word(i), f_.def(i).attrs.size());
    b_.op({.op = in.op,
           .operands = operands,
           .segments = segments,
           .attrs = attrs,
           .result_types = types,
           .loc = in.loc});
    for (uint8_t r = 0; r < f_.def(i).regions; ++r) {
      const Region& from = f_.region(i, r);
      if (!from.present) {
        b_.absent_region();
        continue;
      }
      Ids args;
      for (uint32_t a = 0; a < from.arg_count; ++a) {
        args.push_back(f_.type(from.first_arg + a));
        value_[from.first_arg + a] = b_.next_value() + a;
      }
      b_.begin_region(args);
      region(from);
      b_.end_region();
    }
    if (f_.def(i).regions > 0) b_.end_op();
  }

  const Function& f_;
  Module& out_;
  const Edit& edit_;
  const std::vector<bool>* live_;
  std::vector<ValueId> value_;
  FunctionBuilder b_;
  bool ok_ = true;
};

std::optional<Module> rebuilt(const Module& m, const Edit& edit, const std::vector<bool>* live) {
  Module out = m;
  Function& to = out.functions[0];
  const Function from = std::move(to);
  to = Function{};
  to.name = from.name;
  to.hints = from.hints;
  to.arg_attrs = from.arg_attrs;
  if (!Rebuild(from, out, to, edit, live).run()) return std::nullopt;
  return out;
}

/// True if nobody uses a result other than a token.
bool droppable(const TypeTable& types, const Function& f, InstId i) {
  for (uint32_t r = 0; r < f.insts[i].result_count; ++r) {
    const ValueId v = f.result(i, r);
    if (types.is_token(f.type(v))) continue;
    for (InstId k = i + 1; k < f.insts.size(); ++k) {
      const auto operands = f.operands(k);
      if (std::find(operands.begin(), operands.end(), v) != operands.end()) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Module> edited(const Module& m, const Edit& edit, bool clean) {
  auto out = rebuilt(m, edit, nullptr);
  if (!out || !clean) return out;
  const Liveness uses(out->functions[0]);
  return rebuilt(*out, {}, &uses.live);
}

Module reduce(Module m, const std::function<bool(const Module&)>& shows) {
  // First what much hangs on: accesses and control flow.
  bool large_only = true;
  for (bool smaller = true; smaller || large_only;) {
    if (!smaller) large_only = false;
    smaller = false;
    for (InstId i = static_cast<InstId>(m.functions[0].insts.size()); i-- > 0;) {
      if (i >= m.functions[0].insts.size()) continue;
      const Function& f = m.functions[0];
      if (f.def(i).terminator) continue;
      if (large_only && f.def(i).regions == 0 && f.def(i).effect != Effect::Write &&
          f.def(i).effect != Effect::ReadWrite)
        continue;
      const bool fixed = f.insts[i].op == Opcode::Constant || f.insts[i].op == Opcode::MakeToken;
      std::vector<Edit> edits;
      if (droppable(m.types, f, i)) edits.push_back({i, Edit::Kind::Drop, 0});
      if (f.insts[i].result_count > 0 && !fixed) {
        for (uint32_t k = 0; k < f.insts[i].operand_count; ++k)
          if (f.type(f.operands(i)[k]) == f.type(f.result(i))) edits.push_back({i, Edit::Kind::ToOperand, k});
        edits.push_back({i, Edit::Kind::ToZeros, 0});
      }
      bool done = false;
      for (const Edit& e : edits) {
        // What nobody uses may be what the fault needs: without it, then with it.
        for (const bool clean : {true, false}) {
          auto next = edited(m, e, clean);
          if (!next || next->functions[0].insts.size() > f.insts.size() || !shows(*next)) continue;
          smaller = next->functions[0].insts.size() < f.insts.size() || smaller;
          m = *std::move(next);
          done = true;
          break;
        }
        if (done) break;
      }
    }
  }
  return m;
}

}  // namespace tile::random_program
