// Collects what checkers find: each kind and place once, the same one for every number of threads where that is
// possible.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "vm/interp/exec.h"

namespace tile {

class Findings {
 public:
  /// A finding and the operation it happened in; `others` are further places with what they have to do with it.
  struct Finding {
    Code code{};
    InstId inst = kNone;
    std::string message;  ///< without the block, which is added
    std::vector<std::pair<InstId, std::string>> others;
    std::string help;
    bool names_blocks = false;  ///< the message says itself which blocks it is about
  };

  void launch_begin();
  /// True if a finding of this kind and place is of use: none is known, or one of a later block. Cheap next to making
  /// its text.
  [[nodiscard]] bool wanted(const Exec& x, Code code, InstId inst, InstId other = kNone);
  void add(const Exec& x, Finding f);
  /// A remark about the check itself, once.
  void remark(const std::string& text);
  void launch_end(const Launch& launch);

 private:
  using Key = std::tuple<InstId, Code, InstId>;
  struct Entry {
    uint64_t block = 0;
    std::string where;
    Finding finding;
  };
  static constexpr size_t kMaxKept = 1024;
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::vector<std::string> remarks_;
  std::set<Key> warned_;  // in all launches: a warning does not end a series of launches
  bool overflow_ = false;
};

/// Number of a block: x runs fastest.
[[nodiscard]] inline uint64_t linear_block(const Exec& x) {
  const Grid& g = x.launch.grid;
  return x.block[0] + uint64_t{g.x} * (x.block[1] + uint64_t{g.y} * x.block[2]);
}
/// "(x, y, z)" of a block's number.
[[nodiscard]] std::string block_name(const Grid& g, uint64_t linear);
/// "[3, 17]": the index of an element in row-major order; "" for rank 0.
[[nodiscard]] std::string element_name(const std::vector<int64_t>& shape, size_t element);

}  // namespace tile
