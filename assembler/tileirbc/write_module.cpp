// The entry point of the writer: sections, functions and globals.
#include "assembler/tileirbc/writer.h"

#include <algorithm>

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

Writer::Writer(const Module& m, Version target, Diagnostics& diags)
    : m_(m),
      target_(target),
      diags_(diags),
      string_index_(m.strings.size(), kNone),
      type_index_(m.types.size(), kNone),
      location_ref_(m.locs.size(), kUnwritten) {
  static const TileirbcLayout kNoLayout;
  const TileirbcLayout* l = m.tileirbc_layout.get();
  follows_ = l != nullptr && m.version == target && l->version == target && l->fingerprint == fingerprint(m);
  layout_ = follows_ ? l : &kNoLayout;
}

Result<std::vector<uint8_t>> Writer::write() {
  const size_t errors = diags_.error_count();
  if (follows_) {
    place_records();
  } else {
    // Other writers put these two first and rely on it.
    for (ElementType e : {ElementType::I1, ElementType::I32}) {
      Type t;
      t.kind = TypeKind::Element;
      t.element = e;
      (void)any_type_of(t);
    }
  }
  for (const Global& g : m_.globals) globals_.emplace(g.name, &g);
  std::array<Bytes, kSections> payloads;
  const auto payload = [&payloads](Section s) -> Bytes& { return payloads[static_cast<size_t>(s)]; };
  const uint8_t padding = layout_->padding;
  Bytes& functions = payload(Section::Functions);
  functions.varint(m_.functions.size());
  for (const Function& f : m_.functions) write_function(functions, f);
  if (layout_->functions_padded) functions.align(info(Section::Functions).alignment, padding);
  if (!m_.globals.empty() || had_section(Section::Globals)) write_globals(payload(Section::Globals));
  if (m_.producer != kNone) write_producer(payload(Section::Producer));
  constants_.write(payload(Section::Constants), info(Section::Constants).alignment, padding);
  types_.write(payload(Section::Types), info(Section::Types).alignment, padding);
  write_debug(payload(Section::Debug));
  strings_.write(payload(Section::Strings), info(Section::Strings).alignment, padding);
  if (diags_.error_count() != errors) return Failed;

  Bytes out;
  for (uint8_t b : kMagic) out.byte(b);
  out.byte(target_.major);
  out.byte(target_.minor);
  out.fixed(0, 2);
  for (const SectionChoice& s : section_order(payloads)) write_section(out, s.section, s.alignment, payload(s.section));
  out.byte(static_cast<uint8_t>(Section::End));
  return out.take();
}

void Writer::write_section(Bytes& out, Section s, uint32_t alignment, const Bytes& payload) {
  out.byte(static_cast<uint8_t>(static_cast<uint8_t>(s) | (alignment != 0 ? kHasAlignment : 0)));
  out.varint(payload.size());
  if (alignment != 0) {
    out.varint(alignment);
    out.align(alignment, layout_->padding);
  }
  out.append(payload);
}

void Writer::write_producer(Bytes& out) {
  uses_ = {};
  // Readers of older versions take a producer, too, but only files that had one keep it.
  if (target_ >= kSinceProducer || had_section(Section::Producer)) {
    out.varint(string(m_.producer));
  } else {
    diags_.warn(place(), "the producer is left out: versions before 13.3 have no place for it");
  }
}

void Writer::write_function(Bytes& out, const Function& f) {
  f_ = &f;
  inst_ = kNone;
  const auto index = static_cast<size_t>(&f - m_.functions.data());
  if (index < layout_->functions.size()) uses_ = layout_->functions[index].uses;
  locations_.assign(1, location(f.loc));
  const uint32_t name = string(f.name);
  Type signature;
  signature.kind = TypeKind::Function;
  signature.params.assign(f.value_types.begin(), f.value_types.begin() + f.param_count);
  const uint32_t signature_index = type_of(signature);

  Bytes attributes, body;
  const bool always_hints = target_ >= kSinceArgAttrs;
  if (always_hints || f.hints != kNone) {
    attributes.tag(AttrCode::Hints);
    if (f.hints != kNone) {
      dictionary(attributes, m_.attrs.get(f.hints));
    } else {
      attributes.varint(0);
    }
  }
  if (always_hints) {
    if (f.arg_attrs != kNone) {
      attribute(attributes, f.arg_attrs);
    } else {
      attributes.tag(AttrCode::Array);
      attributes.varint(0);
    }
  } else if (f.arg_attrs != kNone) {
    unsupported("parameters with attributes", kSinceArgAttrs);
  }
  write_body(body, f);

  out.varint(name);
  out.varint(signature_index);
  out.byte(kEntry | (!always_hints && f.hints != kNone ? kHasHints : 0));
  out.varint(place_list(index, std::move(locations_)));
  out.append(attributes);
  out.varint(body.size());
  out.append(body);
  f_ = nullptr;
  inst_ = kNone;
}

/// Gives a global its records where an operation first names it, which is where other writers declare it.
void Writer::declare_global(StringId name) {
  const auto it = globals_.find(name);
  if (it == globals_.end()) return;
  (void)any_string(name);
  (void)any_type(m_.attrs.get(it->second->value).type);
  (void)any_constant(it->second->value);
  globals_.erase(it);
}

void Writer::write_globals(Bytes& out) {
  uses_ = layout_->globals;
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
