// The operations whose text a format cannot describe: loops, reductions, views with dynamic extents, shape queries.
#include "assembler/printer_ops.h"

namespace tile {

void FunctionPrinter::custom(Line& l) {
  switch (f_.insts[l.id].op) {
    case Opcode::Reduce:
    case Opcode::Scan:
      return fold(l);
    case Opcode::For:
      return counted_loop(l);
    case Opcode::Loop:
      return endless_loop(l);
    case Opcode::If: {
      c_.out += ' ';
      values(group(l.w, 0));
      if (f_.insts[l.id].result_count > 0) {
        c_.out += " -> (";
        result_types(f_.insts[l.id]);
        c_.out += ")";
      }
      return;
    }
    case Opcode::MakeTensorView:
      return tensor_view(l);
    case Opcode::GetTensorShape:
    case Opcode::GetIndexSpaceShape:
      return shape_query(l);
    default:  // entry, global and module are no instructions
      return;
  }
}

void FunctionPrinter::fold(Line& l) {
  c_.out += ' ';
  values(l.w.operands);
  dict(l, false);
  const auto value_of = [&](const char* name) {
    const auto a = static_cast<size_t>(attr_index(*l.w.op, name));
    attr_value(*l.w.op, a, attr(l.w, a));
  };
  c_.out += " dim=";
  value_of("dim");
  if (f_.insts[l.id].op == Opcode::Scan) {
    c_.out += " reverse=";
    value_of("reverse");
  }
  c_.out += " identities=";
  value_of("identities");
  c_.out += " : ";
  types_of(l.w.operands);
  c_.out += " -> ";
  result_types(f_.insts[l.id]);
}

// `(%acc = %init, ...)`: block arguments from `first_arg` on beside the initial values.
void FunctionPrinter::iter_values(Line& l, std::span<const ValueId> inits, size_t first_arg) {
  const Region* r = region(l.id, 0);
  c_.out += " iter_values(";
  for (size_t k = 0; k < inits.size() && !c_.full(); ++k) {
    if (k) c_.out += ", ";
    if (r && first_arg + k < r->arg_count) {
      value(r->first_arg + static_cast<ValueId>(first_arg + k));
    } else {
      c_.out += "%?";
    }
    c_.out += " = ";
    value(inits[k]);
  }
  c_.out += ")";
}

void FunctionPrinter::counted_loop(Line& l) {
  const Region* r = region(l.id, 0);
  const Inst& inst = f_.insts[l.id];
  if (differs(l.w, 0)) c_.out += " unsigned";
  c_.out += ' ';
  if (r && r->arg_count > 0) {
    value(r->first_arg);
  } else {
    c_.out += "%?";
  }
  c_.out += " in (";
  values(group(l.w, 0));
  c_.out += " to ";
  values(group(l.w, 1));
  c_.out += ", step ";
  values(group(l.w, 2));
  c_.out += ") : ";
  types_of(group(l.w, 0));
  const auto inits = group(l.w, 3);
  if (inits.empty()) return;
  iter_values(l, inits, 1);
  c_.out += " -> (";
  result_types(inst);
  c_.out += ")";
}

void FunctionPrinter::endless_loop(Line& l) {
  const Inst& inst = f_.insts[l.id];
  const auto inits = group(l.w, 0);
  if (!inits.empty()) {
    iter_values(l, inits, 0);
    c_.out += " : ";
    types_of(inits);
    if (inst.result_count > 0) c_.out += " -> ";
  } else if (inst.result_count > 0) {
    c_.out += " : ";
  }
  result_types(inst);
}

void FunctionPrinter::tensor_view(Line& l) {
  const auto base = group(l.w, 0), shape_values = group(l.w, 1), stride_values = group(l.w, 2);
  const auto results = result_values(f_.insts[l.id]);
  const TypeId view = results.empty() ? kNone : type_of(results[0]);
  static const Type kNoType;
  const Type& type = m_.types.is_tensor_view(view) ? m_.types.get(view) : kNoType;

  // Static entries as numbers, dynamic ones as the operands in turn; operands too many stand at the end.
  const auto extents = [&](const char* name, const std::vector<int64_t>& sizes, std::span<const ValueId> operands) {
    c_.out += std::string(", ") + name + " = [";
    bool first = true;
    const auto comma = [&] {
      if (!first) c_.out += ", ";
      first = false;
    };
    size_t used = 0;
    for (const int64_t size : sizes) {
      if (c_.full()) return;
      comma();
      if (size != kDynamic) {
        c_.out += std::to_string(size);
      } else if (used < operands.size()) {
        value(operands[used++]);
      } else {
        c_.out += "?";
      }
    }
    for (; used < operands.size() && !c_.full(); ++used) {
      comma();
      value(operands[used]);
    }
    c_.out += "]";
  };
  c_.out += ' ';
  values(base);
  extents("shape", type.shape, shape_values);
  extents("strides", type.strides, stride_values);
  dict(l, false);

  // The base is written only where its type does not follow from the view: with a pointer attribute.
  std::vector<ValueId> written;
  if (type.ptr_attr != kNone && !base.empty()) written.push_back(base[0]);
  const auto dynamic = !shape_values.empty() ? shape_values : stride_values;
  if (!dynamic.empty()) written.push_back(dynamic[0]);
  c_.out += " : ";
  types_of(written);
  if (!written.empty()) c_.out += " -> ";
  c_.out += c_.types[view];
}

void FunctionPrinter::shape_query(Line& l) {
  const auto source = group(l.w, 0);
  const auto results = result_values(f_.insts[l.id]);
  c_.out += ' ';
  values(source);
  c_.out += " : ";
  types_of(source);
  // An array of rank 0 has no extents; the text needs a type all the same.
  c_.out += " -> " + (results.empty() ? "tile<i32>" : c_.types[type_of(results[0])]);
}

}  // namespace tile
