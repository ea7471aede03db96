// Tells every operation that a launch executes, with the values that go in and come out.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/interp/observer.h"
#include "vm/interp/step_table.h"
#include "vm/interp/value_text.h"

namespace tile {

/// What is told; an empty filter tells everything.
struct TraceFilter {
  std::optional<std::array<uint32_t, 3>> block;
  std::vector<std::string> ops;  ///< mnemonics
  uint32_t line = 0;             ///< as line_of() gives it
};

/// Lines of the form of spec/tools.md "Trace". The launch must run on one thread, on which blocks may interleave.
class Trace : public Observer {
 public:
  /// @param write  receives whole lines
  Trace(std::shared_ptr<const ValidModule> module, const Function& entry, TraceFilter filter,
        std::function<void(std::string_view)> write);

  [[nodiscard]] bool wrote() const { return wrote_; }  ///< a line, for some launch
  void launch_begin(const Launch& launch) override;
  void block_begin(Exec& x) override;
  void block_end(Exec& x) override;
  void before(Exec& x, const Step& s) override;
  void after(Exec& x, const Step& s) override;

 private:
  [[nodiscard]] bool wanted(InstId i) const { return wanted_[i] != 0; }
  [[nodiscard]] std::string head(const Exec& x, InstId i, uint32_t depth) const;
  [[nodiscard]] std::string named(const Exec& x, ValueId value) const;
  [[nodiscard]] std::string operands(const Exec& x, InstId i) const;
  [[nodiscard]] std::string results(const Exec& x, InstId i) const;
  void opened(const Exec& x, RegionId r, uint32_t depth);
  void line(std::string text);

  std::shared_ptr<const ValidModule> module_;
  const Function& f_;
  TraceFilter filter_;
  std::function<void(std::string_view)> write_;
  std::vector<Slot> slots_;
  std::vector<uint8_t> wanted_;      // by instruction
  std::vector<std::string> places_;  // by instruction
  StepTable table_;
  const Plan* plan_ = nullptr;
  bool wrote_ = false;
  struct Worker {
    bool active = false;
    std::string pending;  // the operation that is running, until its results are there
  };
  std::vector<Worker> workers_;  // one, but for interleaved blocks
};

}  // namespace tile
