// The check `order`: two accesses of one block to the same bytes, one of them a write, with no chain of tokens between
// them.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vm/interp/check_tiles.h"
#include "vm/interp/check_tokens.h"
#include "vm/interp/check_use.h"

namespace tile {
namespace {

class OrderCheck : public CheckPart {
 public:
  OrderCheck(const CheckFacts& facts, Findings& findings, TokenTracker& tokens, const ArrayUse& use)
      : CheckPart(facts, findings), tokens_(tokens), use_(use) {}

  void launch_begin(const Launch& launch) override {
    if (workers_.size() != launch.threads) workers_ = std::vector<Worker>(launch.threads);
    for (Worker& w : workers_) w.shadow.begin(*launch.memory, false);
  }
  void block_begin(Exec& x) override {
    Worker& w = workers_[x.worker];
    const TokenGraph::Node first = tokens_.graph(x)->end();
    // Cells of earlier blocks are known by their numbers; they go when numbers start anew or there are too many.
    if (first < w.last || w.shadow.chunks() > kMostChunks) w.shadow.clear();
    w.last = first;
    w.found.clear();
    w.few.clear();
    w.runs.clear();
    w.reach.clear();
    w.many = false;
  }
  unsigned wants(InstId i) const override {
    if (f.insts[i].op == Opcode::Alloca) return kAfter;
    return facts.op(i).writes && !facts.op(i).reads ? kBefore | kAfter : kNever;
  }
  void before(Exec& x, const Step&) override { workers_[x.worker].twice.clear(); }
  void after(Exec& x, const Step& s) override {
    if (f.insts[s.inst].op == Opcode::Alloca) {
      write_down(x);
      workers_[x.worker].shadow.clear(allocation_of(*x.at<uint64_t>(s.out[0])));
    } else if (!workers_[x.worker].twice.empty()) {
      check_twice(x, s);
    }
  }

  [[nodiscard]] bool watches_memory() const override { return true; }
  void expect(const Exec& x, uint64_t address) const override {
    if (workers_[x.worker].many) workers_[x.worker].shadow.prefetch(address);
  }
  void access(Exec& x, const Step& s, const MemoryAccess& a) override {
    if (!use_.order(x, a.address)) return;
    const Node now = tokens_.current(x);
    if (now == 0) return;
    const auto& op = facts.op(s.inst);
    bool twice = false;
    if (apart(x, a, op.writes, now)) return;
    touch(x, a, now, &twice);
    if (!twice || a.kind != MemoryAccess::Kind::Write || op.element_bits < 8) return;
    Worker& w = workers_[x.worker];
    if (elements_of(a) == 1) {
      // The element written first lies in memory, this one is about to be stored.
      compare(x, s, a.first_element, a.address);
    } else if (op.pointers != kNone) {
      w.twice.emplace_back(0, 0);
    } else {
      for_each_element_of(a, [&](size_t element, uint64_t address) { w.twice.emplace_back(element, address); });
    }
  }
  [[nodiscard]] bool takes(Exec& x, const Step& s, const MemoryRuns& all) override {
    // What is stored twice by one step is compared element by element.
    return all.kind != MemoryAccess::Kind::Write || !use_.order(x, all.begin) || facts.op(s.inst).reads || !overlap(workers_[x.worker].places, all);
  }
  void accesses(Exec& x, const Step& s, const MemoryRuns& all) override {
    if (!use_.order(x, all.begin)) return;
    const Node now = tokens_.current(x);
    if (now == 0) return;
    Worker& w = workers_[x.worker];
    const bool writes = facts.op(s.inst).writes;
    if (!w.many) {
      Box box;
      box.address = all.begin;
      box.bytes = all.end - all.begin;
      box.element_bytes = all.element_bytes;
      box.node = now;
      box.writes = writes;
      box.first_run = w.runs.size();
      box.runs = all.runs.size();
      if (w.few.size() < kFew && w.runs.size() + box.runs <= kMostRuns && !meets(x, box)) {
        w.runs.insert(w.runs.end(), all.runs.begin(), all.runs.end());
        w.few.push_back(box);
        return;
      }
      write_down(x);
    }
    touch(x, all, now);
  }

