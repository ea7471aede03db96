// Assertions and prints. A print claims room in the mailbox's ring and writes the elements of its arguments; the host formats them.
#include "backend/ptx/lower_memory.h"

namespace tile {
namespace {

bool lower_assert(Lowering& x, InstId i) {
  const ValueId v = x.f.operands(i)[0];
  Value* all = nullptr;
  for (Value* c : x.own(v)) all = all ? x.b.CreateAnd(all, c) : c;
  x.trap_if(x.b.CreateNot(all), Code::T0102);
  return true;
}

constexpr uint32_t kHead = offsetof(Mailbox, head), kCapacity = offsetof(Mailbox, ring_bytes), kLost = offsetof(Mailbox, lost);
constexpr uint32_t kRecordHead = 24;  // bytes, inst, block[3], complete
constexpr uint32_t kComplete = 20;

bool lower_record(Lowering& x, InstId i) {
  llvm::IRBuilder<>& b = x.b;
  const auto operands = x.f.group(i, 0);
  uint64_t size = kRecordHead;
  std::vector<uint64_t> at;
  for (const ValueId v : operands) {
    at.push_back(size);
    size += ((uint64_t{1} << element_bits(x.shape(v))) * info(x.element(v)).storage + 7) & ~uint64_t{7};
  }
  if (size > 1u << 24) return x.unsupported(i, "a print of " + std::to_string(size) + " bytes; the limit is 16 MiB");
  x.order_access(i, true, true);
  // One thread claims the room and tells the others where it is.
  Value* base = x.scratch(16);
  Value* first = b.CreateICmpEQ(x.thread(), x.i32(0));
  x.barrier();
  Value* place = x.d.atomic_rmw(RmwOp::Add, x.i64(static_cast<int64_t>(size)), false, b.CreateAdd(x.mailbox(), x.i64(kHead)), MemOrder::Relaxed, MemScope::System, first);
  x.d.store_shared({&place, 1}, base, first);
  x.barrier();
  place = x.d.load_shared(b.getInt64Ty(), 1, base)[0];
  Value* capacity = b.CreateZExt(x.d.load_global(b.getInt32Ty(), 1, b.CreateAdd(x.mailbox(), x.i64(kCapacity)), MemOrder::Weak, MemScope::System)[0], b.getInt64Ty());
  Value* fits = b.CreateICmpULE(b.CreateAdd(place, x.i64(static_cast<int64_t>(size))), capacity);
  (void)x.d.atomic_rmw(RmwOp::Add, x.i32(1), false, b.CreateAdd(x.mailbox(), x.i64(kLost)), MemOrder::Relaxed, MemScope::System, b.CreateAnd(first, b.CreateNot(fits)));
  Value* record = b.CreateAdd(b.CreateAdd(x.mailbox(), x.i64(sizeof(Mailbox))), place);
  Value* head = b.CreateAnd(first, fits);
  Value* words[5] = {x.i32(static_cast<int64_t>(size)), x.i32(i), x.block_id(0), x.block_id(1), x.block_id(2)};
  for (unsigned k = 0; k < 5; ++k) x.d.store_global({&words[k], 1}, b.CreateAdd(record, x.i64(4 * k)), MemOrder::Weak, MemScope::System, head);
  for (size_t a = 0; a < operands.size(); ++a) {
    const ValueId v = operands[a];
    const Layout& l = x.layout(v);
    const ElementType e = x.element(v);
    const unsigned bytes = info(e).storage;
    Value* mine = x.owner(l);
    mine = mine ? b.CreateAnd(mine, fits) : fits;
    Value* t = x.thread_element(l);
    for (unsigned r = 0; r < l.registers(); ++r) {
      Value* n = b.CreateZExt(b.CreateOr(t, x.i32(l.element_of_register(r))), b.getInt64Ty());
      Value* word = to_memory(x.d, e, x.own(v)[r]);
      x.d.store_global({&word, 1}, b.CreateAdd(record, b.CreateAdd(b.CreateMul(n, x.i64(bytes)), x.i64(static_cast<int64_t>(at[a])))), MemOrder::Weak, MemScope::System, mine);
    }
  }
  // The record counts once all threads have written their parts, and none goes on to a trap, which ends the launch, before that.
  x.barrier();
  Value* complete = x.i32(1);
  x.d.store_global({&complete, 1}, b.CreateAdd(record, x.i64(kComplete)), MemOrder::Release, MemScope::System, head);
  x.barrier();
  return true;
}

}  // namespace

bool lower_print(Lowering& x, InstId i) { return x.f.insts[i].op == Opcode::Assert ? lower_assert(x, i) : lower_record(x, i); }

}  // namespace tile
