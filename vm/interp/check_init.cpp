// The check `init`: reads of memory that was never written.
#include "vm/interp/check_init.h"

#include <algorithm>

namespace tile {

void WrittenMemory::launch_begin(const Launch& launch) {
  memory_.clear();
  const auto add = [&](size_t allocation) {
    const Memory::Allocation* a = launch.memory->find(Memory::base_of(allocation));
    if (!a) return;
    if (memory_.size() <= allocation) memory_.resize(allocation + 1);
    memory_[allocation] = {a->size, std::make_unique<std::atomic<uint8_t>[]>(static_cast<size_t>(a->size))};
  };
  for (const size_t a : uninitialised_) add(a);
  if (!allocas_) return;
  // The machine adds the allocas of all workers last.
  size_t end = 0;
  while (launch.memory->find(Memory::base_of(end))) ++end;
  for (size_t a = end - std::min(end, launch.allocas); a < end; ++a) add(a);
}

void WrittenMemory::after(Exec& x, const Step& s) {
  const size_t a = allocation_of(*x.at<uint64_t>(s.out[0]));
  if (a >= memory_.size()) return;
  for (uint64_t k = 0; k < memory_[a].size; ++k) memory_[a].written[k].store(0, std::memory_order_relaxed);
}

void WrittenMemory::access(Exec&, const Step&, const MemoryAccess& a) {
  if (a.kind == MemoryAccess::Kind::Read || !find(a.address)) return;
  const Bytes& b = *find(a.address);
  for_each_run(a, [&](uint64_t address, uint64_t bytes) {
    const uint64_t at = address & Memory::kOffsetMask;
    for (uint64_t k = at; k < at + bytes && k < b.size; ++k) b.written[k].store(1, std::memory_order_relaxed);
  });
}

uint64_t WrittenMemory::first_unwritten(uint64_t address, uint64_t bytes) const {
  const Bytes* b = find(address);
  if (!b) return address + bytes;
  const uint64_t at = address & Memory::kOffsetMask;
  for (uint64_t k = 0; k < bytes; ++k)
    if (at + k < b->size && !b->written[at + k].load(std::memory_order_relaxed)) return address + k;
  return address + bytes;
}

namespace {

class InitCheck : public CheckPart {
 public:
  InitCheck(const CheckFacts& facts, Findings& findings, WrittenMemory& written)
      : CheckPart(facts, findings), written_(written) {}

  [[nodiscard]] bool watches_memory() const override { return written_.any(); }
  void access(Exec& x, const Step& s, const MemoryAccess& a) override {
    if (a.kind == MemoryAccess::Kind::Write) return;
    for_each_run(a, [&](uint64_t address, uint64_t bytes) {
      const uint64_t miss = written_.first_unwritten(address, bytes);
      if (miss == address + bytes || !findings.wanted(x, Code::T0113, s.inst)) return;
      findings.add(x, {Code::T0113, s.inst, "reads " + x.memory.describe(miss) + ", which nobody has written", {}, {}});
    });
  }

 private:
  WrittenMemory& written_;
};

}  // namespace

std::unique_ptr<CheckPart> make_init_check(const CheckFacts& facts, Findings& findings, WrittenMemory& written) {
  return std::make_unique<InitCheck>(facts, findings, written);
}

}  // namespace tile
