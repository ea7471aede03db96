// Blocks of a launch that truly interleave, by a seed: which block goes on is chosen anew before every access of memory, and accesses show
// the freedom that the memory model leaves. All of it happens on one thread. Rules: spec/machine.md "Interleaving".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "vm/interp/exec.h"

namespace tile {

class Interleaving : public Observer {
 public:
  static constexpr size_t kMostBlocks = 256;                       ///< under way at a time
  static constexpr uint64_t kMostStorage = uint64_t{1} << 30;      ///< bytes that the tiles of all of them take; two blocks are always under way

  Interleaving(const std::shared_ptr<const ValidModule>& module, const Plan& plan, uint64_t seed);
  ~Interleaving() override;

  /// Calls run_block(number of the fiber, block) for every block, `fibers` of them interleaved. False if there is no memory for the stacks.
  /// @param block      the block that begins as number k
  /// @param run_block  false: the launch is to end, no more blocks begin
  [[nodiscard]] bool run(size_t fibers, uint64_t blocks, const std::function<uint64_t(uint64_t k)>& block, const std::function<bool(size_t, uint64_t)>& run_block);

  void launch_begin(const Launch& launch) override;
  void block_begin(Exec& x) override;
  void block_end(Exec& x) override;
  void before(Exec& x, const Step& s) override;
  void after(Exec& x, const Step& s) override;
  void access(Exec& x, const Step& s, const MemoryAccess& a) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tile