 private:
  using Node = TokenGraph::Node;
  static constexpr size_t kMostRuns = 1 << 14;  // of `few`
  static constexpr size_t kMostChunks = 4096;  // 256 MiB of memory, some 32 MiB of cells
  static constexpr size_t kFew = 512, kCompared = 8;
  /// An access as it came.
  struct Box : AccessBox {
    Node node = 0;
    bool writes = false;
    size_t first_run = 0, runs = 0;  // more than 0: not a box but these runs, which all lie in it
  };
  /// What accesses of one allocation lie in.
  struct Reach {
    struct Range {
      uint64_t begin = ~uint64_t{0}, end = 0;
      void add(const Box& b) {
        begin = std::min(begin, b.address);
        end = std::max(end, b.address + b.bytes);
      }
    };
    uint64_t allocation = 0;
    Range all, written;
    [[nodiscard]] bool meets(const Box& b) const {
      const Range& r = b.writes ? all : written;
      return b.address < r.end && r.begin < b.address + b.bytes;
    }
    void add(const Box& b) {
      all.add(b);
      if (b.writes) written.add(b);
    }
  };
  struct Worker {
    TileShadow shadow;
    // The first accesses of a block, as long as they are few and none writes what another touches: most blocks of small kernels need no
    // cells at all.
    std::vector<Box> few;
    std::vector<MemoryRuns::Run> runs;  // of `few`
    std::vector<uint64_t> places;       // for overlap()
    std::vector<Reach> reach;  // of `few`, by allocation
    bool many = false;         // `few` is in the cells
    Node last = 0;
    std::vector<std::pair<InstId, InstId>> found;  // in this block
    std::vector<std::pair<size_t, uint64_t>>
        twice;  // elements of a step that writes some bytes twice, and their addresses
  };
  enum class Relation { None, Before, Unordered };

