// The entry point of the reader, and the records of strings, producer, globals and functions.
#include <limits>

#include "assembler/tileirbc/reader.h"
#include "assembler/tileirbc/tileirbc.h"

namespace tile {

bool is_tileirbc(std::span<const uint8_t> bytes) {
  if (bytes.size() < sizeof tileirbc::kMagic) return false;
  for (size_t i = 0; i < sizeof tileirbc::kMagic; ++i)
    if (bytes[i] != tileirbc::kMagic[i]) return false;
  return true;
}

Result<Module> read_tileirbc(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags,
                             TileirbcReadOptions options) {
  return tileirbc::Reader(bytes, name, diags, options).read();
}

namespace tileirbc {

Reader::Reader(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags, TileirbcReadOptions options)
    : bytes_(bytes),
      context_{.diags = &diags, .file = name},
      warnings_(diags),
      options_(options),
      uses_left_(kUseFloor + kUsePerByte * uint64_t{bytes.size()}) {
  module_.file = name;
}

Result<Module> Reader::read() {
  if (bytes_.size() > kMaxFileBytes) {
    fail(Code::L0101, 0,
         "the file has " + std::to_string(bytes_.size()) + " bytes, the limit is " + std::to_string(kMaxFileBytes));
    return Failed;
  }
  Cursor c(context_, bytes_, 0, 0);
  if (!read_header(c) || !find_sections(c) || !check_sections()) return Failed;
  if (options_.layout && !partial_) layout_ = std::make_unique<TileirbcLayout>();
  const auto table = [&](Section s, Table& t) {
    if (!sections_[static_cast<size_t>(s)].present) return true;
    const Cursor p = payload(s);
    return read_table(p, p.pos(), s, info(s).alignment, t);
  };
  if (!table(Section::Strings, strings_)) return Failed;
  string_ids_.assign(static_cast<size_t>(strings_.count), kNone);
  if (!attempt("there is no producer", [&] { return read_producer(); })) return Failed;
  if (!table(Section::Types, types_) || !table(Section::Constants, constants_)) return Failed;
  type_ids_.assign(static_cast<size_t>(types_.count), kNone);
  module_.name = module_.strings.add("kernels");  // the form has no name for it; this is the one that public tools give
  if (!attempt("the other globals are not decoded", [&] { return read_globals(); })) return Failed;
  if (!attempt("the other functions are not decoded", [&] { return read_functions(); })) return Failed;
  if (layout_) keep_uses();
  if (!attempt("there are no locations", [&] { return read_debug(); })) return Failed;
  if (layout_) keep_layout();
  return std::move(module_);
}

bool Reader::string(Cursor& c, StringId& out, const char* what) {
  const size_t at = c.pos();
  uint64_t index;
  if (!c.varint(index, what)) return false;
  if (index >= strings_.count) {
    return fail(Code::E0107, at,
                std::string(what) + " is string " + std::to_string(index) + ", but there are only " +
                    std::to_string(strings_.count));
  }
  if (layout_) layout_->string_uses.push_back(static_cast<uint32_t>(index));
  StringId& id = string_ids_[static_cast<size_t>(index)];
  if (id == kNone) {
    const Cursor r = record(strings_, index);
    id = module_.strings.add({reinterpret_cast<const char*>(r.data()), r.left()});
  }
  out = id;
  return charge(module_.str(id).size(), at);
}

bool Reader::charge(uint64_t bytes, size_t at) {
  if (bytes > uses_left_)
    return fail(Code::L0103, at, "strings, constants and signatures are used so often that they exceed the limit");
  uses_left_ -= bytes;
  return true;
}

bool Reader::read_producer() {
  if (!sections_[static_cast<size_t>(Section::Producer)].present) return true;
  Cursor c = payload(Section::Producer);
  return string(c, module_.producer, "the producer");  // accepted in files older than the section, too
}

bool Reader::read_globals() {
  if (!sections_[static_cast<size_t>(Section::Globals)].present) return true;
  if (layout_) layout_->globals = here();
  Cursor c = payload(Section::Globals);
  const bool with_flags = version_ >= kSinceGlobalFlags;
  uint64_t count;
  if (!c.count(count, with_flags ? 6 : 4, Code::E0106, "the number of globals")) return false;
  for (uint64_t i = 0; i < count; ++i) {
    Global g;
    size_t at = c.pos();
    if (!string(c, g.name, "the name of a global")) return false;
    if (module_.str(g.name).empty()) return fail(Code::E0110, at, "global " + std::to_string(i) + " has an empty name");
    const std::string name = "global @" + std::string(module_.str(g.name));
    TypeId t;
    at = c.pos();
    if (!type(c, t, "the type of a global")) return false;
    if (!module_.types.is_tile(t))
      return fail(Code::E0108, at, name + " has type " + module_.types.print(t) + ", expected a tile");
    if (!dense(c, t, g.value) || !c.varint(g.alignment, "the alignment of a global")) return false;
    if (with_flags) {
      uint64_t visibility, constant;
      at = c.pos();
      if (!c.varint(visibility, "the visibility of a global")) return false;
      if (visibility > 1)
        return fail(Code::E0110, at, name + " has visibility " + std::to_string(visibility) + ", expected 0 or 1");
      if (!c.varint(constant, "the constant mark of a global")) return false;
      g.visibility = static_cast<uint32_t>(visibility);
      g.constant = constant != 0;
    }
    module_.order.push_back(Module::kGlobalBit | static_cast<uint32_t>(module_.globals.size()));
    module_.globals.push_back(g);
  }
  return true;
}

bool Reader::read_functions() {
  Cursor c = payload(Section::Functions);
  uint64_t count;
  if (!c.count(count, 5, Code::E0106, "the number of functions")) return false;
  module_.functions.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i)
    if (!read_function(c)) return false;
  if (layout_ && c.left() != 0 && c.left() < info(Section::Functions).alignment) {
    Cursor rest = c;
    layout_->functions_padded =
        rest.align(info(Section::Functions).alignment, payload(Section::Functions).pos(), "") && rest.left() == 0;
  }
  return true;
}

bool Reader::read_function(Cursor& c) {
  Function f;
  size_t at = c.pos();
  FunctionChoice choice;
  if (layout_) choice.uses = here();
  context_.instruction = -1;
  context_.function.clear();
  if (!string(c, f.name, "the name of a function")) return false;
  if (module_.str(f.name).empty()) {
    return fail(Code::E0111, at, "function " + std::to_string(module_.functions.size()) + " has an empty name");
  }
  context_.function = module_.str(f.name);

  TypeId signature;
  at = c.pos();
  if (!type(c, signature, "the signature of a function")) return false;
  if (module_.types.get(signature).kind != TypeKind::Function) {
    return fail(Code::E0111, at, "the signature is " + module_.types.print(signature) + ", expected a function type");
  }
  const std::vector<TypeId> params = module_.types.get(signature).params;
  if (params.size() > kMaxParams) {
    return fail(Code::L0103, at,
                "the function has " + std::to_string(params.size()) + " parameters, the limit is " +
                    std::to_string(kMaxParams));
  }
  if (!charge(params.size() * sizeof(TypeId), at)) return false;
  if (!module_.types.get(signature).results.empty())
    return fail(Code::E0704, at, "the entry has results, expected none");

  uint8_t flags = 0;
  uint64_t location;
  at = c.pos();
  if (!c.byte(flags, "the flags of a function") || !c.varint(location, "the location of a function")) return false;
  const bool always_hints = version_ >= kSinceArgAttrs;
  const unsigned known = kPrivate | kEntry | (always_hints ? 0 : kHasHints);
  if (flags & ~known) return fail(Code::E0111, at, "function flags " + std::to_string(flags) + " have unknown bits");
  if (!(flags & kEntry)) return fail(Code::E0111, at, "the function is no entry; device functions are preview content");
  if (flags & kPrivate) return fail(Code::E0704, at, "the entry is private, expected public");

  at = c.pos();
  AttrId hints = kNone, arg_attrs = kNone;
  const bool has_hints = always_hints || (flags & kHasHints);
  uint64_t hint_tag = 0;
  if (has_hints) {
    Cursor peek = c;
    if (!peek.varint(hint_tag, "the hints of a function") || !attribute(c, hints)) return false;
  }
  if (always_hints && !attribute(c, arg_attrs)) return false;
  if (has_hints && hint_tag != static_cast<uint64_t>(AttrCode::Hints)) {
    return fail(Code::E0111, at, "the hints have attribute tag " + std::to_string(hint_tag) + ", expected 11");
  }
  if (arg_attrs != kNone) {
    const Attr& a = module_.attrs.get(arg_attrs);
    if (a.tag != AttrTag::Array) return fail(Code::E0111, at, "the attributes of the parameters are no array");
    for (AttrId item : a.items) {
      if (module_.attrs.get(item).tag != AttrTag::Dictionary) {
        return fail(Code::E0111, at, "the attributes of a parameter are no dictionary");
      }
    }
    if (!a.items.empty()) f.arg_attrs = arg_attrs;
  }
  // Where hints are always written, an empty dictionary says that there are none.
  if (has_hints && !(always_hints && module_.attrs.get(hints).entries.empty())) f.hints = hints;

  at = c.pos();
  uint64_t length;
  if (!c.varint(length, "the length of a function's body")) return false;
  if (length > c.left()) {
    return fail(
        Code::E0111, at,
        "the body has " + std::to_string(length) + " bytes, but only " + std::to_string(c.left()) + " are left");
  }
  Cursor body = c.take(static_cast<size_t>(length));
  module_.order.push_back(static_cast<uint32_t>(module_.functions.size()));
  module_.functions.push_back(std::move(f));
  debug_lists_.push_back(location);
  choice.location = location;
  if (layout_) layout_->functions.push_back(choice);
  FunctionBuilder builder(module_.functions.back(), params);
  if (!partial_) return read_body(body, builder);
  Diagnostics reasons;
  Diagnostics* const outer = std::exchange(context_.diags, &reasons);
  const bool whole = read_body(body, builder);
  context_.diags = outer;
  if (whole) return true;
  warn(*reasons.first_error(), "the rest of the function is not decoded");
  abandon_body(builder, *reasons.first_error());
  return true;
}

}  // namespace tileirbc
}  // namespace tile
