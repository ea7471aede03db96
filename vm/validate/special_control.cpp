// Special rules of control flow: what regions take and what their terminators hand over.
#include "vm/validate/special.h"

namespace tile::validation {
namespace {

std::string mismatch(const Checker& c, TypeId found, TypeId want) {
  return " has type " + c.type_text(found) + ", expected " + c.type_text(want);
}

/// Arguments `from`... of the region must have the types of the initial values.
void check_carried(Checker& c, size_t group, const Region& region, uint32_t from) {
  const uint32_t n = static_cast<uint32_t>(c.count(group));
  if (region.arg_count != n + from)
    return c.error(Code::E0703, "its region has " + counted(region.arg_count, "argument") + ", expected " +
                                    std::to_string(n + from));
  for (uint32_t k = 0; k < n; ++k) {
    const ValueId arg = region.first_arg + from + k;
    if (c.legal_value(arg) && c.f->type(arg) != c.type_id(group, k))
      c.error(Code::E0703, "argument " + std::to_string(from + k) + " of its region" +
                               mismatch(c, c.f->type(arg), c.type_id(group, k)) + " (the type of " + c.role(group, k) +
                               ")");
  }
}

/// The values of a terminator against a list of types.
template <class TypeOf>
void check_values(Checker& c, size_t n, const std::string& whose, TypeOf type_of) {
  if (c.count(0) != n)
    return c.error(Code::E0703,
                   "has " + counted(c.count(0), "operand") + ", expected " + std::to_string(n) + " (" + whose + ")");
  for (size_t k = 0; k < n; ++k)
    if (c.type_id(0, k) != type_of(k))
      c.error_operand(Code::E0703, 0, k,
                      "operand " + std::to_string(k) + mismatch(c, c.type_id(0, k), type_of(k)) + " (" + whose + ")");
}

}  // namespace

void check_for(Checker& c) {
  const size_t inits = c.group("initValues");
  const size_t n = c.count(inits);
  if (c.result_count() != n)
    return c.error(Code::E0507, "has " + counted(c.result_count(), "result") + ", expected " + std::to_string(n) +
                                    " (one for each initial value)");
  for (size_t k = 0; k < n; ++k)
    if (c.result_id(k) != c.type_id(inits, k))
      c.error_result(Code::E0504, k,
                     "result " + std::to_string(k) + mismatch(c, c.result_id(k), c.type_id(inits, k)) +
                         " (the type of " + c.role(inits, k) + ")");
  const Region& body = c.f->region(c.inst);
  if (!body.present) return;
  check_carried(c, inits, body, 1);
  if (body.arg_count > 0 && c.legal_value(body.first_arg) && c.f->type(body.first_arg) != c.type_id(0))
    c.error(Code::E0703, "its induction variable" + mismatch(c, c.f->type(body.first_arg), c.type_id(0)) +
                             " (the type of lowerBound)");
}

void check_loop(Checker& c) {
  if (const Region& body = c.f->region(c.inst); body.present) check_carried(c, 0, body, 0);
}

void check_if(Checker& c) {
  for (size_t r = 0; r < 2; ++r)
    if (const Region& region = c.f->region(c.inst, r); region.present && region.arg_count != 0)
      c.error(Code::E0703, "its region has " + counted(region.arg_count, "argument") + ", expected none");
  if (c.result_count() != 0 && !c.f->region(c.inst, 1).present)
    c.error(Code::E0703, "has " + counted(c.result_count(), "result") + " but no else region to give them");
}

// Terminators are compared with their target after their place was found right; see check_handed_over.
void check_terminator(Checker& c) {
  if (c.def().code == static_cast<uint16_t>(Opcode::Return) && c.count(0) != 0)
    c.error(Code::E0507, "has " + counted(c.count(0), "operand") + ", expected none");
}

void check_handed_over(Checker& c) {
  const Opcode op = static_cast<Opcode>(c.def().code);
  if (op == Opcode::Return) return;
  const Frame& target = op == Opcode::Yield ? c.frames.back() : c.frames[static_cast<size_t>(c.frames.back().loop)];
  if (target.wrong) return;
  const Function& f = *c.f;
  const Inst& at = f.insts[target.op];
  const std::string name(target.row->def->name);
  const Opcode parent = static_cast<Opcode>(target.row->def->code);
  if (parent == Opcode::Reduce || parent == Opcode::Scan) {
    // Argument 2k has the element of operand k as a tile of rank 0: what the body must give back.
    const Region& body = f.regions[target.region];
    check_values(c, body.arg_count / 2, "the elements that " + name + " combines",
                 [&](size_t k) { return f.type(body.first_arg + static_cast<ValueId>(2 * k)); });
  } else if (op == Opcode::Continue) {
    const size_t inits = parent == Opcode::For ? 3 : 0;  // behind the bounds and the step of for
    const auto values = f.group(target.op, inits);
    check_values(c, values.size(), "the values that " + name + " carries", [&](size_t k) { return f.type(values[k]); });
  } else {
    check_values(c, at.result_count, "the results of " + name,
                 [&](size_t k) { return f.type(f.result(target.op, k)); });
  }
}

// --- reduce and scan

void check_combine(Checker& c) {
  const bool scan = c.def().code == static_cast<uint16_t>(Opcode::Scan);
  const size_t n = c.count(0);
  if (n == 0) return c.error(Code::E0507, "has no operands, expected at least 1");
  const Type& first = c.type(0, 0);
  for (size_t k = 1; k < n; ++k)
    if (c.type(0, k).shape != first.shape)
      c.error_operand(Code::E0503, 0, k,
                      "operands[" + std::to_string(k) + "] has shape " + shape_text(c.type(0, k).shape) +
                          ", expected " + shape_text(first.shape) + " (the shape of operands[0])");
  const size_t dim_attr = c.attr("dim");
  const int64_t dim = c.int_attr(dim_attr);
  const int64_t rank = static_cast<int64_t>(first.shape.size());
  if (dim < 0 || dim >= rank)
    c.error_attr(Code::E0601, dim_attr,
                 "dim is " + std::to_string(dim) + ", expected a dimension below the rank " + std::to_string(rank) +
                     " of its operands");
  if (c.result_count() != n)
    c.error(Code::E0507, "has " + counted(c.result_count(), "result") + ", expected " + std::to_string(n) +
                             " (one for each operand)");
  if (c.wrong()) return;

  std::vector<int64_t> shape = first.shape;
  if (!scan) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  for (size_t k = 0; k < n; ++k) {
    const Type& result = c.result(k);
    if (result.inner == c.type(0, k).inner && result.shape == shape) continue;
    c.error_result(
        Code::E0504, k,
        "result " + std::to_string(k) + mismatch(c, c.result_id(k), c.m.types.with_shape(c.type_id(0, k), shape)));
  }

  const size_t identities = c.attr("identities");
  const std::vector<AttrId>& items = c.attr_value(identities).items;
  if (items.size() != n) {
    c.error_attr(Code::E0601, identities,
                 "has " + counted(items.size(), "identity value") + ", expected " + std::to_string(n) +
                     " (one for each operand)");
  } else {
    for (size_t k = 0; k < n; ++k) {
      const TypeId element = c.type(0, k).inner;
      const Attr* a = items[k] < c.m.attrs.size() ? &c.m.attrs.get(items[k]) : nullptr;
      const ElementType e = c.type(0, k).element;
      const bool fits = a && ((a->tag == AttrTag::Bool && e == ElementType::I1) ||
                              (a->tag == AttrTag::Integer && a->type == element && info(e).is_int) ||
                              (a->tag == AttrTag::Float && a->type == element && info(e).is_float));
      if (fits) continue;
      const bool typed = a && (a->tag == AttrTag::Integer || a->tag == AttrTag::Float);
      c.error_attr(Code::E0601, identities,
                   "identity " + std::to_string(k) +
                       (typed ? " has type " + c.type_text(a->type) : std::string(" is no number")) + ", expected " +
                       c.type_text(element) + " (the element type of operands[" + std::to_string(k) + "])");
    }
  }

  const Region& body = c.f->region(c.inst);
  if (!body.present) return;
  if (body.arg_count != 2 * n)
    return c.error(Code::E0703, "its region has " + counted(body.arg_count, "argument") + ", expected " +
                                    std::to_string(2 * n) + " (two for each operand)");
  for (uint32_t k = 0; k < body.arg_count; ++k) {
    const ValueId arg = body.first_arg + k;
    if (!c.legal_value(arg)) continue;
    const Type& type = c.m.types.get(c.f->type(arg));
    if (type.kind == TypeKind::Tile && type.shape.empty() && type.inner == c.type(0, k / 2).inner) continue;
    c.error(Code::E0703, "argument " + std::to_string(k) + " of its region" +
                             mismatch(c, c.f->type(arg), c.m.types.with_shape(c.type_id(0, k / 2), {})));
  }
}

}  // namespace tile::validation
