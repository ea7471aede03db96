// Header, sections and tables of a tileirbc file.
#include <algorithm>
#include <cstring>

#include "assembler/tileirbc/reader.h"

namespace tile::tileirbc {

bool Reader::read_header(Cursor& c) {
  const size_t known = std::min(bytes_.size(), sizeof kMagic);
  if (known > 0 && std::memcmp(bytes_.data(), kMagic, known) != 0) {
    return fail(Code::E0102, 0, "the file does not start with the magic number of tileirbc");
  }
  if (bytes_.size() < kHeaderBytes) {
    return fail(Code::E0101, bytes_.size(),
                "the file has " + std::to_string(bytes_.size()) + " bytes, expected a header of 12");
  }
  const uint8_t* header = bytes_.data() + sizeof kMagic;
  version_ = {header[0], header[1]};
  module_.version = version_;
  const bool newer = version_.major == kNewestVersion.major && version_ > kNewestVersion;
  if (version_ < kOldestVersion || (version_ > kNewestVersion && !(newer && options_.partial))) {
    Place place;
    place.file = context_.file;
    place.byte_offset = sizeof kMagic;
    (void)context_.diags->error(
        Code::E0103, std::move(place),
        "bytecode version " + std::to_string(header[0]) + "." + std::to_string(header[1]) + ", expected 13.1 to 13.5",
        newer ? "13.5 is the newest version known; a partial reading shows what is known of a"
                " newer file"
              : "");
    return false;
  }
  if (newer) {
    partial_ = true;
    version_ = kNewestVersion;
  }
  const unsigned tag = header[2] | header[3] << 8;
  if (tag != 0) {
    return fail(
        Code::E0103, sizeof kMagic + 2,
        "version tag " + std::to_string(tag) + ", expected 0" + (tag & 1 ? " (bit 0 announces preview content)" : ""));
  }
  c = Cursor(context_, bytes_, kHeaderBytes, bytes_.size());
  return true;
}

bool Reader::find_sections(Cursor& c) {
  for (;;) {
    const size_t at = c.pos();
    uint8_t id = 0;
    if (!c.byte(id, "the end marker")) return false;
    if (id == 0) {
      if (c.left() != 0) return fail(Code::E0105, c.pos(), std::to_string(c.left()) + " bytes follow the end marker");
      return true;
    }
    const auto section = static_cast<Section>(id & ~kHasAlignment);
    if (section == Section::End) return fail(Code::E0105, at, "the end marker declares an alignment");
    const bool known = section < Section::kCount;
    const std::string unknown = "unknown section " + std::to_string(id & ~kHasAlignment);
    if (!known && !partial_) return fail(Code::E0105, at, unknown);
    const std::string name = known ? std::string("the ") + info(section).name + " section" : unknown;
    uint64_t length, alignment = 0;
    if (!c.varint(length, "the length of a section")) return false;
    if (id & kHasAlignment) {
      const size_t alignment_at = c.pos();
      if (!c.varint(alignment, "the alignment of a section")) return false;
      if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return fail(Code::E0105, alignment_at,
                    name + " declares alignment " + std::to_string(alignment) + ", expected a power of two");
      }
      if (!c.align(alignment, 0, "the padding of a section")) return false;
    }
    if (length > c.left()) {
      return fail(
          Code::E0105, at,
          name + " has " + std::to_string(length) + " bytes, but only " + std::to_string(c.left()) + " are left");
    }
    const Cursor payload = c.take(static_cast<size_t>(length));
    if (!known) {
      Diagnostic d;
      d.place.file = context_.file;
      d.place.byte_offset = static_cast<int64_t>(at);
      d.message = unknown;
      warn(d, "its " + std::to_string(length) + " bytes are not decoded");
      continue;
    }
    // Of two sections with one id the later one counts.
    sections_[static_cast<size_t>(section)] = {true, alignment, at, payload.pos(), c.pos()};
    std::erase_if(section_order_, [&](const SectionChoice& s) { return s.section == section; });
    section_order_.push_back(
        {section, alignment <= kMaxLayoutAlignment ? static_cast<uint32_t>(alignment) : info(section).alignment});
  }
}

void Reader::warn(const Diagnostic& d, const std::string& lost) {
  warnings_.warn(d.place, d.message + "; " + lost);
}

bool Reader::check_sections() {
  for (size_t s = 1; s < kSections; ++s) {
    const SectionInfo& i = kSectionInfo[s];
    const Payload& p = sections_[s];
    if (p.present && i.alignment != 0 && (p.alignment == 0 || p.alignment % i.alignment != 0)) {
      return fail(Code::E0105, p.at,
                  std::string("the ") + i.name + " section declares " +
                      (p.alignment == 0 ? std::string("no alignment") : "alignment " + std::to_string(p.alignment)) +
                      ", expected a multiple of " + std::to_string(i.alignment));
    }
  }
  for (Section s : {Section::Strings, Section::Functions}) {
    if (!sections_[static_cast<size_t>(s)].present) {
      return fail(Code::E0105, bytes_.size() - 1, std::string("there is no ") + info(s).name + " section");
    }
  }
  return true;
}

bool Reader::read_table(Cursor c, size_t origin, Section section, size_t width, Table& out) {
  out = {};
  out.width = width;
  const std::string name = std::string("the ") + info(section).name + " table";
  const size_t at = c.pos();
  if (!c.varint(out.count, "the count of a table")) return false;
  if (out.count == 0) return true;
  if (!c.align(width, origin, "the offsets of a table")) return false;
  if (out.count > c.left() / width) {
    return fail(Code::E0106, at,
                name + " has " + std::to_string(out.count) + " records, but only " + std::to_string(c.left()) +
                    " bytes are left for their offsets");
  }
  const size_t offset_bytes = static_cast<size_t>(out.count) * width;
  out.offsets = c.pos();
  out.data = out.offsets + offset_bytes;
  out.end = c.pos() + c.left();
  uint64_t previous = 0;
  for (uint64_t i = 0; i < out.count; ++i) {
    const size_t offset_at = out.offsets + static_cast<size_t>(i) * width;
    const uint64_t offset = c.load(offset_at, width);
    if (offset < previous || offset > out.end - out.data) {
      return fail(Code::E0106, offset_at,
                  "record " + std::to_string(i) + " of " + name + " starts at " + std::to_string(offset) +
                      ", expected " + std::to_string(previous) + " to " + std::to_string(out.end - out.data));
    }
    previous = offset;
  }
  return true;
}

Cursor Reader::record(const Table& t, uint64_t index) {
  const Cursor whole(context_, bytes_, 0, bytes_.size());
  const size_t at = t.offsets + static_cast<size_t>(index) * t.width;
  const size_t begin = t.data + static_cast<size_t>(whole.load(at, t.width));
  const size_t end = index + 1 < t.count ? t.data + static_cast<size_t>(whole.load(at + t.width, t.width)) : t.end;
  return Cursor(context_, bytes_, begin, end);
}

Cursor Reader::payload(Section s) {
  const Payload& p = sections_[static_cast<size_t>(s)];
  return Cursor(context_, bytes_, p.begin, p.end);
}

}  // namespace tile::tileirbc
