// Control flow, tokens, block coordinates. Scalars are equal in all threads of a block, so branches are uniform.
#include "backend/ptx/device_hopper.h"
#include "backend/ptx/lower_turns.h"

namespace tile {
using Var = Lowering::Var;

std::vector<Var> carried_vars(Lowering& x, ValueId v) {
  std::vector<Var> out;
  if (!x.is_tile(v) || !x.knows(v)) return out;
  for (unsigned r = 0; r < x.layout(v).registers(); ++r) out.push_back(x.var(memory_type(x.b.getContext(), x.element(v))));
  return out;
}

void store_carried(Lowering& x, ValueId like, const std::vector<Var>& vars, const Values& values) {
  for (size_t k = 0; k < vars.size(); ++k) x.store(vars[k], to_memory(x.d, x.element(like), values[k]));
}

Values load_carried(Lowering& x, ValueId like, const std::vector<Var>& vars) {
  Values out;
  for (const Var& w : vars) out.push_back(from_memory(x.d, x.element(like), x.load(w)));
  return out;
}

bool lower_control(Lowering& x, InstId i) {
  const Function& f = x.f;
  llvm::IRBuilder<>& b = x.b;
  const Inst& inst = f.insts[i];
  const auto operands = f.operands(i);

  // Hands operands on to variables laid out like the values they stand for; all are read before any is written.
  const auto pass = [&](std::span<const ValueId> from, const std::vector<std::vector<Var>>& to, const std::vector<ValueId>& like) {
    std::vector<Values> all(from.size());
    for (size_t k = 0; k < from.size(); ++k)
      if (x.is_tile(from[k]) && x.knows(like[k])) all[k] = x.get(from[k], x.layout(like[k]));
    for (size_t k = 0; k < from.size(); ++k)
      if (x.is_tile(from[k]) && x.knows(like[k])) store_carried(x, from[k], to[k], all[k]);
  };

  switch (inst.op) {
    case Opcode::GdcWaitTko: case Opcode::GdcLaunchDependentsTko:
      // What this block reads or wrote stays on its side of the operation in all of its threads.
      x.finish_bulk_stores();
      x.barrier();
      x.d.grid_dependency(inst.op == Opcode::GdcWaitTko);
      return true;
    case Opcode::MakeToken: case Opcode::JoinTokens: case Opcode::MemoryFenceAliasTko:
      return true;  // order_access() looks at tokens; launches are not chained
    case Opcode::Assume:
      if (x.is_tile(operands[0])) {
        x.set(f.result(i), x.get(operands[0], x.layout(f.result(i))));
      } else {
        x.view(f.result(i)) = x.view(operands[0]);
      }
      return true;
    case Opcode::GetTileBlockId:
      for (unsigned k = 0; k < 3; ++k) x.set(f.result(i, k), {x.block_id(k)});
      return true;
    case Opcode::GetNumTileBlocks:
      for (unsigned k = 0; k < 3; ++k) x.set(f.result(i, k), {x.grid_size(k)});
      return true;

    case Opcode::For: {
      const Region& r = f.region(i);
      const bool is_unsigned = f.attr(i, static_cast<size_t>(attr_index(f.def(i), "unsignedCmp"))) != 0;
      Value *lower = x.scalar(operands[0]), *upper = x.scalar(operands[1]), *step = x.scalar(operands[2]);
      const auto less = [&](Value* p, Value* q) { return is_unsigned ? b.CreateICmpULT(p, q) : b.CreateICmpSLT(p, q); };
      Lowering::Frame frame{i, {}, {}, x.block("latch"), x.block("endfor")};
      std::vector<ValueId> args;
      const auto inits = operands.subspan(3);
      for (uint32_t k = 0; k < inits.size(); ++k) {
        args.push_back(r.first_arg + 1 + k);
        frame.args.push_back(carried_vars(x, args.back()));
      }
      pass(inits, frame.args, args);
      const auto* known = llvm::dyn_cast<llvm::ConstantInt>(step);
      if (!known || (is_unsigned ? known->isZero() : !known->getValue().isStrictlyPositive())) {
        Value* zero = llvm::ConstantInt::get(step->getType(), 0);
        Value* bad = is_unsigned ? b.CreateICmpEQ(step, zero) : b.CreateICmpSLE(step, zero);
        x.trap_if(b.CreateAnd(bad, less(lower, upper)), Code::T0106);
      }
      if (!load_first(x, i, lower, less(lower, upper))) return false;
      const Var iv = x.var(lower->getType());
      x.store(iv, lower);
      // Two warpgroups take iterations in turn (plan/ring.cpp); a loop that is no ring is the program's one around it.
      const bool in_turn = x.turn_ && !x.plan.loops;
      const Var mine = x.var(b.getInt32Ty());
      if (in_turn) {
        x.store(mine, x.turn_);
        x.if_then(b.CreateAnd(b.CreateICmpEQ(x.turn_, x.i32(1)), b.CreateICmpEQ(x.warp_, x.i32(0))),
                  [&] { hopper_ops(x.d)->named_barrier_arrive(kOrderBarrier, kOrderThreads); });
      }
      llvm::BasicBlock* body = x.block("for");
      b.CreateCondBr(less(lower, upper), body, frame.after);
      b.SetInsertPoint(body);
      x.set(r.first_arg, {x.load(iv)});
      for (size_t k = 0; k < args.size(); ++k) x.set(args[k], load_carried(x, args[k], frame.args[k]));
      if (const auto loads = x.plan.ahead.find(i); loads != x.plan.ahead.end()) {
        Value* here = x.load(iv);
        Value* following = b.CreateAdd(here, step);
        Value* follows = b.CreateAnd(less(following, upper), less(here, following));
        for (const AheadLoad& load : loads->second) x.ahead[load.load].following = following, x.ahead[load.load].follows = follows;
      }
      // What an earlier iteration did may still be pending when this one starts.
      const Lowering::Pending before = x.pending_;
      x.pending_ = before | x.left_by(r);
      x.loops_.push_back(frame);
      bool ended = false;
      if (in_turn) {
        llvm::BasicBlock *skip = x.block("not.mine"), *run = x.block("mine");
        b.CreateCondBr(b.CreateICmpEQ(x.load(mine), x.i32(0)), run, skip);
        b.SetInsertPoint(skip);
        x.producing_ = x.skipping_ = true;
        if (!x.region(r, &ended)) return false;
        x.producing_ = x.skipping_ = false;
        if (!ended) b.CreateBr(frame.next);
        ended = false;
        b.SetInsertPoint(run);
      }
      if (!x.region(r, &ended)) return false;
      x.pending_ = x.pending_ | before;  // the body may not run at all
      frame = x.loops_.back();
      x.loops_.pop_back();
      if (!ended) b.CreateBr(frame.next);
      b.SetInsertPoint(frame.next);
      x.d.poll();
      if (in_turn) x.store(mine, b.CreateXor(x.load(mine), x.i32(1)));
      Value* at = x.load(iv);
      Value* next = b.CreateAdd(at, step);
      x.store(iv, next);
      // A number that wraps ends the loop.
      b.CreateCondBr(b.CreateAnd(less(next, upper), less(at, next)), body, frame.after);
      b.SetInsertPoint(frame.after);
      for (uint32_t k = 0; k < inst.result_count; ++k) x.set(f.result(i, k), load_carried(x, f.result(i, k), frame.args[k]));
      return true;
    }

    case Opcode::Loop: {
      const Region& r = f.region(i);
      Lowering::Frame frame{i, {}, {}, x.block("loop"), x.block("endloop")};
      std::vector<ValueId> args;
      for (uint32_t k = 0; k < r.arg_count; ++k) {
        args.push_back(r.first_arg + k);
        frame.args.push_back(carried_vars(x, args.back()));
      }
      for (uint32_t k = 0; k < inst.result_count; ++k) frame.results.push_back(carried_vars(x, f.result(i, k)));
      pass(operands, frame.args, args);
      b.CreateBr(frame.next);
      b.SetInsertPoint(frame.next);
      x.d.poll();
      for (size_t k = 0; k < args.size(); ++k) x.set(args[k], load_carried(x, args[k], frame.args[k]));
      x.pending_ = x.anything();
      x.loops_.push_back(frame);
      bool ended = false;
      if (!x.region(r, &ended)) return false;
      x.pending_ = x.anything();  // the loop may end at any of its breaks
      x.loops_.pop_back();
      if (!ended) b.CreateBr(frame.next);
      b.SetInsertPoint(frame.after);
      for (uint32_t k = 0; k < inst.result_count; ++k) x.set(f.result(i, k), load_carried(x, f.result(i, k), frame.results[k]));
      return true;
    }

    case Opcode::If: {
      Lowering::Frame frame{i, {}, {}, nullptr, x.block("endif")};
      for (uint32_t k = 0; k < inst.result_count; ++k) frame.results.push_back(carried_vars(x, f.result(i, k)));
      llvm::BasicBlock* yes = x.block("then");
      const bool has_else = f.region(i, 1).present;
      llvm::BasicBlock* no = has_else ? x.block("else") : frame.after;
      b.CreateCondBr(x.scalar(operands[0]), yes, no);
      x.ifs_.push_back(frame);
      const Lowering::Pending before = x.pending_;
      Lowering::Pending all = before;
      for (size_t k = 0; k < (has_else ? 2u : 1u); ++k) {
        b.SetInsertPoint(k == 0 ? yes : no);
        x.pending_ = before;
        bool ended = false;
        if (!x.region(f.region(i, k), &ended)) return false;
        if (!ended) b.CreateBr(frame.after);
        all = all | x.pending_;
      }
      x.pending_ = all;
      x.ifs_.pop_back();
      b.SetInsertPoint(frame.after);
      for (uint32_t k = 0; k < inst.result_count; ++k) x.set(f.result(i, k), load_carried(x, f.result(i, k), frame.results[k]));
      return true;
    }

    case Opcode::Yield: {
      const auto& frame = x.ifs_.back();
      std::vector<ValueId> like;
      for (uint32_t k = 0; k < operands.size(); ++k) like.push_back(f.result(frame.inst, k));
      pass(operands, frame.results, like);
      b.CreateBr(frame.after);
      return true;
    }
    case Opcode::Continue: {
      const auto& frame = x.loops_.back();
      const Region& r = f.region(frame.inst);
      const uint32_t skip = f.insts[frame.inst].op == Opcode::For ? 1 : 0;
      std::vector<ValueId> like;
      for (uint32_t k = 0; k < operands.size(); ++k) like.push_back(r.first_arg + skip + k);
      pass(operands, frame.args, like);
      b.CreateBr(frame.next);
      return true;
    }
    case Opcode::Break: {
      const auto& frame = x.loops_.back();
      std::vector<ValueId> like;
      for (uint32_t k = 0; k < operands.size(); ++k) like.push_back(f.result(frame.inst, k));
      pass(operands, frame.results, like);
      b.CreateBr(frame.after);
      return true;
    }
    case Opcode::Return: x.end_block(); return true;
    default: return x.unsupported(i, "not control flow");
  }
}

}  // namespace tile
