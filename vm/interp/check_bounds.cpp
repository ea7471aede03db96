// The check `bounds`: accesses inside an allocation but outside the array of the argument, accesses not aligned to their elements,
// indices outside the index space of a view, broken inbounds promises, and writes to constant globals.
#include <algorithm>

#include "vm/interp/check_part.h"
#include "vm/interp/eval.h"
#include "vm/interp/strided.h"
#include "vm/interp/view_access.h"

namespace tile {
namespace {

/// One bit for each byte of an allocation that belongs to an array; nothing where all of them do.
class ByteSet {
 public:
  ByteSet() = default;
  ByteSet(const CheckedArray& a, uint64_t bytes);
  [[nodiscard]] bool everything() const { return words_.empty(); }
  /// True if [at, end) is known to be in the set; false does not say that it is not.
  [[nodiscard]] bool surely(uint64_t at, uint64_t end) const { return at >= solid_begin_ && end <= solid_end_; }
  /// As surely(), of a box whose first element is at byte `at`.
  [[nodiscard]] bool surely(uint64_t at, const MemoryAccess& a) const;
  /// The first byte of [at, at + n) that is not in the set; at + n if all are.
  [[nodiscard]] uint64_t first_missing(uint64_t at, uint64_t n) const {
    const uint64_t end = at + n;
    while (at < end) {
      const uint64_t w = ~words_[at / 64] >> (at % 64);
      if (w != 0) return std::min(end, at + static_cast<uint64_t>(__builtin_ctzll(w)));
      at = (at / 64 + 1) * 64;
    }
    return end;
  }

 private:
  struct Dim {
    uint64_t stride = 1, extent = 1;  // in elements
  };
  std::vector<Dim> dims_;  // of the array, the largest stride first; none where elements may share bytes
  uint64_t first_ = 0;     // byte of the first element
  uint32_t element_bytes_ = 0;
  std::vector<uint64_t> words_;
  uint64_t solid_begin_ = 0, solid_end_ = 0;  // bytes without a gap
};

ByteSet::ByteSet(const CheckedArray& a, uint64_t bytes) {
  const unsigned bits = info(a.type).memory_bits;
  uint64_t span = 1, count = 1;
  for (size_t d = 0; d < a.shape.size(); ++d) {
    if (a.shape[d] <= 0) count = 0;
    count *= static_cast<uint64_t>(a.shape[d]);
    span += static_cast<uint64_t>(a.shape[d] - 1) * static_cast<uint64_t>(a.strides[d]);
  }
  // Without gaps, and from the first byte to the last: nothing to remember.
  if (a.offset == 0 && span == count && (count * bits + 7) / 8 == bytes) return;
  words_.assign(static_cast<size_t>(bytes / 64 + 1), 0);
  if (count == 0) return;
  if (bits % 8 == 0) {
    first_ = static_cast<uint64_t>(a.offset) * bits / 8;
    element_bytes_ = bits / 8;
    for (size_t d = 0; d < a.shape.size(); ++d)
      if (a.shape[d] != 1) dims_.push_back({static_cast<uint64_t>(a.strides[d]), static_cast<uint64_t>(a.shape[d])});
    std::sort(dims_.begin(), dims_.end(), [](const Dim& l, const Dim& r) { return l.stride > r.stride; });
    const auto shared = [&] {
      for (size_t d = 0; d + 1 < dims_.size(); ++d)
        if (dims_[d].stride < dims_[d + 1].stride * dims_[d + 1].extent) return true;
      return !dims_.empty() && dims_.back().stride == 0;
    };
    if (shared()) dims_.clear();
  }
  if (span == count) {
    solid_begin_ = (static_cast<uint64_t>(a.offset) * bits + 7) / 8;
    solid_end_ = std::min(bytes, (static_cast<uint64_t>(a.offset) + count) * bits / 8);
  }
  std::vector<int64_t> at(a.shape.size(), 0);
  uint64_t position = static_cast<uint64_t>(a.offset);
  // Neighbours along the last dimension go in at once.
  const bool rows = !a.shape.empty() && a.strides.back() == 1;
  const uint64_t row = rows ? static_cast<uint64_t>(a.shape.back()) : 1;
  for (;;) {
    const uint64_t first = position * bits / 8, end = std::min(bytes, ((position + row) * bits + 7) / 8);
    for (uint64_t b = first; b < end;) {
      const uint64_t n = std::min(end - b, 64 - b % 64);
      words_[static_cast<size_t>(b / 64)] |= (n == 64 ? ~uint64_t{0} : ((uint64_t{1} << n) - 1)) << (b % 64);
      b += n;
    }
    size_t d = a.shape.size() - (rows ? 1 : 0);
    while (d-- > 0) {
      position += static_cast<uint64_t>(a.strides[d]);
      if (++at[d] < a.shape[d]) break;
      position -= static_cast<uint64_t>(a.strides[d] * a.shape[d]);
      at[d] = 0;
    }
    if (d == SIZE_MAX) return;
  }
}

bool ByteSet::surely(uint64_t at, const MemoryAccess& a) const {
  uint64_t reach = 1;  // elements from the first to behind the last
  for (size_t d = 0; d < a.rank; ++d) reach += static_cast<uint64_t>((a.shape[d] - 1) * a.strides[d]);
  if (surely(at, at + reach * a.element_bytes)) return true;
  if (dims_.empty() || a.element_bytes != element_bytes_ || at < first_ || (at - first_) % element_bytes_ != 0) return false;
  // The digits of the first element, of a number whose digits count the array's strides; the box goes on along some of them.
  uint64_t rest = (at - first_) / element_bytes_, left = a.rank;
  for (size_t d = 0; d < a.rank; ++d) left -= a.shape[d] == 1 ? 1 : 0;
  for (const Dim& dim : dims_) {
    const uint64_t digit = dim.stride == 1 ? rest : rest / dim.stride;
    rest -= digit * dim.stride;
    uint64_t last = digit;
    for (size_t d = 0; d < a.rank; ++d)
      if (a.shape[d] != 1 && static_cast<uint64_t>(a.strides[d]) == dim.stride) {
        last += static_cast<uint64_t>(a.shape[d] - 1);
        --left;
      }
    if (last >= dim.extent) return false;
  }
  return rest == 0 && left == 0;
}

class BoundsCheck : public CheckPart {
 public:
  BoundsCheck(const CheckFacts& facts, Findings& findings, const CheckOptions& options)
      : CheckPart(facts, findings), options_(options) {
    for (InstId i = 0; i < f.insts.size(); ++i) by_pointers_ = by_pointers_ || (facts.op(i).view == kNone && must_be_aligned(facts.op(i)));
  }

