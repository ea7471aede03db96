// Writing and reading bundles. Layout: magic, version, size of header and of its content, header (zstd, JSON), blobs
// (zstd), checksum.
#include "vm/runtime/bundle.h"

#include <xxhash.h>
#include <zstd.h>
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "vm/runtime/atomic_file.h"
#include "vm/runtime/freedom.h"

namespace tile {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kMagic[8] = {'T', 'I', 'L', 'E', 'B', 'N', 'D', 'L'};
constexpr uint32_t kVersion = 1;
constexpr size_t kPrefix = 8 + 4 + 4 + 8 + 8;        // magic, version, reserved, stored and real size of the header
constexpr uint64_t kMaxHeader = uint64_t{16} << 20;  // 1024 arguments with 32 extents each take far less
constexpr uint64_t kMaxKernel = uint64_t{1} << 28;
constexpr int kLevel = 3;

std::string hex(uint64_t high, uint64_t low) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return buffer;
}

std::string hash(const void* data, size_t size) {
  const XXH128_hash_t h = XXH3_128bits(data, size);
  return hex(h.high64, h.low64);
}

template <class T>
void put(std::vector<uint8_t>& out, T value) {
  const auto* p = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), p, p + sizeof value);
}

template <class T>
T get(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::vector<uint8_t> compress(const void* data, size_t size) {
  std::vector<uint8_t> out(ZSTD_compressBound(size));
  const size_t n = ZSTD_compress(out.data(), out.size(), data, size, kLevel);
  out.resize(ZSTD_isError(n) ? 0 : n);
  out.shrink_to_fit();
  return out;
}

Place place_of(const std::string& name) {
  Place p;
  p.file = name;
  return p;
}

// Numbers of a generator as bits, so that every double comes back.
uint64_t to_bits(double x) {
  return get<uint64_t>(reinterpret_cast<const uint8_t*>(&x));
}
double from_bits(uint64_t bits) {
  return get<double>(reinterpret_cast<const uint8_t*>(&bits));
}

/// Reads fields of an untrusted object; remembers that one was wrong.
class Fields {
 public:
  explicit Fields(const Json& j) : j_(j) {}
  [[nodiscard]] uint64_t number(const char* key, uint64_t most = UINT64_MAX) {
    const auto it = find(key);
    if (it == nullptr || !it->is_number_integer() || (!it->is_number_unsigned() && it->get<int64_t>() < 0) ||
        it->get<uint64_t>() > most)
      return fail();
    return it->get<uint64_t>();
  }
  [[nodiscard]] std::string text(const char* key) {
    const auto it = find(key);
    if (it == nullptr || !it->is_string()) return std::string(fail() ? "" : "");
    return it->get<std::string>();
  }
  [[nodiscard]] std::vector<int64_t> extents(const char* key) {
    std::vector<int64_t> out;
    const auto it = find(key);
    if (it == nullptr || !it->is_array() || it->size() > kMaxArrayRank) {
      (void)fail();
      return out;
    }
    for (const auto& item : *it) {
      if (!item.is_number_integer() || (item.is_number_unsigned() && item.get<uint64_t>() > INT64_MAX) ||
          item.get<int64_t>() < 0) {
        (void)fail();
        return out;
      }
      out.push_back(item.get<int64_t>());
    }
    return out;
  }
  [[nodiscard]] const Json* list(const char* key, size_t most) {
    const auto it = find(key);
    if (it == nullptr || !it->is_array() || it->size() > most) return fail() ? nullptr : nullptr;
    return it;
  }
  [[nodiscard]] const Json* find(const char* key) const {
    if (!j_.is_object()) return nullptr;
    const auto it = j_.find(key);
    return it == j_.end() ? nullptr : &*it;
  }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  uint64_t fail() {
    ok_ = false;
    return 0;
  }
  const Json& j_;
  bool ok_ = true;
};

std::optional<ElementType> element_named(std::string_view name) {
  for (size_t i = 0; i < kElementTypes; ++i)
    if (kElementInfo[i].name == name) return static_cast<ElementType>(i);
  return std::nullopt;
}

Json result_json(const BundleResult& r) {
  Json j;
  j["outcome"] = r.outcome;
  j["outputs"] = r.outputs;
  j["prints"] = r.prints;
  return j;
}

class Reader {
 public:
  Reader(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags, const ArrayLimits& limits)
      : bytes_(bytes), name_(name), diags_(diags), left_(limits.bytes) {}

  Result<Bundle> run() {
    if (bytes_.size() < 8 || std::memcmp(bytes_.data(), kMagic, 8) != 0) return bad("the file is not a bundle");
    if (bytes_.size() < kPrefix + 8)
      return bad("the bundle is cut short: it has " + std::to_string(bytes_.size()) + " bytes");
    const uint32_t version = get<uint32_t>(bytes_.data() + 8);
    if (version != kVersion)
      return bad("the bundle has version " + std::to_string(version) + ", expected " + std::to_string(kVersion));
    const size_t end = bytes_.size() - 8;
    if (XXH3_64bits(bytes_.data(), end) != get<uint64_t>(bytes_.data() + end))
      return bad("the bundle is damaged: its checksum is wrong");
    const uint64_t stored = get<uint64_t>(bytes_.data() + 16), size = get<uint64_t>(bytes_.data() + 24);
    if (stored > end - kPrefix || size > kMaxHeader) return bad("the header does not fit the file");
    std::string header(size, '\0');
    const size_t got = ZSTD_decompress(header.data(), header.size(), bytes_.data() + kPrefix, stored);
    if (ZSTD_isError(got) || got != size) return bad("the header cannot be decompressed");
    at_ = kPrefix + stored;
    const Json j = Json::parse(header, nullptr, false);
    if (!j.is_object()) return bad("the header is not JSON");
    if (!read(j))
      return diags_.has_errors() ? Result<Bundle>(Failed) : bad("a field of the header is missing or wrong");
    if (at_ != end) return bad("bytes are left behind the last part");
    return std::move(out_);
  }

 private:
  FailedTag bad(const std::string& what) { return diags_.error(Code::E0810, place_of(name_), what); }

  /// The stored bytes of the next blob, `size` long.
  bool blob(uint64_t size, std::span<const uint8_t>& stored) {
    if (size > bytes_.size() - 8 - at_) return false;
    stored = bytes_.subspan(at_, size);
    at_ += size;
    return true;
  }
  static bool unpack(std::span<const uint8_t> stored, void* to, uint64_t size) {
    const size_t got = ZSTD_decompress(to, size, stored.data(), stored.size());
    return !ZSTD_isError(got) && got == size;
  }

  bool read(const Json& j) {
    Fields f(j);
    out_.version = f.text("version");
    out_.entry = f.text("entry");
    const Json* grid = f.list("grid", 3);
    if (!grid || grid->size() != 3) return false;
    for (size_t d = 0; d < 3; ++d) {
      const Json& n = (*grid)[d];
      if (!n.is_number_unsigned() || n.get<uint64_t>() < 1 || n.get<uint64_t>() > kMaxGridExtent) return false;
      out_.grid[d] = n.get<uint32_t>();
    }
    BundleOptions& o = out_.options;
    o.threads = static_cast<uint32_t>(f.number("threads", 4096));
    o.fuel = f.number("fuel");
    o.max_storage = f.number("max_storage");
    o.checks = f.text("checks");
    o.undef = f.text("undef");
    o.undef_seed = f.number("undef_seed");
    const Json* uninitialised = f.list("uninitialised", kMaxLaunchArguments);
    if (!uninitialised) return false;
    for (const Json& word : *uninitialised) {
      if (!word.is_string()) return false;
      o.uninitialised.push_back(word.get<std::string>());
    }
    for (const auto& [key, to] : {std::pair{"schedule", &o.schedule}, {"order", &o.order}})
      if (f.find(key)) *to = f.number(key);
    if (f.find("numerics")) {
      const auto numerics = parse_numerics(f.text("numerics"));
      if (!numerics) return false;
      o.numerics = *numerics;
    }
    const uint64_t kernel_stored = f.number("kernel_stored"), kernel_size = f.number("kernel_size", kMaxKernel);
    if (!f.ok() || !take_kernel(kernel_stored, kernel_size)) return false;
    const Json *buffers = f.list("buffers", kMaxLaunchArguments), *params = f.list("params", SIZE_MAX),
               *args = f.list("args", kMaxLaunchArguments);
    if (!buffers || !params || !args) return false;
    for (const Json& b : *buffers)
      if (!read_buffer(b)) return false;
    for (const Json& p : *params)
      if (!read_param(p)) return false;
    for (const Json& a : *args)
      if (!read_arg(a)) return false;
    if (const Json* r = f.find("result")) return read_result(*r);
    return true;
  }

  bool take_kernel(uint64_t stored_size, uint64_t size) {
    std::span<const uint8_t> stored;
    if (!blob(stored_size, stored)) return false;
    // The frame states its content size: a header that claims more takes no memory for it.
    if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != size) return false;
    out_.kernel.resize(size);
    return unpack(stored, out_.kernel.data(), size);
  }

  bool read_buffer(const Json& j) {
    Fields f(j);
    const auto type = element_named(f.text("type"));
    std::vector<int64_t> shape = f.extents("shape"), strides = f.extents("strides");
    const uint64_t offset = f.number("offset", INT64_MAX), size = f.number("size", INT64_MAX);
    const std::string wanted = f.text("hash");
    if (!f.ok() || !type || info(*type).memory_bits == 0 || shape.size() != strides.size()) return false;
    if (size > left_) {
      (void)diags_.error(Code::L0103, place_of(name_),
                         "the arrays of the bundle take more than " + std::to_string(left_) + " bytes");
      return false;
    }
    left_ -= size;
    auto memory = AlignedBytes::make(size);
    if (!memory) {
      (void)diags_.error(Code::E0903, place_of(name_), "no memory for an array of " + std::to_string(size) + " bytes");
      return false;
    }
    Array a{*type, std::move(shape), std::move(strides), static_cast<int64_t>(offset), std::move(*memory)};
    if (!a.view().fits()) return false;
    if (const Json* g = f.find("generator")) {
      if (!read_generator(*g, a)) return false;
    } else {
      std::span<const uint8_t> stored;
      const uint64_t stored_size = f.number("stored");
      if (!f.ok() || !blob(stored_size, stored) || !unpack(stored, a.memory.data(), size)) return false;
    }
    if (hash(a.memory.data(), a.memory.size()) != wanted) {
      (void)bad("array " + std::to_string(out_.args.buffers.size()) +
                " has other contents than when the bundle was written");
      return false;
    }
    out_.args.buffers.push_back(std::move(a));
    return true;
  }

  static bool read_generator(const Json& j, Array& a) {
    Fields f(j);
    Generator g;
    g.kind = static_cast<Generator::Kind>(f.number("kind", static_cast<uint64_t>(Generator::Kind::Eye)));
    g.seed = f.number("seed");
    g.value = f.number("value");
    g.first = from_bits(f.number("first"));
    g.second = from_bits(f.number("second"));
    g.low = f.number("low");
    g.range = f.number("range");
    if (!f.ok()) return false;
    const bool floats_only = g.kind == Generator::Kind::Uniform || g.kind == Generator::Kind::Normal;
    if ((floats_only && !info(a.type).is_float) || (g.kind == Generator::Kind::Eye && a.shape.size() != 2))
      return false;
    generate(g, a);
    return true;
  }

  bool read_param(const Json& j) {
    Fields f(j);
    FlatParam p;
    const auto type = element_named(f.text("type"));
    if (!type) return false;
    p.type = *type;
    if (p.type == ElementType::Ptr) {
      const uint64_t buffer = f.number("buffer", kMaxLaunchArguments);
      p.byte_offset = f.number("offset");
      if (!f.ok() || buffer >= out_.args.buffers.size() || p.byte_offset > out_.args.buffers[buffer].memory.size())
        return false;
      p.buffer = static_cast<int32_t>(buffer);
    } else {
      p.bits = f.number("bits");
    }
    out_.args.params.push_back(p);
    return f.ok();
  }

  bool read_arg(const Json& j) {
    Fields f(j);
    ArgBinding b;
    const size_t params = out_.args.params.size();
    b.first = f.number("first", params);
    b.count = f.number("count", params);
    if (j.is_object() && j.contains("buffer")) {
      const uint64_t buffer = f.number("buffer", kMaxLaunchArguments);
      if (!f.ok() || buffer >= out_.args.buffers.size()) return false;
      b.buffer = static_cast<int32_t>(buffer);
    }
    b.name = f.text("name");
    out_.names.push_back(b.name);
    out_.args.bindings.push_back(b);
    return f.ok() && b.count <= params - b.first;
  }

  bool read_result(const Json& j) {
    Fields f(j);
    BundleResult r;
    r.outcome = f.text("outcome");
    r.prints = f.text("prints");
    const Json* outputs = f.list("outputs", kMaxLaunchArguments);
    if (!outputs) return false;
    for (const Json& o : *outputs) {
      if (!o.is_string()) return false;
      r.outputs.push_back(o.get<std::string>());
    }
    if (!f.ok() || (r.outcome == "ok" && r.outputs.size() != out_.args.buffers.size())) return false;
    out_.result = std::move(r);
    return true;
  }

  std::span<const uint8_t> bytes_;
  const std::string& name_;
  Diagnostics& diags_;
  uint64_t left_;
  size_t at_ = 0;
  Bundle out_;
};

}  // namespace

