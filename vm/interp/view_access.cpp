// Moving boxes between tiles and arrays. The box inside the array is found first, checked once against the allocation, and copied by rows;
// arrays that leave their allocation, gathers and packed elements go element by element, each checked.
#include "vm/interp/view_access.h"

#include <algorithm>
#include <limits>

#include "vm/base/numeric.h"
#include "vm/interp/eval.h"
#include "vm/interp/memory_runs.h"
#include "vm/interp/strided.h"

namespace tile {
namespace {

using U128 = unsigned __int128;

/// p + bytes * sum, modulo nothing: false if it leaves 64 bits.
bool element_bits_offset(const std::vector<size_t>& dims, const uint64_t* coords, const uint64_t* strides, unsigned bits, U128* out) {
  U128 sum = 0;
  for (const size_t d : dims) {
    sum += U128{coords[d]} * strides[d];
    if (sum >> 100) return false;
  }
  *out = sum * bits;
  return true;
}

// A load reads any non-zero byte as 1 (spec/types.md "i1").
void normalise_i1(std::byte* p, size_t n) {
  for (size_t k = 0; k < n; ++k) p[k] = p[k] != std::byte{0} ? std::byte{1} : std::byte{0};
}

// True if no two elements of the box have the same place: each stride, in ascending order, steps over all that the smaller ones reach.
bool disjoint(std::span<const int64_t> strides, std::span<const int64_t> shape) {
  std::pair<int64_t, int64_t> dims[kMaxRank];
  size_t n = 0;
  for (size_t k = 0; k < shape.size(); ++k)
    if (shape[k] != 1) dims[n++] = {strides[k], shape[k]};
  std::sort(dims, dims + n);
  int64_t extent = 1;
  for (size_t k = 0; k < n; ++k) {
    if (dims[k].first < extent) return false;
    extent += (dims[k].second - 1) * dims[k].first;
  }
  return true;
}

}  // namespace

uint64_t padding_bits(ElementType e, uint32_t padding) {
  const double inf = std::numeric_limits<double>::infinity();
  if (padding >= 3 && info(e).is_float && float_format(e).has_inf && float_format(e).saturates) {
    // Conversion would make a finite number of infinity; padding states the value itself.
    const FloatFormat& f = float_format(e);
    const uint64_t bits = ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits;
    return padding == 3 ? bits : bits | uint64_t{1} << (f.exponent_bits + f.mantissa_bits);
  }
  switch (padding) {
    case 1: return encode(e, -0.0, Rounding::NearestEven);
    case 2: return encode(e, std::numeric_limits<double>::quiet_NaN(), Rounding::NearestEven);
    case 3: return encode(e, inf, Rounding::NearestEven);
    case 4: return encode(e, -inf, Rounding::NearestEven);
    default: return 0;  // zero, and elements without a padding value
  }
}

bool ViewAccess::plan(PlanBuilder& b, InstId i, ValueId view, std::span<const ValueId> indices) {
  (void)i;
  const Type& t = b.type(view);
  kind = t.kind;
  element = b.module.types.element_of(b.f.type(view));
  rank = t.shape.size();
  if (rank > kMaxRank) {
    b.why = "views of rank " + std::to_string(rank) + ", the limit is " + std::to_string(kMaxRank);
    return false;
  }
  tile = t.shape;
  tile_strides.resize(rank);
  row_major(tile, tile_strides);
  for (size_t k = 0; k < rank; ++k) {
    dim.push_back(kind == TypeKind::GatherScatterView ? k : static_cast<size_t>(t.dim_map[k]));
    step.push_back(kind == TypeKind::PartitionView ? tile[k] : kind == TypeKind::StridedView ? t.strides[k] : 1);
  }
  sparse = kind == TypeKind::GatherScatterView ? t.sparse_dim : kMaxRank;
  padded = t.padding != kNone;
  padding = padding_bits(element, t.padding);
  for (const ValueId v : indices) index.push_back({b.slot(v), b.storage(v)});
  return true;
}

void ViewAccess::locate(const Exec& x, const uint64_t* view, Box& box) const {
  for (size_t k = 0; k < rank; ++k) {
    if (k == sparse) {
      box.start[dim[k]] = 0;
      box.valid[k] = tile[k];
      continue;
    }
    const U128 start = U128{read_bits(x.at(index[k].slot), index[k].size)} * static_cast<uint64_t>(step[k]);
    const uint64_t n = view[1 + dim[k]];
    if (start >= n) {
      box.empty = true;
      return;
    }
    box.start[dim[k]] = static_cast<uint64_t>(start);
    box.valid[k] = static_cast<int64_t>(std::min<uint64_t>(n - static_cast<uint64_t>(start), static_cast<uint64_t>(tile[k])));
  }
}

ViewAccess::Span ViewAccess::span_of(const Exec& x, const uint64_t* view, const Box& box) const {
  const unsigned bits = info(element).memory_bits;
  const uint64_t* strides = view + 1 + rank;
  U128 first = 0, span = 0;
  if (!element_bits_offset(dim, box.start, strides, bits, &first)) return {};
  for (size_t k = 0; k < rank; ++k) {
    if (strides[dim[k]] >> 46) return {};  // such strides leave every allocation unless the extent is 1; the slow path decides
    span += U128{static_cast<uint64_t>(box.valid[k] - 1)} * strides[dim[k]];
  }
  const U128 bytes = span * (bits / 8) + bits / 8;
  if (first / 8 >> 62 || bytes >> 62) return {};
  const uint64_t address = view[0] + static_cast<uint64_t>(first / 8);
  std::byte* host = x.memory.resolve(address, static_cast<uint64_t>(bytes));
  if (!host || reinterpret_cast<uintptr_t>(host) % (bits / 8) != 0) return {};  // misaligned arrays go element by element
  return {host, address};
}

std::byte* ViewAccess::whole(Exec& x, const Step& s, const uint64_t* view, const Box& box, MemoryAccess::Kind kind) const {
  const unsigned bits = info(element).memory_bits;
  if (sparse < rank || bits % 8 != 0) return nullptr;
  const Span span = span_of(x, view, box);
  if (span.host && x.observed) {
    int64_t in_memory[kMaxRank];
    for (size_t k = 0; k < rank; ++k) in_memory[k] = static_cast<int64_t>(view[1 + rank + dim[k]]);
    x.notify(s, {kind, span.address, bits / 8, rank, box.valid, in_memory, 0, tile_strides.data()});
  }
  return span.host;
}

// Tells of all elements at once; false if they have to be told of one by one.
bool ViewAccess::tell_all(Exec& x, const Step& s, const uint64_t* view, const Box& box, MemoryAccess::Kind kind) const {
  const unsigned bits = info(element).memory_bits;
  if (rank == 0 || bits % 8 != 0) return false;
  if (sparse >= rank) return whole(x, s, view, box, kind) != nullptr;
  Box all = box;
  const uint64_t extent = view[1 + dim[sparse]];
  if (extent == 0 || extent >> 46) return false;
  all.valid[sparse] = static_cast<int64_t>(extent);
  const Span span = span_of(x, view, all);
  if (!span.host) return false;
  const uint64_t* strides = view + 1 + rank;
  const size_t last = rank - 1;
  const uint64_t bytes = bits / 8, next = strides[dim[last]] * bytes;
  RunCollector runs(x, kind, bytes);
  int64_t at[kMaxRank] = {};
  const auto* const indices = x.at(index[sparse].slot);
  const auto index_at = [&](size_t a) { return read_bits(indices, index[sparse].size, a); };
  if (rank == 2 && sparse == 0 && next == bytes) {  // rows of a matrix, the usual case
    const uint64_t stride = strides[dim[0]] * bytes;
    const size_t rows = static_cast<size_t>(box.valid[0]), apart = static_cast<size_t>(tile_strides[0]), n = static_cast<size_t>(box.valid[1]);
    for (size_t a = 0; a < rows; ++a)
      if (const uint64_t i = index_at(a); i < extent) runs.add(span.address + i * stride, a * apart, n);
    return runs.tell(s);
  }
  for (;;) {
    // A row along the last dimension.
    uint64_t address = span.address;
    size_t first = 0;
    bool inside = true;
    for (size_t k = 0; k < last; ++k) {
      const uint64_t i = k == sparse ? index_at(static_cast<size_t>(at[k])) : static_cast<uint64_t>(at[k]);
      inside = inside && (k != sparse || i < extent);
      address += i * strides[dim[k]] * bytes;
      first += static_cast<size_t>(at[k] * tile_strides[k]);
    }
    if (inside && last == sparse) {
      for (size_t a = 0; a < static_cast<size_t>(tile[last]); ++a)
        if (const uint64_t i = index_at(a); i < extent) runs.join(address + i * next, first + a);
    } else if (inside && next == bytes) {
      runs.add(address, first, static_cast<size_t>(box.valid[last]));
    } else if (inside) {
      for (size_t a = 0; a < static_cast<size_t>(box.valid[last]); ++a) runs.add(address + a * next, first + a, 1);
    }
    size_t k = last;
    while (k > 0 && ++at[k - 1] == box.valid[k - 1]) at[--k] = 0;
    if (k == 0) return runs.tell(s);
  }
}

bool ViewAccess::elementwise(Exec& x, const Step& s, const uint64_t* view, const Box& box, MemoryAccess::Kind kind,
                             const std::function<void(size_t, uint64_t, std::byte*, unsigned)>& f) const {
  const unsigned bits = info(element).memory_bits;
  const uint64_t* strides = view + 1 + rank;
  const bool told = x.runs_wanted && tell_all(x, s, view, box, kind);
  std::vector<int64_t> at(rank, 0);
  std::vector<uint64_t> coords(rank);
  for (size_t e = 0;;) {
    bool inside = true;
    for (size_t k = 0; k < rank; ++k) {
      coords[dim[k]] = k == sparse ? read_bits(x.at(index[k].slot), index[k].size, static_cast<size_t>(at[k])) : box.start[dim[k]] + static_cast<uint64_t>(at[k]);
      inside = inside && coords[dim[k]] < view[1 + dim[k]];
    }
    if (inside) {
      U128 offset = 0;
      const bool fits = element_bits_offset(dim, coords.data(), strides, bits, &offset) && (offset >> 66) == 0;
      const uint64_t address = view[0] + static_cast<uint64_t>(offset / 8);
      std::byte* host = fits ? x.memory.resolve(address, bits < 8 ? 1 : bits / 8) : nullptr;
      if (!host) {
        std::string where;
        for (size_t k = 0; k < rank; ++k) where += (k ? ", " : "") + std::to_string(coords[k]);
        (void)x.trap(Code::T0101, s,
                     std::string(x.plan.function().def(s.inst).name) + ": array element [" + where + "] lies outside its allocation: " +
                         x.memory.describe(address),
                     "the extents or strides given to make_tensor_view do not fit the memory that the argument points to");
        return false;
      }
      if (x.observed && !told) x.notify(s, {kind, address, bits < 8 ? 1 : bits / 8, 0, nullptr, nullptr, e, nullptr});
      f(e, address, host, static_cast<unsigned>(offset % 8));
    }
    size_t k = rank;
    while (k > 0 && ++at[k - 1] == tile[k - 1]) at[--k] = 0;
    if (k == 0) return true;
    ++e;
  }
}

bool ViewAccess::each(Exec& x, const Step& s, MemoryAccess::Kind kind, const std::function<void(size_t, std::byte*)>& f) const {
  const uint64_t* view = x.at<uint64_t>(s.in[0]);
  Box box;
  locate(x, view, box);
  if (box.empty) return true;
  return elementwise(x, s, view, box, kind, [&](size_t e, uint64_t, std::byte* host, unsigned) { f(e, host); });
}

std::byte* ViewAccess::sparse_base(Exec& x, const uint64_t* view, const Box& box) const {
  if (sparse >= rank || info(element).memory_bits % 8 != 0) return nullptr;
  // As if the tile reached over the whole sparse dimension: then every index inside the array is inside the allocation.
  const uint64_t extent = view[1 + dim[sparse]];
  if (extent == 0 || extent >> 46) return nullptr;
  Box all = box;
  all.valid[sparse] = static_cast<int64_t>(extent);
  return span_of(x, view, all).host;
}

template <class F>
void ViewAccess::sparse_rows(const Exec& x, const uint64_t* view, size_t begin, size_t end, const F& f) const {
  const Index& which = index[sparse];
  const uint64_t extent = view[1 + dim[sparse]], stride = view[1 + rank + dim[sparse]];
  const size_t size = info(element).storage;
  const uint8_t* p = x.at<uint8_t>(which.slot);
  for (size_t a = begin; a < end; ++a) {
    const uint64_t i = read_bits(p, which.size, a);
    if (i < extent) f(a * static_cast<size_t>(tile_strides[sparse]) * size, static_cast<size_t>(i * stride) * size);
  }
}

bool ViewAccess::move_sparse(Exec& x, const Step& s, const uint64_t* view, const Box& box, std::byte* out, const std::byte* in) const {
  std::byte* base = sparse_base(x, view, box);
  if (!base) return false;
  if (x.observed && !(x.runs_wanted && tell_all(x, s, view, box, out ? MemoryAccess::Kind::Read : MemoryAccess::Kind::Write))) return false;
  const size_t size = info(element).storage;
  // One row: the tile without the sparse dimension.
  int64_t shape[kMaxRank], memory[kMaxRank];
  int64_t neighbours = 1;
  bool run = true;
  for (size_t k = rank; k-- > 0;) {
    shape[k] = k == sparse ? 1 : box.valid[k];
    memory[k] = static_cast<int64_t>(view[1 + rank + dim[k]]);
    if (shape[k] == 1) continue;
    run = run && memory[k] == neighbours && tile_strides[k] == neighbours;
    neighbours *= shape[k];
  }
  const size_t bytes = static_cast<size_t>(neighbours) * size;
  const auto move = [&](size_t begin, size_t end, std::byte*) {
    sparse_rows(x, view, begin, end, [&](size_t to, size_t from) {
      std::byte* here = base + from;
      if (run) {
        out ? std::memcpy(out + to, here, bytes) : std::memcpy(here, in + to, bytes);
      } else if (out) {
        strided_copy(size, out + to, tile_strides, here, std::span(memory, rank), std::span(shape, rank));
      } else {
        strided_copy(size, here, std::span(memory, rank), in + to, tile_strides, std::span(shape, rank));
      }
    });
  };
  const size_t rows = static_cast<size_t>(tile[sparse]), row = std::max<size_t>(1, static_cast<size_t>(tile_strides[sparse]));
  // Two rows of a scatter may be the same row of the array: they go in order.
  out ? x.split(rows, (Exec::kSplit + row - 1) / row, move) : move(0, rows, nullptr);
  return true;
}

bool ViewAccess::load(Exec& x, const Step& s) const {
  const uint64_t* view = x.at<uint64_t>(s.in[0]);
  std::byte* out = x.at<std::byte>(s.out[0]);
  const size_t size = info(element).storage;
  Box box;
  locate(x, view, box);
  bool full = !box.empty;
  for (size_t k = 0; k < rank && full; ++k) full = box.valid[k] == tile[k];
  if (full && sparse < rank) {
    int64_t inside = 0;
    sparse_rows(x, view, 0, static_cast<size_t>(tile[sparse]), [&](size_t, size_t) { ++inside; });
    full = inside == tile[sparse];
  }
  if (!full && padded) fill_elements(size, out, padding, s.n);
  if (!full && !padded) x.unspecified(s, element, out, s.n);
  if (box.empty) return true;
  if (move_sparse(x, s, view, box, out, nullptr)) {
    if (element == ElementType::I1) normalise_i1(out, s.n);
    return true;
  }
  if (const std::byte* host = whole(x, s, view, box, MemoryAccess::Kind::Read)) {
    int64_t src[kMaxRank];
    for (size_t k = 0; k < rank; ++k) src[k] = static_cast<int64_t>(view[1 + rank + dim[k]]);
    x.copy_box(size, out, tile_strides, host, std::span(src, rank), std::span(box.valid, rank));
    if (element == ElementType::I1) normalise_i1(out, s.n);
    return true;
  }
  return elementwise(x, s, view, box, MemoryAccess::Kind::Read, [&](size_t e, uint64_t, std::byte* host, unsigned bit) {
    if (info(element).memory_bits == 4) {
      out[e] = (*host >> bit) & std::byte{0x0F};
    } else {
      std::memcpy(out + e * size, host, size);
      if (element == ElementType::I1) normalise_i1(out + e, 1);
    }
  });
}

bool ViewAccess::in_place(Exec& x, const Step& s, MemoryAccess::Kind kind, MemoryRun& run) const {
  if (sparse < rank || (element == ElementType::I1 && kind == MemoryAccess::Kind::Read)) return false;
  const uint64_t* view = x.at<uint64_t>(s.in[0]);
  Box box;
  locate(x, view, box);
  if (box.empty) return false;
  for (size_t k = 0; k < rank; ++k)
    if (box.valid[k] != tile[k]) return false;
  run.host = whole(x, s, view, box, kind);
  if (!run.host) return false;
  // Rows from the inside out: what follows its neighbour without a gap joins it.
  const int64_t size = static_cast<int64_t>(info(element).storage);
  int64_t length = 1, extent = size;  // of a row in elements, of all so far in bytes
  bool row = true;
  MemoryRun::Dim found[MemoryRun::kMaxOuter];
  for (size_t k = rank; k-- > 0;) {
    if (tile[k] == 1) continue;
    const int64_t stride = static_cast<int64_t>(view[1 + rank + dim[k]]) * size;
    if (row && stride == length * size) {
      length *= tile[k];
      extent = length * size;
      continue;
    }
    if (length == 1 || stride < extent) return false;  // no rows, or rows that share elements
    row = false;
    MemoryRun::Dim* last = run.outer ? &found[run.outer - 1] : nullptr;
    if (last && stride == last->n * last->stride) {
      last->n *= tile[k];
    } else {
      if (run.outer == MemoryRun::kMaxOuter) return false;
      found[run.outer++] = {tile[k], stride};
    }
    extent += (tile[k] - 1) * stride;
  }
  for (size_t d = 0; d < run.outer; ++d) run.dims[d] = found[run.outer - 1 - d];
  run.length = static_cast<size_t>(length);
  run.span = static_cast<size_t>(extent);
  return true;
}

bool ViewAccess::store(Exec& x, const Step& s) const {
  const uint64_t* view = x.at<uint64_t>(s.in[0]);
  const std::byte* in = x.at<std::byte>(s.in[1]);
  const size_t size = info(element).storage;
  Box box;
  locate(x, view, box);
  if (box.empty) return true;
  // Rows one after the other: of elements that share their memory the last one stays, as in row-major order, if the rows are the tile's.
  if (sparse == 0 && move_sparse(x, s, view, box, nullptr, in)) return true;
  if (std::byte* host = whole(x, s, view, box, MemoryAccess::Kind::Write)) {
    int64_t dst[kMaxRank];
    for (size_t k = 0; k < rank; ++k) dst[k] = static_cast<int64_t>(view[1 + rank + dim[k]]);
    if (disjoint(std::span(dst, rank), std::span(box.valid, rank))) {
      x.copy_box(size, host, std::span(dst, rank), in, tile_strides, std::span(box.valid, rank));
    } else {
      strided_copy(size, host, std::span(dst, rank), in, tile_strides, std::span(box.valid, rank));
    }
    return true;
  }
  return elementwise(x, s, view, box, MemoryAccess::Kind::Write, [&](size_t e, uint64_t, std::byte* host, unsigned bit) {
    if (info(element).memory_bits == 4) {
      *host = (*host & ~(std::byte{0x0F} << bit)) | ((in[e] & std::byte{0x0F}) << bit);
    } else {
      std::memcpy(host, in + e * size, size);
    }
  });
}

}  // namespace tile
