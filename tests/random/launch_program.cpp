// Arguments, device and comparison.
#include "tests/random/launch_program.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "vm/base/numeric.h"
#include "vm/interp/check.h"
#include "vm/runtime/launch_args.h"

namespace tile::random_program {

Outcome launch(const std::shared_ptr<const ValidModule>& module, const Program& program, const MakeDevice& make,
               const LaunchOptions& options) {
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
  for (const Array& a : args->buffers) {
    out.arrays.emplace_back(a.memory.data(), a.memory.data() + a.memory.size());
    out.types.push_back(a.type);
  }
  return out;
}

Outcome launch_on_cpu(const std::shared_ptr<const ValidModule>& module, const Program& program,
                      const LaunchOptions& options) {
  return launch(
      module, program,
      [](std::shared_ptr<const ValidModule> m, Diagnostics& diags) { return make_cpu_device(std::move(m), diags); },
      options);
}

std::string difference(const Outcome& a, const Outcome& b) {
  if (a.errors != b.errors) return "one launch failed:\n" + a.errors + b.errors;
  for (size_t k = 0; k < std::min(a.arrays.size(), b.arrays.size()); ++k) {
    if (a.arrays[k] == b.arrays[k]) continue;
    const ElementType e = a.types[k];
    const size_t n = a.arrays[k].size() * 8 / info(e).memory_bits;
    for (size_t i = 0; i < n; ++i) {
      const uint64_t x = load_bits(a.arrays[k].data(), e, static_cast<int64_t>(i)),
                     y = load_bits(b.arrays[k].data(), e, static_cast<int64_t>(i));
      if (x == y || (info(e).is_float && std::isnan(decode(e, x)) && std::isnan(decode(e, y)))) continue;
      char text[96];
      std::snprintf(text, sizeof text, ", element %zu: %0*llx and %0*llx", i, info(e).memory_bits / 4,
                    static_cast<unsigned long long>(x), info(e).memory_bits / 4, static_cast<unsigned long long>(y));
      return "array " + std::to_string(k) + " of " + std::string(info(e).name) + text;
    }
  }
  return {};
}

}  // namespace tile::random_program
