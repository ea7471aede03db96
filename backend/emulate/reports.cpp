// Texts of failures.
#include <cstdio>
#include <map>
#include <tuple>

#include "backend/emulate/block.h"

namespace tile::emu {
namespace {

/// "0..31, 64": ascending numbers.
std::string ranges(const std::vector<uint32_t>& ids) {
  std::string out;
  for (size_t i = 0; i < ids.size();) {
    size_t j = i;
    while (j + 1 < ids.size() && ids[j + 1] == ids[j] + 1) ++j;
    if (!out.empty()) out += ", ";
    if (out.size() > 60) return out + "...";
    out += std::to_string(ids[i]);
    if (j > i) out += ".." + std::to_string(ids[j]);
    i = j + 1;
  }
  return out;
}

}  // namespace

std::string hex(uint64_t v) {
  char s[24];
  std::snprintf(s, sizeof s, "0x%llx", static_cast<unsigned long long>(v));
  return s;
}

void Block::deadlock() {
  // Threads by what they wait for: kind of operation and place in the code.
  std::map<std::tuple<const void*, bool, uint32_t>, std::vector<uint32_t>> groups;
  for (const auto& t : threads) groups[{t.done ? nullptr : t.pc, t.done, t.rank}].push_back(t.id);
  Failure f;
  f.message = "deadlock: no thread of the block can go on";
  size_t most = 0;
  for (auto& [key, ids] : groups) {
    const Thread& t = threads[ids.front()];
    const std::string of = launch.cluster > 1 ? text(" of block ", t.rank) : std::string();
    for (uint32_t& id : ids) id = threads[id].local;
    std::string lacks;
    if (t.wait == WaitFor::Mbarrier) {
      const Mbarrier& m = mbarriers[t.wait_for];
      lacks = text(", for phase ", t.wait_phase, " of the mbarrier at ", shared_text(m.addr), ", which lacks ",
                   m.pending, " of ", m.count, " arrivals and ", m.tx, " bytes");
    } else if (t.wait == WaitFor::NamedBarrier) {
      const NamedBarrier& n = named[t.rank * 16 + t.wait_for];
      lacks = text(", barrier ", t.wait_for, ", at which ", n.arrived, " of ", n.expected, " threads arrived");
    } else if (t.wait == WaitFor::Cluster) {
      lacks = text(", at which ", cluster.missing, " threads of the cluster have not arrived");
    }
    if (t.done) {
      f.notes.push_back({kNone, text(ids.size(), " threads have ended: ", ranges(ids), of)});
      continue;
    }
    f.notes.push_back({t.site, text(ids.size(), " threads wait in ", op_name(t.op), ": ", ranges(ids), of, lacks)});
    if (ids.size() > most) most = ids.size(), f.site = t.site;
  }
  record(std::move(f));
}

void Block::arrive_warp(Thread& t, Meeting& m) {
  if (t.local / 32 * 32 + 32 > launch.threads) hazard(t, "warp ", t.warp(), " has fewer than 32 lanes");
  if (m.arrived == 0) {
    for (uint32_t l = 0; l < 32; ++l)
      if (threads[t.warp() * 32 + l].done) hazard(t, "by part of a warp: thread ", name(t.warp() * 32 + l), " has ended");
    m.first = t.id;
    return;
  }
  check_same_operation(t, threads[m.first], "warp");
}

void Block::check_same_operation(const Thread& t, const Thread& other, const char* group) {
  if (other.pc == t.pc) return;
  Failure f{Code::I0002,
            t.site,
            text(op_name(t.op), " by part of a ", group, ": thread ", name(t), " is here, thread ", name(other),
                 " waits in another operation"),
            {}};
  f.notes.push_back({other.site, text(op_name(other.op), " in which thread ", name(other), " waits")});
  fail(std::move(f));
}

void Block::bad_shared(const Thread& t, uint32_t addr, uint32_t bytes, uint32_t align) {
  if (const uint32_t rank = addr >> kEmulatedRankShift; rank != t.rank && rank < launch.cluster)
    hazard(t, "shared address ", hex(addr), " is one of block ", rank, " of the cluster");
  addr -= t.rank_bits;
  if (addr % align != 0)
    hazard(t, "shared address ", addr, " is not a multiple of ", align, " (byte ", int64_t{addr} - kEmulatedSharedBase,
           " of the block's)");
  const int64_t at = int64_t{addr} - kEmulatedSharedBase;
  hazard(t, "shared bytes ", at, "..", at + bytes - 1, " lie outside the block's ", launch.shared_bytes, " bytes");
}

void Block::bad_global(const Thread& t, uint64_t addr, uint32_t bytes, bool writes) {
  const std::string who = text(" (", op_name(t.op), " by thread ", name(t), ")");
  if (!launch.memory->resolve(addr, bytes))
    fail({Code::T0101,
          t.site,
          text(bytes, " bytes at address ", hex(addr), ", ", launch.memory->describe(addr),
               ", are outside the allocation", who),
          {}});
  if (writes && launch.memory->find(addr)->read_only)
    fail({Code::T0118, t.site, text("a write to ", launch.memory->describe(addr), ", which is read-only", who), {}});
  hazard(t, "address ", hex(addr), " is not a multiple of ", bytes, " (", launch.memory->describe(addr), ")");
}

std::string Block::agent_text(const Access& a) const {
  if (a.agent < launch.all_threads()) return text("thread ", name(a.agent));
  if (a.agent < matrix_agent(0))
    return text("a copy that completes phase ", a.clock - 1, " of the mbarrier at ",
                shared_text(mbarriers[a.agent - launch.all_threads()].addr));
  if (a.agent < bulk_agent(0)) return text("warpgroup ", a.agent - matrix_agent(0), "'s wgmma group ", a.clock);
  return text("a bulk store of group ", a.clock, " of thread ", name(bulk_threads[a.agent - bulk_agent(0)]));
}

std::string Block::name(const Thread& t) const { return launch.cluster > 1 ? text(t.local, " of block ", t.rank) : text(t.local); }

std::string Block::shared_text(uint32_t addr) const {
  const uint32_t window = launch.window();
  if (launch.cluster == 1) return text("byte ", int64_t{addr} - kEmulatedSharedBase);
  return text("byte ", int64_t{addr % window} - kEmulatedSharedBase, " of block ", addr / window);
}

void Block::conflict(const Thread& t, const Conflict& c) {
  const char* what = "";
  const char* other = "written here by ";
  switch (c.hazard) {
    case Hazard::ReadOfWrite: what = " is read, and nothing orders this after the write"; break;
    case Hazard::WriteOfRead:
      what = " is overwritten, and nothing orders this after the read", other = "read here by ";
      break;
    case Hazard::WriteOfWrite: what = " is overwritten, and nothing orders this after the other write"; break;
    case Hazard::NotFenced: what = ": no fence makes what was written visible to the asynchronous proxy"; break;
    case Hazard::WrongSwizzle: what = " was written in another swizzle than that of the descriptor"; break;
    default: hazard(t, "shared ", shared_text(c.addr), " is read but was never written");
  }
  Failure f{Code::I0002,
            t.site,
            text(op_name(t.op), " by thread ", name(t), ": shared ", shared_text(c.addr), what),
            {}};
  f.notes.push_back(
      {c.other.site, text(other, agent_text(c.other), c.other.clock == kInFlight ? ", still in flight" : "")});
  fail(std::move(f));
}

}  // namespace tile::emu
