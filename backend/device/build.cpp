// Keys, the choice of the assembler, and building.
#include "backend/device/build.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "backend/device/lifted.h"
#include "backend/plan/target.h"
#include "tilevm_build_info.h"
#include "vm/codec/tilebc.h"

namespace tile {
namespace {

/// The GNU build id of the program or library that holds this code, as hexadecimal digits; empty where the linker made none.
std::string build_id() {
  struct Search {
    uintptr_t address;
    std::string found;
  } search{reinterpret_cast<uintptr_t>(&compiler_identity), {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search& s = *static_cast<Search*>(data);
        bool ours = false;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& p = info->dlpi_phdr[i];
          ours = ours || (p.p_type == PT_LOAD && s.address - (info->dlpi_addr + p.p_vaddr) < p.p_memsz);
        }
        if (!ours) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& p = info->dlpi_phdr[i];
          if (p.p_type != PT_NOTE) continue;
          const auto* at = reinterpret_cast<const unsigned char*>(info->dlpi_addr + p.p_vaddr);
          for (size_t left = p.p_memsz; left >= sizeof(ElfW(Nhdr));) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const size_t name = (note.n_namesz + 3u) & ~size_t{3}, text = (note.n_descsz + 3u) & ~size_t{3};
            if (name + text > left - sizeof note) break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at + sizeof note, "GNU", 4) == 0)
              for (size_t b = 0; b < note.n_descsz; ++b) {
                const unsigned char byte = at[sizeof note + name + b];
                s.found += "0123456789abcdef"[byte >> 4];
                s.found += "0123456789abcdef"[byte & 15];
              }
            at += sizeof note + name + text;
            left -= sizeof note + name + text;
          }
        }
        return 1;
      },
      &search);
  return search.found;
}

/// Where there is no build id: size and time of the file that holds this code.
std::string file_id() {
  Dl_info info{};
  struct stat status {};
  if (::dladdr(reinterpret_cast<void*>(&compiler_identity), &info) == 0 || !info.dli_fname) return {};
  if (::stat(info.dli_fname, &status) != 0 && ::stat("/proc/self/exe", &status) != 0) return {};
  return std::to_string(status.st_size) + "-" + std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
}

struct Known {
  unsigned sm;
  const char* target;
};
// Code without "a" runs on later devices of the same major version, code with it on its own only.
constexpr Known kKnown[] = {{75, "sm_75"}, {80, "sm_80"}, {86, "sm_86"}, {89, "sm_89"}, {90, "sm_90a"}, {100, "sm_100a"}, {103, "sm_103a"}, {120, "sm_120a"}};

unsigned number_of(const std::string& target) { return target.starts_with("sm_") ? static_cast<unsigned>(std::strtoul(target.c_str() + 3, nullptr, 10)) : 0; }

}  // namespace

const std::string& compiler_identity() {
  static const std::string identity = [] {
    std::string id = build_id();
    if (id.empty()) id = file_id();
    return std::string(build::kVersion) + (*build::kGit ? std::string(" ") + build::kGit : std::string()) + (id.empty() ? "" : " " + id);
  }();
  return identity;
}

std::string target_for(unsigned sm) {
  std::string best;
  for (const Known& k : kKnown) {
    const bool own = std::strchr(k.target, 'a') != nullptr;
    if (k.sm == sm || (!own && k.sm / 10 == sm / 10 && k.sm < sm)) best = k.target;
  }
  return best;
}

bool runs_on(const std::string& target, unsigned sm) {
  const unsigned number = number_of(target);
  if (number == sm) return true;
  return !target.ends_with('a') && number / 10 == sm / 10 && number < sm;
}

Result<cuda::CacheKey> kernel_key(const ValidModule& module, const Function& entry, const CompileOptions& options, const std::string& linker, Diagnostics& diags) {
  // Without what no code depends on, so that the forms of a program share it. Lines of a text are positions in it.
  Module bare = *module;
  bare.name = bare.producer = kNone;
  for (Function& f : bare.functions) {
    f.value_names.clear();
    if (options.lineinfo) continue;
    f.loc = kUnknownLoc;
    for (Inst& i : f.insts) i.loc = kUnknownLoc;
  }
  const auto bytes = encode_tilebc(bare, diags);
  if (!bytes) return Failed;
  std::string words = "O" + std::to_string(options.opt_level) + (options.lineinfo ? " lineinfo" : "");
  if (options.lineinfo) {
    std::string lines = bare.file;
    if (bare.source) (lines += '\0' + bare.source->name() + '\0') += bare.source->text();
    words += " " + cuda::hash_text(cuda::hash128({reinterpret_cast<const uint8_t*>(lines.data()), lines.size()}));
  }
  for (const auto& [name, value] : options.plan) words += " " + name + "=" + value;
  cuda::CacheKey key;
  key.device_kind = options.target;
  key.parts = {{"bytecode", cuda::hash_text(cuda::hash128(*bytes))}, {"entry", std::string(module->str(entry.name))}, {"options", std::move(words)},
               {"target", options.target}, {"compiler", compiler_identity()}, {"linker", linker}};
  return key;
}

