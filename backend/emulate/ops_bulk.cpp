// Bulk tensor copies: loads that complete on an mbarrier, stores in groups.
#include <algorithm>
#include <cstring>

#include "backend/emulate/atomics.h"
#include "backend/emulate/block.h"
#include "vm/base/numeric.h"

namespace tile::emu {
namespace {

/// Calls f(byte of the box, device address of the row's part inside the tensor, its first byte in the row, its bytes)
/// for each row of the box; no bytes where the row is outside.
template <class F>
void each_row(const EmulatedTensorMap& m, const std::array<int32_t, 5>& at, F&& f) {
  const uint32_t row_bytes = m.box[0] * m.element_bytes;
  const int64_t size0 = int64_t{m.dims[0]} + 1;
  const int64_t low = std::clamp<int64_t>(-int64_t{at[0]}, 0, m.box[0]),
                high = std::clamp<int64_t>(size0 - at[0], low, m.box[0]);
  uint32_t rows = 1;
  for (unsigned d = 1; d < m.rank; ++d) rows *= m.box[d];
  for (uint32_t r = 0; r < rows; ++r) {
    uint32_t rest = r;
    bool inside = high > low;
    uint64_t address = m.address + static_cast<uint64_t>((at[0] + low) * m.element_bytes);
    for (unsigned d = 1; d < m.rank; ++d) {
      const int64_t x = int64_t{at[d]} + rest % m.box[d];
      rest /= m.box[d];
      inside = inside && x >= 0 && x <= int64_t{m.dims[d]};
      address += static_cast<uint64_t>(x) * m.strides[d];
    }
    const auto eb = static_cast<uint32_t>(m.element_bytes);
    f(r * row_bytes, address, inside ? static_cast<uint32_t>(low) * eb : 0,
      inside ? static_cast<uint32_t>(high - low) * eb : 0);
  }
}

uint32_t box_bytes(const EmulatedTensorMap& m) {
  uint32_t n = m.element_bytes;
  for (unsigned d = 0; d < m.rank; ++d) n *= m.box[d];
  return n;
}

/// The map, after what can be checked at issue: the tile in shared memory and all of the tensor that it touches.
EmulatedTensorMap begin_copy(Block& b, Thread& t, uint64_t map_addr, uint32_t rank, const int32_t* coordinates,
                             uint32_t& addr, bool writes, std::array<int32_t, 5>& at) {
  const std::byte* p = b.launch.memory->resolve(map_addr, sizeof(EmulatedTensorMap));
  if (!p || map_addr % 64 != 0) b.hazard(t, "there is no tensor map at address ", hex(map_addr));
  EmulatedTensorMap m;
  std::memcpy(&m, p, sizeof m);
  if (m.magic != EmulatedTensorMap::kMagic) b.hazard(t, "what is at address ", hex(map_addr), " is not a tensor map");
  if (m.rank != rank) b.hazard(t, rank, " coordinates for a tensor map of rank ", unsigned{m.rank});
  at.fill(0);
  std::copy_n(coordinates, rank, at.begin());
  addr = b.own_shared(t, addr, box_bytes(m),
                      m.swizzle == TensorSwizzle::None ? 128 : 128u << static_cast<unsigned>(m.swizzle));
  b.check_mbarriers(t, addr, box_bytes(m));
  each_row(m, at, [&](uint32_t, uint64_t address, uint32_t, uint32_t n) {
    if (n != 0 && !b.launch.memory->resolve(address, n)) b.bad_global(t, address, n, writes);
    if (n != 0 && writes && b.launch.memory->find(address)->read_only) b.bad_global(t, address, n, writes);
  });
  return m;
}

/// One block's part of a load: tile and mbarrier, which are addresses in the cluster's windows.
void start_load(Block& b, Thread& t, BulkLoad l, uint32_t bar) {
  const auto m = std::find_if(b.mbarriers.begin(), b.mbarriers.end(), [&](const Mbarrier& x) { return x.addr == bar; });
  if (m == b.mbarriers.end()) b.hazard(t, "no mbarrier is initialised at ", b.shared_text(bar));
  l.mbarrier = static_cast<uint32_t>(m - b.mbarriers.begin());
  l.bytes = box_bytes(l.map);
  l.phase = m->phase;
  l.site = t.site;
  l.thread = t.id;
  const uint32_t agent = b.mbarrier_agent(l.mbarrier), rank = l.addr / b.launch.window();
  if (b.options.hazards) {
    if (b.order.visible(t.id, m->init_thread) < m->init_clock)
      b.hazard(t, "no fence makes the initialisation of the mbarrier at ", b.shared_text(bar),
               " visible to the asynchronous proxy");
    if (rank != t.rank) {
      b.use_remote(t, rank);
      if (b.order.known(t.id, agent) < m->phase)
        b.hazard(t, "nothing orders this after phase ", m->phase - 1, " of the mbarrier at ", b.shared_text(bar));
      b.remote.push_back({rank, agent, m->phase + 1, t.site, t.id});
    }
    Access who{m->phase + 1, t.site, static_cast<uint16_t>(agent)};
    who.async = true;
    who.swizzle = static_cast<int8_t>(l.map.swizzle);
    Observer by(b.order, t.id);
    b.report(t, b.shadow.write(by, l.addr, l.bytes, who));
  }
  ++m->loads;
  std::memset(b.shared + l.addr, 0xFE, l.bytes);
  b.loads.push_back(l);
  if (b.at_once(4)) b.finish_load(b.loads.size() - 1);
  if (b.failed) throw Stop{};
}

void tma_load(Block& b, Thread& t, uint64_t map_addr, uint32_t rank, const int32_t* coordinates, uint32_t addr,
              uint32_t bar) {
  BulkLoad l{};
  l.map = begin_copy(b, t, map_addr, rank, coordinates, addr, false, l.at);
  l.addr = addr;
  start_load(b, t, l, b.own_shared(t, bar, 8, 8));
}

/// To the same place in every block of `mask`, each completing on the mbarrier at the same place.
void tma_load_multicast(Block& b, Thread& t, uint64_t map_addr, uint32_t rank, const int32_t* coordinates, uint32_t addr,
                        uint32_t bar, uint32_t mask) {
  BulkLoad l{};
  l.map = begin_copy(b, t, map_addr, rank, coordinates, addr, false, l.at);
  bar = b.own_shared(t, bar, 8, 8) - t.base;
  if (mask == 0 || mask >> b.launch.cluster != 0)
    b.hazard(t, "the mask ", hex(mask), " names no block, or one that a cluster of ", b.launch.cluster, " blocks does not have");
  for (uint32_t r = 0; r < b.launch.cluster; ++r) {
    if ((mask >> r & 1) == 0) continue;
    const uint32_t base = r * b.launch.window();
    l.addr = addr - t.base + base;
    b.check_mbarriers(t, l.addr, box_bytes(l.map));
    start_load(b, t, l, base + bar);
  }
}

uint32_t bulk_number(Block& b, Thread& t) {
  const auto at = std::find(b.bulk_threads.begin(), b.bulk_threads.end(), t.id);
  if (at != b.bulk_threads.end()) return static_cast<uint32_t>(at - b.bulk_threads.begin());
  if (b.bulk_threads.size() == size_t{Block::kMostBulkThreads} * b.launch.cluster)
    b.hazard(t, "more than ", Block::kMostBulkThreads, " threads of a block issue bulk stores");
  b.bulk_threads.push_back(t.id);
  return static_cast<uint32_t>(b.bulk_threads.size() - 1);
}

void start_store(Block& b, Thread& t, BulkStore s) {
  s.thread = t.id;
  s.group = t.bulk_committed + 1;
  s.site = t.bulk_site = t.site;
  t.bulk_issued = s.group;
  if (b.options.hazards) {
    b.order.expect_more();
    Access who{s.group, t.site, static_cast<uint16_t>(b.bulk_agent(bulk_number(b, t)))};
    who.async = true;
    who.swizzle = static_cast<int8_t>(s.map.swizzle);
    Observer by(b.order, t.id);
    b.report(t, b.shadow.read(by, s.addr, s.bytes, who));
  }
  b.stores.push_back(std::move(s));
  if (b.at_once(4)) b.finish_store(b.stores.size() - 1);
}

void tma_store(Block& b, Thread& t, uint64_t map_addr, uint32_t rank, const int32_t* coordinates, uint32_t addr) {
  BulkStore s{};
  s.map = begin_copy(b, t, map_addr, rank, coordinates, addr, true, s.at);
  s.addr = addr;
  s.bytes = box_bytes(s.map);
  s.reduction = kStores;
  start_store(b, t, std::move(s));
}

/// What global memory holds is combined, element by element and each atomically, with the tile.
void tma_reduce(Block& b, Thread& t, uint32_t op, uint64_t map_addr, uint32_t rank, const int32_t* coordinates, uint32_t addr) {
  BulkStore s{};
  s.map = begin_copy(b, t, map_addr, rank, coordinates, addr, true, s.at);
  s.addr = addr;
  s.bytes = box_bytes(s.map);
  s.reduction = op;
  if (op == kXchg || op == kMaxF || op == kMinF) b.hazard(t, "there is no such bulk reduction");
  if (s.map.element_bytes == 1) b.hazard(t, "no bulk reduction has elements of one byte");
  start_store(b, t, std::move(s));
}

/// The same for `bytes` bytes that follow each other in both memories.
void bulk_reduce(Block& b, Thread& t, uint32_t op, uint32_t element_bytes, uint32_t is_bf16, uint64_t to, uint32_t addr, uint32_t bytes) {
  if (bytes % 16 != 0 || bytes == 0) b.hazard(t, "a bulk reduction of ", bytes, " bytes: not a multiple of 16");
  if (to % 16 != 0) b.hazard(t, "global address ", hex(to), " is not a multiple of 16");
  if (op == kXchg || op == kMaxF || op == kMinF) b.hazard(t, "there is no such bulk reduction");
  BulkStore s{};
  s.addr = b.own_shared(t, addr, bytes, 16);
  b.check_mbarriers(t, s.addr, bytes);
  if (!b.launch.memory->resolve(to, bytes) || b.launch.memory->find(to)->read_only) b.bad_global(t, to, bytes, true);
  s.bytes = bytes;
  s.to = to;
  s.reduction = op;
  s.map.element_bytes = static_cast<uint8_t>(element_bytes);
  s.map.is_bf16 = is_bf16 != 0;
  start_store(b, t, std::move(s));
}

void bulk_commit(Block&, Thread& t) { ++t.bulk_committed; }

/// Waits until at most `pending` groups of this thread are left; `read`: left to be read only.
void bulk_wait(Block& b, Thread& t, uint32_t pending, uint32_t read) {
  const uint32_t group = t.bulk_committed - std::min(t.bulk_committed, pending);
  for (size_t i = 0; i < b.stores.size();) {
    BulkStore& s = b.stores[i];
    if (s.thread != t.id || s.group > group) {
      ++i;
    } else if (read) {
      b.read_store(s);
      ++i;
    } else {
      b.finish_store(i);
    }
  }
  t.bulk_waited = std::max(t.bulk_waited, group);
  if (b.options.hazards && group != 0) b.order.learn(t.id, b.bulk_agent(bulk_number(b, t)), group);
}

}  // namespace

void Block::finish_load(size_t i) {
  const BulkLoad l = loads[i];
  loads.erase(loads.begin() + static_cast<std::ptrdiff_t>(i));
  const uint32_t row_bytes = l.map.box[0] * l.map.element_bytes;
  std::vector<std::byte> row(row_bytes);
  each_row(l.map, l.at, [&](uint32_t at, uint64_t address, uint32_t first, uint32_t n) {
    for (uint32_t k = 0; k < row_bytes; ++k)
      row[k] = std::byte{l.map.fill_nan ? (k % 2 ? uint8_t{0x7F} : uint8_t{0xF7}) : uint8_t{0}};
    if (n != 0) std::memcpy(row.data() + first, launch.memory->resolve(address, n), n);
    for (uint32_t k = first; l.map.round_tf32 && k < first + n; k += 4) {
      uint32_t w = 0;
      std::memcpy(&w, &row[k], 4);
      w = f32_to_tf32(float_of(w));
      std::memcpy(&row[k], &w, 4);
    }
    for (uint32_t k = 0; k < row_bytes; k += 16)
      std::memcpy(shared + swizzled(l.addr + at + k, l.map.swizzle), &row[k], 16);
  });
  Mbarrier& m = mbarriers[l.mbarrier];
  if (l.phase != m.phase)
    return record({Code::I0002,
                   l.site,
                   text("bulk load by thread ", name(l.thread), ", issued in phase ", l.phase, " of the mbarrier at ",
                        shared_text(m.addr), ", ends in phase ", m.phase),
                   {}});
  --m.loads;
  m.tx -= l.bytes;
  try_complete(m);
}

bool Block::finish_waking() {
  if (!loads.empty()) {
    finish_load(static_cast<size_t>(random() % loads.size()));
    return true;
  }
  const auto first = static_cast<size_t>(random() % threads.size());
  for (size_t k = 0; k < threads.size(); ++k) {
    Thread& t = threads[(first + k) % threads.size()];
    if (t.arrivals.empty()) continue;
    for (CpAsyncCopy& c : t.arrivals.front().copies) finish(c);
    deliver_arrivals(t);
    return true;
  }
  return false;
}

void Block::read_store(BulkStore& s) {
  if (s.read) return;
  s.read = true;
  s.data.resize(s.bytes);
  for (uint32_t k = 0; k < s.bytes; k += 16) std::memcpy(&s.data[k], shared + swizzled(s.addr + k, s.map.swizzle), 16);
}

void Block::finish_store(size_t i) {
  read_store(stores[i]);
  const BulkStore s = std::move(stores[i]);
  stores.erase(stores.begin() + static_cast<std::ptrdiff_t>(i));
  const auto put = [&](uint64_t address, const std::byte* from, uint32_t n) {
    std::byte* to = launch.memory->resolve(address, n);
    if (s.reduction == kStores) return void(std::memcpy(to, from, n));
    const uint32_t size = s.map.element_bytes;
    for (uint32_t k = 0; k < n; k += size) {
      uint64_t value = 0;
      std::memcpy(&value, from + k, size);
      (void)rmw(to + k, s.reduction, 8 * size, s.map.is_bf16, value);
    }
  };
  if (s.to != 0) return put(s.to, s.data.data(), s.bytes);
  each_row(s.map, s.at, [&](uint32_t at, uint64_t address, uint32_t first, uint32_t n) {
    if (n != 0) put(address, &s.data[at + first], n);
  });
}

void Block::finish_something() {
  Thread& t = threads[random() % threads.size()];
  const auto some = [&](std::vector<CpAsyncCopy>& copies) {
    if (!copies.empty()) finish(copies[random() % copies.size()]);
  };
  some(t.copies);
  if (!t.arrivals.empty()) some(t.arrivals[random() % t.arrivals.size()].copies);
  deliver_arrivals(t);
  if (!wgmma.empty()) finish_wgmma(static_cast<uint32_t>(random() % wgmma.size()), ~uint32_t{0}, 1);
  if (!stores.empty()) {
    const auto i = static_cast<size_t>(random() % stores.size());
    if (chance(2)) {
      read_store(stores[i]);
    } else {
      finish_store(i);
    }
  }
  if (!loads.empty() && chance(2)) finish_load(static_cast<size_t>(random() % loads.size()));
}

void Block::reset_async() {
  mbarriers.clear();
  mbarriers.reserve(size_t{kMostMbarriers} * launch.cluster);
  for (auto& n : named) n = {};
  cluster = {};
  remote.clear();
  group_meetings.assign(launch.threads / kWarpgroup * launch.cluster, {});
  wgmma.assign(group_meetings.size(), {});
  loads.clear();
  stores.clear();
  bulk_threads.clear();
}

void Block::end_of_block() {
  // Stores that nobody waited for end in any order.
  while (!stores.empty()) finish_store(static_cast<size_t>(random() % stores.size()));
  if (!loads.empty())
    record({Code::I0002,
            loads[0].site,
            text("bulk load by thread ", name(loads[0].thread), ": the block ends while it is in flight"),
            {}});
  check_remote_uses();
}

void add_bulk_symbols(std::vector<EmulationSymbol>& out) {
  out.insert(out.end(), {
      TILE_EMU("emu_tma_load", TmaLoad, tma_load),
      TILE_EMU("emu_tma_load_multicast", TmaLoad, tma_load_multicast),
      TILE_EMU("emu_tma_store", TmaStore, tma_store),
      TILE_EMU("emu_tma_reduce", BulkReduce, tma_reduce),
      TILE_EMU("emu_bulk_reduce", BulkReduce, bulk_reduce),
      TILE_EMU("emu_bulk_commit", BulkCommit, bulk_commit),
      TILE_EMU("emu_bulk_wait", BulkWait, bulk_wait),
  });
}

}  // namespace tile::emu
