// The loop over seeds.
#include "tools/cli_explore.h"

#include "tools/cli_compare.h"
#include "vm/runtime/bundle.h"

namespace tile::cli {
namespace {

bool is_warning(const Diagnostic& d) { return code_info(d.code).cls == FailureClass::Warning; }

}  // namespace

Explored explore(const Exploration& e, Diagnostics& diags) {
  Explored out;
  const SeedChoice& seeds = *e.choice.exploration();
  const std::string option = e.choice.explored();
  const auto initial = copy_of(e.args, option, diags);
  if (!initial) return out;
  std::optional<LaunchArguments> reference;
  BundleResult first;
  for (uint64_t k = 0; k < seeds.tries; ++k) {
    if (k > 0) restore(e.args, *initial);
    e.prints.clear();
    e.choice.apply(e.options, k);
    Diagnostics d;
    auto stats = e.device.launch(e.entry, e.job.grid, e.args, e.options, d);
    if (e.options.cancel && e.options.cancel->load()) return out;
    if (k == 0 && stats) out.stats = *stats;
    e.ended(++out.launches, seeds.tries);
    const BundleResult now = bundle_result(e.args, e.prints, d.first_error());
    if (const Diagnostic* error = d.first_error(); error && e.check && e.job.outcome && error->code == *e.job.outcome) {
      out.expected_trap = true;
      d.clear();
    } else if (!d.has_errors() && e.check && e.job.outcome) {
      missing_trap(e.job, d);
    } else if (!d.has_errors() && e.check) {
      (void)check_expectations(e.job, e.args, d);
      check_prints(e.job, e.prints, d);
    }
    const std::string who = option + "=" + std::to_string(seeds.seed + k) + " against " + option + "=" + std::to_string(seeds.seed);
    if (k == 0) {
      first = now;
      if (now.outcome == "ok" && !d.has_errors() && !(reference = copy_of(e.args, option, diags))) return out;
    } else if (!d.has_errors()) {
      if (now.outcome != first.outcome)
        (void)d.error(Code::E0809, Place{}, who + ": the launch ended with " + now.outcome + ", not with " + first.outcome);
      else if (reference)
        compare_launches(e.job, e.args, *reference, who, e.check, d);
      if (now.outcome == "ok" && now.prints != first.prints && (!e.check || e.job.prints.empty()))
        (void)d.error(Code::E0809, Place{}, who + ": the kernel printed other lines");
    }
    if (d.has_errors()) out.seed = seeds.seed + k;
    if (!d.has_errors() && k > 0) continue;  // warnings once
    for (Diagnostic x : d.all()) {
      if (!is_warning(x) && !diags.has_errors())
        x.notes.push_back({Place{}, option + "=" + std::to_string(*out.seed) + " repeats it" +
                                        (k == 0 ? "" : "; " + std::to_string(k) + (k == 1 ? " seed" : " seeds") + " before it gave the same result")});
      (void)diags.error(std::move(x));
    }
    if (out.seed) return out;
  }
  return out;
}

std::string explored_text(const FreedomChoice& choice, const Explored& found) {
  const SeedChoice& seeds = *choice.exploration();
  const std::string what = std::string(choice.explored()) == "--order" ? "order" : "schedule";
  return std::to_string(found.launches) + " " + what + (found.launches == 1 ? "" : "s") + ", seeds " + std::to_string(seeds.seed) + " to " +
         std::to_string(seeds.seed + found.launches - 1) + ", gave the same result";
}

}  // namespace tile::cli
