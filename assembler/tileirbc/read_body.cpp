// Operations of a function. Their layout follows from the rows of the operation table; nesting is kept on a stack of
// our own.
#include <algorithm>

#include "assembler/tileirbc/reader.h"

namespace tile::tileirbc {
namespace {

/// Bit of attribute or operand group `index` in the flags word; -1 if it has none.
int bit_of(std::span<const FlagBit> bits, bool is_operand, size_t index) {
  for (size_t i = 0; i < bits.size(); ++i)
    if (bits[i].is_operand == is_operand && bits[i].index == index) return static_cast<int>(i);
  return -1;
}

bool is_set(std::span<const FlagBit> bits, uint64_t flags, bool is_operand, size_t index) {
  const int bit = bit_of(bits, is_operand, index);
  return bit >= 0 && (flags >> bit & 1);
}

}  // namespace

bool Reader::read_body(Cursor& c, FunctionBuilder& b) {
  values_.clear();
  for (uint32_t i = 0; i < b.function().param_count; ++i) values_.push_back(b.param(i));
  open_.clear();
  last_is_terminator_ = false;
  for (;;) {
    if (open_.empty()) {
      if (c.left() == 0) break;
    } else if (open_.back().ops_left == 0) {
      if (!close_block(c, b)) return false;
      continue;
    } else {
      --open_.back().ops_left;
    }
    if (!read_op(c, b)) return false;
  }
  b.finish();
  return true;
}

bool Reader::read_op(Cursor& c, FunctionBuilder& b) {
  context_.instruction = static_cast<int64_t>(b.function().insts.size());
  context_.op = {};
  const size_t at = c.pos();
  uint64_t code;
  if (!c.varint(code, "an opcode")) return false;
  const OpDef* d = code <= UINT32_MAX ? find_op(static_cast<uint32_t>(code)) : nullptr;
  if (d == nullptr) return fail(Code::E0112, at, "unknown opcode " + std::to_string(code));
  context_.op = d->name;
  if (d->effect == Effect::Symbol) return fail(Code::E0117, at, std::string(d->name) + " stands inside a function");
  if (d->since > version_) return fail(Code::E0113, at, std::string(d->name) + " is newer than the file's version");
  if (!read_results(c, *d)) return false;

  // The word is there from the version of its first field on; bits of fields that the version lacks count as unknown
  // and are ignored.
  auto bits = flag_bits(*d);
  while (!bits.empty() && bits.back().since > version_) bits = bits.first(bits.size() - 1);
  uint64_t flags = 0;
  if (!bits.empty() && !c.varint(flags, "the flags of an operation")) return false;

  words_.clear();
  const TypeId tile_type = result_types_.empty() ? kNone : result_types_[0];
  for (size_t i = 0; i < d->attrs.size(); ++i) {
    const AttrDef& a = d->attrs[i];
    uint32_t word = default_word(a);
    const bool by_flag = a.optional || a.kind == AttrKind::Unit;
    if (by_flag ? is_set(bits, flags, false, i) : a.since <= version_) {
      if (!attribute_word(c, a, tile_type, word)) return false;
    }
    words_.push_back(word);
  }
  if (!read_operands(c, *d, bits.empty() ? 0 : flags)) return false;

  const InstId id = b.op({.op = static_cast<Opcode>(d->code),
                          .operands = operands_,
                          .segments = segments_,
                          .attrs = words_,
                          .result_types = result_types_});
  if (d->regions == 0) {
    number_results(b.function().insts[id]);
    last_is_terminator_ = d->terminator;
    return true;
  }
  const size_t regions_at = c.pos();
  uint64_t regions;
  if (!c.varint(regions, "the number of regions")) return false;
  if (regions != d->regions) {
    return fail(Code::E0116, regions_at, std::to_string(regions) + " regions, expected " + std::to_string(d->regions));
  }
  if (open_.size() >= kMaxRegionNesting) {
    return fail(Code::L0102, at, "regions nest more than " + std::to_string(kMaxRegionNesting) + " levels deep");
  }
  open_.push_back({.inst = id, .def = d, .regions_left = d->regions, .values_outside = values_.size()});
  return next_region(c, b);
}

bool Reader::read_results(Cursor& c, const OpDef& d) {
  bool variadic = false;
  uint64_t expected = 0;
  for (const ResultDef& r : d.results) {
    variadic |= r.arity == Arity::Variadic;
    expected += r.arity == Arity::One && r.since <= version_;
  }
  uint64_t count = expected;
  if (counts_results(d)) {
    const size_t at = c.pos();
    if (!c.varint(count, "the number of results")) return false;
    if (!variadic && count != expected) {
      return fail(Code::E0117, at, std::to_string(count) + " results, expected " + std::to_string(expected));
    }
    if (count > c.left())
      return fail(Code::E0101, at,
                  std::to_string(count) + " results, but only " + std::to_string(c.left()) + " bytes are left");
  }
  result_types_.clear();
  for (uint64_t i = 0; i < count; ++i) {
    TypeId t;
    if (!value_type(c, t, "the type of a result")) return false;
    result_types_.push_back(t);
  }
  return true;
}

bool Reader::read_operands(Cursor& c, const OpDef& d, uint64_t flags) {
  operands_.clear();
  segments_.clear();
  if (has_segments(d)) {
    for (size_t g = 0; g < d.operands.size(); ++g) {
      uint64_t count = 1;
      if (d.operands[g].arity == Arity::Optional) count = is_set(flag_bits(d), flags, true, g) ? 1 : 0;
      if (d.operands[g].arity == Arity::Variadic && !c.count(count, 1, Code::E0101, "the number of operands"))
        return false;
      for (uint64_t i = 0; i < count; ++i)
        if (!read_operand(c)) return false;
      segments_.push_back(static_cast<uint32_t>(count));
    }
    return true;
  }
  uint64_t count = d.operands.size();
  if (variable_operands(d) == 1) {
    const size_t at = c.pos();
    const uint64_t fixed = d.operands.size() - 1;
    bool variadic = false;
    for (const OperandDef& o : d.operands) variadic |= o.arity == Arity::Variadic;
    if (!c.varint(count, "the number of operands")) return false;
    if (count < fixed || (!variadic && count > fixed + 1)) {
      return fail(Code::E0114, at,
                  std::to_string(count) + " operands, expected " + (variadic ? "at least " : "at most ") +
                      std::to_string(variadic ? fixed : fixed + 1));
    }
    if (count > c.left())
      return fail(Code::E0101, at,
                  std::to_string(count) + " operands, but only " + std::to_string(c.left()) + " bytes are left");
  }
  for (uint64_t i = 0; i < count; ++i)
    if (!read_operand(c)) return false;
  return true;
}

bool Reader::read_operand(Cursor& c) {
  const size_t at = c.pos();
  uint64_t index;
  if (!c.varint(index, "an operand")) return false;
  if (index >= values_.size()) {
    return fail(Code::E0114, at,
                "operand " + std::to_string(operands_.size()) + " is value " + std::to_string(index) + ", but only " +
                    std::to_string(values_.size()) + " are defined here");
  }
  operands_.push_back(values_[static_cast<size_t>(index)]);
  return true;
}

/// Opens the next region that has a block, or completes the innermost open operation when there is none left.
bool Reader::next_region(Cursor& c, FunctionBuilder& b) {
  Open& o = open_.back();
  while (o.regions_left > 0) {
    const size_t at = c.pos();
    uint64_t blocks, args;
    if (!c.varint(blocks, "the number of blocks")) return false;
    if (blocks > 1) return fail(Code::E0116, at, "a region has " + std::to_string(blocks) + " blocks, expected 1");
    if (blocks == 0) {
      --o.regions_left;
      b.absent_region();
      continue;
    }
    if (!c.count(args, 1, Code::E0101, "the number of block arguments")) return false;
    result_types_.clear();
    for (uint64_t i = 0; i < args; ++i) {
      TypeId t;
      if (!value_type(c, t, "the type of a block argument")) return false;
      result_types_.push_back(t);
    }
    const size_t ops_at = c.pos();
    if (!c.varint(o.ops_left, "the number of operations of a block")) return false;
    if (o.ops_left == 0) return fail(Code::E0116, ops_at, "a block has no operations");
    for (uint64_t i = 0; i < args; ++i) values_.push_back(b.next_value() + static_cast<ValueId>(i));
    (void)b.begin_region(result_types_);
    --o.regions_left;
    o.in_region = true;
    return true;
  }
  b.end_op();
  number_results(b.function().insts[o.inst]);
  open_.pop_back();
  last_is_terminator_ = false;
  return true;
}

bool Reader::close_block(Cursor& c, FunctionBuilder& b) {
  Open& o = open_.back();
  context_.instruction = o.inst;
  context_.op = o.def->name;
  if (!last_is_terminator_) return fail(Code::E0116, c.pos(), "a block does not end with a terminator");
  b.end_region();
  o.in_region = false;
  values_.resize(o.values_outside);
  return next_region(c, b);
}

/// Completes a function whose body cannot be read any further. An operation that has no region yet goes, since it makes
/// no sense without one; the last that stays is marked.
void Reader::abandon_body(FunctionBuilder& b, const Diagnostic& reason) {
  Function& f = b.function();
  if (b.depth() > open_.size()) {
    const auto last = static_cast<InstId>(f.insts.size() - 1);
    open_.push_back({.inst = last, .def = &f.def(last), .regions_left = f.def(last).regions});
  }
  InstId removed = kNone;
  for (; !open_.empty(); open_.pop_back()) {
    Open& o = open_.back();
    if (!o.in_region && o.regions_left == o.def->regions) removed = o.inst;
    if (o.in_region) b.end_region();
    for (; o.regions_left > 0; --o.regions_left) b.absent_region();
    b.end_op();
  }
  b.finish();
  if (removed != kNone) {
    const Inst inst = f.insts[removed];
    f.insts.resize(removed);
    f.words.resize(inst.word);
    f.value_types.resize(inst.first_result);
    f.regions.resize(inst.first_region);
    for (Inst& i : f.insts) i.next = std::min(i.next, removed);
    for (Region& r : f.regions) r.end = std::min(r.end, removed);
  }
  if (f.insts.empty()) return;
  Attr text, mark;
  text.tag = AttrTag::String;
  text.string = module_.strings.add("byte " + std::to_string(reason.place.byte_offset) + ": " + reason.message);
  mark.tag = AttrTag::Dictionary;
  mark.entries = {{module_.strings.add("not_decoded"), module_.attrs.add(std::move(text))}};
  f.extra_attrs.emplace_back(static_cast<InstId>(f.insts.size() - 1), module_.attrs.add(std::move(mark)));
}

/// The file numbers results when their operation is complete, after what its regions held; the builder before.
void Reader::number_results(const Inst& inst) {
  for (uint32_t i = 0; i < inst.result_count; ++i) values_.push_back(inst.first_result + i);
}

}  // namespace tile::tileirbc
