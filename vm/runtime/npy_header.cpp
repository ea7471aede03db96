// A reader of the one Python literal that .npy headers hold: a dictionary with the keys descr, fortran_order and shape.
#include "vm/runtime/npy_header.h"

#include <algorithm>

#include "vm/runtime/array.h"

namespace tile {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

std::string printable(std::string_view text, size_t most = 40) {
  std::string out;
  for (char c : text.substr(0, most)) {
    if (c >= 0x20 && c < 0x7F) {
      out += c;
    } else {
      constexpr char digits[] = "0123456789abcdef";
      out += "\\x";
      out += digits[static_cast<uint8_t>(c) >> 4];
      out += digits[static_cast<uint8_t>(c) & 15];
    }
  }
  return text.size() > most ? out + "..." : out;
}

class HeaderReader {
 public:
  HeaderReader(std::string_view text, size_t begin, const Place& place, Diagnostics& diags)
      : text_(text), begin_(begin), place_(place), diags_(diags) {}

  Result<NpyHeader> read() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!expect('{')) return Failed;
    while (!accept('}')) {
      const auto key = string_literal("a key");
      if (!key || !expect(':')) return Failed;
      bool* seen = *key == "descr"           ? &has_descr
                   : *key == "fortran_order" ? &has_order
                   : *key == "shape"         ? &has_shape
                                             : nullptr;
      if (seen == nullptr) {
        return bad("the header has the key '" + printable(*key) + "', expected descr, fortran_order and shape");
      }
      if (*seen) return bad("the header has the key '" + *key + "' twice");
      *seen = true;
      const bool ok = seen == &has_descr   ? descr(header)
                      : seen == &has_order ? boolean(header.fortran_order)
                                           : shape(header.shape);
      if (!ok) return Failed;
      if (accept('}')) break;
      if (!expect(',')) return Failed;
    }
    skip_space();
    if (at_ < text_.size())
      return bad("the header goes on behind its dictionary with '" + printable(text_.substr(at_)) + "'");
    if (!has_descr || !has_order || !has_shape) {
      return bad(std::string("the header lacks the key '") +
                 (!has_descr   ? "descr"
                  : !has_order ? "fortran_order"
                               : "shape") +
                 "'");
    }
    return header;
  }

 private:
  FailedTag bad(std::string message) {
    Place place = place_;
    place.byte_offset = static_cast<int64_t>(begin_ + std::min(at_, text_.size()));
    return diags_.error(Code::E0806, std::move(place), std::move(message));
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n\f\v").find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string found() const {
    return at_ < text_.size() ? "'" + printable(text_.substr(at_, 1)) + "' is found" : "the header ends";
  }

  bool expect(char c) {
    if (accept(c)) return true;
    (void)bad(found() + ", expected '" + c + "'");
    return false;
  }

  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::optional<std::string> string_literal(const char* what) {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') {
      (void)bad(found() + ", expected " + what + " in quotes");
      return std::nullopt;
    }
    const size_t end = text_.find_first_of(quote == '"' ? "\"\\\n" : "'\\\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] != quote) {
      (void)bad(std::string(what) + " has no closing quote, or an escape");
      return std::nullopt;
    }
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  bool boolean(bool& value) {
    if (accept_word("True")) {
      value = true;
    } else if (accept_word("False")) {
      value = false;
    } else {
      (void)bad(found() + " as fortran_order, expected True or False");
      return false;
    }
    return true;
  }

  bool descr(NpyHeader& header) {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      // Nothing behind a structured type matters: it is refused.
      header.descr = printable(text_.substr(at_));
      (void)bad("the element type is structured: " + header.descr + ", expected one number an element");
      return false;
    }
    const auto text = string_literal("descr");
    if (!text) return false;
    header.descr = *text;
    std::string_view rest = *text;
    if (!rest.empty() && std::string_view("<>|=").find(rest[0]) != std::string_view::npos) {
      header.order = rest[0] == '=' ? '<' : rest[0];
      rest.remove_prefix(1);
    }
    if (rest.empty() || (rest[0] < 'A' || rest[0] > 'z')) {
      (void)bad("the element type is '" + printable(*text) + "', expected one such as '<f4'");
      return false;
    }
    header.kind = rest[0];
    rest.remove_prefix(1);
    int64_t size = 0;
    for (char c : rest) {
      if (c < '0' || c > '9' || size > 1 << 24) {
        // Units as in 'M8[s]': the letter already says that it is no number.
        size = -1;
        break;
      }
      size = size * 10 + (c - '0');
    }
    header.item_size = size;
    return true;
  }

  bool shape(std::vector<int64_t>& extents) {
    if (!expect('(')) return false;
    bool comma = true;
    while (!accept(')')) {
      if (!comma) {
        (void)bad(found() + " in the shape, expected ',' or ')'");
        return false;
      }
      int64_t extent = 0;
      const size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        if (__builtin_mul_overflow(extent, int64_t{10}, &extent) ||
            __builtin_add_overflow(extent, int64_t{text_[at_] - '0'}, &extent)) {
          (void)bad("an extent of the shape is larger than 2^63 - 1");
          return false;
        }
        ++at_;
      }
      if (at_ == first) {
        (void)bad(found() + " in the shape, expected an extent");
        return false;
      }
      (void)accept_word("L");  // Python 2 wrote its long integers so
      if (extents.size() == kMaxArrayRank) {
        (void)bad("the shape has more than " + std::to_string(kMaxArrayRank) + " dimensions");
        return false;
      }
      extents.push_back(extent);
      comma = accept(',');
    }
    if (extents.size() == 1 && !comma) {
      (void)bad("the shape is a number in brackets, expected a tuple such as (" + std::to_string(extents[0]) + ",)");
      return false;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0, begin_;
  const Place& place_;
  Diagnostics& diags_;
};