  void launch_begin(const Launch& launch) override {
    constant_.clear();
    sets_.resize(options_.arrays.size());
    sizes_.resize(options_.arrays.size());
    for (size_t a = 0; a < options_.arrays.size(); ++a) {
      const Memory::Allocation* in = launch.memory->find(Memory::base_of(a));
      const uint64_t size = in && options_.arrays[a] ? in->size : 0;
      if (size == sizes_[a]) continue;  // as in the launch before
      sets_[a] = size > 0 ? ByteSet(*options_.arrays[a], size) : ByteSet();
      sizes_[a] = size;
    }
    for (size_t g = 0; g < launch.globals.size() && g < facts.module.globals.size(); ++g)
      if (facts.module.globals[g].constant) constant_.push_back(allocation_of(launch.globals[g]));
  }

  [[nodiscard]] bool watches_memory() const override {
    return by_pointers_ || !constant_.empty() ||
           std::any_of(sets_.begin(), sets_.end(), [](const ByteSet& s) { return !s.everything(); });
  }
  void access(Exec& x, const Step& s, const MemoryAccess& a) override {
    if (by_pointers_ && facts.op(s.inst).view == kNone) look_at_address(x, s, a.address);
    const size_t allocation = allocation_of(a.address);
    if (!constant_.empty() && a.kind != MemoryAccess::Kind::Read &&
        std::count(constant_.begin(), constant_.end(), allocation) && findings.wanted(x, Code::T0118, s.inst))
      findings.add(
          x, {Code::T0118, s.inst, "writes " + x.memory.describe(a.address) + ", and the global is constant", {}, {}});
    if (allocation >= sets_.size() || sets_[allocation].everything()) return;
    const ByteSet& set = sets_[allocation];
    if (set.surely(a.address & Memory::kOffsetMask, a)) return;
    for_each_run(a, [&](uint64_t address, uint64_t bytes) {
      const uint64_t at = address & Memory::kOffsetMask, miss = set.first_missing(at, bytes);
      if (miss == at + bytes || !findings.wanted(x, Code::T0110, s.inst)) return;
      findings.add(x, {Code::T0110,
                       s.inst,
                       std::string(a.kind == MemoryAccess::Kind::Read ? "reads " : "writes ") +
                           x.memory.describe(address + (miss - at)) +
                           ", but element " + std::to_string(miss * 8 / info(options_.arrays[allocation]->type).memory_bits) +
                           " of that memory belongs to no index of the array: " + shape_text(*options_.arrays[allocation]),
                       {},
                       {}});
    });
  }

