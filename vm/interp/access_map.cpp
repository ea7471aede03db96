// From addresses back to rows and columns, and from those to cells.
#include "vm/interp/access_map.h"

#include <algorithm>
#include <numeric>

namespace tile {
namespace {

/// Elements for each cell: a power of two, so that the edges of tiles fall on edges of cells.
int64_t cell_size(int64_t extent, int64_t most) {
  int64_t size = 1;
  while ((extent + size - 1) / size > most) size *= 2;
  return size;
}

/// Whether every position belongs to at most one index, found by dividing by the largest stride first.
bool nested(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, std::vector<size_t>& order) {
  order.resize(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  __int128 inner = 1;  // positions that the dimensions inside span
  for (size_t k = order.size(); k-- > 0;) {
    const size_t d = order[k];
    if (shape[d] == 1) continue;
    if (strides[d] < inner) return false;
    inner = static_cast<__int128>(strides[d]) * (shape[d] - 1) + inner;
  }
  return true;
}

}  // namespace

void AccessMap::Cell::add(uint64_t block) {
  uint8_t at = 0;
  while (at < count && blocks[at] < block) ++at;
  if (at < count && blocks[at] == block) return;
  if (count == kMaxBlocks) {
    more = true;
    if (at == count) return;
  } else {
    ++count;
  }
  for (uint8_t k = static_cast<uint8_t>(count - 1); k > at; --k) blocks[k] = blocks[k - 1];
  blocks[at] = block;
}

AccessMap::AccessMap(std::vector<MappedArray> arrays) {
  for (MappedArray& a : arrays) {
    Picture p;
    p.array = std::move(a);
    MappedArray& m = p.array;
    // A byte of two packed elements is one position.
    const bool packed = info(m.type).memory_bits == 4;
    if (packed || !nested(m.shape, m.strides, p.order)) {
      int64_t last = m.offset;
      for (size_t d = 0; d < m.shape.size(); ++d) last += (std::max<int64_t>(m.shape[d], 1) - 1) * m.strides[d];
      p.by_memory = true;
      p.columns = packed ? last / 2 + 1 : last + 1;
    } else {
      for (size_t d = 0; d + 1 < m.shape.size(); ++d) p.rows *= m.shape[d];
      if (!m.shape.empty()) p.columns = m.shape.back();
    }
    p.rows = std::max<int64_t>(p.rows, 1);
    p.columns = std::max<int64_t>(p.columns, 1);
    p.cell_rows = cell_size(p.rows, kMaxCells);
    p.cell_columns = cell_size(p.columns, p.rows == 1 ? 4 * kMaxCells : kMaxCells);
    p.grid_rows = (p.rows + p.cell_rows - 1) / p.cell_rows;
    p.grid_columns = (p.columns + p.cell_columns - 1) / p.cell_columns;
    const size_t cells = static_cast<size_t>(p.grid_rows * p.grid_columns);
    p.reads.resize(cells);
    p.writes.resize(cells);
    p.tracked = !packed && p.rows <= kMaxTracked / p.columns;
    if (p.tracked) p.writer.assign(static_cast<size_t>(p.rows * p.columns), 0);
    if (of_allocation_.size() <= m.allocation) of_allocation_.resize(m.allocation + 1);
    of_allocation_[m.allocation].push_back(pictures_.size());
    pictures_.push_back(std::move(p));
  }
}

void AccessMap::access(Exec& x, const Step&, const MemoryAccess& a) {
  const uint64_t allocation = Memory::index_of(a.address);
  if (allocation >= of_allocation_.size()) return;
  const uint64_t block = x.block[0] + uint64_t{grid_.x} * (x.block[1] + uint64_t{grid_.y} * x.block[2]);
  const int64_t byte = static_cast<int64_t>(a.address & Memory::kOffsetMask);
  const std::lock_guard lock(mutex_);
  for (const size_t which : of_allocation_[allocation]) {
    Picture& p = pictures_[which];
    // Another argument may show the same memory with elements of another width.
    const int64_t own = std::max(1, info(p.array.type).memory_bits / 8), theirs = a.element_bytes;
    const auto span = [&](int64_t at, int64_t n) {
      run(p, block, at / own, (at + n * theirs - 1) / own - at / own + 1, a.kind);
    };
    if (a.rank == 0) {
      span(byte, 1);
      continue;
    }
    // Runs along the dimension whose elements are neighbours in memory, if there is one.
    size_t inner = a.rank - 1;
    for (size_t k = 0; k < a.rank; ++k)
      if (a.strides[k] == 1 && a.shape[k] > 1) inner = k;
    const bool dense = a.strides[inner] == 1;
    std::vector<int64_t> index(a.rank, 0);
    for (bool done = false; !done;) {
      int64_t at = 0;
      for (size_t k = 0; k < a.rank; ++k) at += index[k] * a.strides[k];
      if (dense) {
        span(byte + at * theirs, a.shape[inner]);
      } else {
        for (int64_t i = 0; i < a.shape[inner]; ++i) span(byte + (at + i * a.strides[inner]) * theirs, 1);
      }
      done = true;
      for (size_t k = a.rank; done && k-- > 0;) {
        if (k == inner) continue;
        if (++index[k] < a.shape[k]) {
          done = false;
        } else {
          index[k] = 0;
        }
      }
    }
  }
}

void AccessMap::run(Picture& p, uint64_t block, int64_t position, int64_t count, MemoryAccess::Kind kind) {
  const MappedArray& m = p.array;
  if (p.by_memory) {
    if (position < p.columns) mark(p, block, 0, position, std::min(count, p.columns - position), kind);
    return;
  }
  std::vector<int64_t> index(m.shape.size(), 0);
  while (count > 0) {
    // The index of `position`: the largest stride takes what it can.
    int64_t rest = position - m.offset;
    for (const size_t d : p.order) {
      index[d] = m.shape[d] == 1 ? 0 : rest / m.strides[d];
      rest -= index[d] * m.strides[d];
    }
    bool inside = rest == 0;
    for (size_t d = 0; d < index.size(); ++d) inside = inside && index[d] >= 0 && index[d] < m.shape[d];
    int64_t n = 1;
    if (inside) {
      int64_t row = 0;
      for (size_t d = 0; d + 1 < index.size(); ++d) row = row * m.shape[d] + index[d];
      const size_t last = index.size() - 1;
      const int64_t column = index.empty() ? 0 : index[last];
      if (!index.empty() && m.strides[last] == 1) n = std::min(count, m.shape[last] - column);
      mark(p, block, row, column, n, kind);
    }
    position += n;
    count -= n;
  }
}

void AccessMap::mark(Picture& p, uint64_t block, int64_t row, int64_t column, int64_t count, MemoryAccess::Kind kind) {
  const size_t first = static_cast<size_t>(row / p.cell_rows * p.grid_columns);
  const auto cell = [&](int64_t c) { return first + static_cast<size_t>(c / p.cell_columns); };
  const size_t begin = cell(column), end = cell(column + count - 1);
  for (size_t c = begin; c <= end; ++c) {
    if (kind != MemoryAccess::Kind::Write) p.reads[c].add(block);
    if (kind != MemoryAccess::Kind::Read) p.writes[c].add(block);
  }
  if (kind == MemoryAccess::Kind::Read || !p.tracked) return;
  // Block numbers beyond 32 bits share names; a grid of so many blocks does not finish here.
  const uint32_t own = static_cast<uint32_t>(block) + 1;
  for (int64_t c = column; c < column + count; ++c) {
    uint32_t& w = p.writer[static_cast<size_t>(row * p.columns + c)];
    if (w == 0) {
      w = own;
    } else if (w != own) {
      p.writes[cell(c)].shared = true;
    }
  }
}

}  // namespace tile
