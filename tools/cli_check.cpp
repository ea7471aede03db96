// Making the checker of a launch from options and arguments.
#include "tools/cli_check.h"

#include <CLI/CLI.hpp>

#include "vm/base/numeric.h"
#include "vm/interp/seeded.h"

namespace tile::cli {

void add_check_options(CLI::App& app, CheckSettings& s) {
  app.add_option("--check", s.checks,
                 "Report what the kernel does against the rules (spec/checkers.md): a list of bounds, init, race, "
                 "order, undef, assume, nan; "
                 "or default (all but nan), or all")
      ->type_name("LIST");
  app.add_option("--undef", s.undef,
                 "What stands for unspecified elements: zero, nan, random; trap: the first use of one ends the launch")
      ->type_name("FILLING")
      ->capture_default_str();
  app.add_option("--undef-seed", s.undef_seed, "Seed of --undef random")->type_name("N")->check(whole_number())->capture_default_str();
  app.add_option(
         "--uninit", s.uninitialised,
         "The contents of this argument's array count as never written (by name or number from 0): for the check init, "
         "and with --undef nan or random the array is filled so before the launch")
      ->type_name("ARG")
      ->allow_extra_args(false);
}

int check_check_options(const CheckSettings& s, const std::string& program, const CommonOptions& common) {
  if (!s.checks.empty() && !parse_checks(s.checks))
    return usage_error(program, "--check: '" + s.checks + "' is not a list of checks", common,
                       "the checks are bounds, init, race, order, undef, assume, nan, and default, all");
  if (s.undef != "zero" && s.undef != "nan" && s.undef != "random" && s.undef != "trap")
    return usage_error(program, "--undef: '" + s.undef + "' is not a filling", common,
                       "write zero, nan, random or trap");
  return 0;
}

Result<std::unique_ptr<Observer>> begin_checks(const CheckSettings& s, const Job& job,
                                               std::shared_ptr<const ValidModule> module, const LaunchArguments& args,
                                               RunOptions& options, Diagnostics& diags) {
  options.unspecified = s.undef == "nan" ? Filling::NaN : s.undef == "random" ? Filling::Random : Filling::Zero;
  options.unspecified_seed = s.undef_seed;
  CheckOptions o;
  o.checks = s.checks.empty() ? CheckSet() : parse_checks(s.checks).value_or(CheckSet());
  if (s.undef == "trap") {
    o.checks.add(Check::Undef);
    o.stop_at_unspecified = true;
  }
  for (const std::string& word : s.uninitialised) {
    const auto at = find_argument(word, job.args, Place{}, diags);
    if (!at) return Failed;
    if (*at >= args.bindings.size() || args.bindings[*at].buffer < 0)
      return diags.error(Code::E0804, Place{}, "--uninit " + word + ": the argument is a scalar, expected an array");
    o.uninitialised.push_back(static_cast<size_t>(args.bindings[*at].buffer));
  }
  if (o.checks.empty()) return std::unique_ptr<Observer>();
  // Buffers are the first allocations of a launch, in their order.
  for (const Array& a : args.buffers) o.arrays.push_back(CheckedArray{a.type, a.offset, a.shape, a.strides});
  // A launch description gives whole buffers and says where in them the array is.
  for (const Expectation& e : job.expectations) {
    if (!e.window || e.argument >= args.bindings.size() || args.bindings[e.argument].buffer < 0) continue;
    const size_t b = static_cast<size_t>(args.bindings[e.argument].buffer);
    o.arrays[b] = CheckedArray{args.buffers[b].type, e.window->offset, e.window->shape, e.window->strides};
  }
  auto checker = make_checker(std::move(module), std::move(o));
  options.observers.push_back(checker.get());
  return Result<std::unique_ptr<Observer>>(std::move(checker));
}

void fill_uninitialised(const CheckSettings& s, const Job& job, LaunchArguments& args) {
  if (s.undef != "nan" && s.undef != "random") return;
  for (const std::string& word : s.uninitialised) {
    Diagnostics silent;  // begin_checks() has found the arguments
    const auto at = find_argument(word, job.args, Place{}, silent);
    if (!at || args.bindings[*at].buffer < 0) continue;
    const auto b = static_cast<size_t>(args.bindings[*at].buffer);
    Array& a = args.buffers[b];
    const ElementInfo& t = info(a.type);
    const uint64_t ones = a.type == ElementType::TF32 ? 0xFFFFE000u : t.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << t.bits) - 1;
    SeededNumbers numbers(s.undef_seed + b * SeededNumbers::kStep);
    for_each_element(a.view(), [&](int64_t, int64_t position) {
      const uint64_t bits = s.undef == "random" ? numbers.next() & ones : t.is_float ? canonical_nan(a.type) : ones;
      store_bits(a.memory.data(), a.type, position, bits);
    });
  }
}

}  // namespace tile::cli
