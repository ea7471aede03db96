// Choice of the offsets of a conversion, and the count of its bank conflicts.
#include "backend/plan/shared_map.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

namespace tile {
namespace {

constexpr unsigned kBankBits = 7;    // 32 banks of four bytes
constexpr unsigned kWidestBits = 4;  // of one access, bytes

using Bits = std::vector<int8_t>;

bool holds(const Bits& bits, int8_t bit) { return std::find(bits.begin(), bits.end(), bit) != bits.end(); }

/// Lanes that one phase of accesses of 2^width bytes serves, as lane bits.
unsigned phase_bits(unsigned width) { return 5 - (width > 2 ? width - 2 : 0); }

/// Register bits of `l` that hold vector bits 0, 1, 2..., as far as they do.
std::vector<unsigned> run_of(const Layout& l, const Bits& vector) {
  std::vector<unsigned> run;
  for (const int8_t bit : vector) {
    const int at = l.register_bit(bit);
    if (at < 0) break;
    run.push_back(static_cast<unsigned>(at));
  }
  return run;
}

Traffic traffic(const SharedMap& map, const Layout& l, std::span<const unsigned> run, unsigned element_bytes, bool write) {
  const unsigned bytes = element_bytes << run.size(), lanes = 1u << phase_bits(log2_of(bytes));
  const auto columns = map.columns(l.lane);
  unsigned wavefronts = 0;
  for (unsigned first = 0; first < 32; first += lanes) {
    std::set<uint32_t> words;
    for (unsigned lane = first; lane < first + lanes; ++lane) {
      uint32_t at = 0;
      bool copy = false;
      for (unsigned k = 0; k < 5; ++k)
        if (lane >> k & 1) at ^= columns[k], copy = copy || l.lane[k] == kCopies;
      if (write && copy) continue;
      for (unsigned w = 0; w < std::max(bytes / 4, 1u); ++w) words.insert(at / 4 + w);
    }
    unsigned banks[32] = {};
    for (const uint32_t word : words) ++banks[word % 32];
    wavefronts += *std::max_element(std::begin(banks), std::end(banks));
  }
  // Accesses of other registers are this one moved by XOR, which keeps different banks different.
  unsigned n = 0, copies = 0;
  for (const int8_t bit : l.reg) copies += bit == kCopies;
  n = 1u << (l.reg.size() - copies - run.size());
  const unsigned active = write ? 5 - static_cast<unsigned>(std::count(l.lane.begin(), l.lane.end(), kCopies)) : 5;
  return {n, n * wavefronts, std::max(n * (bytes << active) / 128, n)};
}

/// The map for a choice of vector bits.
SharedMap map_for(const Layout& from, const Layout& to, unsigned bits, unsigned element_bytes, const Bits& vector) {
  SharedMap map;
  map.column.assign(bits, 0);
  map.write_run = run_of(from, vector);
  map.read_run = run_of(to, vector);
  const unsigned e = log2_of(element_bytes);
  unsigned next = e;  // offset bits below it are taken
  const auto place = [&](int8_t bit) { map.column[static_cast<size_t>(bit)] = 1u << next++; };
  for (const int8_t bit : vector) place(bit);
  const auto lanes = [&](const Layout& l, size_t run) {
    Bits out;
    for (unsigned k = 0; k < phase_bits(e + static_cast<unsigned>(run)); ++k)
      if (l.lane[k] != kCopies && !holds(vector, l.lane[k]) && !holds(out, l.lane[k])) out.push_back(l.lane[k]);
    return out;
  };
  Bits a = lanes(from, map.write_run.size()), b = lanes(to, map.read_run.size());
  for (const int8_t bit : Bits(a))
    if (holds(b, bit)) {
      if (next < kBankBits) place(bit);
      std::erase(a, bit);
      std::erase(b, bit);
    }
  struct Shared {
    int8_t bit;
    uint32_t bank;
  };
  std::vector<Shared> shared;
  for (size_t k = 0; k < std::max(a.size(), b.size()) && next < kBankBits; ++k) {
    if (k < a.size() && k < b.size()) {
      shared.push_back({b[k], 1u << next});
      place(a[k]);
    } else {
      place(k < a.size() ? a[k] : b[k]);
    }
  }
  const auto is_shared = [&](int bit) { return std::any_of(shared.begin(), shared.end(), [&](const Shared& s) { return s.bit == bit; }); };
  for (unsigned bit = 0; bit < bits; ++bit)
    if (map.column[bit] == 0 && !is_shared(static_cast<int>(bit))) place(static_cast<int8_t>(bit));
  for (const Shared& s : shared) {
    const bool above = next >= kBankBits;
    place(s.bit);
    if (above) map.column[static_cast<size_t>(s.bit)] |= s.bank;
  }
  return map;
}

}  // namespace

uint32_t SharedMap::offset(uint32_t element) const {
  uint32_t at = 0;
  for (size_t k = 0; k < column.size(); ++k)
    if (element >> k & 1) at ^= column[k];
  return at;
}

std::vector<uint32_t> SharedMap::columns(std::span<const int8_t> bits) const {
  std::vector<uint32_t> out;
  for (const int8_t bit : bits) out.push_back(bit == kCopies ? 0 : column[static_cast<size_t>(bit)]);
  return out;
}

SharedMap shared_map(const Layout& from, const Layout& to, unsigned bits, unsigned element_bytes) {
  const unsigned most = kWidestBits - std::min(kWidestBits, log2_of(element_bytes));
  // Bits that both sides hold in registers, those in the lowest registers first: neighbours there are often packed in one word already.
  Bits common, source, target;
  for (const int8_t bit : from.reg) {
    if (bit == kCopies) continue;
    (to.register_bit(bit) >= 0 ? common : source).push_back(bit);
  }
  for (const int8_t bit : to.reg)
    if (bit != kCopies && from.register_bit(bit) < 0) target.push_back(bit);
  std::stable_sort(common.begin(), common.end(), [&](int8_t x, int8_t y) {
    return from.register_bit(x) + to.register_bit(x) < from.register_bit(y) + to.register_bit(y);
  });
  std::optional<SharedMap> best;
  unsigned least = 0;
  // What only one side holds makes its accesses longer, and may crowd the other side's banks.
  for (const Bits* extra : std::initializer_list<const Bits*>{nullptr, &source, &target}) {
    Bits vector = common;
    if (extra) vector.insert(vector.end(), extra->begin(), extra->end());
    if (extra && (extra->empty() || common.size() >= most)) continue;
    vector.resize(std::min<size_t>(vector.size(), most));
    SharedMap map = map_for(from, to, bits, element_bytes, vector);
    const Traffic w = write_traffic(map, from, element_bytes), r = read_traffic(map, to, element_bytes);
    const unsigned cost = 4 * (w.wavefronts + r.wavefronts) + w.accesses + r.accesses;
    if (!best || cost < least) best = std::move(map), least = cost;
  }
  return *std::move(best);
}

Traffic write_traffic(const SharedMap& map, const Layout& from, unsigned element_bytes) { return traffic(map, from, map.write_run, element_bytes, true); }
Traffic read_traffic(const SharedMap& map, const Layout& to, unsigned element_bytes) { return traffic(map, to, map.read_run, element_bytes, false); }

}  // namespace tile
