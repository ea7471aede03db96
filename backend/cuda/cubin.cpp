// The few parts of a cubin's ELF that say what a kernel needs. Any bytes are safe: every part is looked up within the given span.
#include "backend/cuda/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace tile::cuda {
namespace {

template <class T>
bool read(std::span<const uint8_t> bytes, uint64_t at, T& to) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) return false;
  std::memcpy(&to, bytes.data() + at, sizeof(T));
  return true;
}

/// The bytes of a section; empty where they lie outside the file.
std::span<const uint8_t> contents(std::span<const uint8_t> file, const Elf64_Shdr& s) {
  if (s.sh_type == SHT_NOBITS || s.sh_offset > file.size() || s.sh_size > file.size() - s.sh_offset) return {};
  return file.subspan(s.sh_offset, s.sh_size);
}

std::string_view text_at(std::span<const uint8_t> strings, uint64_t at) {
  if (at >= strings.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(strings.data() + at);
  return {begin, ::strnlen(begin, strings.size() - at)};
}

/// Resources of a multiprocessor, from the table of technical specifications in the CUDA C++ programming guide.
struct Multiprocessor {
  unsigned sm, warps, blocks, shared_kib, reserved_bytes;
};
constexpr Multiprocessor kKnown[] = {{75, 32, 16, 64, 0},      {80, 64, 32, 164, 1024},  {86, 48, 16, 100, 1024},  {89, 48, 24, 100, 1024},
                                     {90, 64, 32, 228, 1024},  {100, 64, 32, 228, 1024}, {103, 64, 32, 228, 1024}, {120, 48, 24, 100, 1024}};
// On all of them: registers, allocated to warps by 256 at a time in four equal files.
constexpr unsigned kRegisters = 65536, kRegisterUnit = 256, kFiles = 4;
constexpr unsigned kSharedUnit = 128;

}  // namespace

std::optional<KernelNeeds> kernel_needs(std::span<const uint8_t> cubin, const std::string& symbol) {
  Elf64_Ehdr header;
  if (!read(cubin, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return std::nullopt;
  const auto section = [&](uint64_t index, Elf64_Shdr& s) { return index < header.e_shnum && read(cubin, header.e_shoff + index * sizeof(Elf64_Shdr), s); };
  Elf64_Shdr names, s;
  if (header.e_shoff > cubin.size() || !section(header.e_shstrndx, names)) return std::nullopt;
  std::span<const uint8_t> info, symbols, strings;
  for (uint64_t k = 0; section(k, s); ++k) {
    if (text_at(contents(cubin, names), s.sh_name) == ".nv.info") info = contents(cubin, s);
    Elf64_Shdr linked;
    if (s.sh_type == SHT_SYMTAB && section(s.sh_link, linked)) symbols = contents(cubin, s), strings = contents(cubin, linked);
  }
  KernelNeeds needs;
  bool found = false;
  // Records of .nv.info: format, attribute, and for format 4 a length and so many bytes, else two bytes. Attributes of a function begin with
  // the number of its symbol.
  constexpr uint8_t kSized = 4, kFrameBytes = 0x11, kRegisterCount = 0x2f;
  for (uint64_t at = 0; at + 4 <= info.size();) {
    const uint8_t format = info[at], attribute = info[at + 1];
    uint16_t length = 0;
    (void)read(info, at + 2, length);
    uint32_t number = 0, value = 0;
    Elf64_Sym sym;
    if (format == kSized && (attribute == kFrameBytes || attribute == kRegisterCount) && length >= 8 && read(info, at + 4, number) && read(info, at + 8, value) &&
        read(symbols, uint64_t{number} * sizeof sym, sym) && text_at(strings, sym.st_name) == symbol) {
      (attribute == kFrameBytes ? needs.frame_bytes : needs.registers) = value;
      found = found || attribute == kRegisterCount;
    }
    at += 4 + (format == kSized ? length : 0);
  }
  if (!found) return std::nullopt;
  return needs;
}

std::optional<Spills> spills(const std::vector<std::string>& assembler_info) {
  // "72 bytes stack frame, 68 bytes spill stores, 68 bytes spill loads"; of several functions the sums.
  std::optional<Spills> sum;
  for (const std::string& line : assembler_info) {
    const auto number_before = [&](const char* words) -> std::optional<unsigned> {
      size_t at = line.find(words);
      if (at == std::string::npos) return std::nullopt;
      while (at > 0 && line[at - 1] >= '0' && line[at - 1] <= '9') --at;
      return static_cast<unsigned>(std::strtoul(line.c_str() + at, nullptr, 10));
    };
    const auto stores = number_before(" bytes spill stores"), loads = number_before(" bytes spill loads");
    if (!stores || !loads) continue;
    if (!sum) sum = Spills{};
    sum->store_bytes += *stores;
    sum->load_bytes += *loads;
  }
  return sum;
}

std::optional<Occupancy> occupancy(unsigned sm, unsigned threads, unsigned registers, unsigned shared_bytes) {
  const auto* m = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Multiprocessor& k) { return k.sm == sm; });
  if (m == std::end(kKnown) || threads == 0) return std::nullopt;
  const auto up = [](unsigned n, unsigned unit) { return (n + unit - 1) / unit * unit; };
  const unsigned warps = (threads + 31) / 32;
  const unsigned of_warp = std::max(kRegisterUnit, up(registers * 32, kRegisterUnit));
  const unsigned by_registers = kRegisters / kFiles / of_warp * kFiles / warps;
  const unsigned of_block = up(shared_bytes + m->reserved_bytes, kSharedUnit);
  const unsigned by_shared = of_block == 0 ? m->blocks : m->shared_kib * 1024 / of_block;
  Occupancy o{m->blocks, 0, m->warps, "blocks"};
  const auto bound = [&](unsigned blocks, const char* what) {
    if (blocks < o.blocks) o.blocks = blocks, o.limit = what;
  };
  bound(m->warps / warps, "warps");
  bound(by_registers, "registers");
  bound(by_shared, "shared memory");
  o.warps = o.blocks * warps;
  return o;
}

}  // namespace tile::cuda
