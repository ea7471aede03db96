// The check `race`: accesses of different blocks to the same bytes, one of them a write and one of them weak (or of a
// scope too small), with no release and acquire between them. What a release orders, and what an acquire orders, is
// told by tokens.
#include <algorithm>
#include <atomic>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "vm/interp/check_tiles.h"
#include "vm/interp/check_tokens.h"
#include "vm/interp/check_use.h"

namespace tile {
namespace {

using Node = TokenGraph::Node;

/// A place in the order of a block; chained, they are what an acquire of some bytes waits for.
struct Release {
  uint64_t block = 0;
  Node node = 0;
  uint32_t next = 0, next2 = 0;  ///< further releases, 0 for none
};

/// The order between blocks: which releases each acquire has seen. Used under one lock.
class SyncOrder {
 public:
  struct Block {
    std::shared_ptr<TokenGraph> graph;
    std::vector<std::pair<Node, uint32_t>> acquires;  // node, releases
  };
  std::mutex mutex;

  void clear() {
    blocks_.clear();
    latest_.clear();
    releases_.assign(1, {});
  }
  void add_block(uint64_t block, std::shared_ptr<TokenGraph> graph) { blocks_[block].graph = std::move(graph); }
  [[nodiscard]] uint32_t now() const { return static_cast<uint32_t>(releases_.size()); }
  void release(uint64_t address, uint64_t block, Node node) {
    uint32_t& at = latest_[address / 4];
    releases_.push_back({block, node, at, 0});
    at = static_cast<uint32_t>(releases_.size() - 1);
  }
  /// What has been released through these bytes so far, together with `others`.
  [[nodiscard]] uint32_t released(uint64_t address, uint32_t others) {
    const auto it = latest_.find(address / 4);
    if (it == latest_.end() || it->second == others) return others;
    if (others == 0) return it->second;
    releases_.push_back({0, 0, it->second, others});
    return static_cast<uint32_t>(releases_.size() - 1);
  }
  void acquire(uint64_t block, Node node, uint32_t releases) {
    auto& list = blocks_[block].acquires;
    if (list.empty() || list.back() != std::pair(node, releases)) list.emplace_back(node, releases);
  }
  /// True if the access `node` of `block`, made when `born` releases were known, comes before the access `last` of
  /// `in`.
  [[nodiscard]] bool before(uint64_t block, Node node, uint32_t born, uint64_t in, Node last) const {
    std::vector<std::pair<uint64_t, Node>> stack{{in, last}};
    std::unordered_set<uint32_t> seen;
    std::vector<uint32_t> chain;
    while (!stack.empty()) {
      const auto [b, n] = stack.back();
      stack.pop_back();
      const auto it = blocks_.find(b);
      if (it == blocks_.end() || !it->second.graph) continue;
      if (b == block && it->second.graph->ordered(node, n)) return true;
      for (const auto& [acquire, releases] : it->second.acquires) {
        // Releases are numbered in time: older ones cannot follow the access.
        if (releases < born || seen.count(releases) || !it->second.graph->ordered(acquire, n)) continue;
        chain.assign(1, releases);
        while (!chain.empty()) {
          const uint32_t r = chain.back();
          chain.pop_back();
          if (r < born || r == 0 || !seen.insert(r).second) continue;
          if (seen.size() > TokenGraph::kMaxSearch) return true;
          if (releases_[r].node) {
            if (releases_[r].block == block && blocks_.at(block).graph->ordered(node, releases_[r].node)) return true;
            stack.emplace_back(releases_[r].block, releases_[r].node);
          }
          chain.push_back(releases_[r].next);
          chain.push_back(releases_[r].next2);
        }
      }
    }
    return false;
  }

 private:
  std::unordered_map<uint64_t, Block> blocks_;
  std::unordered_map<uint64_t, uint32_t> latest_;  // by 4 bytes of memory
  std::deque<Release> releases_;
};

class RaceCheck : public CheckPart {
  struct Present {
    Exec* x;
    InstId inst;
    uint64_t block;
    Node node;
    uint32_t id;
  };
 public:
  RaceCheck(const CheckFacts& facts, Findings& findings, TokenTracker& tokens, const ArrayUse& use)
      : CheckPart(facts, findings), tokens_(tokens), use_(use), sync_(facts.synchronises()) {
    if (sync_) tokens_.share(&order_.mutex);
    for (InstId i = 0; i < f.insts.size(); ++i)
      if (facts.op(i).memory) by_ordinal_.push_back(i);
  }

