// Arguments, device and comparison.
#include "tests/random/launch_program.h"

#include <algorithm>

#include "vm/interp/check.h"
#include "vm/runtime/launch_args.h"

namespace tile::random_program {

Outcome launch(const std::shared_ptr<const ValidModule>& module, const Program& program, const MakeDevice& make, const LaunchOptions& options) {
  Outcome out;
  Diagnostics diags;
  const auto failed = [&] {
    out.errors = render(diags);
    if (out.errors.empty()) out.errors = "failed without a reason";
    out.unsupported = diags.first_error() && diags.first_error()->code == Code::E0808;
    return out;
  };
  const auto entry = find_entry(**module, "", diags);
  if (!entry) return failed();
  const auto specs = parse_args(program.args, diags);
  if (!specs) return failed();
  auto args = expand(*specs, entry_params(**module, **entry), {}, diags);
  if (!args) return failed();
  auto device = make(module, diags);
  if (!device) return failed();
  RunOptions run;
  run.threads = options.threads;
  run.unspecified = Filling::Random;  // nothing may depend on it
  run.unspecified_seed = options.threads;
  std::unique_ptr<Observer> checker;
  if (options.check) {
    CheckOptions check;
    check.arrays.resize(args->buffers.size());
    for (size_t b = 0; b < args->buffers.size(); ++b) {
      const Array& a = args->buffers[b];
      check.arrays[b] = CheckedArray{a.type, a.offset, a.shape, a.strides};
    }
    checker = make_checker(module, check);
    run.observers.push_back(checker.get());
  }
  const bool ran = (*device)->launch(**entry, program.grid, *args, run, diags).ok();
  if (!ran || diags.has_errors()) return failed();
  for (const Array& a : args->buffers) out.arrays.emplace_back(a.memory.data(), a.memory.data() + a.memory.size());
  return out;
}

Outcome launch_on_cpu(const std::shared_ptr<const ValidModule>& module, const Program& program, const LaunchOptions& options) {
  return launch(module, program, [](std::shared_ptr<const ValidModule> m, Diagnostics& diags) { return make_cpu_device(std::move(m), diags); }, options);
}

std::string difference(const Outcome& a, const Outcome& b) {
  if (a.errors != b.errors) return "one launch failed:\n" + a.errors + b.errors;
  for (size_t k = 0; k < std::min(a.arrays.size(), b.arrays.size()); ++k) {
    const auto [x, y] = std::mismatch(a.arrays[k].begin(), a.arrays[k].end(), b.arrays[k].begin(), b.arrays[k].end());
    if (x == a.arrays[k].end() && y == b.arrays[k].end()) continue;
    const auto at = x - a.arrays[k].begin();
    std::string bytes[2];
    for (size_t side = 0; side < 2; ++side) {
      const auto& bytes_of = side == 0 ? a.arrays[k] : b.arrays[k];
      for (auto n = static_cast<size_t>(at) & ~size_t{7}; n < std::min(bytes_of.size(), (static_cast<size_t>(at) & ~size_t{7}) + 16); ++n) {
        char text[4];
        std::snprintf(text, sizeof text, "%02x ", bytes_of[n]);
        bytes[side] += text;
      }
    }
    return "array " + std::to_string(k) + ", byte " + std::to_string(at) + ": " + bytes[0] + "and " + bytes[1];
  }
  return {};
}

}  // namespace tile::random_program
