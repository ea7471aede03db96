// Order that tokens make between the memory operations of a block: a graph that grows with every access, and questions
// to it.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "vm/interp/check_part.h"

namespace tile {

/// The graph of one block. Nodes are numbered upwards; a node comes after all nodes that its token waited for.
class TokenGraph {
 public:
  using Node = uint32_t;  ///< 0: a token that waits for nothing
  /// Accesses of one block that are followed; later ones count as ordered.
  static constexpr size_t kMaxNodes = size_t{1} << 24;
  static constexpr size_t kMaxSearch = size_t{1}
                                       << 16;  ///< nodes of one search; what is not found by then counts as ordered

  explicit TokenGraph(Node first) : base_(first) {}
  /// An empty graph again, numbered from `first`.
  void restart(Node first) {
    base_ = first;
    entries_.clear();
    lists_.clear();
  }
  Node event(InstId inst, Node token);
  Node join(std::span<const Node> tokens);
  /// Numbers at and above end() are free for the next graph.
  [[nodiscard]] Node end() const { return base_ + static_cast<Node>(entries_.size()); }
  [[nodiscard]] bool holds(Node n) const { return n >= base_ && n < end(); }
  [[nodiscard]] bool full() const { return entries_.size() >= kMaxNodes; }
  [[nodiscard]] InstId inst(Node n) const { return entries_[n - base_].inst; }
  /// True if `before` is `after` or waited for by it, or the limits above are reached.
  [[nodiscard]] bool ordered(Node before, Node after) const;

 private:
  struct Entry {
    InstId inst;      // kNone: a join
    uint32_t pred;    // node; joins: where their list starts
    Node all_before;  // every access up to this number is waited for: answers most questions at once
  };
  [[nodiscard]] Node covered(Node n) const { return holds(n) ? entries_[n - base_].all_before : base_ - 1; }
  [[nodiscard]] bool is_join(Node n) const { return entries_[n - base_].inst == kNone; }
  Node base_;
  std::vector<Entry> entries_;
  std::vector<Node> lists_;  // count, then nodes
  std::vector<Node> joined_;  // by the join that is made
};

/// Follows the tokens of every block. The accesses of a step share one node.
class TokenTracker : public CheckPart {
 public:
  TokenTracker(const CheckFacts& facts, Findings& findings) : CheckPart(facts, findings) {}
  /// Graphs are kept for as long as somebody holds them and may be read by others under `lock`.
  void share(std::mutex* lock) { lock_ = lock; }

  void launch_begin(const Launch& launch) override;
  void block_begin(Exec& x) override;
  unsigned wants(InstId i) const override;
  void silent(Exec& x, std::span<const InstId> insts) override {
    for (const InstId i : insts) tokens(x, i);
  }
  void before(Exec& x, const Step& s) override;
  void carry(Exec& x, std::span<const Carry> moves) override;

  /// The node of the access that is running.
  [[nodiscard]] TokenGraph::Node current(const Exec& x) const { return workers_[x.worker].current; }
  [[nodiscard]] const std::shared_ptr<TokenGraph>& graph(const Exec& x) const { return workers_[x.worker].graph; }

 private:
  struct Worker {
    std::shared_ptr<TokenGraph> graph;
    std::vector<TokenGraph::Node> value;  // by value
    std::vector<TokenGraph::Node> moved, joined;
    TokenGraph::Node current = 0;
  };
  void tokens(Exec& x, InstId i);
  std::vector<Worker> workers_;
  std::mutex* lock_ = nullptr;
};

}  // namespace tile