  void launch_begin(const Launch& launch) override {
    const bool kept = shadow_.begin(*launch.memory, launch.threads > 1);
    workers_.resize(launch.threads);
    // Numbers of accesses have 32 bits: block * accesses of the entry + which of them.
    const uint64_t most = UINT32_MAX / std::max(1u, facts.accesses()), plane = uint64_t{launch.grid.x} * launch.grid.y;
    off_ = plane >= most || plane * launch.grid.z >= most;
    if (off_) findings.remark("the grid is too large for the check of races");
    alone_ = plane * launch.grid.z == 1;
    // Cells of an earlier launch are known by their numbers, unless these start anew.
    base_ = kept && !sync_ && !off_ && before_ + uint64_t{plane} * launch.grid.z * facts.accesses() < UINT32_MAX
                ? before_
                : 0;
    if (base_ == 0) shadow_.clear();
    before_ = base_ + plane * launch.grid.z * facts.accesses();
    few_.clear();
    many_ = sync_ || launch.threads > 1 || met_;
    if (!sync_) return;
    for (Worker& w : workers_) w.node = 0;
    order_.clear();
    seen_.assign(1, {});
  }
  void block_begin(Exec& x) override {
    workers_[x.worker].found.clear();
    if (!sync_ || alone_ || !use_.any_race(x)) return;
    const std::lock_guard lock(order_.mutex);
    order_.add_block(linear_block(x), tokens_.graph(x));
  }
  unsigned wants(InstId i) const override {
    return sync_ && facts.op(i).acquire && facts.op(i).device ? kBefore | kAfter : kNever;
  }
  void before(Exec& x, const Step&) override { workers_[x.worker].touched.clear(); }
  void after(Exec& x, const Step&) override {
    // Looked up when the value has been read: what was released before that read is all there.
    Worker& w = workers_[x.worker];
    const Node node = tokens_.current(x);
    if (node == 0 || w.touched.empty()) return;
    const std::lock_guard lock(order_.mutex);
    uint32_t releases = 0;
    for (const uint64_t address : w.touched) releases = order_.released(address, releases);
    if (releases) order_.acquire(linear_block(x), node, releases);
  }

  [[nodiscard]] bool watches_memory() const override { return true; }
  void expect(const Exec&, uint64_t address) const override { shadow_.prefetch(address); }
  void access(Exec& x, const Step& s, const MemoryAccess& a) override {
    if (alone_) return;
    const auto each = [&](auto&& fn) { for_each_element_of(a, [&](size_t, uint64_t address) { fn(address); }); };
    const auto& op = facts.op(s.inst);
    Present p{&x, s.inst, linear_block(x), 0, 0};
    if (arrive(x, p, op, a.address, each) && (many_ || !apart(p, op.writes, a)))
      shadow_.update(a, [&](const ShadowCell& c, uint64_t at) { return op.writes ? written(p, c, at) : read(p, c, at); });
  }
  void accesses(Exec& x, const Step& s, const MemoryRuns& all) override {
    if (alone_) return;
    const auto each = [&](auto&& fn) {
      for (const MemoryRuns::Run& r : all.runs)
        for (uint32_t k = 0; k < r.n; ++k) fn(r.address + uint64_t{k} * all.element_bytes);
    };
    const auto& op = facts.op(s.inst);
    Present p{&x, s.inst, linear_block(x), 0, 0};
    if (!arrive(x, p, op, all.begin, each)) return;
    if (!many_) write_down(x);
    shadow_.update(all, [&](const ShadowCell& c, uint64_t at) { return op.writes ? written(p, c, at) : read(p, c, at); });
  }

