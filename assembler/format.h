// The little language of OpDef::format, parsed once per row into a tree that the parser and the printer both walk.
//
//   $name        operand (all values of a variadic group, separated by commas; an optional one may be absent) or attribute by name:
//                Unit: its own name as a keyword, or nothing. Enum: its word (nothing if optional and absent). Int: decimal.
//                String: quoted. Symbol: @name. Dense: <type: values> : tile type. I32Array: [1, 0]. BoolArray: [true, false].
//                Hints: <sm_90 = {...}>. Predicate: div_by<16>.
//                Adjacent unit attributes may come in any order in text and are printed in the order of the format.
//   word , [ ] < > = ( ) : ->   themselves; "(" and ")" only as the group signs below
//   ( ... )?     optional group. Printed if the first $name in it (for groups of types: the operand named by type()) is present and,
//                for attributes with a default, differs from it. Parsed if the next token is the group's first literal.
//                A group whose first element is $name (no literal first) is parsed if the next token can start it.
//   type(a,b,r)  one written type that all named operands and results have; results named here get this type
//   types(a)     types of a variadic group, separated by commas
//   index_types(a)  ", T" once for all values of the group or once for each; nothing if the group is empty
//   @dict        optional attribute dictionary {...};  @attributes  optional `attributes {...}`
//   @custom      written by hand in parser and printer
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vm/ops/op_table.h"

namespace tile {

struct FormatNode {
  enum class Kind : uint8_t { Literal, Operand, Attr, Group, Type, Types, IndexTypes, Dict, Attributes, Custom };
  Kind kind = Kind::Literal;
  std::string text;                 ///< Literal: the token
  int index = -1;                   ///< Operand: group; Attr: attribute; Types, IndexTypes: operand group
  struct Target { bool is_result; int index; };
  std::vector<Target> targets;      ///< Type
  std::vector<FormatNode> children; ///< Group
};

/// The parsed format of a row; parsed on first use, then shared. Thread safe.
[[nodiscard]] const std::vector<FormatNode>& op_format(const OpDef& op);

}  // namespace tile