  static Reach& reach_of(Worker& w, const Box& b) {
    const uint64_t allocation = b.address >> Memory::kOffsetBits;
    for (Reach& r : w.reach)
      if (r.allocation == allocation) return r;
    w.reach.push_back({allocation, {}, {}});
    return w.reach.back();
  }
  /// Whether the access needs no comparison with others of this block; it is remembered then.
  bool apart(Exec& x, const MemoryAccess& a, bool writes, Node now) {
    Worker& w = workers_[x.worker];
    if (w.many) return false;
    Box box;
    if (w.few.size() == kFew || !box.set(a)) {
      write_down(x);
      return false;
    }
    box.node = now;
    box.writes = writes;
    if (meets(x, box)) {
      write_down(x);
      return false;
    }
    w.few.push_back(box);
    return true;
  }
  /// Whether the box may share bytes with one of `few` that no token orders before it, or of the same step, one of the two being written.
  bool meets(Exec& x, const Box& box) {
    Worker& w = workers_[x.worker];
    // Few are compared one by one, more of them by what each allocation's lie in.
    if (w.few.size() < kCompared) {
      const TokenGraph& g = *tokens_.graph(x);
      return std::any_of(w.few.begin(), w.few.end(), [&](const Box& b) { return (box.writes || b.writes) && box.meets(b) && (b.node == box.node || !g.ordered(b.node, box.node)); });
    }
    if (w.reach.empty())
      for (const Box& b : w.few) reach_of(w, b).add(b);
    Reach& r = reach_of(w, box);
    const bool out = r.meets(box);
    r.add(box);
    return out;
  }
  /// Whether some bytes belong to two of the elements, or that is not easily told.
  static bool overlap(std::vector<uint64_t>& places, const MemoryRuns& all) {
    const uint64_t run = uint64_t{all.runs[0].n} * all.element_bytes;
    size_t ascending = 1;  // runs
    while (ascending < all.runs.size() && all.runs[ascending].address >= all.runs[ascending - 1].address + uint64_t{all.runs[ascending - 1].n} * all.element_bytes) ++ascending;
    if (ascending == all.runs.size()) return false;
    // A table of the numbers that are there, counted from 1, each at or behind its place: numbers of runs if these are rows of one length, each
    // a multiple of it away from the others, else of elements.
    uint64_t unit = all.element_bytes;
    const uint64_t low = std::has_single_bit(run) ? run - 1 : 0;
    const auto row = [&](const MemoryRuns::Run& r) {
      const uint64_t offset = r.address - all.begin;
      return r.n == all.runs[0].n && (low ? offset & low : offset % run) == 0;
    };
    if (run != unit && std::all_of(all.runs.begin(), all.runs.end(), row)) unit = run;
    const size_t mask = std::bit_ceil(2 * all.elements * all.element_bytes / unit) - 1;
    // One bit for each number, where these take no more room than the table.
    if (const uint64_t words = (all.end - all.begin) / unit / 64 + 1; words <= mask + 1) {
      places.assign(static_cast<size_t>(words), 0);
      const bool shifts = std::has_single_bit(unit);
      const unsigned shift = static_cast<unsigned>(std::countr_zero(unit));
      for (const MemoryRuns::Run& r : all.runs) {
        const uint64_t offset = r.address - all.begin, first = shifts ? offset >> shift : offset / unit;
        if (first * unit != offset) return true;
        for (uint64_t number = first, end = number + (unit == run ? 1 : r.n); number < end;) {
          uint64_t& word = places[static_cast<size_t>(number / 64)];
          const uint64_t n = std::min(end - number, 64 - number % 64), bits = ~uint64_t{0} >> (64 - n) << number % 64;
          if (word & bits) return true;
          word |= bits;
          number += n;
        }
      }
      return false;
    }
    places.assign(mask + 1, 0);
    for (const MemoryRuns::Run& r : all.runs) {
      const uint64_t offset = r.address - all.begin;
      if (offset % unit != 0) return true;
      for (uint64_t number = offset / unit + 1, end = number + (unit == run ? 1 : r.n); number < end; ++number) {
        size_t at = static_cast<size_t>(number * 0x9E3779B97F4A7C15u >> 20) & mask;
        for (; places[at] != 0; at = (at + 1) & mask)
          if (places[at] == number) return true;
        places[at] = number;
      }
    }
    return false;
  }
  /// Puts the first accesses of a block into the cells.
  void write_down(Exec& x) {
    Worker& w = workers_[x.worker];
    if (w.many) return;
    w.many = true;
    bool twice = false;
    for (const Box& b : w.few) {
      if (b.runs == 0) {
        touch(x, b.access(), b.node, &twice);
      } else {
        touch(x, {MemoryAccess::Kind::Read, b.element_bytes, std::span(w.runs).subspan(b.first_run, b.runs), b.address, b.address + b.bytes, 0}, b.node);
      }
    }
    w.few.clear();
    w.runs.clear();
    w.reach.clear();
  }
  void touch(Exec& x, const MemoryAccess& a, Node now, bool* twice) {
    const bool writes = facts.op(tokens_.graph(x)->inst(now)).writes;
    workers_[x.worker].shadow.update(a, [&](const ShadowCell& c, uint64_t at) { return writes ? written(x, c, now, at, twice) : read(x, c, now, at); });
  }
  void touch(Exec& x, const MemoryRuns& all, Node now) {
    const bool writes = facts.op(tokens_.graph(x)->inst(now)).writes;
    bool twice = false;
    workers_[x.worker].shadow.update(all, [&](const ShadowCell& c, uint64_t at) { return writes ? written(x, c, now, at, &twice) : read(x, c, now, at); });
  }

