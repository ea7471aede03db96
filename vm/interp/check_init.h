// Which bytes of memory without initial contents have been written: allocas, and arguments declared so.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "vm/interp/check_part.h"

namespace tile {

class WrittenMemory : public CheckPart {
 public:
  WrittenMemory(const CheckFacts& facts, Findings& findings, std::vector<size_t> uninitialised)
      : CheckPart(facts, findings), uninitialised_(std::move(uninitialised)),
        allocas_(std::any_of(f.insts.begin(), f.insts.end(), [](const Inst& i) { return i.op == Opcode::Alloca; })) {}
  void launch_begin(const Launch& launch) override;
  unsigned wants(InstId i) const override { return f.insts[i].op == Opcode::Alloca ? kAfter : kNever; }
  void after(Exec& x, const Step& s) override;
  [[nodiscard]] bool watches_memory() const override { return any(); }
  void access(Exec& x, const Step& s, const MemoryAccess& a) override;

  /// True if some memory of the launch has no initial contents.
  [[nodiscard]] bool any() const { return !memory_.empty(); }
  /// The first byte of [address, address + bytes) that nobody has written; address + bytes if there is none.
  [[nodiscard]] uint64_t first_unwritten(uint64_t address, uint64_t bytes) const;

 private:
  // One byte for each byte of memory: workers that write neighbours do not meet.
  using Flags = std::unique_ptr<std::atomic<uint8_t>[]>;
  struct Bytes {
    uint64_t size = 0;
    Flags written;
  };
  [[nodiscard]] const Bytes* find(uint64_t address) const {
    const size_t a = allocation_of(address);
    return a < memory_.size() && memory_[a].written ? &memory_[a] : nullptr;
  }
  std::vector<size_t> uninitialised_;
  const bool allocas_;  // some operation is one
  std::vector<Bytes> memory_;  // by allocation
};

}  // namespace tile