 private:
  /// Numbers the access `p` and notes what it orders. True if it is to be compared with others. each(fn) calls fn(address) for every element.
  template <class F>
  bool arrive(Exec& x, Present& p, const CheckFacts::Op& op, uint64_t first, F&& each) {
    const bool compared = use_.race(x, first), orders = sync_ && op.device && (op.release || op.acquire);
    if (!compared && !orders) return false;
    if (off_ || (sync_ && !use_.any_race(x)) || is_alloca(x, first)) return false;
    Worker& w = workers_[x.worker];
    if (!sync_) {
      p.id = static_cast<uint32_t>(1 + base_ + p.block * facts.accesses() + op.ordinal);
    } else {
      p.node = tokens_.current(x);
      if (p.node == 0) return false;
      const std::lock_guard lock(order_.mutex);
      if (w.node != p.node || w.block != p.block) {
        if (seen_.size() >= kMostSeen || order_.now() >= kMostSeen) {
          off_ = true;
          findings.remark("the launch makes more than " + std::to_string(kMostSeen) +
                          " accesses; races of later ones are not looked for");
          return false;
        }
        seen_.push_back({p.block, p.inst, p.node, order_.now()});
        w.id = static_cast<uint32_t>(seen_.size() - 1);
        w.node = p.node;
        w.block = p.block;
      }
      p.id = w.id;
      if (op.device && op.release) each([&](uint64_t address) { order_.release(address, p.block, p.node); });
      if (op.device && op.acquire) each([&](uint64_t address) { w.touched.push_back(address); });
    }
    return compared;
  }

  /// An access as it came.
  struct Box : AccessBox {
    InstId inst = kNone;
    uint64_t block = 0;
    uint32_t id = 0;
    bool writes = false;
  };
  /// Whether the access needs no comparison with others of this launch, by one thread: it is remembered then.
  bool apart(const Present& p, bool writes, const MemoryAccess& a) {
    Box box;
    bool out = few_.size() < kFew && box.set(a);
    for (const Box& b : few_) out = out && !((writes || b.writes) && b.block != p.block && box.meets(b));
    if (!out) {
      write_down(*p.x);
      return false;
    }
    box.inst = p.inst;
    box.block = p.block;
    box.id = p.id;
    box.writes = writes;
    few_.push_back(box);
    return true;
  }
  /// Puts the first accesses of a launch into the cells. From now on those of this entry go there at once.
  void write_down(Exec& x) {
    many_ = met_ = true;
    for (const Box& b : few_) {
      const Present p{&x, b.inst, b.block, 0, b.id};
      shadow_.update(b.access(), [&](const ShadowCell& c, uint64_t at) { return b.writes ? written(p, c, at) : read(p, c, at); });
    }
    few_.clear();
  }

  static constexpr size_t kFew = 16;
  static constexpr size_t kMostSeen = size_t{1} << 26;
  struct Worker {
    std::vector<uint64_t> touched;  // by the acquire that runs
    Node node = 0;                  // the access that `id` stands for
    uint64_t block = 0;
    uint32_t id = 0;
    std::vector<std::pair<InstId, InstId>> found;  // not searched for again in this block
  };
  struct Seen {
    uint64_t block = 0;
    InstId inst = kNone;
    Node node = 0;
    uint32_t born = 0;  // releases known at the time
  };
  enum class Relation { None, Own, Before, Unordered };

  /// The access with this number.
  [[nodiscard]] Seen seen(uint32_t id) {
    if (sync_) {
      const std::lock_guard lock(order_.mutex);
      return seen_[id];
    }
    const uint64_t k = id - 1 - base_;
    return {k / facts.accesses(), by_ordinal_[static_cast<size_t>(k % facts.accesses())], 0, 0};
  }