  /// How an earlier access of a cell stands to the present one; reports it if they conflict.
  Relation relation(Exec& x, Node earlier, Node now, uint64_t at, bool conflict) {
    const TokenGraph& g = *tokens_.graph(x);
    if (earlier == now || !g.holds(earlier)) return Relation::None;
    const InstId first = g.inst(earlier), second = g.inst(now);
    // A pair that was found is not searched for again: that would take long in loops, where nothing is found over and
    // over.
    auto& found = workers_[x.worker].found;
    if (std::find(found.begin(), found.end(), std::pair(first, second)) != found.end()) return Relation::Unordered;
    if (g.ordered(earlier, now)) return Relation::Before;
    // Strong accesses of one place have an order of their own.
    if (conflict && !(facts.op(first).strong && facts.op(second).strong)) {
      report(x, first, second, at);
      found.emplace_back(first, second);
    }
    return Relation::Unordered;
  }
  void report(Exec& x, InstId first, InstId second, uint64_t at) {
    if (!findings.wanted(x, Code::T0115, second, first)) return;
    const bool same = first == second;
    findings.add(x,
                 {Code::T0115,
                  second,
                  std::string(facts.op(second).writes ? "writes" : "reads") + " bytes that " +
                      (same ? "an earlier execution of it" : std::string(f.def(first).name)) +
                      (facts.op(first).writes ? " wrote" : " read") +
                      ", and no chain of tokens orders the two: " + x.memory.describe(at),
                  {{first, same ? "the earlier one did not hand its token on" : "the other access"}},
                  same ? "carry the token through the loop" : "give the later operation the token of the earlier one"});
  }
  /// True if this block has not touched the cell's bytes: numbers only grow.
  bool untouched(const Exec& x, const ShadowCell& c) const {
    return std::max({c.write, c.other, c.read, c.read2}) < workers_[x.worker].last;
  }
  ShadowCell written(Exec& x, const ShadowCell& c, Node now, uint64_t at, bool* twice) {
    *twice = *twice || c.write == now;
    ShadowCell n;
    n.write = now;
    if (untouched(x, c)) return n;
    for (const Node earlier : {c.write, c.other})
      if (relation(x, earlier, now, at, true) == Relation::Unordered && n.other == 0) n.other = earlier;
    for (const Node earlier : {c.read, c.read2}) (void)relation(x, earlier, now, at, true);
    return n;
  }
  ShadowCell read(Exec& x, const ShadowCell& c, Node now, uint64_t at) {
    if (untouched(x, c)) return {0, 0, now, 0};
    const TokenGraph& g = *tokens_.graph(x);
    ShadowCell n = c;
    if (!g.holds(c.write)) n.write = 0;
    if (!g.holds(c.other)) n.other = 0;
    for (const Node earlier : {n.write, n.other}) (void)relation(x, earlier, now, at, true);
    // Two reads are remembered: an ordered one makes room, else the first and the last are kept.
    if (n.read == now || n.read2 == now) return n;
    if (!g.holds(n.read)) n.read = 0;
    if (!g.holds(n.read2)) n.read2 = 0;
    if (n.read == 0 || g.ordered(n.read, now)) {
      n.read = now;
    } else {
      n.read2 = now;
    }
    return n;
  }

  /// Some bytes were written twice by the step that is done: elements that are not in memory were overwritten by
  /// others.
  void check_twice(Exec& x, const Step& s) {
    const auto& op = facts.op(s.inst);
    if (op.pointers == kNone) {
      for (const auto& [element, address] : workers_[x.worker].twice) compare(x, s, element, address);
      return;
    }
    const uint64_t* pointers = facts.data<uint64_t>(x, op.pointers);
    const uint8_t* mask = op.mask == kNone ? nullptr : facts.data<uint8_t>(x, op.mask);
    for (size_t k = 0; k < facts.count(op.pointers); ++k)
      if (!mask || mask[k]) compare(x, s, k, pointers[k]);
  }
  /// Reports an element whose value is not the one in memory.
  void compare(Exec& x, const Step& s, size_t element, uint64_t address) {
    const auto& op = facts.op(s.inst);
    const size_t size = info(facts.element(op.value)).storage;
    const std::byte* memory = x.memory.resolve(address, size);
    if (!memory || std::memcmp(memory, facts.data(x, op.value) + element * size, size) == 0 ||
        !findings.wanted(x, Code::T0115, s.inst))
      return;
    findings.add(x, {Code::T0115,
                     s.inst,
                     "element " + element_name(facts.type(op.value).shape, element) +
                         " and another element of the same tile are stored with different values to " +
                         x.memory.describe(address) + "; which of them stays is not specified",
                     {},
                     {}});
  }

  TokenTracker& tokens_;
  const ArrayUse& use_;
  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<CheckPart> make_order_check(const CheckFacts& facts, Findings& findings, TokenTracker& tokens, const ArrayUse& use) {
  return std::make_unique<OrderCheck>(facts, findings, tokens, use);
}

}  // namespace tile
