// Kernel prints and assertions. Conversions follow C printf; a tile prints as nested brackets with the conversion applied to each element.
#include <cinttypes>
#include <cstdio>

#include "vm/base/numeric.h"
#include "vm/interp/eval.h"

namespace tile {
namespace {

struct PrintArg {
  Slot slot = kNoSlot;
  ElementType element = ElementType::I32;
  std::vector<int64_t> shape;
};

struct PrintData : StepData {
  struct Piece {
    std::string text;         // literal text, or a conversion from % to its letter
    int arg = -1;
  };
  std::vector<Piece> pieces;
  std::vector<PrintArg> args;
};

template <class... A>
std::string formatted(const std::string& spec, A... a) {
  char buffer[512];
  const int n = std::snprintf(buffer, sizeof buffer, spec.c_str(), a...);
  return n < 0 ? std::string() : std::string(buffer, std::min<size_t>(static_cast<size_t>(n), sizeof buffer - 1));
}

// Flags, width and precision of a conversion, without its length modifiers; bounded so that no field can be huge.
std::string flags_of(const std::string& spec) {
  std::string out = "%";
  int digits = 0;
  for (size_t k = 1; k + 1 < spec.size(); ++k) {
    const char c = spec[k];
    const bool digit = c >= '0' && c <= '9';
    if (digit && ++digits > 2) continue;
    if (!digit) digits = 0;
    if (digit || c == '-' || c == '+' || c == ' ' || c == '#' || c == '.') out += c;
  }
  return out;
}

std::string element_text(const std::string& spec, ElementType e, uint64_t bits) {
  const char conversion = spec.back();
  const std::string flags = flags_of(spec);
  const ElementInfo& t = info(e);
  const bool wants_float = std::string_view("eEfFgGaA").find(conversion) != std::string_view::npos;
  if (t.is_float) {
    const double value = decode(e, bits);
    if (wants_float) return formatted(flags + conversion, value);
    return formatted(flags + "g", value);  // a mismatched conversion has no defined output: show the value
  }
  // Narrow integers are promoted to 32 bits with their sign, as the language's printing does; i1 prints 0 or 1.
  const int64_t value = e == ElementType::I1 || e == ElementType::Ptr ? static_cast<int64_t>(bits) : sign_extend(bits, t.bits);
  if (wants_float) return formatted(flags + conversion, static_cast<double>(value));
  switch (conversion) {
    case 'd': case 'i': return formatted(flags + PRId64, value);
    case 'c': return formatted(flags + "c", static_cast<int>(value));
    case 'p': return formatted("0x%" PRIx64, static_cast<uint64_t>(bits));
    case 's': case 'S': case 'C': case 'n': return formatted(flags + PRId64, value);  // would fault on a number: show it instead
    default: {
      const uint64_t raw = t.bits > 32 ? bits : static_cast<uint32_t>(value);
      const std::string wide = conversion == 'u' ? PRIu64 : conversion == 'o' ? PRIo64 : conversion == 'X' ? PRIX64 : PRIx64;
      return formatted(flags + wide, raw);
    }
  }
}

void tile_text(std::string& out, const std::string& spec, const PrintArg& a, const std::byte* p, size_t dim, size_t& at) {
  if (dim == a.shape.size()) {
    out += element_text(spec, a.element, read_bits(p, info(a.element).storage, at++));
    return;
  }
  out += "[";
  for (int64_t k = 0; k < a.shape[dim]; ++k) {
    if (k > 0) out += ", ";
    tile_text(out, spec, a, p, dim + 1, at);
  }
  out += "]";
}

Flow eval_print(Exec& x, const Step& s) {
  const auto& d = static_cast<const PrintData&>(*s.data);
  std::string out;
  for (const auto& piece : d.pieces) {
    if (piece.arg < 0) {
      out += piece.text;
      continue;
    }
    const PrintArg& a = d.args[static_cast<size_t>(piece.arg)];
    size_t at = 0;
    tile_text(out, piece.text, a, x.at<std::byte>(a.slot), 0, at);
  }
  x.print(out);
  return Flow::Next;
}

struct AssertData : StepData {
  std::vector<int64_t> shape;
  std::string message;
};

Flow eval_assert(Exec& x, const Step& s) {
  const auto& d = static_cast<const AssertData&>(*s.data);
  const uint8_t* condition = x.at<uint8_t>(s.in[0]);
  const Module& m = x.plan.module();
  bool failed = false;
  for (size_t i = 0; i < s.n; ++i) {
    if (condition[i]) continue;
    failed = true;
    std::string position;
    size_t rest = i;
    std::vector<int64_t> at(d.shape.size());
    for (size_t k = d.shape.size(); k-- > 0;) {
      at[k] = static_cast<int64_t>(rest % static_cast<size_t>(d.shape[k]));
      rest /= static_cast<size_t>(d.shape[k]);
    }
    for (size_t k = 0; k < at.size(); ++k) position += (k ? ", " : "") + std::to_string(at[k]);
    std::string where = m.loc_text(x.plan.function().insts[s.inst].loc);
    if (const size_t colon = where.rfind(':'); colon != std::string::npos) where.resize(colon);  // file:line
    x.print((where.empty() ? m.file : where) + ": tile block: [" + std::to_string(x.block[0]) + ", " + std::to_string(x.block[1]) + ", " +
            std::to_string(x.block[2]) + "], position: [" + position + "]: " + d.message + "\n");
  }
  if (!failed) return Flow::Next;
  return x.trap(Code::T0102, s, "assert: " + d.message);
}

}  // namespace

bool compile_print(PlanBuilder& b, InstId i) {
  const Function& f = b.f;
  PrintData* d = b.data<PrintData>();
  for (const ValueId v : f.group(i, 0)) d->args.push_back({b.slot(v), b.element(v), b.type(v).shape});
  const std::string_view str = b.module.str(f.attr(i, 0));
  constexpr std::string_view kEnds = "diuoxXeEfFgGaAcsSpn%";
  std::string text;
  int arg = 0;
  for (size_t k = 0; k < str.size();) {
    if (str[k] != '%') {
      text += str[k++];
      continue;
    }
    const size_t end = str.find_first_of(kEnds, k + 1);
    if (end == k + 1 && str[end] == '%') {
      text += '%';
    } else {
      if (!text.empty()) d->pieces.push_back({text, -1});
      text.clear();
      d->pieces.push_back({std::string(str.substr(k, end - k + 1)), arg++});
      if (str[end] == '%') {  // a percent sign that ends a conversion also starts the next one
        k = end;
        continue;
      }
    }
    k = end + 1;
  }
  if (!text.empty()) d->pieces.push_back({text, -1});
  b.step(i, eval_print).data = d;
  return true;
}

bool compile_assert(PlanBuilder& b, InstId i) {
  const ValueId condition = b.f.operands(i)[0];
  AssertData* d = b.data<AssertData>();
  d->shape = b.type(condition).shape;
  d->message = b.module.str(b.f.attr(i, 0));
  Step& s = b.step(i, eval_assert);
  s.in[0] = b.slot(condition);
  s.data = d;
  s.n = b.count(condition);
  return true;
}

}  // namespace tile
