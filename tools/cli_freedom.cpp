// The options of freedom, and what they exclude.
#include "tools/cli_freedom.h"

#include <CLI/CLI.hpp>

namespace tile::cli {

void add_freedom_options(CLI::App& app, FreedomSettings& s) {
  const char* group = "What the language leaves open (spec/machine.md \"Freedom\")";
  app.add_option("--schedule", s.schedule,
                 "Interleave the blocks by this seed, the same each time, with the freedom of the memory model; "
                 "explore:N tries the seeds 0 to N - 1 and reports the first that ends badly or gives another result")
      ->type_name("SEED")
      ->group(group);
  app.add_option("--order", s.order,
                 "Begin the blocks in an order that follows from this seed, or explore:N; on one thread, unless "
                 "--threads says otherwise")
      ->type_name("SEED")
      ->group(group);
  app.add_option("--numerics", s.numerics,
                 "Numbers that the language leaves open: exact, this machine's own; h200: those of NVIDIA's compiler "
                 "on an H200, as far as they are known")
      ->type_name("WHOSE")
      ->group(group);
}

int check_freedom_options(FreedomSettings& s, const std::string& program, const CommonOptions& common) {
  for (const auto& [name, word, to] : {std::tuple{"--schedule", &s.schedule, &s.choice.schedule},
                                       {"--order", &s.order, &s.choice.order}}) {
    if (word->empty()) continue;
    *to = parse_seed_choice(*word);
    if (!*to)
      return usage_error(program, std::string(name) + ": '" + *word + "' is not a seed", common,
                         "write a number, or explore:N or explore:N:FIRST with N from 1 to " +
                             std::to_string(SeedChoice::kMostTries));
  }
  if (!s.numerics.empty()) {
    s.choice.numerics = parse_numerics(s.numerics);
    if (!s.choice.numerics)
      return usage_error(program, "--numerics: '" + s.numerics + "' is unknown", common, "write exact or h200");
  }
  return kOk;
}

Status check_freedom_partners(const FreedomChoice& c, const FreedomPartners& p, Diagnostics& diags) {
  const auto no = [&](const std::string& message, const std::string& help) {
    Place place;
    place.file = "tilevm";
    return diags.error(Code::U0001, place, message, help);
  };
  const ObserveSettings& o = *p.observe;
  if (p.gpu && (c.schedule || c.order))
    return no(std::string(c.schedule ? "--schedule" : "--order") + " and --gpu exclude each other: on a GPU the "
              "hardware decides", "run with --cpu, or with --gpu=emulate --emulate-seed SEED for the order of threads");
  if (p.gpu && !p.both && c.numerics)
    return no("--numerics and --gpu exclude each other: a GPU has its own numbers",
              "with --both they are those of the reference interpreter");
  if (c.schedule && p.threads > 1)
    return no("--schedule and --threads exclude each other: blocks interleave on one thread", "leave --threads out");
  if (c.schedule && (!o.profile.empty() || !o.profile_trace.empty()))
    return no("--schedule and --profile exclude each other: the times of interleaved blocks are mixed",
              "profile without --schedule");
  if (c.schedule && c.order && c.schedule->tries > 0 && c.order->tries > 0)
    return no("--schedule and --order cannot both explore", "give one of them as a seed");
  const char* const explored = c.explored();
  if (!explored) return {};
  const auto excluded = [&](const char* option) {
    return no(std::string(explored) + "=" + show(*c.exploration()) + " and " + option + " exclude each other: many launches are made",
              "give the seed that exploring found");
  };
  if (!o.trace.empty()) return excluded("--trace");
  if (!o.profile.empty() || !o.profile_trace.empty()) return excluded("--profile");
  if (!o.access_map.empty()) return excluded("--access-map");
  if (!o.breaks.empty()) return excluded("--break");
  if (!o.bundle.empty()) return excluded("--bundle");
  if (p.repeat > 1) return excluded("--repeat");
  return {};
}

}  // namespace tile::cli