BundleResult bundle_result(const LaunchArguments& after, std::string_view prints, const Diagnostic* trap) {
  BundleResult r;
  if (trap) {
    r.outcome = code_info(trap->code).name;
  } else {
    for (const Array& a : after.buffers) r.outputs.push_back(hash(a.memory.data(), a.memory.size()));
  }
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < prints.size();) {
    const size_t end = std::min(prints.find('\n', at), prints.size());
    lines.push_back(prints.substr(at, end - at));
    at = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const auto line : lines) all.append(line).push_back('\n');
  r.prints = hash(all.data(), all.size());
  return r;
}

Result<BundleWriter> BundleWriter::capture(std::string version, std::string entry, const LaunchGrid& grid,
                                           const BundleOptions& options, std::vector<uint8_t> kernel,
                                           std::span<const ArgSpec> specs, const LaunchArguments& args,
                                           Diagnostics& diags) {
  BundleWriter w;
  const auto add = [&](const void* data, size_t size) -> bool {
    w.blobs_.push_back({compress(data, size), size});
    return !w.blobs_.back().stored.empty();
  };
  Json j;
  j["version"] = std::move(version);
  j["entry"] = std::move(entry);
  j["grid"] = grid;
  j["threads"] = options.threads;
  j["fuel"] = options.fuel;
  j["max_storage"] = options.max_storage;
  j["checks"] = options.checks;
  j["undef"] = options.undef;
  j["undef_seed"] = options.undef_seed;
  j["uninitialised"] = options.uninitialised;
  if (options.schedule) j["schedule"] = *options.schedule;
  if (options.order) j["order"] = *options.order;
  if (options.numerics != Numerics::Exact) j["numerics"] = numerics_name(options.numerics);
  bool ok = add(kernel.data(), kernel.size());
  j["kernel_stored"] = w.blobs_.back().stored.size();
  j["kernel_size"] = kernel.size();
  j["buffers"] = Json::array();
  for (size_t b = 0; b < args.buffers.size(); ++b) {
    const Array& a = args.buffers[b];
    Json o;
    o["type"] = info(a.type).name;
    o["shape"] = a.shape;
    o["strides"] = a.strides;
    o["offset"] = a.offset;
    o["size"] = a.memory.size();
    o["hash"] = hash(a.memory.data(), a.memory.size());
    const Generator* generator = nullptr;
    for (size_t k = 0; k < specs.size() && k < args.bindings.size(); ++k)
      if (args.bindings[k].buffer == static_cast<int32_t>(b) && specs[k].kind != ArgSpec::Kind::Scalar &&
          specs[k].source.kind == ArraySource::Kind::Generated)
        generator = &specs[k].source.generator;
    if (generator) {
      o["generator"] = {{"kind", static_cast<unsigned>(generator->kind)},
                        {"seed", generator->seed},
                        {"value", generator->value},
                        {"first", to_bits(generator->first)},
                        {"second", to_bits(generator->second)},
                        {"low", generator->low},
                        {"range", generator->range}};
    } else {
      ok = ok && add(a.memory.data(), a.memory.size());
      o["stored"] = w.blobs_.back().stored.size();
    }
    j["buffers"].push_back(std::move(o));
  }
  j["params"] = Json::array();
  for (const FlatParam& p : args.params) {
    Json o;
    o["type"] = info(p.type).name;
    if (p.buffer >= 0) {
      o["buffer"] = p.buffer;
      o["offset"] = p.byte_offset;
    } else {
      o["bits"] = p.bits;
    }
    j["params"].push_back(std::move(o));
  }
  j["args"] = Json::array();
  for (size_t a = 0; a < args.bindings.size(); ++a) {
    Json o;
    o["name"] = a < specs.size() ? specs[a].name : "";
    o["first"] = args.bindings[a].first;
    o["count"] = args.bindings[a].count;
    if (args.bindings[a].buffer >= 0) o["buffer"] = args.bindings[a].buffer;
    j["args"].push_back(std::move(o));
  }
  if (!ok) return diags.error(Code::E0903, Place{}, "the arguments cannot be compressed for the bundle");
  w.header_ = j.dump(-1, ' ', false, Json::error_handler_t::replace);
  w.header_.pop_back();
  return w;
}