  Relation relation(const Present& p, uint32_t id, uint64_t at, bool conflict) {
    if (id <= base_) return Relation::None;
    const Seen e = seen(id);
    if (e.block == p.block) return Relation::Own;
    auto& found = workers_[p.x->worker].found;
    if (std::find(found.begin(), found.end(), std::pair(e.inst, p.inst)) != found.end()) return Relation::Unordered;
    if (sync_) {
      const std::lock_guard lock(order_.mutex);
      if (order_.before(e.block, e.node, e.born, p.block, p.node)) return Relation::Before;
    }
    const auto &first = facts.op(e.inst), &second = facts.op(p.inst);
    if (conflict && !(first.device && second.device)) {
      report(p, e, at);
      found.emplace_back(e.inst, p.inst);
    }
    return Relation::Unordered;
  }
  void report(const Present& p, const Seen& e, uint64_t at) {
    // One finding for a pair of operations, told from the side of a write.
    InstId a = p.inst, b = e.inst;
    if (!facts.op(a).writes || (facts.op(b).writes && b < a)) std::swap(a, b);
    if (!findings.wanted(*p.x, Code::T0114, a, b)) return;
    const Grid& g = p.x->launch.grid;
    const bool swapped = a != p.inst;
    const auto does = [&](InstId i) {
      const auto& o = facts.op(i);
      return std::string(o.writes ? "writes " : "reads ") +
             (o.strong ? (o.device ? "" : "(in the scope of one block) ") : "(weak) ");
    };
    const uint64_t block_a = swapped ? e.block : p.block, block_b = swapped ? p.block : e.block;
    findings.add(*p.x,
                 {Code::T0114,
                  a,
                  "block " + block_name(g, block_a) + " " + does(a) + p.x->memory.describe(at) + "; block " +
                      block_name(g, block_b) + " " + does(b) + "the same place, and nothing orders the two",
                  {{b, "the access of block " + block_name(g, block_b)}},
                  sync_ ? "the token of the one must reach a release, and the token of its acquire the other" : "",
                  true});
  }
  bool untouched(const ShadowCell& c) const { return std::max({c.write, c.other, c.read, c.read2}) <= base_; }
  ShadowCell written(const Present& p, const ShadowCell& c, uint64_t at) {
    ShadowCell n;
    n.write = p.id;
    if (untouched(c)) return n;
    for (const uint32_t id : {c.write, c.other})
      if (relation(p, id, at, true) == Relation::Unordered && n.other == 0) n.other = id;
    for (const uint32_t id : {c.read, c.read2}) {
      const Relation r = relation(p, id, at, true);
      if (r == Relation::Unordered || (r == Relation::Own && facts.op(p.inst).strong))
        (n.read == 0 ? n.read : n.read2) = id;
    }
    return n;
  }
  ShadowCell read(const Present& p, const ShadowCell& c, uint64_t at) {
    if (untouched(c)) return {0, 0, p.id, 0};
    ShadowCell n = c;
    if (n.write <= base_) n.write = n.other = 0;
    for (const uint32_t id : {n.write, n.other}) (void)relation(p, id, at, true);
    // Readers of two blocks are enough for a later write to meet one of another block; weak ones say more than strong
    // ones.
    const bool strong = facts.op(p.inst).device;
    for (uint32_t* slot : {&n.read, &n.read2}) {
      if (*slot == p.id) return n;
      if (*slot <= base_) {
        *slot = p.id;
        return n;
      }
      const Seen e = seen(*slot);
      if (e.block == p.block) {
        if (sync_ || (facts.op(e.inst).device && !strong)) *slot = p.id;
        return n;
      }
    }
    for (uint32_t* slot : {&n.read, &n.read2})
      if ((facts.op(seen(*slot).inst).device && !strong) || relation(p, *slot, at, false) == Relation::Before) {
        *slot = p.id;
        return n;
      }
    if (sync_) n.read2 = p.id;
    return n;
  }

  TokenTracker& tokens_;
  const ArrayUse& use_;
  const bool sync_;
  std::atomic<bool> off_{false};
  bool alone_ = false;  // the launch has one block, which races with none
  uint64_t base_ = 0,
           before_ = 0;  // numbers up to base_ are from earlier launches; the next launch may begin at before_
  TileShadow shadow_;
  // The first accesses of a launch, as long as they are few and no two of them conflict: small launches need no cells.
  std::vector<Box> few_;
  bool many_ = false;  // there are no `few_` any more
  bool met_ = false;   // that was so in a launch before
  SyncOrder order_;
  std::deque<Seen> seen_;  // accesses by number, where blocks synchronise; under the lock of order_
  std::vector<InstId> by_ordinal_;
  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<CheckPart> make_race_check(const CheckFacts& facts, Findings& findings, TokenTracker& tokens, const ArrayUse& use) {
  return std::make_unique<RaceCheck>(facts, findings, tokens, use);
}

}  // namespace tile