Result<BuiltKernel> build_kernel(const ValidModule& module, const Function& entry, const BuildOptions& options, const cuda::Linker& linker, const cuda::Cache& cache, Diagnostics& diags) {
  if (!find_target(options.compile.target))  // it becomes the name of a folder
    return diags.error(Code::E0808, Place{}, "there is no target '" + options.compile.target + "'", "the targets are " + target_names());
  BuiltKernel built;
  built.linker = linker.version();
  built.target = options.compile.target;
  const auto make = [&]() -> Result<cuda::CachedKernel> {
    const auto begin = std::chrono::steady_clock::now();
    const auto request = [&](const CompiledKernel& kernel) {
      return cuda::LinkRequest{kernel.entry, kernel.ptx, options.compile.target, options.compile.opt_level, options.compile.lineinfo, options.verbose, options.limits.seconds, options.limits.memory_bytes};
    };
    std::unique_ptr<cuda::Begun> begun;
    auto compiled = compile_guarded(module, entry, options.compile, options.limits, diags, [&] { begun = linker.begin(request({})); });
    if (!compiled) return Failed;
    Diagnostics said;
    auto linked = linker.link(request(*compiled), said, std::move(begun));
    const auto limit = [](const Diagnostic& d) { return code_info(d.code).cls == FailureClass::Exhausted; };
    if (std::any_of(said.all().begin(), said.all().end(), limit)) {
      lift_places(*module, entry, compiled->ptx, Diagnostics(), said);
    } else if (!linked || has_lines(said)) {
      // Compiled again with the instructions' numbers as lines, so that what the assembler says of a line is said of an operation.
      CompileOptions numbered = options.compile;
      numbered.instruction_lines = true;
      Diagnostics of_lines, unused;
      if (const auto again = compile_guarded(module, entry, numbered, options.limits, unused); again && linker.link(request(*again), of_lines).ok() == linked.ok())
        lift_places(*module, entry, again->ptx, of_lines, said);
    }
    for (const Diagnostic& d : said.all()) {
      if (code_info(d.code).cls == FailureClass::Warning)
        diags.warn(d.place, d.message);
      else
        (void)diags.error(d);
    }
    if (!linked) return Failed;
    built.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    built.info = std::move(linked->info);
    built.lifted = lift_advice(*module, entry, compiled->threads, compiled->remarks, linked->advice, cuda::spills(built.info));
    cuda::CachedKernel kernel{compiled->entry, compiled->threads, compiled->shared_bytes, compiled->cluster, std::move(linked->cubin)};
    built.compiled = *std::move(compiled);
    return kernel;
  };
  // A module that cannot be hashed is compiled all the same.
  Diagnostics silent;
  const auto key = options.cache ? kernel_key(module, entry, options.compile, linker.version(), silent) : Result<cuda::CacheKey>(Failed);
  if (!key || options.anew) {
    auto made = make();
    if (!made) return Failed;
    if (key && cache.put(*key, *made, diags)) built.use = cuda::CacheUse::Made;
    built.kernel = *std::move(made);
    return built;
  }
  auto kernel = cache.get(*key, make, diags, &built.use);
  if (!kernel) return Failed;
  built.kernel = *std::move(kernel);
  return built;
}

ResourceRemark resources(const BuiltKernel& built) {
  ResourceRemark r;
  r.threads = built.kernel.threads;
  r.shared_bytes = built.kernel.shared_bytes;
  r.needs = cuda::kernel_needs(built.kernel.cubin, built.kernel.symbol);
  r.spills = cuda::spills(built.info);
  if (r.needs) r.occupancy = cuda::occupancy(number_of(built.target), r.threads, r.needs->registers, r.shared_bytes);
  return r;
}

std::string ResourceRemark::text() const {
  std::string out = std::to_string(threads) + " threads";
  if (needs) out += " of " + std::to_string(needs->registers) + " registers";
  out += ", " + std::to_string(shared_bytes) + " bytes of shared memory";
  if (spills && (spills->store_bytes || spills->load_bytes))
    out += ", " + std::to_string(spills->store_bytes) + " bytes of registers stored to local memory and " + std::to_string(spills->load_bytes) + " loaded";
  else if (spills)
    out += ", no spills";
  if (needs && needs->frame_bytes) out += ", " + std::to_string(needs->frame_bytes) + " bytes of local memory a thread";
  if (occupancy)
    out += "; " + std::to_string(occupancy->blocks) + (occupancy->blocks == 1 ? " block" : " blocks") + " a multiprocessor (" + std::to_string(occupancy->warps) + " of " +
           std::to_string(occupancy->most_warps) + " warps), limited by " + occupancy->limit;
  return out;
}

Result<std::unique_ptr<cuda::Linker>> choose_linker(const cuda::Driver* driver, unsigned device_sm, const std::string& target, Diagnostics& diags, const std::string& memory, bool ask) {
  const auto path = cuda::find_ptxas(diags);
  if (!path) return Failed;
  if (!path->empty()) {
    const char* named = std::getenv("TILEVM_PTXAS");
    const bool chosen = named && *named;
    auto ptxas = cuda::make_ptxas(*path, diags, memory, ask || (driver && !chosen));
    if (!ptxas) return Failed;
    const std::string& version = (*ptxas)->version();  // "ptxas V13.0.88"
    const int major = std::atoi(version.c_str() + std::min(version.size(), version.find('V') + 1));
    if (!driver || chosen) return ptxas;
    const unsigned most = cuda::ptx_of_assembler(version);
    const auto known = find_target(target);
    const bool old = most != 0 && known && std::to_string(most / 10) + "." + std::to_string(most % 10) < known->ptx_version;
    if (major <= driver->version() / 1000 && !old) return ptxas;
  }
  if (driver) return cuda::make_driver_linker(*driver, device_sm);
  return diags.error(Code::E0915, Place{}, "there is no assembler: neither ptxas nor a driver was found",
                     "TILEVM_PTXAS names ptxas; pip install nvidia-cuda-nvcc brings it; --emit=ptx needs none");
}

}  // namespace tile
