// Every cell of operation x position x type: what the row excludes is rejected at that position, with its code, and
// what it allows is not. Drawn from the operation table; combinations of types have filetests (tests/files/validate).
#include <algorithm>

#include "tests/unit/validate_kit.h"
#include "vm/ops/enums.h"

using namespace tile;
using namespace tile::validate_kit;

namespace {

constexpr int64_t kExtent = 16;

/// One operation of any row, between definitions that give its operands whatever types a test wants.
class Probe {
 public:
  explicit Probe(const OpDef& row) : row_(row) {
    for (const OperandDef& d : row.operands) types_.push_back(usual(d));
    for (const ResultDef& d : row.results) types_.push_back(usual(d));
  }

  Kit k;

  TypeId of(ValueKind kind, ElementType e) {
    const std::vector<int64_t> shape = {kExtent};
    const TypeId element = e == ElementType::Ptr ? k.m.types.ptr(k.m.types.element(ElementType::F32)) : k.m.types.element(e);
    const TypeId view = k.m.types.tensor_view(element, shape, std::vector<int64_t>{1});
    switch (kind) {
      case ValueKind::Scalar:
        return k.m.types.tile(element);
      case ValueKind::TensorView:
        return view;
      case ValueKind::View:
        // Each maker of views has its own kind.
        if (row_.code == static_cast<uint16_t>(Opcode::MakeStridedView))
          return k.m.types.add({.kind = TypeKind::StridedView, .inner = view, .shape = shape, .strides = {1}, .dim_map = {0}});
        if (row_.code == static_cast<uint16_t>(Opcode::MakeGatherScatterView))
          return k.m.types.add({.kind = TypeKind::GatherScatterView, .inner = view, .shape = shape});
        return k.m.types.add({.kind = TypeKind::PartitionView, .inner = view, .shape = shape, .dim_map = {0}});
      case ValueKind::Token:
        return k.m.types.token();
      default:
        return k.m.types.tile(element, shape);
    }
  }
  /// A type that the position takes.
  TypeId usual(const OperandDef& d) {
    for (size_t e = 0; e < kElementTypes; ++e)
      if (d.elements.has(static_cast<ElementType>(e)) && static_cast<ElementType>(e) != ElementType::I4)
        return of(d.kind, static_cast<ElementType>(e));
    return of(d.kind, ElementType::F32);
  }
  void set(size_t position, TypeId type) { types_[position] = type; }

  /// What is reported at the operation; operands are numbered as the row numbers them, every group has one value.
  std::vector<Diagnostic> run() { return run_with(row_.attrs.size(), 0); }
  /// The same with another word for one attribute.
  std::vector<Diagnostic> run_with(size_t attr, uint32_t word) {
    k.entry();
    const size_t operands = row_.operands.size();
    Ids values, results(types_.begin() + static_cast<std::ptrdiff_t>(operands), types_.end()), attrs, segments;
    // make_token gives no such values, which is reported there and is not looked at.
    for (size_t g = 0; g < operands; ++g) values.push_back(k.op(Opcode::MakeToken, {}, {}, {types_[g]}));
    if (has_segments(row_)) segments.assign(operands, 1);
    for (const AttrDef& a : row_.attrs) attrs.push_back(attribute(a));
    if (attr < attrs.size()) attrs[attr] = word;
    const auto probe = static_cast<int64_t>(k.f().insts.size());
    k.op(static_cast<Opcode>(row_.code), values, attrs, results, segments);
    for (uint8_t r = 0; r < row_.regions; ++r) k.region({}, [](ValueId) {});
    if (row_.regions > 0) k.b->end_op();
    k.ret();
    k.b->finish();
    k.b.reset();
    Diagnostics diags;
    diags.limit = 1000;
    (void)validate(k.m, diags);
    std::vector<Diagnostic> out;
    for (const Diagnostic& d : diags.all()) {
      if (d.code == Code::E0505) illegal_type = true;
      if (d.place.instruction == probe) out.push_back(d);
    }
    return out;
  }
  bool illegal_type = false;  ///< one of the types that were set is legal nowhere

 private:
  uint32_t attribute(const AttrDef& a) {
    switch (a.kind) {
      case AttrKind::Unit:
      case AttrKind::Bool:
        return 0;
      case AttrKind::Enum: {
        if (a.optional) return kNone;
        if (a.def != kRequired) return static_cast<uint32_t>(a.def);
        uint32_t v = 0;
        while (!(a.allowed >> v & 1)) ++v;
        return v;
      }
      case AttrKind::Int:
        return k.integer(1, a.int_bits == 32 ? ElementType::I32 : ElementType::I64);
      case AttrKind::String:
      case AttrKind::Symbol:
        return k.m.strings.add("s");
      case AttrKind::Dense:
        return k.m.attrs.dense(k.m.types, k.tile(ElementType::I8), "x");
      case AttrKind::I32Array:
        return k.m.attrs.ints(AttrTag::I32Array, {0});
      case AttrKind::AttrArray:
        return k.m.attrs.array({});
      case AttrKind::Predicate:
        return k.m.attrs.ints(AttrTag::SameElements, {1});
      default:
        return kNone;
    }
  }

