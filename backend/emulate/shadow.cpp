#include "backend/emulate/shadow.h"

namespace tile::emu {

void Shadow::reset(uint32_t bytes) {
  granules_.assign((size_t{bytes} + 15) / 16, Granule{});
  words_.clear();
  bytes_.clear();
  more_.clear();
  free_more_.clear();
}

void Shadow::split(Granule& g, uint8_t level) {
  const auto copy = [&](const History& h) {
    History c = h;
    if (h.more >= 0) {  // every part needs a list of its own
      c.more = static_cast<int32_t>(more_.size());
      more_.push_back(std::vector<Access>(more_[static_cast<size_t>(h.more)]));
    }
    return c;
  };
  if (g.level == 0) {
    const History& from = g.whole;
    if (level == 1) {
      if (g.words < 0) g.words = static_cast<int32_t>(words_.size()), words_.emplace_back();
      for (auto& part : words_[static_cast<size_t>(g.words)]) part = copy(from);
    } else {
      if (g.bytes < 0) g.bytes = static_cast<int32_t>(bytes_.size()), bytes_.emplace_back();
      for (auto& part : bytes_[static_cast<size_t>(g.bytes)]) part = copy(from);
    }
    drop_reads(g.whole);
  } else {
    if (g.bytes < 0) g.bytes = static_cast<int32_t>(bytes_.size()), bytes_.emplace_back();
    for (size_t i = 0; i < 16; ++i)
      bytes_[static_cast<size_t>(g.bytes)][i] = copy(words_[static_cast<size_t>(g.words)][i / 4]);
    for (auto& part : words_[static_cast<size_t>(g.words)]) drop_reads(part);
  }
  g.level = level;
}

void Shadow::drop_reads(History& h) {
  h.reads = {};
  if (h.more >= 0) {
    more_[static_cast<size_t>(h.more)].clear();
    free_more_.push_back(h.more);
    h.more = -1;
  }
}

// Keeps such two of three reads of one interval that whatever write conflicts with the third conflicts with one of
// them. Reads by different warps are best; in one warp, reads that its lanes do not know.
void Shadow::keep_two(History& h, const Access& who) {
  const auto warp = [](const Access& a) { return a.agent / 32; };
  for (auto& r : h.reads)
    if (warp(r) == warp(who) && r.warp_wide && !who.warp_wide) return void(r = who);
  if (warp(h.reads[0]) == warp(h.reads[1]) && warp(who) != warp(h.reads[0])) h.reads[1] = who;
}

Conflict Shadow::read_one(History& h, Observer& by, const Access& who) {
  if (h.write.agent == kNobody) return {Hazard::Uninitialised, {}, 0};
  if (!by.knows(h.write)) return {Hazard::ReadOfWrite, h.write, 0};
  if (who.async && !h.write.async && !by.sees(h.write)) return {Hazard::NotFenced, h.write, 0};
  if (who.swizzle >= 0 && h.write.swizzle >= 0 && who.swizzle != h.write.swizzle)
    return {Hazard::WrongSwizzle, h.write, 0};
  if (h.more >= 0)
    for (const auto& r : more_[static_cast<size_t>(h.more)])
      if (r.atomic && !by.knows(r)) return {Hazard::ReadOfWrite, r, 0};
  for (auto& r : h.reads)
    if (r.agent == who.agent || r.agent == kNobody) return r = who, Conflict{};
  // A read that all these threads know can be forgotten: what is ordered after this read is ordered after that one.
  for (auto& r : h.reads)
    if (by.knows(r)) return r = who, Conflict{};
  if (order_.only_barriers()) return keep_two(h, who), Conflict{};
  std::vector<Access>& rest = more(h);
  for (auto& r : rest)
    if (!r.atomic && (r.agent == who.agent || by.knows(r))) return r = who, Conflict{};
  rest.push_back(who);
  return {};
}

std::vector<Access>& Shadow::more(History& h) {
  if (h.more < 0 && !free_more_.empty()) {
    h.more = free_more_.back();
    free_more_.pop_back();
  } else if (h.more < 0) {
    h.more = static_cast<int32_t>(more_.size());
    more_.emplace_back();
  }
  return more_[static_cast<size_t>(h.more)];
}

Conflict Shadow::atomic_one(History& h, Observer& by, const Access& who) {
  if (h.write.agent == kNobody) return {Hazard::Uninitialised, {}, 0};
  if (!h.write.atomic && !by.knows(h.write)) return {Hazard::WriteOfWrite, h.write, 0};
  for (const auto& r : h.reads)
    if (r.agent != kNobody && !by.knows(r)) return {Hazard::WriteOfRead, r, 0};
  if (h.more >= 0)
    for (const auto& r : more_[static_cast<size_t>(h.more)])
      if (!r.atomic && !by.knows(r)) return {Hazard::WriteOfRead, r, 0};
  if (h.write.atomic && !by.knows(h.write)) more(h).push_back(h.write);
  h.write = who;
  return {};
}

Conflict Shadow::write_one(History& h, Observer& by, const Access& who) {
  if (h.write.agent != kNobody) {
    if (!by.knows(h.write)) return {Hazard::WriteOfWrite, h.write, 0};
    if (who.async && !h.write.async && !by.sees(h.write)) return {Hazard::NotFenced, h.write, 0};
  }
  for (const auto& r : h.reads)
    if (r.agent != kNobody && !by.knows(r)) return {Hazard::WriteOfRead, r, 0};
  if (h.more >= 0)
    for (const auto& r : more_[static_cast<size_t>(h.more)])
      if (!by.knows(r)) return {r.atomic ? Hazard::WriteOfWrite : Hazard::WriteOfRead, r, 0};
  h.write = who;
  drop_reads(h);
  return {};
}

template <class F>
Conflict Shadow::visit(uint32_t addr, uint32_t bytes, bool overwrites, F&& each) {
  const uint32_t end = addr + bytes;
  while (addr < end) {
    Granule& g = granules_[addr / 16];
    const uint32_t in = addr % 16, n = std::min(end - addr, 16 - in);
    const uint8_t level = n == 16 ? 0 : (in % 4 == 0 && n % 4 == 0) ? 1 : 2;
    if (level > g.level) split(g, level);
    Conflict c;
    uint32_t at = addr;
    if (g.level == 0) {
      c = each(g.whole);
    } else if (g.level == 1) {
      for (uint32_t i = in / 4; i < (in + n) / 4 && c.hazard == Hazard::None; ++i)
        at = addr - in + i * 4, c = each(words_[static_cast<size_t>(g.words)][i]);
    } else {
      for (uint32_t i = in; i < in + n && c.hazard == Hazard::None; ++i)
        at = addr - in + i, c = each(bytes_[static_cast<size_t>(g.bytes)][i]);
    }
    if (c.hazard != Hazard::None) return c.addr = at, c;
    if (overwrites && n == 16 && g.level != 0) {  // one history again; the parts hold no reads after the write
      g.whole = g.level == 1 ? words_[static_cast<size_t>(g.words)][0] : bytes_[static_cast<size_t>(g.bytes)][0];
      g.level = 0;
    }
    addr += n;
  }
  return {};
}

Conflict Shadow::read(Observer& by, uint32_t addr, uint32_t bytes, const Access& who) {
  return visit(addr, bytes, false, [&](History& h) { return read_one(h, by, who); });
}

Conflict Shadow::write(Observer& by, uint32_t addr, uint32_t bytes, const Access& who) {
  return visit(addr, bytes, true, [&](History& h) { return write_one(h, by, who); });
}

Conflict Shadow::atomic(Observer& by, uint32_t addr, uint32_t bytes, const Access& who) {
  return visit(addr, bytes, false, [&](History& h) { return atomic_one(h, by, who); });
}

void Shadow::complete(uint32_t addr, uint32_t bytes, const Access& in_flight, uint32_t clock) {
  (void)visit(addr, bytes, false, [&](History& h) {
    if (h.write == in_flight) h.write.clock = clock;
    return Conflict{};
  });
}

void Shadow::hand_over(uint32_t addr, uint32_t bytes, const Access& in_flight, const Access& done) {
  (void)visit(addr, bytes, false, [&](History& h) {
    if (h.write == in_flight) h.write = done;
    return Conflict{};
  });
}

}  // namespace tile::emu
