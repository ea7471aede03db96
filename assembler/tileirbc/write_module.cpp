// The entry point of the writer: sections, functions and globals.
#include "assembler/tileirbc/writer.h"

namespace tile {

Result<std::vector<uint8_t>> write_tileirbc(const Module& m, Version target, Diagnostics& diags,
                                            TileirbcOptions options) {
  const Version newest = options.provisional ? kNewestVersion : kNewestStableVersion;
  if (target < kOldestVersion || target > newest) {
    Place p;
    p.file = m.file;
    return diags.error(Code::E0607, std::move(p),
                       "version " + std::to_string(target.major) + "." + std::to_string(target.minor) +
                           " is not written, expected 13.1 to 13." + std::to_string(newest.minor),
                       target <= kNewestVersion && target > newest ? "ask for provisional versions explicitly" : "");
  }
  return tileirbc::Writer(m, target, diags).write();
}

namespace tileirbc {

void RecordTable::write(Bytes& out, size_t width) const {
  out.varint(order_.size());
  if (order_.empty()) return;
  out.align(width);
  uint64_t at = 0;
  for (const std::string* r : order_) {
    out.fixed(at, width);
    at += r->size();
  }
  for (const std::string* r : order_) out.append(*r);
}

Result<std::vector<uint8_t>> Writer::write() {
  const size_t errors = diags_.error_count();
  // Other writers put these two first and rely on it.
  for (ElementType e : {ElementType::I1, ElementType::I32}) {
    Bytes record;
    record.varint(tile::info(e).tag);
    (void)types_.add(record.str());
  }
  for (const Global& g : m_.globals) globals_.emplace(g.name, &g);
  Bytes functions, globals, constants, debug, types, producer, strings;
  functions.varint(m_.functions.size());
  for (const Function& f : m_.functions) write_function(functions, f);
  if (!m_.globals.empty()) write_globals(globals);
  if (m_.producer != kNone) {
    if (target_ >= kSinceProducer) {
      producer.varint(string(m_.producer));
    } else {
      diags_.warn(place(), "the producer is left out: versions before 13.3 have no place for it");
    }
  }
  constants_.write(constants, info(Section::Constants).alignment);
  types_.write(types, info(Section::Types).alignment);
  write_debug(debug);
  strings_.write(strings, info(Section::Strings).alignment);
  if (diags_.error_count() != errors) return Failed;

  Bytes out;
  for (uint8_t b : kMagic) out.byte(b);
  out.byte(target_.major);
  out.byte(target_.minor);
  out.fixed(0, 2);
  write_section(out, Section::Functions, functions);
  if (globals.size() != 0) write_section(out, Section::Globals, globals);
  write_section(out, Section::Constants, constants);
  if (!m_.functions.empty()) write_section(out, Section::Debug, debug);
  write_section(out, Section::Types, types);
  if (producer.size() != 0) write_section(out, Section::Producer, producer);
  write_section(out, Section::Strings, strings);
  out.byte(static_cast<uint8_t>(Section::End));
  return out.take();
}

void Writer::write_section(Bytes& out, Section s, const Bytes& payload) {
  const uint8_t alignment = info(s).alignment;
  out.byte(static_cast<uint8_t>(static_cast<uint8_t>(s) | (alignment != 0 ? kHasAlignment : 0)));
  out.varint(payload.size());
  if (alignment != 0) {
    out.varint(alignment);
    out.align(alignment);
  }
  out.append(payload);
}

void Writer::write_function(Bytes& out, const Function& f) {
  f_ = &f;
  inst_ = kNone;
  debug_lists_.emplace_back();
  debug_lists_.back().push_back(location(f.loc));
  const uint32_t name = string(f.name);
  Type signature;
  signature.kind = TypeKind::Function;
  signature.params.assign(f.value_types.begin(), f.value_types.begin() + f.param_count);
  Bytes record;
  write_type(record, signature);
  const uint32_t signature_index = types_.add(record.str());

  out.varint(name);
  out.varint(signature_index);
  const bool always_hints = target_ >= kSinceArgAttrs;
  out.byte(kEntry | (!always_hints && f.hints != kNone ? kHasHints : 0));
  out.varint(debug_lists_.size());
  if (always_hints || f.hints != kNone) {
    out.tag(AttrCode::Hints);
    if (f.hints != kNone) {
      dictionary(out, m_.attrs.get(f.hints));
    } else {
      out.varint(0);
    }
  }
  if (always_hints) {
    if (f.arg_attrs != kNone) {
      attribute(out, f.arg_attrs);
    } else {
      out.tag(AttrCode::Array);
      out.varint(0);
    }
  } else if (f.arg_attrs != kNone) {
    unsupported("parameters with attributes", kSinceArgAttrs);
  }
  Bytes body;
  write_body(body, f);
  out.varint(body.size());
  out.append(body);
  f_ = nullptr;
  inst_ = kNone;
}

/// Gives a global its records where an operation first names it, which is where other writers declare it.
void Writer::declare_global(StringId name) {
  const auto it = globals_.find(name);
  if (it == globals_.end()) return;
  (void)string(name);
  (void)type(m_.attrs.get(it->second->value).type);
  (void)constant(it->second->value);
  globals_.erase(it);
}

void Writer::write_globals(Bytes& out) {
  out.varint(m_.globals.size());
  for (const Global& g : m_.globals) {
    out.varint(string(g.name));
    out.varint(type(m_.attrs.get(g.value).type));
    out.varint(constant(g.value));
    out.varint(g.alignment);
    if (target_ >= kSinceGlobalFlags) {
      out.varint(g.visibility);
      out.varint(g.constant ? 1 : 0);
    } else if (g.visibility != 0 || g.constant) {
      (void)diags_.error(Code::E0607, m_.place(g),
                         "global @" + std::string(m_.str(g.name)) + " is " + (g.constant ? "constant" : "private") +
                             ", which 13." + std::to_string(target_.minor) +
                             " cannot say; the first version that can is 13.3");
    }
  }
}

Place Writer::place() const {
  if (f_ == nullptr) {
    Place p;
    p.file = m_.file;
    return p;
  }
  return inst_ == kNone ? m_.place(*f_) : m_.place(*f_, inst_);
}

void Writer::unsupported(const std::string& what, Version since) {
  if (diags_.full()) return;
  (void)diags_.error(Code::E0607, place(),
                     what + " is not in 13." + std::to_string(target_.minor) +
                         "; the first version that has it is 13." + std::to_string(since.minor));
}

void Writer::unsupported_attr(size_t attr, const std::string& what, Version since) {
  if (diags_.full()) return;
  (void)diags_.error(Code::E0607, m_.place_attr(*f_, inst_, attr),
                     what + " is not in 13." + std::to_string(target_.minor) +
                         "; the first version that has it is 13." + std::to_string(since.minor));
}

}  // namespace tileirbc
}  // namespace tile
