// The table of diagnostic codes, positions in a source text, and the collection of diagnostics. Rendering is elsewhere.
#include "vm/base/diagnostics.h"

#include <algorithm>
#include <array>

#include "vm/base/check.h"
#include "vm/base/diagnostic_limits.h"

namespace tile {
namespace {

constexpr std::array<CodeInfo, static_cast<size_t>(Code::kCount)> kCodes = {{
#define TILE_CODE(code, cls, sub, text) {#code, FailureClass::cls, sub, text},
#include "vm/base/diag_codes.inc"
#undef TILE_CODE
}};

bool is_warning(const Diagnostic& d) {
  return code_info(d.code).cls == FailureClass::Warning;
}

// Cuts a text to `most` bytes, of which the last three are dots, not inside a UTF-8 sequence.
void clip(std::string& text, size_t most) {
  if (text.size() <= most) return;
  size_t end = most - 3;
  for (int i = 0; i < 3 && end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80; ++i) --end;
  text.resize(end);
  text += "...";
  text.shrink_to_fit();
}

// Names of files are left whole: most are the user's own words, and tools look for them.
void clip(Place& p) {
  for (std::string* name : {&p.function, &p.op, &p.operand_name, &p.argument, &p.debug_loc}) clip(*name, kMaxDiagnosticName);
  clip(p.printed, kMaxDiagnosticInstruction);
}

size_t text_bytes(const Place& p) {
  return p.function.size() + p.op.size() + p.operand_name.size() + p.argument.size() + p.debug_loc.size() + p.printed.size();
}

size_t text_bytes(const Diagnostic& d) {
  size_t bytes = d.message.size() + d.help.size() + text_bytes(d.place);
  for (const Note& note : d.notes) bytes += sizeof note + note.message.size() + text_bytes(note.place);
  return bytes;
}

void clip(Diagnostic& d) {
  clip(d.place);
  clip(d.message, kMaxDiagnosticMessage);
  clip(d.help, kMaxDiagnosticMessage);
  if (d.notes.size() > kMaxDiagnosticNotes) {
    const size_t more = d.notes.size() - kMaxDiagnosticNotes;
    d.notes.resize(kMaxDiagnosticNotes);
    d.notes.push_back({{}, std::to_string(more) + (more == 1 ? " more note is not shown" : " more notes are not shown")});
  }
  for (Note& note : d.notes) {
    clip(note.place);
    clip(note.message, kMaxDiagnosticMessage);
  }
}

// Words longer than this get no suggestion: the distance costs the product of both lengths.
constexpr size_t kLongestWord = 64;

// Edit distance with insertion, deletion, substitution and exchange of neighbours, each of cost 1 (optimal string
// alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::array<size_t, kLongestWord * 2 + 1>, 3> rows{};
  auto *before = &rows[0], *last = &rows[1], *now = &rows[2];
  for (size_t j = 0; j <= b.size(); ++j) (*last)[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    (*now)[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      size_t best = std::min({(*last)[j] + 1, (*now)[j - 1] + 1, (*last)[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) best = std::min(best, (*before)[j - 2] + 1);
      (*now)[j] = best;
    }
    auto* free = before;
    before = last;
    last = now;
    now = free;
  }
  return (*last)[b.size()];
}

}  // namespace

const CodeInfo& code_info(Code code) {
  TILE_CHECK(code < Code::kCount);
  return kCodes[static_cast<size_t>(code)];
}

const char* class_name(FailureClass cls) {
  switch (cls) {
    case FailureClass::Malformed:
      return "malformed";
    case FailureClass::Invalid:
      return "invalid";
    case FailureClass::Unsupported:
      return "unsupported";
    case FailureClass::Trap:
      return "trap";
    case FailureClass::Exhausted:
      return "exhausted";
    case FailureClass::Environment:
      return "environment";
    case FailureClass::Internal:
      return "internal";
    case FailureClass::Usage:
      return "usage";
    case FailureClass::Warning:
      return "warning";
  }
  return "internal";
}

int exit_code(FailureClass cls) {
  switch (cls) {
    case FailureClass::Malformed:
    case FailureClass::Invalid:
    case FailureClass::Unsupported:
      return 1;
    case FailureClass::Usage:
      return 2;
    case FailureClass::Environment:
      return 3;
    case FailureClass::Trap:
      return 4;
    case FailureClass::Exhausted:
      return 6;
    case FailureClass::Internal:
      return 70;
    case FailureClass::Warning:
      return 0;
  }
  return 70;
}

void Source::index() const {
  if (!lines_.empty()) return;
  lines_.push_back(0);
  // Positions are 32 bits wide; what lies behind 4 GiB belongs to the last indexed line.
  const size_t end = std::min<size_t>(text_.size(), Span::kNone - 1);
  for (size_t at = text_.find('\n'); at < end; at = text_.find('\n', at + 1)) {
    lines_.push_back(static_cast<uint32_t>(at + 1));
  }
}

Source::LineCol Source::line_col(uint32_t offset) const {
  index();
  offset = static_cast<uint32_t>(std::min<size_t>(offset, text_.size()));
  const auto next = std::upper_bound(lines_.begin(), lines_.end(), offset);
  const auto line = static_cast<uint32_t>(next - lines_.begin());
  return {line, offset - lines_[line - 1] + 1};
}

std::string_view Source::line(uint32_t line) const {
  index();
  if (line == 0 || line > lines_.size()) return {};
  const size_t begin = lines_[line - 1];
  const size_t end = line < lines_.size() ? lines_[line] - 1 : text_.size();
  std::string_view found = std::string_view(text_).substr(begin, end - begin);
  if (found.ends_with('\r')) found.remove_suffix(1);
  return found;
}

FailedTag Diagnostics::error(Code code, Place place, std::string message, std::string help) {
  return error(Diagnostic{code, std::move(place), std::move(message), {}, std::move(help), {}});
}

// Errors past the limit are counted and dropped, and so are warnings past theirs, and those whose text would be too much
// together: input cannot make the list grow for ever. The first error is always kept, as it decides the class of the failure.
FailedTag Diagnostics::error(Diagnostic d) {
  const bool warning = is_warning(d);
  warnings_ += warning ? 1 : 0;
  if (!warning && errors_++ >= limit) return Failed;
  size_t alike = 0, text = 0;
  for (const Diagnostic& kept : all_) {
    alike += is_warning(kept) == warning ? 1 : 0;
    text += text_bytes(kept);
  }
  if (alike >= (warning ? std::min(limit, kMaxWarnings) : limit)) return Failed;
  const bool first_error = !warning && errors_ == 1;
  if (!warning && !first_error && alike < errors_ - 1) return Failed;  // the kept ones are the first ones
  clip(d);
  const size_t shares = (text + text_bytes(d) + kDiagnosticTextShare - 1) / kDiagnosticTextShare;
  if (!first_error && shares > limit) return Failed;
  // Once for all, as in growing by halves the list would for a moment take three times its size.
  if (all_.size() == kMaxWarnings) all_.reserve(limit + kMaxWarnings);
  all_.push_back(std::move(d));
  return Failed;
}

void Diagnostics::warn(Place place, std::string message) {
  error(Code::W0001, std::move(place), std::move(message));
}

const Diagnostic* Diagnostics::first_error() const {
  const auto found = std::find_if(all_.begin(), all_.end(), [](const Diagnostic& d) { return !is_warning(d); });
  return found == all_.end() ? nullptr : &*found;
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.size() > kLongestWord) return {};
  size_t best = word.size() / 3;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    const size_t gap = candidate.size() > word.size() ? candidate.size() - word.size() : word.size() - candidate.size();
    if (gap > best) continue;
    const size_t distance = edit_distance(word, candidate);
    // Of several equally near ones the first wins, so that the answer depends on the order of the table alone.
    if (distance < best || (distance == best && found.empty())) {
      best = distance;
      found = candidate;
    }
  }
  return std::string(found);
}

}  // namespace tile
