#include "tools/cli_writer.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "vm/interp/memory.h"
#include "vm/interp/observer.h"
#include "vm/interp/plan.h"

namespace tile::cli {
namespace {

class WriteWatch : public Observer {
 public:
  /// The CPU device adds buffers to its memory first and in order: their numbers are those of the allocations.
  WriteWatch(uint64_t allocation, int64_t byte, int64_t bytes) : allocation_(allocation), byte_(byte), bytes_(bytes) {}

  void access(Exec& x, const Step& s, const MemoryAccess& a) override {
    if (a.kind == MemoryAccess::Kind::Read || Memory::index_of(a.address) != allocation_) return;
    const auto first = static_cast<int64_t>(a.address & Memory::kOffsetMask), size = int64_t{a.element_bytes};
    std::vector<int64_t> index(a.rank, 0);
    for (bool more = true; more;) {
      int64_t at = first;
      for (size_t k = 0; k < a.rank; ++k) at += index[k] * a.strides[k] * size;
      if (at < byte_ + bytes_ && byte_ < at + size) {
        const std::lock_guard lock(mutex_);
        found = ElementWriter{{x.block[0], x.block[1], x.block[2]}, s.inst};
        return;
      }
      more = false;
      for (size_t k = a.rank; !more && k-- > 0;) {
        more = ++index[k] < a.shape[k];
        if (!more) index[k] = 0;
      }
    }
  }

  std::optional<ElementWriter> found;

 private:
  uint64_t allocation_;
  int64_t byte_, bytes_;
  std::mutex mutex_;
};

}  // namespace

std::optional<ElementWriter> writer_of(const std::shared_ptr<const ValidModule>& module, const Function& entry, const LaunchGrid& grid, LaunchArguments& args, size_t buffer, int64_t position,
                                       RunOptions options) {
  const int64_t bits = info(args.buffers[buffer].type).memory_bits;
  WriteWatch watch(buffer, position * bits / 8, std::max<int64_t>(1, bits / 8));
  options.print = nullptr;
  options.threads = 1;  // the last of several writes is then always the same
  options.observers = {&watch};
  Diagnostics silent;
  const auto cpu = make_cpu_device(module, silent);
  if (!cpu || !(*cpu)->launch(entry, grid, args, options, silent)) return std::nullopt;
  return watch.found;
}

}  // namespace tile::cli
