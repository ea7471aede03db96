// tilebc -> Module, in the trust order size, identifier and version, FlatBuffers verifier, structure: the entry point,
// and the records of strings, globals and functions. Every index is compared with its table and every count with what
// is left before it is used.
#include <algorithm>

#include "vm/codec/decoder.h"
#include "vm/codec/tilebc.h"

namespace tile {
namespace {

template <class V>
uint32_t size_of(const V* v) {
  return v ? v->size() : 0;
}

/// The major version, read before the rest is verified: another major may have another schema. 0 if there is none.
uint32_t peek_major(const uint8_t* data, size_t size) {
  flatbuffers::Verifier verifier(data, size, kMaxTilebcDepth, kMaxTilebcTables);
  const size_t root = verifier.VerifyOffset(0);
  if (root == 0) return 0;
  const auto* table = reinterpret_cast<const flatbuffers::Table*>(data + root);
  constexpr auto field = bc::Module::VT_FORMAT_MAJOR;
  if (!table->VerifyTableStart(verifier) || !table->VerifyField<uint16_t>(verifier, field, sizeof(uint16_t))) return 0;
  return table->GetField<uint16_t>(field, 0);
}

std::string version_text(uint32_t major, uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

bool is_tilebc(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMinTilebcBytes && flatbuffers::BufferHasIdentifier(bytes.data(), bc::ModuleIdentifier());
}

Result<Module> decode_tilebc(std::span<const uint8_t> bytes, const std::string& name, Diagnostics& diags) {
  Place place;
  place.file = name;
  const auto fail = [&](Code code, const std::string& message, int64_t offset = -1) {
    place.byte_offset = offset;
    return diags.error(code, place, message);
  };
  if (bytes.size() > kMaxTilebcBytes)
    return fail(Code::L0101, "the file has " + std::to_string(bytes.size()) + " bytes, the limit is " +
                                 std::to_string(kMaxTilebcBytes));
  if (bytes.size() < kMinTilebcBytes)
    return fail(
        Code::E0201,
        "the file has " + std::to_string(bytes.size()) + " bytes, expected at least " + std::to_string(kMinTilebcBytes),
        0);
  if (!is_tilebc(bytes)) return fail(Code::E0202, "bytes 4 to 7 are not the identifier TILE", 4);
  // The verifier wants an aligned buffer; callers may hold any.
  std::vector<uint64_t> aligned;
  const uint8_t* data = bytes.data();
  if (reinterpret_cast<uintptr_t>(data) % alignof(uint64_t) != 0) {
    aligned.resize((bytes.size() + 7) / 8);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(aligned.data()));
    data = reinterpret_cast<const uint8_t*>(aligned.data());
  }
  if (const uint32_t major = peek_major(data, bytes.size()); major != kTilebcMajor && major != 0)
    return fail(Code::E0203, "the file is tilebc " + std::to_string(major) + ", this program reads " +
                                 version_text(kTilebcMajor, kTilebcMinor));
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxTilebcDepth, kMaxTilebcTables);
  if (!bc::VerifyModuleBuffer(verifier))
    return fail(Code::E0204, "the FlatBuffers structure is damaged or the file is cut off");
  const bc::Module& root = *bc::GetModule(data);
  // Writers stamp the lowest versions that say what the module needs, so a newer stamp means fields that would be
  // missed here.
  if (root.format_major() != kTilebcMajor || root.format_minor() > kTilebcMinor)
    return fail(Code::E0203, "the file is tilebc " + version_text(root.format_major(), root.format_minor()) +
                                 ", this program reads up to " + version_text(kTilebcMajor, kTilebcMinor));
  if (root.version_minor() < kOldestVersion.minor || root.version_minor() > kNewestVersion.minor)
    return fail(Code::E0203, "the program needs Tile IR " + version_text(kOldestVersion.major, root.version_minor()) +
                                 ", this program knows " + version_text(kOldestVersion.major, kOldestVersion.minor) +
                                 " to " + version_text(kNewestVersion.major, kNewestVersion.minor));
  return TilebcDecoder(root, bytes.size(), name, diags).run();
}

TilebcDecoder::TilebcDecoder(const bc::Module& root, size_t file_bytes, const std::string& name, Diagnostics& diags)
    : root_(root),
      diags_(diags),
      version_{kOldestVersion.major, root.version_minor()},
      uses_left_(kTilebcUseFloor + kTilebcUsePerByte * uint64_t{file_bytes}) {
  m_.file = name;
}

Result<Module> TilebcDecoder::run() {
  if (strings() && types() && attributes() && scopes() && locs() && globals() && functions() && order())
    return std::move(m_);
  return Failed;
}

bool TilebcDecoder::fail(Code code, const std::string& message) {
  Place p;
  p.file = m_.file;
  p.function = function_;
  p.instruction = inst_;
  p.op = op_;
  (void)diags_.error(code, std::move(p), message);
  return false;
}

bool TilebcDecoder::charge(uint64_t bytes) {
  if (bytes > uses_left_)
    return fail(Code::L0103, "records, strings and attributes are shared so often that their uses exceed the limit");
  uses_left_ -= bytes;
  return true;
}

bool TilebcDecoder::numbers(const Vector<int64_t>* from, std::vector<int64_t>& to) {
  if (!from) return true;
  if (reinterpret_cast<uintptr_t>(from->Data()) % alignof(int64_t) != 0)
    return fail(Code::E0204, "a vector of 64-bit numbers is not aligned");
  if (!charge_vector(from, sizeof(int64_t))) return false;
  to.assign(from->begin(), from->end());
  return true;
}

bool TilebcDecoder::find(uint32_t index, const Ids& ids, const char* what, uint32_t& out, bool optional) {
  out = kNone;
  if (index == kNone && optional) return true;
  if (index >= ids.size()) {
    const std::string found = index == kNone ? "is missing" : std::to_string(index);
    return fail(Code::E0205,
                std::string(what) + " " + found + ", but there are only " + std::to_string(ids.size()) + " here");
  }
  out = ids[index];
  return true;
}

bool TilebcDecoder::string(uint32_t index, const char* what, StringId& out, bool optional) {
  if (!find(index, string_ids_, what, out, optional)) return false;
  return out == kNone || charge(m_.str(out).size());
}

bool TilebcDecoder::use_attr(uint32_t index, const char* what, AttrId& out, bool optional) {
  if (!find(index, attr_ids_, what, out, optional)) return false;
  return out == kNone || charge(attr_cost_[index]);
}

bool TilebcDecoder::nested(uint32_t depth, const char* what) {
  return depth <= kMaxTilebcNesting ||
         fail(Code::L0102, std::string(what) + " nest more than " + std::to_string(kMaxTilebcNesting) + " levels deep");
}

bool TilebcDecoder::strings() {
  for (uint32_t i = 0; i < size_of(root_.strings()); ++i) {
    const auto* s = root_.strings()->Get(i);
    if (!charge(s->size())) return false;
    string_ids_.push_back(m_.strings.add({s->c_str(), s->size()}));
  }
  m_.version = version_;
  return string(root_.name(), "string", m_.name, true) && string(root_.producer(), "string", m_.producer, true);
}

bool TilebcDecoder::globals() {
  for (uint32_t i = 0; i < size_of(root_.globals()); ++i) {
    const bc::GlobalData& g = *root_.globals()->Get(i);
    Global out;
    if (!charge(sizeof(Global)) || !string(g.name(), "string", out.name) ||
        !use_attr(g.value(), "attribute", out.value))
      return false;
    if (m_.attrs.get(out.value).tag != AttrTag::Dense)
      return record_fault(Code::E0209, "global", i, "its value is not a dense constant");
    if (g.visibility() >= enum_info(EnumKind::Visibility).values.size())
      return record_fault(Code::E0209, "global", i, "unknown visibility " + std::to_string(g.visibility()));
    out.alignment = g.alignment();
    out.visibility = g.visibility();
    out.constant = g.constant();
    m_.globals.push_back(out);
  }
  return true;
}

bool TilebcDecoder::functions() {
  for (uint32_t i = 0; i < size_of(root_.functions()); ++i) {
    if (!function(*root_.functions()->Get(i))) return false;
    function_.clear();
    inst_ = -1;
    op_ = {};
  }
  return true;
}

bool TilebcDecoder::function(const bc::Function& f) {
  // In memory an instruction takes a few times the bytes that it has in the file; none of these vectors is shared by
  // honest writers.
  constexpr uint64_t kWeight = 16;
  if (!charge(1024) || !charge_vector(f.params(), 4, kWeight) || !charge_vector(f.insts(), sizeof(bc::Inst), kWeight) ||
      !charge_vector(f.words(), 4, kWeight) || !charge_vector(f.regions(), sizeof(bc::Region), kWeight) ||
      !charge_vector(f.value_names(), sizeof(bc::ValueName), kWeight) ||
      !charge_vector(f.extras(), sizeof(bc::Extra), kWeight))
    return false;
  Function& out = m_.functions.emplace_back();
  if (!string(f.name(), "string", out.name)) return false;
  function_ = m_.str(out.name);
  if (!find(f.loc(), loc_ids_, "location", out.loc) || !use_attr(f.hints(), "attribute", out.hints, true) ||
      !use_attr(f.arg_attrs(), "attribute", out.arg_attrs, true))
    return false;
  if (out.hints != kNone && m_.attrs.get(out.hints).tag != AttrTag::Dictionary)
    return fail(Code::E0209, "the hints are no dictionary");
  if (out.arg_attrs != kNone && m_.attrs.get(out.arg_attrs).tag != AttrTag::Array)
    return fail(Code::E0209, "the attributes of the parameters are no array");
  return body(f, out);
}

bool TilebcDecoder::order() {
  const size_t globals = m_.globals.size(), functions = m_.functions.size();
  if (size_of(root_.order()) == 0) {
    for (size_t k = 0; k < globals; ++k) m_.order.push_back(static_cast<uint32_t>(k) | Module::kGlobalBit);
    for (size_t k = 0; k < functions; ++k) m_.order.push_back(static_cast<uint32_t>(k));
    return true;
  }
  if (root_.order()->size() != globals + functions)
    return fail(Code::E0205, "the order has " + std::to_string(root_.order()->size()) + " items, expected " +
                                 std::to_string(globals + functions));
  std::vector<bool> seen(globals + functions);
  for (const uint32_t item : *root_.order()) {
    const bool global = (item & Module::kGlobalBit) != 0;
    const size_t k = item & ~Module::kGlobalBit;
    if (k >= (global ? globals : functions))
      return fail(Code::E0205, std::string("the order names ") + (global ? "global " : "function ") +
                                   std::to_string(k) + ", which does not exist");
    const size_t position = global ? functions + k : k;
    if (seen[position])
      return fail(Code::E0205,
                  std::string("the order names ") + (global ? "global " : "function ") + std::to_string(k) + " twice");
    seen[position] = true;
    m_.order.push_back(item);
  }
  return true;
}

}  // namespace tile
