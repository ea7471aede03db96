// The stepping prompt: stops a launch at an operation, a line or a block, and shows values.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/interp/observer.h"
#include "vm/interp/step_table.h"

namespace tile::cli {

/// Where to stop.
struct Breakpoint {
  std::string text;                              ///< as given
  std::string op;                                ///< mnemonic, or empty
  uint32_t line = 0;                             ///< or 0
  std::optional<std::array<uint32_t, 3>> block;  ///< at its first operation
  bool reached = false;                          ///< by some launch
};
/// Reads OP, LINE or @X[,Y[,Z]]. No value, and `why` says what is wrong, for anything else.
[[nodiscard]] std::optional<Breakpoint> parse_breakpoint(const std::string& text, std::string& why);
/// "3", "3,4" or "3,4,5"; missing ones are 0.
[[nodiscard]] std::optional<std::array<uint32_t, 3>> parse_block(std::string_view text);

/// Reads commands from standard input and answers on standard error. The launch must run on one thread; where blocks interleave on it, steps
/// follow the block that was shown last.
class Debugger : public Observer {
 public:
  Debugger(std::shared_ptr<const ValidModule> module, const Function& entry, std::vector<Breakpoint> breakpoints);

  /// Those where the launch never stopped.
  [[nodiscard]] std::vector<std::string> unreached() const;
  void launch_begin(const Launch& launch) override;
  void block_begin(Exec& x) override;
  void before(Exec& x, const Step& s) override;
  void after(Exec& x, const Step& s) override;

 private:
  enum class Mode { Run, Step, Next, Off };
  [[nodiscard]] const Breakpoint* hit(const Exec& x, const StepTable::Entry& e, InstId i);
  void keep(const Exec& x, ValueId value);
  void prompt(Exec& x, const StepTable::Entry& e, InstId i);
  void command(Exec& x, const std::string& line, const StepTable::Entry& e, InstId i, bool& again);
  void show_place(const Exec& x, InstId i) const;
  void where(const Exec& x, InstId i) const;
  void list(InstId i) const;
  void print(const Exec& x, const std::string& name, bool all) const;
  [[nodiscard]] std::string text_of(const Exec& x, ValueId value, size_t whole) const;
  [[nodiscard]] bool read_line(std::string& line);
  void quit(Exec& x);

  std::shared_ptr<const ValidModule> module_;
  const Function& f_;
  std::vector<Breakpoint> breakpoints_;
  std::vector<Slot> slots_;
  std::vector<InstId> defined_by_;   // by value; kNone for arguments
  std::vector<uint8_t> has_step_;    // by instruction
  std::vector<ValueId> region_end_;  // by region: the value after those that it defines
  StepTable table_;
  const Plan* plan_ = nullptr;
  struct Worker {
    // Copies: storage is reused as soon as the machine has read a value for the last time.
    std::map<ValueId, std::vector<std::byte>> values;
    bool block_start = false;
  };
  std::vector<Worker> workers_;  // one, but for interleaved blocks
  Mode mode_ = Mode::Run;
  uint32_t depth_ = 0;   // Mode::Next: stop at this depth or less
  unsigned follow_ = 0;  // the worker whose block is stepped
  std::string input_;
  std::string last_ = "step";
};

}  // namespace tile::cli