struct Framing {
  size_t begin, end;
};

Result<Framing> framing(std::span<const uint8_t> bytes, const Place& place, Diagnostics& diags) {
  auto bad = [&](size_t offset, std::string message, std::string help = {}) {
    Place where = place;
    where.byte_offset = static_cast<int64_t>(offset);
    return diags.error(Code::E0806, std::move(where), std::move(message), std::move(help));
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, kMagic.size()) != kMagic) {
    if (text.substr(0, 2) == "PK") {
      return bad(0, "the file is a ZIP archive (.npz), expected a .npy file",
                 "unpack it and name one of its .npy files");
    }
    if (!text.empty() && text.size() < kMagic.size() && kMagic.substr(0, text.size()) == text) {
      return bad(text.size(), "the file ends inside its first 6 bytes");
    }
    return bad(0, bytes.empty() ? "the file is empty, expected a .npy file"
                                : "the file starts with '" + printable(text.substr(0, 6)) + "', expected '\\x93NUMPY'");
  }
  if (bytes.size() < 8) return bad(bytes.size(), "the file ends inside its version number");
  const int version = bytes[6];
  if (version < 1 || version > 3 || bytes[7] != 0) {
    return bad(6, "the .npy version is " + std::to_string(version) + "." + std::to_string(bytes[7]) +
                      ", expected 1.0, 2.0 or 3.0");
  }
  const size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) return bad(bytes.size(), "the file ends inside the length of its header");
  size_t length = bytes[8] | static_cast<size_t>(bytes[9]) << 8;
  if (version > 1) length |= static_cast<size_t>(bytes[10]) << 16 | static_cast<size_t>(bytes[11]) << 24;
  if (length > kMaxNpyHeader) {
    return bad(
        8, "the header is " + std::to_string(length) + " bytes long, the limit is " + std::to_string(kMaxNpyHeader));
  }
  return Framing{begin, begin + length};
}

}  // namespace

Result<size_t> npy_header_end(std::span<const uint8_t> prefix, const Place& place, Diagnostics& diags) {
  const auto frame = framing(prefix, place, diags);
  if (!frame) return Failed;
  return frame->end;
}

Result<NpyHeader> parse_npy_header(std::span<const uint8_t> bytes, const Place& place, Diagnostics& diags) {
  const auto frame = framing(bytes, place, diags);
  if (!frame) return Failed;
  if (frame->end > bytes.size()) {
    Place where = place;
    where.byte_offset = static_cast<int64_t>(bytes.size());
    return diags.error(Code::E0806, std::move(where),
                       "the file ends inside its header, after " + std::to_string(bytes.size()) + " of " +
                           std::to_string(frame->end) + " bytes");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + frame->begin, frame->end - frame->begin);
  auto header = HeaderReader(text, frame->begin, place, diags).read();
  if (!header) return Failed;
  header->data_begin = frame->end;
  return header;
}

std::string format_npy_header(std::string_view descr, bool fortran_order, const std::vector<int64_t>& shape) {
  std::string tuple = "(";
  for (size_t d = 0; d < shape.size(); ++d) tuple += (d ? ", " : "") + std::to_string(shape[d]);
  tuple += shape.size() == 1 ? ",)" : ")";
  std::string text = "{'descr': '" + std::string(descr) + "', 'fortran_order': " + (fortran_order ? "True" : "False") +
                     ", 'shape': " + tuple + ", }";
  // NumPy leaves room for the slowest extent to grow to 21 digits in place.
  if (!shape.empty()) text.append(21 - std::to_string(fortran_order ? shape.back() : shape.front()).size(), ' ');
  const size_t length = text.size() + 1;
  text.append(64 - (10 + length) % 64, ' ');
  text += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(text.size() & 255);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

}  // namespace tile
