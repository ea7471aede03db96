// Keeping and reporting findings.
#include "vm/interp/check_findings.h"

#include <algorithm>

#include "vm/interp/check.h"

namespace tile {

std::string block_name(const Grid& g, uint64_t linear) {
  return "(" + std::to_string(linear % g.x) + ", " + std::to_string(linear / g.x % g.y) + ", " +
         std::to_string(linear / g.x / g.y) + ")";
}

std::string element_name(const std::vector<int64_t>& shape, size_t element) {
  std::string out;
  for (size_t d = shape.size(); d-- > 0;) {
    const size_t n = static_cast<size_t>(shape[d]);
    out = std::to_string(element % n) + (out.empty() ? "" : ", ") + out;
    element /= n;
  }
  return out.empty() ? "" : "[" + out + "]";
}

void Findings::launch_begin() {
  entries_.clear();
  remarks_.clear();
  overflow_ = false;
}

bool Findings::wanted(const Exec& x, Code code, InstId inst, InstId other) {
  const std::lock_guard lock(mutex_);
  if (!warned_.empty() && warned_.count({inst, code, other})) return false;
  const auto it = entries_.find({inst, code, other});
  return it == entries_.end() ? entries_.size() < kMaxKept : linear_block(x) < it->second.block;
}

void Findings::add(const Exec& x, Finding f) {
  const std::lock_guard lock(mutex_);
  const Key key{f.inst, f.code, f.others.empty() ? kNone : f.others.front().first};
  const auto it = entries_.find(key);
  const uint64_t block = linear_block(x);
  if (it != entries_.end() && it->second.block <= block) return;
  if (it == entries_.end() && entries_.size() >= kMaxKept) {
    overflow_ = true;
    return;
  }
  entries_[key] = {block, block_name(x.launch.grid, block), std::move(f)};
}

void Findings::remark(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (std::find(remarks_.begin(), remarks_.end(), text) == remarks_.end()) remarks_.push_back(text);
}

void Findings::launch_end(const Launch& launch) {
  const Module& module = launch.plan->module();
  const Function& f = launch.plan->function();
  size_t reported = 0;
  for (auto& [key, e] : entries_) {  // by place
    if (code_info(e.finding.code).cls == FailureClass::Warning) warned_.insert(key);
    if (reported++ >= CheckOptions::kMaxFindings) continue;
    Diagnostic d;
    d.code = e.finding.code;
    d.place = module.place(f, e.finding.inst);
    d.message = std::string(f.def(e.finding.inst).name) + ": " + e.finding.message +
                (e.finding.names_blocks ? "" : ", in block " + e.where);
    for (auto& [inst, text] : e.finding.others) d.notes.push_back({module.place(f, inst), std::move(text)});
    d.help = std::move(e.finding.help);
    launch.diags->error(std::move(d));
  }
  if (entries_.empty() && remarks_.empty()) return;
  Place place;
  place.function = module.str(f.name);
  if (entries_.size() > CheckOptions::kMaxFindings)
    launch.diags->warn(place, (overflow_ ? "more than " : "") + std::to_string(entries_.size()) +
                                  " places were found; the first " + std::to_string(CheckOptions::kMaxFindings) +
                                  " are shown");
  for (const std::string& text : remarks_) launch.diags->warn(place, text);
  entries_.clear();
}

}  // namespace tile
