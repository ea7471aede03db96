// Words for what the user may choose.
#include "vm/runtime/freedom.h"

#include <charconv>

namespace tile {
namespace {

constexpr std::string_view kExplore = "explore:";

std::optional<uint64_t> number(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<SeedChoice> parse_seed_choice(std::string_view text) {
  SeedChoice out;
  std::string_view seed = text;
  if (text.starts_with(kExplore)) {
    text.remove_prefix(kExplore.size());
    const size_t colon = text.find(':');
    const auto tries = number(text.substr(0, colon));
    if (!tries || *tries == 0 || *tries > SeedChoice::kMostTries) return std::nullopt;
    out.tries = static_cast<uint32_t>(*tries);
    if (colon == std::string_view::npos) return out;
    seed = text.substr(colon + 1);
  }
  const auto n = number(seed);
  if (!n) return std::nullopt;
  out.seed = *n;
  return out;
}

std::string show(const SeedChoice& choice) {
  if (choice.tries == 0) return std::to_string(choice.seed);
  return std::string(kExplore) + std::to_string(choice.tries) + (choice.seed ? ":" + std::to_string(choice.seed) : "");
}

std::optional<Numerics> parse_numerics(std::string_view text) {
  for (const Numerics n : {Numerics::Exact, Numerics::H200})
    if (text == numerics_name(n)) return n;
  return std::nullopt;
}

const char* numerics_name(Numerics numerics) { return numerics == Numerics::H200 ? "h200" : "exact"; }

void FreedomChoice::complete(const FreedomChoice& other) {
  if (!schedule) schedule = other.schedule;
  if (!order) order = other.order;
  if (!numerics) numerics = other.numerics;
}

void FreedomChoice::apply(RunOptions& options, uint64_t tried) const {
  const auto seed = [&](const SeedChoice& c) { return c.seed + (c.tries > 0 ? tried : 0); };
  if (schedule) options.schedule = seed(*schedule);
  if (order) options.order = seed(*order);
  if (numerics) options.numerics = *numerics;
}

const SeedChoice* FreedomChoice::exploration() const {
  if (schedule && schedule->tries > 0) return &*schedule;
  return order && order->tries > 0 ? &*order : nullptr;
}

const char* FreedomChoice::explored() const {
  const SeedChoice* c = exploration();
  return !c ? nullptr : order && c == &*order ? "--order" : "--schedule";
}

}  // namespace tile
