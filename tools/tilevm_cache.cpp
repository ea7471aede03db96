// tilevm cache: looking at the cache of compiled kernels, cleaning it, and filling it ahead of time.
#ifdef TILEVM_WITH_GPU

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tools/cli_docs.h"
#include "tools/tilevm_gpu_parts.h"

namespace tile::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CacheLine {
  CommonOptions common;
  GpuSettings gpu;
  bool json = false;
  std::string key, kernel, entry, limit;
  std::vector<std::string> kernels;
};

constexpr char kFooter[] =
    "Where it is:\n  $TILEVM_CACHE, else $XDG_CACHE_HOME/tilevm, else ~/.cache/tilevm; at most $TILEVM_CACHE_SIZE, 1G unless set.\n\n"
    "Examples:\n  tilevm cache ls\n  tilevm cache show 3f2a\n  tilevm cache why matmul.tile --target sm_90a\n  tilevm cache warm *.tilebc --target sm_90a -O 3\n"
    "  tilevm cache verify && tilevm cache gc --limit 256M\n  tilevm cache clear --json";

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }
void print(const Json& j) { print(j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

std::string time_text(int64_t seconds) {
  const std::time_t t = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32] = "";
  if (::localtime_r(&t, &parts)) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string part(const cuda::CacheEntry& e, const char* name) {
  for (const auto& p : e.parts)
    if (p.name == name) return p.value;
  return "";
}

Json as_json(const cuda::CacheEntry& e) {
  Json j;
  j["key"] = e.key;
  j["device"] = e.device_kind;
  j["path"] = e.path;
  j["bytes"] = e.bytes;
  j["used"] = e.used;
  if (!e.damage.empty()) {
    j["damage"] = e.damage;
    return j;
  }
  j["symbol"] = e.kernel.symbol;
  j["threads"] = e.kernel.threads;
  j["shared_bytes"] = e.kernel.shared_bytes;
  j["cluster"] = e.kernel.cluster;
  for (const auto& p : e.parts) j["parts"][p.name] = p.value;
  return j;
}

Json as_json(const cuda::CacheSweep& s) {
  return {{"entries", s.entries}, {"bytes", s.bytes}, {"removed_entries", s.removed_entries}, {"removed_bytes", s.removed_bytes}, {"removed_leftovers", s.removed_leftovers}, {"failed", s.failed}};
}

int list(const cuda::Cache& cache, const CacheLine& line) {
  const auto all = cache.list(true);
  uint64_t bytes = 0;
  for (const auto& e : all) bytes += e.bytes;
  if (line.json) {
    Json j{{"folder", cache.root()}, {"limit", cache.limit()}, {"bytes", bytes}, {"entries", Json::array()}};
    for (const auto& e : all) j["entries"].push_back(as_json(e));
    print(j);
    return kOk;
  }
  for (const auto& e : all) {
    char text[160];
    std::snprintf(text, sizeof text, "%.12s  %-8s %9llu  %s  ", e.key.c_str(), e.device_kind.c_str(), static_cast<unsigned long long>(e.bytes), time_text(e.used).c_str());
    print(text + (e.damage.empty() ? part(e, "entry") + "  " + part(e, "options") : "damaged: " + e.damage) + "\n");
  }
  print(std::to_string(all.size()) + " kernels, " + std::to_string(bytes) + " of " + std::to_string(cache.limit()) + " bytes in " + (cache.root().empty() ? "no folder: none of TILEVM_CACHE, XDG_CACHE_HOME and HOME is set" : cache.root()) + "\n");
  return kOk;
}

int show(const cuda::Cache& cache, const CacheLine& line) {
  const auto found = cache.find_prefix(line.key);
  if (found.empty() || line.key.empty()) {
    Diagnostics diags;
    (void)diags.error(Code::E0901, Place{}, "no key in the cache begins with '" + line.key + "'", "tilevm cache ls shows the keys");
    return report(diags, line.common);
  }
  Json all = Json::array();
  for (const auto& e : found) {
    if (line.json) {
      all.push_back(as_json(e));
      continue;
    }
    print("key        " + e.key + "\nfile       " + e.path + "\nbytes      " + std::to_string(e.bytes) + "\nused       " + time_text(e.used) + "\n");
    if (!e.damage.empty()) {
      print("damaged    " + e.damage + "\n");
      continue;
    }
    print("symbol     " + e.kernel.symbol + "\nthreads    " + std::to_string(e.kernel.threads) + "\nshared     " + std::to_string(e.kernel.shared_bytes) + " bytes\ncluster    " +
          std::to_string(e.kernel.cluster) + "\n");
    for (const auto& p : e.parts) print(p.name + std::string(p.name.size() < 11 ? 11 - p.name.size() : 1, ' ') + p.value + "\n");
  }
  if (line.json) print(all);
  return kOk;
}

int verify(const cuda::Cache& cache, const CacheLine& line) {
  const auto all = cache.list(true);
  Json j{{"entries", all.size()}, {"damaged", Json::array()}};
  Diagnostics diags;
  for (const auto& e : all) {
    if (e.damage.empty()) continue;
    j["damaged"].push_back(as_json(e));
    Place place;
    place.file = e.path;
    (void)diags.error(Code::E0901, place, "the cached kernel is damaged: " + e.damage, "tilevm cache gc removes it; it would be compiled anew in any case");
  }
  if (line.json)
    print(j);
  else
    print(std::to_string(all.size()) + " kernels, " + std::to_string(j["damaged"].size()) + " damaged\n");
  return report(diags, line.common);
}

int sweep(const cuda::Cache& cache, const CacheLine& line, uint64_t limit, bool check_entries) {
  const auto s = cache.sweep(limit, check_entries);
  if (line.json) {
    print(as_json(s));
  } else {
    print("removed " + std::to_string(s.removed_entries) + " kernels (" + std::to_string(s.removed_bytes) + " bytes) and " + std::to_string(s.removed_leftovers) + " leftovers; " +
          std::to_string(s.entries) + " kernels (" + std::to_string(s.bytes) + " bytes) stay\n");
  }
  Diagnostics diags;
  if (s.failed != 0) {
    Place place;
    place.file = s.failed_path;
    (void)diags.error(Code::E0902, place, "cannot be removed: " + s.failed_reason + (s.failed > 1 ? ", as are " + std::to_string(s.failed - 1) + " others" : ""));
  }
  return report(diags, line.common);
}

/// The entries of a file: that of this name, or all.
Result<std::vector<const Function*>> entries(const Picked& picked, const std::string& name, Diagnostics& diags) {
  std::vector<const Function*> out;
  if (!name.empty()) {
    const auto entry = find_entry(**picked.module, name, diags);
    if (!entry) return Failed;
    out.push_back(*entry);
    return out;
  }
  for (const Function& f : (**picked.module).functions) out.push_back(&f);
  return out;
}

int why(const cuda::Cache& cache, const CacheLine& line) {
  Diagnostics diags;
  const auto work = [&]() -> Status {
    Job job;
    job.kernel = line.kernel;
    job.entry = line.entry;
    const auto picked = pick_entry(job, line.common, diags);
    if (!picked) return Failed;
    const auto linking = find_linking(line.gpu.target, diags);
    if (!linking) return Failed;
    CompileOptions options = compile_options(line.gpu);
    options.target = linking->target;
    const auto key = kernel_key(*picked->module, *picked->entry, options, linking->linker->version(), diags);
    if (!key) return Failed;
    const auto hit = cache.find(*key, diags);
    Json j{{"key", key->text()}, {"device", key->device_kind}, {"hit", hit.has_value()}};
    for (const auto& p : key->parts) j["parts"][p.name] = p.value;
    std::string text = "key " + key->text() + " (" + key->device_kind + "): " + (hit ? "in the cache" : "not in the cache") + "\n";
    if (!hit) {
      if (const auto near = cache.nearest_entry(*key)) {
        text += "nearest entry " + near->key.substr(0, 12) + " (" + near->device_kind + ") differs in\n";
        j["nearest"] = {{"key", near->key}, {"device", near->device_kind}, {"differs", Json::array()}};
        for (const auto& p : key->parts) {
          const std::string other = part(*near, p.name.c_str());
          if (other == p.value) continue;
          text += "  " + p.name + ": " + other + " there, " + p.value + " here\n";
          j["nearest"]["differs"].push_back({{"part", p.name}, {"there", other}, {"here", p.value}});
        }
      } else {
        text += "there is no other entry\n";
      }
    }
    line.json ? print(j) : print(text);
    return {};
  };
  (void)work().ok();
  return report(diags, line.common);
}

int warm(const cuda::Cache& cache, const CacheLine& line) {
  Diagnostics diags;
  Json all = Json::array();
  bool kept = true;
  const auto linking = find_linking(line.gpu.target, diags);
  if (!linking) return report(diags, line.common);
  CompileOptions options = compile_options(line.gpu);
  options.target = linking->target;
  for (const std::string& path : line.kernels) {
    // Each file on its own: one that does not compile does not keep the others from it.
    Diagnostics own;
    const auto work = [&]() -> Status {
      Job job;
      job.kernel = path;
      auto module = pick_all(job, line.common, own);
      if (!module) return Failed;
      const auto list = entries(*module, line.entry, own);
      if (!list) return Failed;
      for (const Function* entry : *list) {
        // As launches want it.
        CompileOptions mine = options;
        const auto needs = launch_needs(*module->module, *entry, mine, own);
        if (!needs) return Failed;
        if (needs->loop_pays) mine.plan["grid"] = "loop";
        const auto built = build_kernel(*module->module, *entry, {mine, true, false, false}, *linking->linker, cache, own);
        if (!built) return Failed;
        const std::string name((**module->module).str(entry->name));
        const char* how = built->use == cuda::CacheUse::Hit ? "was there" : built->use == cuda::CacheUse::Made ? "compiled" : "compiled, not kept";
        all.push_back({{"file", path}, {"entry", name}, {"target", options.target}, {"result", how}, {"seconds", built->seconds}});
        if (!line.json) print(path + ": " + name + ": " + how + " (" + options.target + ")\n");
        kept = kept && built->use != cuda::CacheUse::Off;
      }
      return {};
    };
    (void)work().ok();
    for (const Diagnostic& d : own.all()) (void)diags.error(d);
  }
  if (line.json) print(all);
  if (!kept)
    (void)diags.error(Code::E0902, Place{}, cache.root().empty() ? "kernels are not kept: there is no folder for them" : "kernels are not kept in " + cache.root(), "TILEVM_CACHE names another folder");
  return report(diags, line.common);
}

}  // namespace

int cache_command(int argc, const char* const* argv) {
  CacheLine line;
  CLI::App app{"Look at the cache of compiled kernels, clean it, or fill it ahead of time", "tilevm cache"};
  use_help_text(app);
  app.footer(kFooter);
  add_common_options(app, line.common);
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* about) {
    CLI::App* c = app.add_subcommand(name, about);
    c->add_flag("--json", line.json, "Print JSON");
    return c;
  };
  CLI::App* ls = add("ls", "List the kernels, the last used first");
  CLI::App* show_app = add("show", "Show all that is known of a kernel");
  show_app->add_option("KEY", line.key, "Its key, or how it begins")->required();
  CLI::App* why_app = add("why", "Say whether a kernel is there, and if not, in what it differs from the nearest that is");
  why_app->add_option("KERNEL", line.kernel, "File with the kernel")->required();
  CLI::App* verify_app = add("verify", "Read every kernel and check it");
  CLI::App* gc = add("gc", "Remove damaged kernels, leftovers of killed processes, and what was used longest ago beyond the limit");
  gc->add_option("--limit", line.limit, "Bytes that may stay, such as 256M; default: the limit of the cache")->type_name("SIZE");
  CLI::App* clear = add("clear", "Remove all kernels");
  CLI::App* warm_app = add("warm", "Compile kernels into the cache; needs no GPU if ptxas is there");
  warm_app->add_option("KERNEL", line.kernels, "Files with kernels")->required();
  for (CLI::App* c : {why_app, warm_app}) {
    c->add_option("--entry", line.entry, "Entry; default: the only one, or for warm all")->type_name("NAME");
    add_gpu_options(*c, line.gpu);
  }
  int status = 0;
  if (!parse_command_line(app, argc, argv, line.common, status)) return status;
  if (!line.gpu.target.empty() || !line.gpu.plan.empty()) {
    LaunchSettings unused;
    line.gpu.gpu = "auto";
    if (status = finish_gpu(why_app->parsed() ? *why_app : *warm_app, line.gpu, unused, "tilevm cache", line.common); status != 0) return status;
  }
  Diagnostics diags;
  const cuda::Cache cache = cuda::Cache::standard(diags);
  (void)report(diags, line.common);
  if (ls->parsed()) return list(cache, line);
  if (show_app->parsed()) return show(cache, line);
  if (why_app->parsed()) return why(cache, line);
  if (verify_app->parsed()) return verify(cache, line);
  if (clear->parsed()) return sweep(cache, line, 0, false);
  if (warm_app->parsed()) return warm(cache, line);
  (void)gc;
  uint64_t limit = cache.limit();
  if (!line.limit.empty() && (limit = cuda::parse_cache_size(line.limit)) == 0)
    return usage_error("tilevm cache gc", "--limit: '" + line.limit + "' is not a size", line.common, "write it as 512M or 4G; tilevm cache clear removes all");
  return sweep(cache, line, limit, true);
}

}  // namespace tile::cli

#endif
