// Compiling for and running on a GPU or its emulation from the command line.
#ifdef TILEVM_WITH_GPU

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <nlohmann/json.hpp>

#include "backend/device/device_gpu.h"
#include "backend/plan/target.h"
#include "tools/cli_files.h"
#include "tools/tilevm_gpu.h"
#include "tools/tilevm_gpu_parts.h"
#include "vm/codec/tilebc.h"
#include "vm/runtime/bundle.h"

namespace tile::cli {
namespace {

constexpr const char* kEmitKinds[] = {"plan", "llvm", "ptx", "cubin", "sass"};

/// "k.tile:12:5", or "@entry, instruction 7" for binary inputs.
std::string place_text(const Place& p) {
  if (p.source && p.span.valid()) {
    const auto at = p.source->line_col(p.span.begin);
    return p.source->name() + ":" + std::to_string(at.line) + ":" + std::to_string(at.col);
  }
  if (!p.debug_loc.empty()) return p.debug_loc;
  return "@" + p.function + (p.instruction >= 0 ? ", instruction " + std::to_string(p.instruction) : "");
}

void print_lines(const char* what, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::fprintf(stderr, "%s: %s\n", what, line.c_str());
}

}  // namespace

CompileOptions compile_options(const GpuSettings& s) {
  CompileOptions o;
  o.target = s.target;
  o.opt_level = s.opt_level;
  o.optimise_host = s.emulate() && s.opt_given;
  o.lineinfo = s.lineinfo;
  for (const std::string& text : s.plan) o.plan[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  return o;
}

CompileLimits compile_limits(const GpuSettings& s) { return {s.compile_seconds, cuda::parse_cache_size(s.compile_memory)}; }

GpuOptions gpu_options(const GpuSettings& s, std::shared_ptr<const ValidModule> module, const CommonOptions& common) {
  GpuOptions o;
  o.build.compile = compile_options(s);
  o.build.cache = !s.no_cache;
  o.build.anew = !s.remarks.empty();
  o.build.verbose = common.verbose || !s.remarks.empty();
  o.build.limits = compile_limits(s);
  o.emulate_seed = s.emulate_seed;
  o.emulate_policy = s.emulate_policy;
  if (!s.gpu.empty() && s.gpu.find_first_not_of("0123456789") == std::string::npos) o.ordinal = std::atoi(s.gpu.c_str());
  o.built = [remarks = s.remarks, module, verbose = common.verbose](const Function& entry, const BuiltKernel& built) {
    if (!remarks.empty())
      print_remarks(built.compiled, built.linker.empty() ? nullptr : &built, **module, entry, remarks == "json");
    else
      print_remarks(built.lifted, **module, entry, false);
    if (!verbose) return;
    print_lines("assembler", built.info);
    if (built.linker.empty()) return;
    const char* how = built.use == cuda::CacheUse::Hit ? "from the cache" : built.use == cuda::CacheUse::Made ? "compiled and kept" : "compiled";
    std::fprintf(stderr, "gpu: %s: %s, %s, %.3f s\n", built.kernel.symbol.c_str(), how, built.linker.c_str(), built.seconds);
  };
  return o;
}

void print_remarks(const CompiledKernel& kernel, const BuiltKernel* built, const Module& module, const Function& entry, bool json) {
  if (built) {
    const ResourceRemark r = resources(*built);
    if (json) {
      nlohmann::ordered_json j{{"entry", module.str(entry.name)}, {"op", ""}, {"place", place_text(module.place(entry))}, {"unit", "kernel"}, {"threads", r.threads}, {"shared_bytes", r.shared_bytes}};
      if (r.needs) j["registers"] = r.needs->registers, j["local_bytes"] = r.needs->frame_bytes;
      if (r.spills) j["spill_store_bytes"] = r.spills->store_bytes, j["spill_load_bytes"] = r.spills->load_bytes;
      if (r.occupancy) {
        j["blocks_per_multiprocessor"] = r.occupancy->blocks;
        j["occupancy"] = static_cast<double>(r.occupancy->warps) / r.occupancy->most_warps;
        j["limited_by"] = r.occupancy->limit;
      }
      std::fprintf(stderr, "%s\n", j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    } else {
      std::fprintf(stderr, "%s: remark: %s\n", place_text(module.place(entry)).c_str(), r.text().c_str());
    }
  }
  print_remarks(kernel.remarks, module, entry, json);
  if (built) print_remarks(built->lifted, module, entry, json);
}

void print_remarks(const std::vector<Remark>& remarks, const Module& module, const Function& entry, bool json) {
  for (const Remark& r : remarks) {
    const bool known = r.inst < entry.insts.size();
    const Place place = known ? module.place(entry, r.inst) : module.place(entry);
    const std::string op = known ? std::string(entry.def(r.inst).name) : "";
    if (!json) {
      std::fprintf(stderr, "%s: remark: %s%s%s%s%s\n", place_text(place).c_str(), op.c_str(), op.empty() ? "" : ": ", r.what.c_str(), r.why.empty() ? "" : "; ", r.why.c_str());
      continue;
    }
    nlohmann::ordered_json j;
    j["entry"] = module.str(entry.name);
    if (known) j["instruction"] = r.inst;
    j["op"] = op;
    j["place"] = place_text(place);
    j["unit"] = r.what;
    if (r.stages != 0) j["stages"] = r.stages;
    if (!r.why.empty()) j["why"] = r.why;
    std::fprintf(stderr, "%s\n", j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }
}

int finish_gpu(const CLI::App& app, GpuSettings& s, LaunchSettings& launch, const std::string& program, const CommonOptions& common) {
  const auto given = [&](const char* name) {  // not every command has every option
    const CLI::Option* o = app.get_option_no_throw(name);
    return o && o->count() > 0;
  };
  if (given("--gpu") && s.gpu.empty()) s.gpu = "auto";
  s.opt_given = given("-O");
  if (given("--remarks") && s.remarks.empty()) s.remarks = "text";
  if (s.gpu.empty() && s.both) s.gpu = "auto";
  const bool number = !s.gpu.empty() && s.gpu.size() <= 4 && s.gpu.find_first_not_of("0123456789") == std::string::npos;
  if (!s.gpu.empty() && s.gpu != "auto" && s.gpu != "emulate" && !number)
    return usage_error(program, "--gpu: '" + s.gpu + "' is no device", common, "write --gpu, --gpu=0 or --gpu=emulate");
  if (!s.target.empty() && !find_target(s.target)) return usage_error(program, "--target: there is no target '" + s.target + "'", common, "the targets are " + target_names());
  if (s.compile_memory != "0" && cuda::parse_cache_size(s.compile_memory) == 0)
    return usage_error(program, "--compile-max-memory: '" + s.compile_memory + "' is not a size", common, "write it as 512M or 4G");
  for (const std::string& text : s.plan)
    if (text.find('=') == std::string::npos || text[0] == '=') return usage_error(program, "--plan: '" + text + "' is not KEY=VALUE", common);
  for (const std::string& text : s.emit) {
    const std::string kind = text.substr(0, text.find('='));
    if (std::find(std::begin(kEmitKinds), std::end(kEmitKinds), kind) == std::end(kEmitKinds))
      return usage_error(program, "--emit: '" + kind + "' is not known", common, "write plan, llvm, ptx, cubin or sass, and =FILE behind it for a file");
    if ((kind == "cubin" || kind == "sass" || kind == "ptx") && s.emulate()) return usage_error(program, "--emit " + kind + ": the emulation has none", common);
  }
  if (given("--cpu") && !s.gpu.empty() && !s.both) return usage_error(program, "--cpu and --gpu exclude each other", common, "--both runs on both");
  if (s.gpu.empty() && s.emit.empty()) {
    for (const char* name : {"--target", "-O", "--remarks", "--lineinfo", "--plan", "--no-cache", "--compile-time-limit", "--compile-max-memory", "--emulate-seed", "--emulate-policy"})
      if (given(name)) return usage_error(program, std::string(name) + " needs --gpu or --emit", common);
    return kOk;
  }
  launch.both = s.both;
  launch.phases = std::make_shared<std::vector<std::pair<std::string, double>>>();
  launch.make_device = [s, common, phases = launch.phases](std::shared_ptr<const ValidModule> module, std::string& name, Diagnostics& diags) -> Result<std::unique_ptr<Device>> {
    if (s.emulate()) {
      name = "emulation of " + (s.target.empty() ? std::string("sm_90a") : s.target);
      return make_emulated_device(module, gpu_options(s, module, common), diags);
    }
    GpuOptions options = gpu_options(s, module, common);
    options.launched = [phases](const std::vector<std::pair<std::string, double>>& of_launch) {
      if (phases->empty()) *phases = of_launch;
    };
    auto device = make_gpu_device(module, std::move(options), diags);
    if (!device) return Failed;
    name = (*device)->facts().name;
    return std::unique_ptr<Device>(*std::move(device));
  };
  return kOk;
}

Result<Linking> find_linking(const std::string& wanted_target, Diagnostics& diags, bool cache, bool version) {
  Linking l;
  Diagnostics silent;
  if (auto gpu = cuda::Gpu::open(silent)) l.gpu = *gpu;
  l.target = !wanted_target.empty() ? wanted_target : l.gpu ? target_for(l.gpu->facts().sm) : "";
  if (l.target.empty()) l.target = "sm_90a";
  auto linker = choose_linker(l.gpu ? &l.gpu->driver() : nullptr, l.gpu ? l.gpu->facts().sm : 0, l.target, diags, cache ? cuda::Cache::standard(silent).root() : std::string(), version);
  if (!linker) return Failed;
  l.linker = *std::move(linker);
  return l;
}

Result<Picked> pick_all(const Job& job, const CommonOptions& common, Diagnostics& diags) {
  Picked p;
  auto loaded = load_module(job.kernel_path(), diags);
  if (!loaded) return Failed;
  log(common, job.kernel_path() + ": " + kind_name(loaded->kind));
  auto valid = validate(std::move(loaded->module), diags);
  if (!valid) return Failed;
  p.module = std::make_shared<const ValidModule>(*std::move(valid));
  return p;
}

Result<Picked> pick_entry(const Job& job, const CommonOptions& common, Diagnostics& diags) {
  auto p = pick_all(job, common, diags);
  if (!p) return Failed;
  const auto entry = find_entry(**p->module, job.entry, diags);
  if (!entry) return Failed;
  p->entry = *entry;
  return p;
}

namespace {

/// Compiles the entry and writes what is asked for. A failure of the compiler or the assembler leaves a bundle: with the job's arguments where they
/// can be had.
int emit_entry(const Result<Picked>& picked, const Job& job, const GpuSettings& s, const CommonOptions& common, Diagnostics& diags) {
  const auto work = [&]() -> Status {
    if (!picked) return Failed;
    const auto wants = [&](const char* kind) {
      return std::any_of(s.emit.begin(), s.emit.end(), [&](const std::string& e) { return e.substr(0, e.find('=')) == kind; });
    };
    CompileOptions options = compile_options(s);
    options.keep_llvm = wants("llvm");
    CompiledKernel kernel;
    std::vector<uint8_t> cubin;
    std::optional<BuiltKernel> assembled;
    if (s.emulate()) {
      if (options.target.empty()) options.target = "sm_90a";
      const auto made = compile_emulated(*picked->module, *picked->entry, options, diags);
      if (!made) return Failed;
      kernel = (*made)->kernel();
    } else if (wants("cubin") || wants("sass")) {
      const auto linking = find_linking(options.target, diags, !s.no_cache, !s.no_cache || common.verbose);
      if (!linking) return Failed;
      options.target = linking->target;
      auto built = build_kernel(*picked->module, *picked->entry, {options, !s.no_cache, true, common.verbose || !s.remarks.empty(), compile_limits(s)}, *linking->linker, cuda::Cache::standard(diags), diags);
      if (!built) return Failed;
      if (s.remarks.empty()) print_remarks(built->lifted, **picked->module, *picked->entry, false);
      if (common.verbose) print_lines("assembler", built->info);
      kernel = std::move(built->compiled);
      cubin = built->kernel.cubin;
      assembled = *std::move(built);
    } else {
      if (options.target.empty()) {
        Diagnostics silent;
        if (const auto driver = cuda::Driver::load(silent))
          if (const auto facts = (*driver)->device(0, silent)) options.target = target_for(facts->sm);
      }
      if (options.target.empty()) options.target = "sm_90a";
      auto made = compile_guarded(*picked->module, *picked->entry, options, compile_limits(s), diags);
      if (!made) return Failed;
      kernel = *std::move(made);
    }
    if (!s.remarks.empty()) print_remarks(kernel, assembled ? &*assembled : nullptr, **picked->module, *picked->entry, s.remarks == "json");
    for (const std::string& text : s.emit) {
      const size_t equals = text.find('=');
      const std::string kind = text.substr(0, equals), path = equals == std::string::npos ? "-" : text.substr(equals + 1);
      std::string bytes;
      if (kind == "plan") bytes = kernel.plan;
      if (kind == "llvm") bytes = kernel.llvm;
      if (kind == "ptx") bytes = kernel.ptx;
      if (kind == "cubin") bytes.assign(cubin.begin(), cubin.end());
      if (kind == "sass") {
        auto sass = disassemble(cubin, diags);
        if (!sass) return Failed;
        bytes = *std::move(sass);
      }
      if (!write_output(path, bytes, diags)) return Failed;
    }
    return {};
  };
  if (!work() && picked && compiler_failed(diags)) {
    const std::string entry((**picked->module).str(picked->entry->name));
    Diagnostics silent;
    const auto args = expand(job.args, entry_params(**picked->module, *picked->entry), {job.base_dir, entry, {}}, silent);
    Job named = job;
    if (!args) named.args.clear();
    const LaunchArguments none;
    keep_for_replay(*picked->module, entry, named, args ? *args : none, {0, 0, LaunchSettings().max_memory, {}, {}, 0, {}}, diags);
  }
  return report(diags, common);
}

}  // namespace

int emit_job(const Job& job, const GpuSettings& s, const CommonOptions& common) {
  Diagnostics diags;
  const auto picked = pick_entry(job, common, diags);
  return emit_entry(picked, job, s, common, diags);
}

int emit_bundle(const std::string& path, const GpuSettings& s, const CommonOptions& common) {
  Diagnostics diags;
  const auto pick = [&](Job& job) -> Result<Picked> {
    const auto bytes = read_input(path, diags);
    if (!bytes) return Failed;
    const auto bundle = read_bundle(*bytes, path, diags);
    if (!bundle) return Failed;
    auto decoded = decode_tilebc(bundle->kernel, path, diags);
    if (!decoded) return Failed;
    auto valid = validate(*std::move(decoded), diags);
    if (!valid) return Failed;
    Picked p;
    p.module = std::make_shared<const ValidModule>(*std::move(valid));
    const auto entry = find_entry(**p.module, bundle->entry, diags);
    if (!entry) return Failed;
    p.entry = *entry;
    job.grid = bundle->grid;
    return p;
  };
  Job job;
  const auto picked = pick(job);
  return emit_entry(picked, job, s, common, diags);
}

std::string gpu_version_text() {
  std::string text = "\ngpu: LLVM " TILEVM_LLVM_VERSION ", targets " + target_names();
  Diagnostics diags;
  const auto driver = cuda::Driver::load(diags);
  if (!driver) return text + "\ndriver: " + (diags.first_error() ? diags.first_error()->message : "none");
  const std::string module = (*driver)->kernel_module_version();
  text += "\ndriver: CUDA " + (*driver)->version_text() + (module.empty() ? "" : " (" + module + ")");
  if (const auto devices = (*driver)->devices(diags))
    for (const auto& d : *devices) text += "; " + d.name + " (sm_" + std::to_string(d.sm) + ")";
  return text;
}

}  // namespace tile::cli

#endif
