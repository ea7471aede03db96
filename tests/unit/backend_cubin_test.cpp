// Needs of a kernel from a cubin made by hand, whole and cut off anywhere; spills from the assembler's words; occupancy.
#include <doctest/doctest.h>

#include <elf.h>

#include <cstring>

#include "backend/cuda/cubin.h"

namespace {

using namespace tile::cuda;

void put(std::vector<uint8_t>& to, const void* from, size_t bytes) {
  const auto* b = static_cast<const uint8_t*>(from);
  to.insert(to.end(), b, b + bytes);
}

/// Header, names, strings, symbols (none, "other", "kernel"), .nv.info, section headers.
std::vector<uint8_t> small_cubin() {
  const std::string names = std::string("\0.nv.info\0.shstrtab\0.strtab\0.symtab\0", 37), strings = std::string("\0other\0kernel\0", 14);
  Elf64_Sym symbols[3] = {};
  symbols[1].st_name = 1;
  symbols[2].st_name = 7;
  std::vector<uint8_t> info;
  const auto record = [&](uint8_t attribute, uint32_t symbol, uint32_t value) {
    const uint8_t head[4] = {4, attribute, 8, 0};
    put(info, head, 4), put(info, &symbol, 4), put(info, &value, 4);
  };
  record(0x2f, 1, 17);   // registers of the other function
  const uint8_t plain[4] = {2, 0x37, 1, 0};
  put(info, plain, 4);   // an attribute of another format
  record(0x2f, 2, 40);
  record(0x11, 2, 24);
  record(0x11, 99, 1000);  // of a symbol that there is not
  Elf64_Ehdr h{};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64;
  std::vector<uint8_t> out(sizeof h);
  Elf64_Shdr s[5] = {};
  const auto section = [&](int k, uint32_t name, uint32_t type, const void* bytes, size_t size) {
    s[k].sh_name = name, s[k].sh_type = type, s[k].sh_offset = out.size(), s[k].sh_size = size;
    put(out, bytes, size);
  };
  section(1, 10, SHT_STRTAB, names.data(), names.size());
  section(2, 20, SHT_STRTAB, strings.data(), strings.size());
  section(3, 28, SHT_SYMTAB, symbols, sizeof symbols);
  s[3].sh_link = 2;
  section(4, 1, SHT_LOPROC, info.data(), info.size());
  h.e_shoff = out.size(), h.e_shnum = 5, h.e_shstrndx = 1, h.e_shentsize = sizeof(Elf64_Shdr);
  put(out, s, sizeof s);
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

}  // namespace

TEST_CASE("a cubin tells a kernel's registers and local memory") {
  const auto cubin = small_cubin();
  const auto needs = kernel_needs(cubin, "kernel");
  REQUIRE(needs);
  CHECK(needs->registers == 40u);
  CHECK(needs->frame_bytes == 24u);
  REQUIRE(kernel_needs(cubin, "other"));
  CHECK(kernel_needs(cubin, "other")->registers == 17u);
  CHECK(kernel_needs(cubin, "other")->frame_bytes == 0u);
  CHECK_FALSE(kernel_needs(cubin, "nobody"));
  CHECK_FALSE(kernel_needs({}, "kernel"));
}

TEST_CASE("damaged cubins are harmless") {
  const auto cubin = small_cubin();
  for (size_t n = 0; n < cubin.size(); ++n) {
    const std::vector<uint8_t> part(cubin.begin(), cubin.begin() + static_cast<ptrdiff_t>(n));  // exactly as long, so that a sanitizer sees reads behind it
    CHECK_FALSE(kernel_needs(part, "kernel"));
    auto changed = cubin;
    for (const uint8_t value : {0x00, 0x7f, 0xff}) {
      changed[n] = value;
      (void)kernel_needs(changed, "kernel");
    }
  }
}

TEST_CASE("spills are taken from the assembler's words") {
  CHECK_FALSE(spills({"Used 40 registers, used 1 barriers"}));
  const auto s = spills({"Function properties for k", "72 bytes stack frame, 68 bytes spill stores, 124 bytes spill loads", "Used 255 registers"});
  REQUIRE(s);
  CHECK(s->store_bytes == 68u);
  CHECK(s->load_bytes == 124u);
  CHECK(spills({"    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"})->store_bytes == 0u);
}

TEST_CASE("occupancy of a multiprocessor") {
  const auto expect = [](unsigned sm, unsigned threads, unsigned registers, unsigned shared, unsigned blocks, const char* limit) {
    const auto o = occupancy(sm, threads, registers, shared);
    REQUIRE(o);
    CHECK(o->blocks == blocks);
    CHECK(std::string(o->limit) == limit);
    CHECK(o->warps == blocks * ((threads + 31) / 32));
  };
  expect(90, 256, 155, 0, 1, "registers");    // 160 registers a thread: 12 warps, one block of 8
  expect(90, 128, 32, 0, 16, "warps");
  expect(90, 32, 16, 0, 32, "blocks");
  expect(90, 128, 64, 100000, 2, "shared memory");
  expect(90, 128, 168, 0, 3, "registers");
  expect(75, 128, 32, 65536, 1, "shared memory");
  expect(86, 64, 32, 0, 16, "blocks");
  expect(80, 1024, 64, 0, 1, "registers");
  CHECK_FALSE(occupancy(70, 128, 32, 0));
  CHECK_FALSE(occupancy(90, 0, 32, 0));
}
