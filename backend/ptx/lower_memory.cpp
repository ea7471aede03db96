// Loads, stores and atomics of tiles whose addresses are known per register.
#include "backend/ptx/lower_memory.h"

#include <array>

namespace tile {
namespace {

Value* both(llvm::IRBuilder<>& b, Value* p, Value* q) { return !p ? q : !q ? p : b.CreateAnd(p, q); }
Value* mask_of(const Access& a, unsigned r) { return a.mask.empty() ? nullptr : a.mask[r]; }

/// Threads with copies take the values of the first one: reads that race, and old values of atomics, must not differ inside a block.
Values from_owner(Lowering& x, const Layout& l, ElementType e, const Values& regs, unsigned bits) {
  if (!x.owner(l)) return regs;
  const unsigned bytes = memory_type(x.b.getContext(), e)->getIntegerBitWidth() / 8;
  if (convert_bytes(bits, bytes) > x.room) return x.pass(e, bits, std::array{x.placed(regs, e, l)}, x.numbers(l));
  Value* base = x.scratch(convert_bytes(bits, bytes));
  x.barrier();
  x.write_shared(regs, e, l, base, 0);
  x.barrier();
  return x.read_shared(e, l, base, 0);
}

}  // namespace

MemOrder memory_order_of(uint32_t word) {
  switch (word) {
    case 1: return MemOrder::Relaxed;
    case 2: return MemOrder::Acquire;
    case 3: return MemOrder::Release;
    case 4: return MemOrder::AcqRel;
    default: return MemOrder::Weak;
  }
}

MemScope memory_scope_of(uint32_t word) { return word == 0 ? MemScope::Block : word == 2 ? MemScope::System : MemScope::Device; }

void before_access(Lowering& x, InstId i, const Access& a, bool reads, bool writes) {
  if (a.order == MemOrder::Release || a.order == MemOrder::AcqRel) {
    x.finish_bulk_stores();
    x.barrier();  // what other threads of the block wrote is covered by this thread's release
  }
  x.order_access(i, reads, writes);
}

void after_access(Lowering& x, const Access& a) {
  if (a.order == MemOrder::Acquire || a.order == MemOrder::AcqRel) x.barrier();
}

Value* scalar_value(Lowering& x, const ScalarNodes& s, int n, unsigned bits) {
  llvm::IRBuilder<>& b = x.b;
  llvm::Type* type = b.getIntNTy(bits);
  if (n < 0) return llvm::ConstantInt::get(type, 0);
  const ScalarNodes::Node& node = s.nodes[static_cast<size_t>(n)];
  if (node.kind == ScalarNodes::Kind::Constant) return llvm::ConstantInt::get(type, static_cast<uint64_t>(node.number));
  if (node.kind == ScalarNodes::Kind::Value) return b.CreateZExtOrTrunc(x.scalar(node.value), type);
  Value *left = scalar_value(x, s, node.left, bits), *right = scalar_value(x, s, node.right, bits);
  return node.kind == ScalarNodes::Kind::Add ? b.CreateAdd(left, right) : node.kind == ScalarNodes::Kind::Sub ? b.CreateSub(left, right) : b.CreateMul(left, right);
}

Values load_access(Lowering& x, const Layout& l, const Access& a, const Values& otherwise, unsigned bits) {
  llvm::IRBuilder<>& b = x.b;
  llvm::Type* word = memory_type(b.getContext(), a.element);
  const bool ordered = a.order != MemOrder::Weak;
  Value* mine = ordered ? x.owner(l) : nullptr;
  std::vector<Lowering::Var> vars(l.registers());
  const auto one = [&](unsigned r, const std::function<void(unsigned, Value*)>& put) {
    Value* missing = otherwise.empty() ? nullptr : a.nibble.empty() ? to_memory(x.d, a.element, otherwise[r]) : nullptr;
    Value* w = x.d.load_global(word, 1, a.address[r], a.order, a.scope, both(b, mask_of(a, r), mine), missing)[0];
    if (!a.nibble.empty()) {
      w = b.CreateSelect(a.nibble[r], b.CreateLShr(w, 4), b.CreateAnd(w, 15));
      if (!otherwise.empty() && mask_of(a, r)) w = b.CreateSelect(mask_of(a, r), w, to_memory(x.d, a.element, otherwise[r]));
    }
    put(r, w);
  };
  Values out(l.registers());
  if (a.run == 0 || !a.run_ok || ordered) {
    for (unsigned r = 0; r < out.size(); ++r) one(r, [&](unsigned k, Value* w) { out[k] = w; });
  } else {
    const auto vectors = [&](const std::function<void(unsigned, Value*)>& put) {
      for (unsigned r = 0; r < out.size(); r += 1u << a.run) {
        // Elements of a run share a mask where runs are taken; `otherwise` is one value for the whole tile then.
        const Values words = x.d.load_global(word, 1u << a.run, a.address[r], a.order, a.scope, mask_of(a, r),
                                             otherwise.empty() ? nullptr : to_memory(x.d, a.element, otherwise[r]));
        for (unsigned k = 0; k < words.size(); ++k) put(r + k, words[k]);
      }
    };
    if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(a.run_ok); known && known->isOne()) {
      vectors([&](unsigned k, Value* w) { out[k] = w; });
    } else {
      for (auto& v : vars) v = x.var(word);
      const auto put = [&](unsigned k, Value* w) { x.store(vars[k], w); };
      x.if_then(a.run_ok, [&] { vectors(put); }, [&] {
        for (unsigned r = 0; r < out.size(); ++r) one(r, put);
      });
      for (unsigned r = 0; r < out.size(); ++r) out[r] = x.load(vars[r]);
    }
  }
  for (Value*& v : out) v = from_memory(x.d, a.element, v);
  return ordered ? from_owner(x, l, a.element, out, bits) : out;
}

