#include "backend/device/lifted.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace tile {
namespace {

/// The instruction that a line of PTX with instruction_lines belongs to: that of the last `.loc` at or above it; kNone where there is none.
InstId instruction_at(std::string_view ptx, uint32_t line) {
  InstId found = kNone;
  size_t at = 0;
  for (uint32_t n = 1; n <= line && at < ptx.size(); ++n) {
    const size_t end = std::min(ptx.find('\n', at), ptx.size());
    std::string_view text = ptx.substr(at, end - at);
    at = end + 1;
    const size_t word = text.find(".loc");
    if (text.starts_with(".func") || text.starts_with(".visible") || text.starts_with(".entry")) found = kNone;
    if (word == std::string_view::npos || text.find_first_not_of(" \t") != word) continue;
    unsigned file = 0, number = 0;
    if (std::sscanf(std::string(text.substr(word)).c_str(), ".loc %u %u", &file, &number) == 2) found = number == 0 ? kNone : number - 1;
  }
  return found;
}

/// "0x12000 bytes, 0xc000 max" in words: "73728 bytes, 49152 max".
std::string in_decimal(std::string text) {
  for (size_t at = text.find("0x"); at != std::string::npos; at = text.find("0x", at + 1)) {
    size_t end = at + 2;
    while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end == at + 2 || end - at > 18) continue;
    text.replace(at, end - at, std::to_string(std::strtoull(text.substr(at, end - at).c_str(), nullptr, 16)));
  }
  return text;
}

}  // namespace

bool has_lines(const Diagnostics& said) {
  return std::any_of(said.all().begin(), said.all().end(), [](const Diagnostic& d) { return d.place.source && d.place.span.valid(); });
}

void lift_places(const Module& module, const Function& entry, const std::string& ptx, const Diagnostics& of_lines, Diagnostics& said) {
  Diagnostics lifted;
  bool any = false;
  for (const Diagnostic& d : of_lines.all()) {
    Diagnostic out = d;
    const InstId i = d.place.source && d.place.span.valid() ? instruction_at(ptx, d.place.source->line_col(d.place.span.begin).line) : kNone;
    if (i < entry.insts.size()) {
      any = true;
      out.place = module.place(entry, i);
      out.message = std::string(entry.def(i).name) + ": " + d.message;
      out.notes.push_back({Place{}, "of its PTX: " + std::string(d.place.source->line(d.place.source->line_col(d.place.span.begin).line))});
    }
    if (code_info(d.code).cls == FailureClass::Warning)
      lifted.warn(out.place, out.message);
    else
      (void)lifted.error(std::move(out));
  }
  const Diagnostics from = any ? std::move(lifted) : std::move(said);
  said = Diagnostics();
  for (Diagnostic d : from.all()) {
    if (!d.place.source && d.place.function.empty()) {
      d.place = module.place(entry);
      d.message = in_decimal(d.message);
    }
    if (code_info(d.code).cls == FailureClass::Warning)
      said.warn(d.place, d.message);
    else
      (void)said.error(std::move(d));
  }
}

std::vector<Remark> lift_advice(const Module& module, const Function& entry, unsigned threads, const std::vector<Remark>& remarks, const std::vector<std::string>& advice,
                                const std::optional<cuda::Spills>& spills) {
  std::vector<Remark> out;
  std::vector<InstId> products;
  for (const Remark& r : remarks)
    if (r.inst < entry.insts.size() && r.what.find("wgmma") != std::string::npos && entry.def(r.inst).name.starts_with("mma")) products.push_back(r.inst);
  for (const std::string& text : advice) {
    // "(C7510) TEXT"
    const size_t close = text.find(')');
    const bool coded = text.starts_with("(C") && close != std::string::npos;
    Remark r{kNone, coded ? "assembler " + text.substr(1, close - 1) : "assembler", coded ? text.substr(std::min(text.size(), close + 2)) : text};
    const bool of_products = text.find("wgmma") != std::string::npos || text.find("warpgroup") != std::string::npos;
    if (!of_products || products.empty()) {
      out.push_back(std::move(r));
      continue;
    }
    for (const InstId i : products) {
      r.inst = i;
      out.push_back(r);
    }
  }
  if (spills && (spills->store_bytes || spills->load_bytes)) {
    Remark r{kNone, "assembler: registers of a thread are too few, " + std::to_string(spills->store_bytes) + " bytes are stored to local memory and " + std::to_string(spills->load_bytes) + " loaded", ""};
    uint64_t most = 0;
    for (InstId i = 0; i < entry.insts.size(); ++i)
      for (uint32_t k = 0; k < entry.insts[i].result_count; ++k) {
        const TypeId type = entry.type(entry.result(i, k));
        if (!module.types.is_tile(type)) continue;
        const uint64_t words = module.types.element_count(type) * std::max<uint64_t>(8, info(module.types.element_of(type)).memory_bits) / 32 / std::max(1u, threads);
        if (words > most) most = words, r.inst = i;
      }
    if (most > 0) r.why = "this result is the largest: " + std::to_string(most) + " registers a thread";
    out.push_back(std::move(r));
  }
  return out;
}

}  // namespace tile