  const OpDef& row_;
  Ids types_;
};

const OperandDef& position_of(const OpDef& row, size_t p) {
  return p < row.operands.size() ? row.operands[p] : row.results[p - row.operands.size()];
}

/// The errors about the kind or element type of a position itself, as opposed to how it goes with others.
std::vector<Diagnostic> about(const OpDef& row, size_t p, const std::vector<Diagnostic>& found) {
  const std::string name(position_of(row, p).name);
  std::vector<Diagnostic> out;
  for (const Diagnostic& d : found) {
    const bool code = d.code == Code::E0502 || d.code == Code::E0506;
    const bool itself = d.message.find("expected one ") == std::string::npos && d.message.find(" than that of ") == std::string::npos;
    const std::string start = std::string(row.name) + ": " + name;
    const bool here = p < row.operands.size() ? d.place.operand == static_cast<int64_t>(p)
                                              : d.place.operand < 0 && (d.message.starts_with(start) ||
                                                                        d.message.starts_with(std::string(row.name) + ": result 0"));
    if (code && itself && here) out.push_back(d);
  }
  return out;
}

bool is_symbol(const OpDef& row) { return row.effect == Effect::Symbol; }

}  // namespace

TEST_CASE("every element type that a row excludes is rejected at its position, and every other is not") {
  size_t rejected = 0, accepted = 0;
  for (const OpDef& row : op_rows()) {
    if (is_symbol(row) || row.terminator) continue;  // what terminators hand over is their parent's to judge
    for (size_t p = 0; p < row.operands.size() + row.results.size(); ++p) {
      const OperandDef& d = position_of(row, p);
      if (d.elements.bits == 0 || d.kind == ValueKind::Token) continue;
      for (size_t i = 0; i < kElementTypes; ++i) {
        const auto e = static_cast<ElementType>(i);
        Probe probe(row);
        probe.set(p, probe.of(d.kind, e));
        const auto found = about(row, p, probe.run());
        INFO(row.name, " ", d.name, " ", info(e).name);
        if (row.code == static_cast<uint16_t>(Opcode::IToF) && e == ElementType::F8E8M0FNU) {
          // The one cell that a special rule takes away from its row: such a number has no sign and no zero.
          CHECK(found.size() == (d.name == "to" ? 1 : 0) + (d.name == "from" ? 1 : 0));
          continue;
        }
        if (d.elements.has(e) || probe.illegal_type) {
          // A type that no value can have is reported once, where it first appears.
          CHECK(found.empty());
          accepted += d.elements.has(e);
          continue;
        }
        ++rejected;
        REQUIRE(found.size() == 1);
        CHECK(found[0].code == Code::E0502);
        CHECK(found[0].place.op == row.name);
        CHECK(found[0].message.find("has element type " + std::string(e == ElementType::Ptr ? "ptr<f32>" : info(e).name)) !=
              std::string::npos);
      }
    }
  }
  // 17 types at every position with a set of its own.
  CHECK(rejected > 1000);
  CHECK(accepted > 1000);
}

TEST_CASE("every kind of value that a row excludes is rejected at its position") {
  size_t rejected = 0;
  constexpr ValueKind kKinds[] = {ValueKind::Tile, ValueKind::Scalar, ValueKind::TensorView, ValueKind::View, ValueKind::Token};
  const auto takes = [](ValueKind want, ValueKind given) {
    if (want == ValueKind::Tile) return given == ValueKind::Tile || given == ValueKind::Scalar;
    if (want == ValueKind::TileOrView) return given != ValueKind::View && given != ValueKind::Token;
    if (want == ValueKind::Any) return given != ValueKind::View && given != ValueKind::TensorView;
    return want == given;
  };
  for (const OpDef& row : op_rows()) {
    if (is_symbol(row) || row.terminator) continue;
    for (size_t p = 0; p < row.operands.size() + row.results.size(); ++p) {
      const OperandDef& d = position_of(row, p);
      ElementType e = ElementType::F32;
      for (size_t i = kElementTypes; i-- > 0;)
        if (d.elements.has(static_cast<ElementType>(i)) && kNum.has(static_cast<ElementType>(i))) e = static_cast<ElementType>(i);
      for (const ValueKind kind : kKinds) {
        Probe probe(row);
        probe.set(p, probe.of(kind, e));
        auto found = about(row, p, probe.run());
        INFO(row.name, " ", d.name, " kind ", static_cast<int>(kind));
        std::erase_if(found, [](const Diagnostic& x) { return x.code != Code::E0506; });
        CHECK(found.size() == (takes(d.kind, kind) ? 0 : 1));
        rejected += !takes(d.kind, kind);
      }
    }
  }
  CHECK(rejected > 500);
}

TEST_CASE("every word that a row does not allow for an attribute is rejected at the operation") {
  size_t rejected = 0;
  for (const OpDef& row : op_rows()) {
    if (is_symbol(row)) continue;
    for (size_t a = 0; a < row.attrs.size(); ++a) {
      const AttrDef& d = row.attrs[a];
      if (d.kind != AttrKind::Enum) continue;
      for (uint32_t v = 0; v <= enum_info(d.enum_kind).values.size(); ++v) {
        if (d.allowed >> v & 1 && v < enum_info(d.enum_kind).values.size()) continue;
        Probe probe(row);
        const auto found = probe.run_with(a, v);
        INFO(row.name, " ", d.name, " ", v);
        const Code code = d.enum_kind == EnumKind::Rounding                                          ? Code::E0605
                          : d.enum_kind == EnumKind::MemoryOrdering || d.enum_kind == EnumKind::Scope ? Code::E0604
                                                                                                      : Code::E0601;
        CHECK(std::any_of(found.begin(), found.end(), [&](const Diagnostic& x) {
          return x.code == code && x.message.starts_with(std::string(row.name) + ": " + std::string(d.name) + " is ");
        }));
        ++rejected;
      }
    }
  }
  CHECK(rejected > 100);
}
