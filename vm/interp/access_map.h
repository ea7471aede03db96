// Records which blocks touch which part of each array, in cells of a picture. The drawing is access_picture.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "vm/base/element_type.h"
#include "vm/interp/exec.h"

namespace tile {

/// An array as the map shows it: rank 1 as one row, higher ranks with all dimensions but the last as rows.
struct MappedArray {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape, strides;  ///< in elements
  int64_t offset = 0;                   ///< of the first element, in elements
  uint64_t allocation = 0;              ///< number in Memory, from 0
};

class AccessMap : public Observer {
 public:
  static constexpr int64_t kMaxCells = 128;  ///< along each side; 512 along a single row
  static constexpr size_t kMaxBlocks = 12;   ///< that a cell names
  static constexpr int64_t kMaxTracked =
      1 << 24;  ///< elements of arrays for which writes to one element by several blocks are found

  /// The blocks that touch a cell, the lowest numbers first.
  struct Cell {
    std::array<uint64_t, kMaxBlocks> blocks;
    uint8_t count = 0;
    bool more = false;    ///< there are others
    bool shared = false;  ///< writes: some element is written by several blocks
    void add(uint64_t block);
  };
  struct Picture {
    MappedArray array;
    int64_t rows = 1, columns = 1;            ///< of the array
    int64_t cell_rows = 1, cell_columns = 1;  ///< elements that a cell stands for
    int64_t grid_rows = 1, grid_columns = 1;  ///< cells
    std::vector<size_t> order;                ///< dimensions by descending stride
    bool by_memory = false;                   ///< strides that overlap: shown in the order of memory
    bool tracked = false;                     ///< Cell::shared is known
    std::vector<Cell> reads, writes;          ///< row-major
    std::vector<uint32_t> writer;             ///< by element: 1 + number of the first block that wrote it
  };

  explicit AccessMap(std::vector<MappedArray> arrays);
  void launch_begin(const Launch& launch) override { grid_ = launch.grid; }
  void access(Exec& x, const Step& s, const MemoryAccess& a) override;

  [[nodiscard]] const std::vector<Picture>& pictures() const { return pictures_; }
  [[nodiscard]] Grid grid() const { return grid_; }
  /// The pictures of all arrays, one below the other: reads left, writes right. The same for every number of threads.
  [[nodiscard]] std::string svg(const std::string& title) const;
  [[nodiscard]] std::string html(const std::string& title) const;

 private:
  void run(Picture& p, uint64_t block, int64_t position, int64_t count, MemoryAccess::Kind kind);
  void mark(Picture& p, uint64_t block, int64_t row, int64_t column, int64_t count, MemoryAccess::Kind kind);

  std::vector<Picture> pictures_;
  std::vector<std::vector<size_t>> of_allocation_;  // pictures of each allocation
  Grid grid_;
  std::mutex mutex_;
};

}  // namespace tile