Status BundleWriter::write(const std::string& path, const BundleResult* result, Diagnostics& diags) const {
  std::string header = header_;
  if (result) header += ",\"result\":" + result_json(*result).dump();
  header += "}";
  const auto stored = compress(header.data(), header.size());
  std::vector<uint8_t> start(kMagic, kMagic + sizeof kMagic), end;
  put<uint32_t>(start, kVersion);
  put<uint32_t>(start, 0);
  put<uint64_t>(start, stored.size());
  put<uint64_t>(start, header.size());
  start.insert(start.end(), stored.begin(), stored.end());
  std::vector<std::span<const uint8_t>> pieces{start};
  for (const Blob& b : blobs_) pieces.emplace_back(b.stored);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const auto& piece : pieces) XXH3_64bits_update(&state, piece.data(), piece.size());
  put<uint64_t>(end, XXH3_64bits_digest(&state));
  pieces.emplace_back(end);
  return write_file(path, pieces, diags);
}

Result<Bundle> read_bundle(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags,
                           const ArrayLimits& limits) {
  return Reader(bytes, name, diags, limits).run();
}

Status check_bundle(const Bundle& bundle, std::span<const ParamType> params, Diagnostics& diags) {
  const auto& given = bundle.args.params;
  if (given.size() != params.size()) {
    return diags.error(Code::E0802, Place{},
                       "the bundle has " + std::to_string(given.size()) + " parameters, @" + bundle.entry + " takes " +
                           std::to_string(params.size()));
  }
  for (size_t p = 0; p < params.size(); ++p)
    if (given[p].type != params[p].element)
      (void)diags.error(Code::E0803, Place{},
                        "parameter " + std::to_string(p) + " of the bundle is " +
                            std::string(info(given[p].type).name) + ", expected " +
                            std::string(info(params[p].element).name));
  return diags.has_errors() ? Status(Failed) : Status();
}

}  // namespace tile
