// Tiles pass from one layout to another: choice among registers, exchanges between lanes, or shared memory.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "backend/plan/shared_map.h"
#include "backend/ptx/device_hopper.h"
#include "backend/ptx/lowering.h"

namespace tile {

Value* mapped(Lowering& x, Value* number, std::span<const uint32_t> columns) {
  llvm::IRBuilder<>& b = x.b;
  std::map<int, uint32_t> masks;  // by distance that bits move up: which ones
  for (unsigned k = 0; k < columns.size(); ++k)
    for (unsigned bit = 0; bit < 32; ++bit)
      if (columns[k] >> bit & 1) masks[static_cast<int>(bit) - static_cast<int>(k)] |= 1u << k;
  Value* sum = x.i32(0);
  for (const auto& [distance, mask] : masks) {
    Value* part = b.CreateAnd(number, x.i32(mask));
    sum = b.CreateXor(sum, distance >= 0 ? b.CreateShl(part, x.i32(distance)) : b.CreateLShr(part, x.i32(-distance)));
  }
  return sum;
}

namespace {

/// Each thread has what it needs.
std::optional<Values> choose_registers(Lowering& x, const Values& from_regs, ElementType e, const Layout& from, const Layout& to) {
  llvm::IRBuilder<>& b = x.b;
  // Bits that the thread's number fixes in `to` but registers carry in `from` choose among registers at run time.
  Values out(to.registers());
  struct Choice {
    int reg_bit;
    Value* on;
  };
  std::vector<Choice> choices;
  const auto look = [&](const std::vector<int8_t>& f_bits, const std::vector<int8_t>& t_bits, Value* number) {
    for (size_t k = 0; k < t_bits.size(); ++k)
      if (t_bits[k] != kCopies && f_bits[k] == kCopies)
        choices.push_back({from.register_bit(t_bits[k]), b.CreateTrunc(b.CreateLShr(number, x.i32(static_cast<int64_t>(k))), b.getInt1Ty())});
  };
  look(from.lane, to.lane, x.lane());
  look(from.warp, to.warp, x.warp());
  // Chosen as bits: a choice among narrow floats may pass through a wider type and change a NaN.
  Values words = from_regs;
  if (!choices.empty())
    for (Value*& w : words) w = to_memory(x.d, e, w);
  bool ok = std::all_of(choices.begin(), choices.end(), [](const Choice& c) { return c.reg_bit >= 0; }) && choices.size() <= 6;
  for (unsigned r = 0; ok && r < out.size(); ++r) {
    unsigned source = 0;
    for (size_t k = 0; k < to.reg.size(); ++k)
      if (r >> k & 1 && to.reg[k] != kCopies) {
        const int at = from.register_bit(to.reg[k]);
        if (at < 0) ok = false;
        source |= at < 0 ? 0u : 1u << at;
      }
    if (!ok) break;
    Values candidates(size_t{1} << choices.size());
    for (size_t c = 0; c < candidates.size(); ++c) {
      unsigned s = source;
      for (size_t k = 0; k < choices.size(); ++k)
        if (c >> k & 1) s |= 1u << choices[k].reg_bit;
      candidates[c] = words[s];
    }
    for (size_t k = choices.size(); k-- > 0;)
      for (size_t c = 0; c < size_t{1} << k; ++c) candidates[c] = b.CreateSelect(choices[k].on, candidates[c | size_t{1} << k], candidates[c]);
    out[r] = choices.empty() ? candidates[0] : from_memory(x.d, e, candidates[0]);
  }
  if (!ok) return std::nullopt;
  return out;
}

/// The steps that take one layout to another inside the warps, if they are fewer than shared memory takes: each exchanges a register bit with
/// a lane bit.
std::optional<std::vector<LaneExchange>> lane_exchanges(const Layout& from, const Layout& to) {
  const auto copies = [](const std::vector<int8_t>& bits) { return std::find(bits.begin(), bits.end(), kCopies) != bits.end(); };
  if (from.warp != to.warp || copies(from.lane) || copies(to.lane) || copies(from.reg) || copies(to.reg)) return std::nullopt;
  Layout at = from;
  std::vector<LaneExchange> steps;
  for (unsigned lane = 0; lane < 5; ++lane) {
    if (at.lane[lane] == to.lane[lane]) continue;
    const int reg = at.register_bit(to.lane[lane]);
    if (reg < 0) return std::nullopt;  // a permutation of lanes
    steps.push_back({static_cast<unsigned>(reg), lane});
    std::swap(at.reg[static_cast<size_t>(reg)], at.lane[lane]);
  }
  // An exchange moves half of the registers; the way through shared memory writes and reads each, and meets at two barriers.
  return steps.size() <= 3 && from.registers() <= 64 ? std::optional(steps) : std::nullopt;
}

/// What the lane that differs in `lane_bit` has there.
Value* shuffled(Lowering& x, Value* word, unsigned lane_bit) {
  llvm::IRBuilder<>& b = x.b;
  llvm::Type* type = word->getType();
  const auto move = [&](Value* v) { return x.d.shuffle(ShuffleMode::Xor, v, x.i32(1 << lane_bit)); };
  const unsigned width = type->getIntegerBitWidth();
  if (width <= 32) return b.CreateTrunc(move(b.CreateZExt(word, b.getInt32Ty())), type);
  Value* low = move(b.CreateTrunc(word, b.getInt32Ty()));
  Value* high = move(b.CreateTrunc(b.CreateLShr(word, 32), b.getInt32Ty()));
  return b.CreateOr(b.CreateZExt(low, type), b.CreateShl(b.CreateZExt(high, type), 32));
}

/// Calls `access` for every access of a thread: the registers that it takes, lowest first, and its address.
void each_access(Lowering& x, const SharedMap& map, const Layout& l, std::span<const unsigned> run, Value* base,
                 const std::function<void(std::span<const unsigned>, Value*)>& access) {
  const auto lane = map.columns(l.lane), warp = map.columns(l.warp);
  uint32_t moved = 0;  // offset bits that differ among threads
  for (const auto* columns : {&lane, &warp})
    for (const uint32_t c : *columns) moved |= c;
  Value* thread = x.b.CreateXor(mapped(x, x.lane(), lane), mapped(x, x.warp(), warp));
  uint32_t skip = 0;
  for (const unsigned bit : run) skip |= 1u << bit;
  for (size_t k = 0; k < l.reg.size(); ++k)
    if (l.reg[k] == kCopies) skip |= 1u << k;
  std::map<uint32_t, Value*> starts;  // by the part of a register's offset that meets the thread's bits
  for (unsigned r = 0; r < l.registers(); ++r) {
    if (r & skip) continue;
    std::vector<unsigned> regs;
    for (unsigned n = 0; n < 1u << run.size(); ++n) {
      unsigned reg = r;
      for (size_t k = 0; k < run.size(); ++k)
        if (n >> k & 1) reg |= 1u << run[k];
      regs.push_back(reg);
    }
    const uint32_t at = map.offset(l.element_of_register(r));
    Value*& start = starts[at & moved];
    if (!start) start = x.b.CreateAdd(base, x.b.CreateXor(thread, x.i32(at & moved)));
    access(regs, x.b.CreateAdd(start, x.i32(at & ~moved)));
  }
}

}  // namespace

Values exchange_lanes(Lowering& x, const Values& regs, ElementType e, std::span<const LaneExchange> steps) {
  llvm::IRBuilder<>& b = x.b;
  Values words;
  for (Value* v : regs) words.push_back(to_memory(x.d, e, v));
  for (const LaneExchange& s : steps) {
    Value* upper = b.CreateTrunc(b.CreateLShr(x.lane(), x.i32(s.lane_bit)), b.getInt1Ty());
    for (unsigned r = 0; r < words.size(); ++r) {
      if (r >> s.reg_bit & 1) continue;
      Value *&low = words[r], *&high = words[r | 1u << s.reg_bit];
      Value* got = shuffled(x, b.CreateSelect(upper, low, high), s.lane_bit);
      Value* kept = b.CreateSelect(upper, high, low);
      low = b.CreateSelect(upper, got, kept);
      high = b.CreateSelect(upper, kept, got);
    }
  }
  for (Value*& w : words) w = from_memory(x.d, e, w);
  return words;
}

Layout exchanged_layout(Layout l, std::span<const LaneExchange> steps) {
  for (const LaneExchange& s : steps) std::swap(l.reg[s.reg_bit], l.lane[s.lane_bit]);
  return l;
}

std::vector<Lowering::Placed> Lowering::placed(const Values& regs, ElementType e, const Layout& l) {
  std::vector<Placed> out;
  Value *mine = owner(l), *start = thread_element(l);
  for (unsigned r = 0; r < regs.size(); ++r) {
    bool copy = false;
    for (size_t k = 0; k < l.reg.size(); ++k) copy = copy || (l.reg[k] == kCopies && r >> k & 1);
    if (!copy) out.push_back({to_memory(d, e, regs[r]), b.CreateOr(start, i32(l.element_of_register(r))), mine});
  }
  return out;
}

Values Lowering::numbers(const Layout& l) {
  Values out;
  Value* start = thread_element(l);
  for (unsigned r = 0; r < l.registers(); ++r) out.push_back(b.CreateOr(start, i32(l.element_of_register(r))));
  return out;
}

Values Lowering::pass(ElementType e, unsigned bits, std::span<const std::vector<Placed>> phases, const Values& wanted) {
  llvm::Type* word = memory_type(b.getContext(), e);
  const unsigned bytes = word->getIntegerBitWidth() / 8;
  unsigned part = bits;
  while (part > 0 && convert_bytes(part, bytes) > room) --part;
  Value* base = scratch(convert_bytes(part, bytes));
  moved_here_ += uint64_t{convert_bytes(part, bytes)} * ((1u << (bits - part)) - 1);
  const auto place = [&](Value* number) {
    Value* at = b.CreateMul(b.CreateAnd(number, i32((1 << part) - 1)), i32(bytes));
    return b.CreateAdd(base, b.CreateAdd(at, b.CreateShl(b.CreateLShr(at, i32(7)), i32(4))));
  };
  const auto here = [&](Value* number, Value* n) { return b.CreateICmpEQ(b.CreateLShr(number, i32(part)), n); };
  std::vector<Var> vars;
  for (size_t k = 0; k < wanted.size(); ++k) store(vars.emplace_back(var(word)), llvm::ConstantInt::get(word, 0));
  loop(1u << (bits - part), [&](Value* n) {
    for (const auto& phase : phases) {
      barrier();
      for (const Placed& p : phase) {
        Value* when = here(p.number, n);
        d.store_shared({&p.word, 1}, place(p.number), p.when ? b.CreateAnd(when, p.when) : when);
      }
    }
    barrier();
    // Every place of the part has been written.
    for (size_t k = 0; k < wanted.size(); ++k) {
      Value* got = d.load_shared(word, 1, place(wanted[k]))[0];
      store(vars[k], b.CreateSelect(here(wanted[k], n), got, load(vars[k])));
    }
  });
  Values out;
  for (const Var& v : vars) out.push_back(from_memory(d, e, load(v)));
  return out;
}

Values Lowering::convert(const Values& from_regs, ElementType e, const Layout& from, const Layout& to, unsigned bits) {
  const ConvertKind kind = convert_kind(from, to);
  if (kind == ConvertKind::None) return from_regs;
  if (kind == ConvertKind::Registers)
    if (auto chosen = choose_registers(*this, from_regs, e, from, to)) return *std::move(chosen);
  if (kind == ConvertKind::Warp)
    if (const auto steps = lane_exchanges(from, to)) {
      const Layout moved = exchanged_layout(from, *steps);
      const Values regs = exchange_lanes(*this, from_regs, e, *steps);
      if (moved == to) return regs;
      if (auto chosen = choose_registers(*this, regs, e, moved, to)) return *std::move(chosen);
    }
  llvm::Type* word = memory_type(b.getContext(), e);
  const unsigned bytes = word->getIntegerBitWidth() / 8;
  const uint32_t size = std::max((1u << bits) * bytes, 16u);
  if (size > room) return pass(e, bits, std::array{placed(from_regs, e, from)}, numbers(to));
  const SharedMap map = shared_map(from, to, bits, bytes);
  // Warps that keep their elements need not meet the others, if the place is theirs alone.
  const bool within = from.warp == to.warp && std::find(from.warp.begin(), from.warp.end(), kCopies) == from.warp.end();
  const bool alone = within && (plan.roles || plan.ring_bytes == 0) && !stream_ && !cramped;
  HopperOps& h = *hopper_ops(d);
  Value* base = alone ? warp_scratch(size, map.columns(from.warp)) : scratch(size);
  alone ? h.warp_sync() : barrier();
  Value* mine = owner(from);
  each_access(*this, map, from, map.write_run, base, [&](std::span<const unsigned> regs, Value* at) {
    Values words;
    for (const unsigned r : regs) words.push_back(to_memory(d, e, from_regs[r]));
    d.store_shared(words, at, mine);
  });
  within ? h.warp_sync() : barrier();
  Values out(to.registers());
  each_access(*this, map, to, map.read_run, base, [&](std::span<const unsigned> regs, Value* at) {
    const Values words = d.load_shared(word, static_cast<unsigned>(regs.size()), at);
    for (size_t k = 0; k < regs.size(); ++k) out[regs[k]] = from_memory(d, e, words[k]);
  });
  for (unsigned r = 0; r < out.size(); ++r)
    for (size_t k = 0; k < to.reg.size() && !out[r]; ++k)
      if (to.reg[k] == kCopies && r >> k & 1) out[r] = out[r & ~(1u << k)];
  return out;
}

}  // namespace tile
