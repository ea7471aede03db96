// Delayed writes and old values. A write happens in its step as always; afterwards memory gets back what it held before, and the new bytes
// wait. What a committed write replaced is kept for a while, so that reads can be given the value of an earlier time.
#include "vm/interp/weak_memory.h"

#include <algorithm>
#include <cstring>

namespace tile {

WeakMemory::WeakMemory(const CheckFacts& facts, const TokenTracker& tokens, uint64_t seed) : facts_(facts), tokens_(tokens), numbers_(SeededNumbers::mix(seed) + 1) {
  // A quarter of all seeds each: interleaving alone, late writes, old values, both.
  delays_ = numbers_.once_in(1);
  ages_ = numbers_.once_in(1);
  commit_ = static_cast<unsigned>(1 + 2 * numbers_.below(3));
}

void WeakMemory::launch_begin(const Launch& launch) {
  blocks_.assign(launch.threads, {});
  waiting_.clear();
  changes_.clear();
  changed_bytes_ = 0;
}

void WeakMemory::block_begin(Exec& x) { blocks_[x.worker] = {}; }

void WeakMemory::launch_end() {
  for (const Waiting& w : waiting_) commit(w);
  waiting_.clear();
}

void WeakMemory::pass_time() {
  for (size_t k = 0; k < waiting_.size();) {
    if (!numbers_.once_in(commit_)) {
      ++k;
      continue;
    }
    commit(waiting_[k]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(k));
  }
}

template <class F>
void WeakMemory::commit_own(unsigned worker, F&& which) {
  for (size_t k = 0; k < waiting_.size();) {
    if (waiting_[k].worker != worker || !which(waiting_[k])) {
      ++k;
      continue;
    }
    commit(waiting_[k]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(k));
  }
}

void WeakMemory::block_end(const Exec& x) {
  for (Waiting& w : waiting_)
    if (w.worker == x.worker) w.worker = kNobody;
}

void WeakMemory::commit(const Waiting& w) {
  ++now_;
  for (const Piece& p : w.pieces) {
    Piece before{p.address, p.host, std::vector<std::byte>(p.host, p.host + p.bytes.size())};
    std::memcpy(p.host, p.bytes.data(), p.bytes.size());
    record(std::move(before));
    if (w.worker != kNobody) saw(blocks_[w.worker], p.address, p.bytes.size(), now_);
  }
}

void WeakMemory::record(Piece before) {
  if (!ages_) return;
  changed_bytes_ += before.bytes.size();
  changes_.push_back({now_, std::move(before)});
  while (changes_.size() > kMostChanges || changed_bytes_ > kMostBytes) {
    changed_bytes_ -= changes_.front().before.bytes.size();
    oldest_ = changes_.front().time;  // a time of which a part is forgotten is forgotten whole
    changes_.pop_front();
  }
}

void WeakMemory::saw(Block& b, uint64_t address, uint64_t bytes, Time time) {
  if (!ages_) return;
  if (b.seen.size() > kMostSeen) {
    b.seen.clear();
    b.floor = now_;
  }
  for (uint64_t g = address / kGranule; g <= (address + bytes - 1) / kGranule; ++g) {
    Time& t = b.seen[g];
    t = std::max(t, time);
  }
}

WeakMemory::Time WeakMemory::floor_of(const Exec& x, const Block& b) const {
  Time floor = std::max(b.floor, oldest_);
  for (const auto& [node, time] : b.acquires)
    if (time > floor && tokens_.graph(x)->ordered(node, tokens_.current(x))) floor = time;
  return floor;
}

void WeakMemory::before(Exec& x, InstId i) {
  Block& b = blocks_[x.worker];
  b.writing.clear();
  b.reading.clear();
  b.times.clear();
  const auto& op = facts_.op(i);
  if (!op.release || !op.device) return;
  // A release makes visible what its token waited for, and nothing else.
  commit_own(x.worker, [&](const Waiting& w) { return tokens_.graph(x)->ordered(w.node, tokens_.current(x)); });
}

void WeakMemory::access(Exec& x, InstId i, const MemoryAccess& a) {
  if (is_alloca(x, a.address)) return;  // memory of this block alone
  Block& b = blocks_[x.worker];
  const auto& op = facts_.op(i);
  for_each_run(a, [&](uint64_t address, uint64_t bytes) {
    // A block sees its own accesses of a place in the order of the program.
    commit_own(x.worker, [&](const Waiting& w) { return std::any_of(w.pieces.begin(), w.pieces.end(), [&](const Piece& p) { return p.overlaps(address, bytes); }); });
    if (!op.writes) return;
    std::byte* host = x.memory.resolve(address, bytes);
    if (host) b.writing.push_back({address, host, std::vector<std::byte>(host, host + bytes)});
  });
  if (op.writes || op.element_bits < 8 || !ages_ || elements_of(a) > kMostElements) return;
  // Changes since the latest time that this read has to see.
  if (changes_.empty()) return;
  Time floor = floor_of(x, b);
  if (changes_.back().time <= floor) return;
  uint64_t low = ~uint64_t{0}, high = 0;
  for_each_run(a, [&](uint64_t address, uint64_t bytes) {
    low = std::min(low, address);
    high = std::max(high, address + bytes);
    for (uint64_t g = address / kGranule; g <= (address + bytes - 1) / kGranule; ++g)
      if (const auto it = b.seen.find(g); it != b.seen.end()) floor = std::max(floor, it->second);
  });
  bool any = false;
  for (size_t k = changes_.size(); k-- > 0 && changes_[k].time > floor;)
    if (changes_[k].before.overlaps(low, high - low)) {
      any = true;
      if (!op.acquire) b.times.push_back(changes_[k].time);
    }
  if (!any) return;
  b.element_bytes = a.element_bytes;
  for_each_element_of(a, [&](size_t element, uint64_t address) { b.reading.emplace_back(element, address); });
  // With several pieces the youngest floor counts for all.
  b.times.erase(std::remove_if(b.times.begin(), b.times.end(), [&](Time t) { return t <= floor; }), b.times.end());
}

void WeakMemory::after(Exec& x, const Step& s) {
  Block& b = blocks_[x.worker];
  const auto& op = facts_.op(s.inst);
  if (op.writes && !b.writing.empty()) {
    const bool delay = delays_ && !op.reads && op.element_bits >= 8 && numbers_.once_in(1);
    if (delay) {
      Waiting w{x.worker, tokens_.current(x), b.writing};
      for (Piece& p : w.pieces) std::memcpy(p.bytes.data(), p.host, p.bytes.size());
      for (size_t k = b.writing.size(); k-- > 0;) std::memcpy(b.writing[k].host, b.writing[k].bytes.data(), b.writing[k].bytes.size());
      waiting_.push_back(std::move(w));
    } else {
      ++now_;
      for (Piece& p : b.writing) {
        saw(b, p.address, p.bytes.size(), now_);
        record(std::move(p));
      }
    }
  }
  if (!b.reading.empty()) {
    std::sort(b.times.begin(), b.times.end());
    b.times.erase(std::unique(b.times.begin(), b.times.end()), b.times.end());
    Time as_of = now_;
    if (!b.times.empty() && numbers_.once_in(stale_)) {
      const Time first_hidden = b.times[numbers_.below(b.times.size())];
      as_of = first_hidden - 1;
      const size_t size = b.element_bytes;
      auto* out = x.at<std::byte>(s.out[0]);
      for (const auto& [element, address] : b.reading)
        for (size_t k = changes_.size(); k-- > 0 && changes_[k].time >= first_hidden;) {
          const Piece& p = changes_[k].before;
          if (!p.overlaps(address, size)) continue;
          const uint64_t from = std::max(address, p.address), to = std::min(address + size, p.address + p.bytes.size());
          std::memcpy(out + element * size + (from - address), p.bytes.data() + (from - p.address), to - from);
          if (facts_.element(op.loaded) == ElementType::I1 && out[element] != std::byte{0}) out[element] = std::byte{1};
        }
    }
    for (const auto& [element, address] : b.reading) saw(b, address, b.element_bytes, as_of);
  }
  if (op.acquire && op.device) {
    if (b.acquires.size() == kMostAcquires) {
      b.floor = std::max(b.floor, b.acquires.front().second);
      b.acquires.erase(b.acquires.begin());
    }
    b.acquires.emplace_back(tokens_.current(x), now_);
  }
}

}  // namespace tile