void store_access(Lowering& x, const Layout& l, const Access& a, const Values& regs) {
  llvm::IRBuilder<>& b = x.b;
  Value* mine = x.owner(l);
  Values words;
  for (Value* v : regs) words.push_back(to_memory(x.d, a.element, v));
  if (!a.nibble.empty()) {
    // Two elements of a byte lie in one thread (lower_view sees to that); each is put into the byte on its own.
    for (unsigned r = 0; r < regs.size(); ++r) {
      Value* p = both(b, mask_of(a, r), mine);
      Value* old = x.d.load_global(b.getInt8Ty(), 1, a.address[r], MemOrder::Weak, a.scope, p)[0];
      Value* w = b.CreateSelect(a.nibble[r], b.CreateOr(b.CreateAnd(old, 15), b.CreateShl(words[r], 4)), b.CreateOr(b.CreateAnd(old, 0xF0), b.CreateAnd(words[r], 15)));
      x.d.store_global({&w, 1}, a.address[r], a.order, a.scope, p);
    }
    return;
  }
  const auto singles = [&] {
    for (unsigned r = 0; r < regs.size(); ++r) {
      const auto [address, mask] = a.single ? a.single(r) : std::pair(a.address[r], mask_of(a, r));
      x.d.store_global({&words[r], 1}, address, a.order, a.scope, both(b, mask, mine));
    }
  };
  if (a.run == 0 || !a.run_ok || a.order != MemOrder::Weak) return singles();
  const auto vectors = [&] {
    for (unsigned r = 0; r < regs.size(); r += 1u << a.run)
      x.d.store_global(std::span(words).subspan(r, size_t{1} << a.run), a.address[r], a.order, a.scope, both(b, mask_of(a, r), mine));
  };
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(a.run_ok); known && known->isOne()) return vectors();
  x.if_then(a.run_ok, vectors, singles);
}

Values atomic_access(Lowering& x, const Layout& l, const Access& a, RmwOp op, const Values& regs, bool result_wanted, unsigned bits) {
  Value* mine = x.owner(l);
  Values out(regs.size());
  for (unsigned r = 0; r < regs.size(); ++r) {
    Value* old = x.d.atomic_rmw(op, to_memory(x.d, a.element, regs[r]), a.element == ElementType::BF16, a.address[r], a.order, a.scope,
                                both(x.b, mask_of(a, r), mine));
    out[r] = result_wanted ? from_memory(x.d, a.element, old) : nullptr;
  }
  return result_wanted ? from_owner(x, l, a.element, out, bits) : out;
}

void add_access(Lowering& x, const Layout& l, const Access& a, const Values& regs) {
  Value* mine = x.owner(l);
  Values words;
  for (Value* v : regs) words.push_back(to_memory(x.d, a.element, v));
  for (unsigned r = 0; r < words.size(); r += 1u << a.run)
    x.d.reduce_add(std::span(words).subspan(r, size_t{1} << a.run), a.element == ElementType::BF16, a.address[r], a.order, a.scope, both(x.b, mask_of(a, r), mine));
}

Values cas_access(Lowering& x, const Layout& l, const Access& a, const Values& expected, const Values& desired, unsigned bits) {
  Value* mine = x.owner(l);
  Values out(expected.size());
  for (unsigned r = 0; r < expected.size(); ++r) {
    Value* cmp = to_memory(x.d, a.element, expected[r]);
    Value* p = mask_of(a, r);
    Value* old = x.d.atomic_cas(cmp, to_memory(x.d, a.element, desired[r]), a.address[r], a.order, a.scope, both(x.b, p, mine));
    if (p) old = x.b.CreateSelect(p, old, cmp);
    out[r] = from_memory(x.d, a.element, old);
  }
  return from_owner(x, l, a.element, out, bits);
}

}  // namespace tile
