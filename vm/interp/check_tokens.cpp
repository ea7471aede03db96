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
  std::vector<Node> nodes;
  for (const Node n : tokens)
    if (n != 0) nodes.push_back(n);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
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
  while (!stack.empty()) {
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
  workers_.assign(launch.threads, {});
  for (Worker& w : workers_) w.value.assign(f.value_types.size(), 0);
}

void TokenTracker::block_begin(Exec& x) {
  Worker& w = workers_[x.worker];
  // Numbers go on from block to block, so that what an earlier block left behind in tables is known to be old.
  const TokenGraph::Node first = w.graph ? w.graph->end() : 1;
  w.graph = std::make_shared<TokenGraph>(first > (1u << 31) ? 1 : first);
  w.current = 0;
}

bool TokenTracker::wants(InstId i) const {
  const auto& o = facts.op(i);
  if (o.in_body) return false;
  if (o.memory) return true;
  for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
    if (facts.is_token(f.result(i, k)) && f.def(i).regions == 0) return true;
  return false;
}

void TokenTracker::tokens(Exec& x, InstId i) {
  Worker& w = workers_[x.worker];
  TokenGraph::Node waits[1] = {0};
  std::vector<TokenGraph::Node> many;
  for (const ValueId v : f.operands(i))
    if (facts.is_token(v)) {
      many.push_back(w.value[v]);
      waits[0] = w.value[v];
    }
  TokenGraph::Node result = waits[0];
  if (facts.op(i).memory || many.size() > 1) {
    std::unique_lock<std::mutex> lock;
    if (lock_) lock = std::unique_lock(*lock_);
    result = facts.op(i).memory ? w.graph->event(i, waits[0]) : w.graph->join(many);
  }
  if (facts.op(i).memory) {
    w.current = result;
    if (result == 0) findings.remark("a block makes more than " + std::to_string(TokenGraph::kMaxNodes) + " accesses; the order of later ones is not checked");
  }
  for (uint32_t k = 0; k < f.insts[i].result_count; ++k)
    if (facts.is_token(f.result(i, k))) w.value[f.result(i, k)] = result;
}

void TokenTracker::before(Exec& x, const Step& s) { tokens(x, s.inst); }

void TokenTracker::carry(Exec& x, std::span<const Carry> moves) {
  Worker& w = workers_[x.worker];
  w.moved.clear();
  for (const Carry& m : moves)
    if (facts.is_token(m.from)) w.moved.push_back(w.value[m.from]);
  size_t k = 0;
  for (const Carry& m : moves)
    if (facts.is_token(m.from)) w.value[m.to] = w.moved[k++];
}

}  // namespace tile
