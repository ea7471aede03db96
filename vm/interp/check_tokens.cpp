// The token graph: appending and searching.
#include "vm/interp/check_tokens.h"

namespace tile {

TokenGraph::Node TokenGraph::event(InstId inst, Node token) {
  if (full()) return 0;
  const Node self = end();
  Node all = covered(token);
  while (all + 1 < self && is_join(all + 1)) ++all;
  if (all + 1 == self) all = self;
  entries_.push_back({inst, token, all});
  return self;
}

TokenGraph::Node TokenGraph::join(std::span<const Node> tokens) {
  std::vector<Node>& nodes = joined_;
  nodes.clear();
  for (const Node n : tokens)
    if (n != 0) nodes.push_back(n);
  if (nodes.size() > 1) {
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }
  if (nodes.empty()) return 0;
  // A token that another one waits for adds nothing.
  if (nodes.size() == 2 && ordered(nodes[0], nodes[1])) return nodes[1];
  if (nodes.size() == 1) return nodes[0];
  if (full()) return 0;
  const Node self = end();
  Node all = 0;
  for (const Node n : nodes) all = std::max(all, covered(n));
  while (all + 1 < self && (is_join(all + 1) || std::binary_search(nodes.begin(), nodes.end(), all + 1))) ++all;
  if (all + 1 == self) all = self;
  const uint32_t list = static_cast<uint32_t>(lists_.size());
  lists_.push_back(static_cast<Node>(nodes.size()));
  lists_.insert(lists_.end(), nodes.begin(), nodes.end());
  entries_.push_back({kNone, list, all});
  return self;
}

bool TokenGraph::ordered(Node before, Node after) const {
  if (before == after) return true;
  if (!holds(before) || !holds(after)) return full();
  if (after < before) return false;
  if (covered(after) >= before) return true;
  std::vector<Node> stack{after};
  std::vector<bool> seen(after - before + 1, false);
  for (size_t left = kMaxSearch; !stack.empty(); --left) {
    if (left == 0) return true;
    const Node n = stack.back();
    stack.pop_back();
    const Entry& e = entries_[n - base_];
    const Node* preds = &e.pred;
    size_t count = 1;
    if (e.inst == kNone) {
      count = lists_[e.pred];
      preds = &lists_[e.pred + 1];
    }
    for (size_t k = 0; k < count; ++k) {
      const Node p = preds[k];
      if (p < before) continue;  // numbers only fall on the way back
      if (p == before || covered(p) >= before) return true;
      if (!seen[p - before]) {
        seen[p - before] = true;
        stack.push_back(p);
      }
    }
  }
  return false;
}

void TokenTracker::launch_begin(const Launch& launch) {
  if (workers_.size() != launch.threads)
    workers_.assign(launch.threads, {});  // else numbers go on from launch to launch too
  for (Worker& w : workers_) w.value.assign(f.value_types.size(), 0);
}

void TokenTracker::block_begin(Exec& x) {
  Worker& w = workers_[x.worker];
  // Numbers go on from block to block, so that what an earlier block left behind in tables is known to be old.
  TokenGraph::Node first = w.graph ? w.graph->end() : 1;
  if (first > (1u << 31)) first = 1;
  if (w.graph && !lock_) {
    w.graph->restart(first);
  } else {
    w.graph = std::make_shared<TokenGraph>(first);
  }
  w.current = 0;
}

unsigned TokenTracker::wants(InstId i) const {
  const auto& o = facts.op(i);
  return !o.in_body && (o.memory || (o.token != kNone && f.def(i).regions == 0)) ? kBefore : kNever;
}

void TokenTracker::tokens(Exec& x, InstId i) {
  Worker& w = workers_[x.worker];
  const auto& o = facts.op(i);
  TokenGraph::Node result = o.tokens.empty() ? 0 : w.value[o.tokens[0]];
  if (o.memory || o.tokens.size() > 1) {
    std::unique_lock<std::mutex> lock;
    if (lock_) lock = std::unique_lock(*lock_);
    if (o.memory) {
      result = w.graph->event(i, result);
    } else {
      w.joined.clear();
      for (const ValueId v : o.tokens) w.joined.push_back(w.value[v]);
      result = w.graph->join(w.joined);
    }
  }
  if (o.memory) {
    w.current = result;
    if (result == 0)
      findings.remark("a block makes more than " + std::to_string(TokenGraph::kMaxNodes) +
                      " accesses; the order of later ones is not checked");
  }
  if (o.token != kNone) w.value[o.token] = result;
}

void TokenTracker::before(Exec& x, const Step& s) {
  tokens(x, s.inst);
}

void TokenTracker::carry(Exec& x, std::span<const Carry> moves) {
  Worker& w = workers_[x.worker];
  w.moved.clear();
  for (const Carry& m : moves)
    if (m.token) w.moved.push_back(w.value[m.from]);
  if (w.moved.empty()) return;
  size_t k = 0;
  for (const Carry& m : moves)
    if (m.token) w.value[m.to] = w.moved[k++];
}

}  // namespace tile
