// Reads OpDef::format into trees, each row when it is first asked for: a run needs few of them. A format that cannot be read is a fault of the table.
#include "assembler/format.h"

#include <array>
#include <mutex>

#include "vm/base/check.h"

namespace tile {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class FormatReader {
 public:
  explicit FormatReader(const OpDef& op) : op_(op), text_(op.format) {}

  std::vector<FormatNode> all() {
    std::vector<FormatNode> nodes = sequence();
    TILE_CHECK(at_ == text_.size());
    return nodes;
  }

 private:
  using Kind = FormatNode::Kind;

  // Nodes up to the end of the format or of the group.
  std::vector<FormatNode> sequence() {
    std::vector<FormatNode> nodes;
    for (;;) {
      blanks();
      if (at_ == text_.size() || text_[at_] == ')') return nodes;
      nodes.push_back(node());
    }
  }

  FormatNode node() {
    FormatNode n;
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      n.kind = Kind::Group;
      n.children = sequence();
      take(")?");
      TILE_CHECK(!n.children.empty());
    } else if (c == '$') {
      ++at_;
      const std::string_view name = word();
      n.index = operand_index(op_, name);
      n.kind = n.index >= 0 ? Kind::Operand : Kind::Attr;
      if (n.index < 0) n.index = attr_index(op_, name);
      TILE_CHECK(n.index >= 0);
    } else if (c == '@') {
      ++at_;
      const std::string_view name = word();
      TILE_CHECK(name == "dict" || name == "attributes" || name == "custom");
      n.kind = name == "dict" ? Kind::Dict : name == "custom" ? Kind::Custom : Kind::Attributes;
    } else if (text_.substr(at_, 2) == "->") {
      at_ += 2;
      n.text = "->";
    } else if (is_word(c)) {
      const std::string_view name = word();
      if (at_ < text_.size() && text_[at_] == '(') {
        types(name, n);
      } else {
        n.text = std::string(name);
      }
    } else {
      TILE_CHECK(std::string_view(",[]<>=:").find(c) != std::string_view::npos);
      n.text = std::string(1, c);
      ++at_;
    }
    return n;
  }

  // type(a,r), types(a), index_types(a); the position is at the parenthesis.
  void types(std::string_view kind, FormatNode& n) {
    TILE_CHECK(kind == "type" || kind == "types" || kind == "index_types");
    n.kind = kind == "type" ? Kind::Type : kind == "types" ? Kind::Types : Kind::IndexTypes;
    do {
      ++at_;
      blanks();
      const std::string_view name = word();
      const int operand = operand_index(op_, name);
      const int result = operand >= 0 ? -1 : result_index(op_, name);
      TILE_CHECK(operand >= 0 || result >= 0);
      if (n.kind == Kind::Type) {
        n.targets.push_back({operand < 0, operand < 0 ? result : operand});
      } else {
        TILE_CHECK(operand >= 0 && n.index < 0);
        n.index = operand;
      }
      blanks();
    } while (at_ < text_.size() && text_[at_] == ',');
    take(")");
  }

  std::string_view word() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    TILE_CHECK(at_ > begin);
    return text_.substr(begin, at_ - begin);
  }

  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  void take(std::string_view sign) {
    TILE_CHECK(text_.substr(at_, sign.size()) == sign);
    at_ += sign.size();
  }

  const OpDef& op_;
  std::string_view text_;
  size_t at_ = 0;
};

struct Formats {
  std::array<std::once_flag, 256> read;
  std::array<std::vector<FormatNode>, 256> by_code;
};

}  // namespace

const std::vector<FormatNode>& op_format(const OpDef& op) {
  static Formats formats;
  TILE_CHECK(op.code < formats.by_code.size());
  std::call_once(formats.read[op.code], [&] { formats.by_code[op.code] = FormatReader(op).all(); });
  return formats.by_code[op.code];
}

}  // namespace tile