  void accesses(Exec& x, const Step& s, const MemoryRuns& all) override {
    if (by_pointers_ && facts.op(s.inst).view == kNone)
      for (const MemoryRuns::Run& r : all.runs) look_at_address(x, s, r.address);
    const size_t allocation = allocation_of(all.begin);
    const bool free = allocation >= sets_.size() || sets_[allocation].everything() || sets_[allocation].surely(all.begin & Memory::kOffsetMask, all.end - (all.begin & ~Memory::kOffsetMask));
    if (!free || (!constant_.empty() && all.kind != MemoryAccess::Kind::Read)) CheckPart::accesses(x, s, all);
  }
  unsigned wants(InstId i) const override { return facts.op(i).memory && facts.op(i).view != kNone ? kBefore : kNever; }
  void before(Exec& x, const Step& s) override {
    const auto& v = static_cast<const ViewAccess&>(*s.data);
    const uint64_t* view = x.at<uint64_t>(s.in[0]);
    look_at_address(x, s, view[0]);
    const uint32_t promises = facts.op(s.inst).inbounds;
    for (size_t k = 0; k < v.rank; ++k) {
      const uint64_t n = view[1 + v.dim[k]], step = static_cast<uint64_t>(v.step[k]);
      const bool promised = promises != kNone && facts.module.attrs.get(promises).ints[k] != 0;
      const bool sparse = k == v.sparse;
      const auto index = [&](size_t e) { return read_bits(x.at(v.index[k].slot), v.index[k].size, e); };
      const size_t count = sparse ? static_cast<size_t>(v.tile[k]) : 1;
      for (size_t e = 0; e < count; ++e) {
        const uint64_t at = index(e);
        // A row that a gather names is an element like others: outside it is padding, unless inbounds was promised.
        if (!sparse && static_cast<unsigned __int128>(at) * step >= n)
          outside(x, s, k, at, n / step + (n % step != 0), n, view[0]);
        if (!promised) continue;
        const unsigned __int128 last =
            static_cast<unsigned __int128>(at) * step + (sparse ? 1 : static_cast<uint64_t>(v.tile[k]));
        if (last > n) broken(x, s, k, at, n, v.tile[k], view[0]);
      }
    }
  }

 private:
  /// "shape [8, 60], strides [64, 1]": which elements are valid.
  [[nodiscard]] static std::string shape_text(const CheckedArray& a) {
    const auto list = [](const std::vector<int64_t>& numbers) {
      std::string out;
      for (const int64_t n : numbers) out += (out.empty() ? "" : ", ") + std::to_string(n);
      return "[" + out + "]";
    };
    return "shape " + list(a.shape) + ", strides " + list(a.strides) + (a.offset ? ", first element " + std::to_string(a.offset) : "");
  }
  /// Atomic operations that are not aligned stop the launch anyway.
  [[nodiscard]] static bool must_be_aligned(const CheckFacts::Op& op) { return op.memory && op.element_bits > 8 && op.reads != op.writes; }
  /// Where a load or store begins: the elements behind are as far from it as whole elements are.
  void look_at_address(Exec& x, const Step& s, uint64_t address) {
    const CheckFacts::Op& op = facts.op(s.inst);
    const uint64_t bytes = op.element_bits / 8;
    if ((address & (bytes - 1)) == 0 || !must_be_aligned(op) || !findings.wanted(x, Code::T0119, s.inst)) return;
    const std::string what = op.view != kNone ? "a view of elements" : (op.reads ? "reads" : "writes") + std::string(" an element");
    findings.add(x, {Code::T0119, s.inst, what + " of " + std::to_string(bytes) + " bytes at " + x.memory.describe(address) + ", and that is no multiple of " + std::to_string(bytes), {},
                     "a GPU stops at such an access"});
  }
  [[nodiscard]] static std::string owner(const Exec& x, uint64_t base) {
    const Memory::Allocation* a = x.memory.find(base);
    return a ? a->name : "a view of no allocation";
  }
  void outside(Exec& x, const Step& s, size_t k, uint64_t at, uint64_t tiles, uint64_t extent, uint64_t base) {
    if (!findings.wanted(x, Code::T0111, s.inst)) return;
    findings.add(
        x,
        {Code::T0111,
         s.inst,
         "index " + std::to_string(k) + " is " + std::to_string(at) + " in a view of " + owner(x, base) + ", " +
             (tiles == 0 ? "which is empty along that dimension"
                         : "valid are 0 to " + std::to_string(tiles - 1) + " (extent " + std::to_string(extent) + ")"),
         {},
         "get_index_space_shape tells how many tiles there are"});
  }
  void broken(Exec& x, const Step& s, size_t k, uint64_t at, uint64_t extent, int64_t tile, uint64_t base) {
    if (!findings.wanted(x, Code::T0112, s.inst)) return;
    findings.add(x, {Code::T0112,
                     s.inst,
                     "inbounds is promised for dimension " + std::to_string(k) + ", but index " + std::to_string(at) +
                         " (tile extent " + std::to_string(tile) + ") leaves the extent " + std::to_string(extent) +
                         " of a view of " + owner(x, base),
                     {},
                     {}});
  }

  const CheckOptions& options_;
  std::vector<ByteSet> sets_;     // by allocation
  std::vector<uint64_t> sizes_;   // of the allocations that `sets_` is about; 0 where it asks for nothing
  std::vector<size_t> constant_;
  bool by_pointers_ = false;  // some load or store by pointers may be misaligned
};

}  // namespace

std::unique_ptr<CheckPart> make_bounds_check(const CheckFacts& facts, Findings& findings, const CheckOptions& options) {
  return std::make_unique<BoundsCheck>(facts, findings, options);
}

}  // namespace tile
