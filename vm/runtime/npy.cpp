// NumPy types against element types, byte order, and the packing of f4.
#include "vm/runtime/npy.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "vm/runtime/atomic_file.h"
#include "vm/runtime/npy_header.h"

namespace tile {
namespace {

std::string name_of(ElementType type) {
  return std::string(info(type).name);
}

/// Bytes an element takes in a .npy file: as in memory, but f4 unpacked, one byte each.
int64_t npy_item_size(ElementType type) {
  return std::max<int64_t>(info(type).memory_bits / 8, 1);
}

/// What a file says by itself; nothing for raw and foreign types.
std::optional<ElementType> natural_type(const NpyHeader& h) {
  if (h.kind == 'b' && h.item_size == 1) return ElementType::I1;
  if (h.kind == 'i' || h.kind == 'u') {
    switch (h.item_size) {
      case 1:
        return ElementType::I8;
      case 2:
        return ElementType::I16;
      case 4:
        return ElementType::I32;
      case 8:
        return ElementType::I64;
      default:
        return std::nullopt;
    }
  }
  if (h.kind == 'f') {
    switch (h.item_size) {
      case 1:
        return ElementType::F8E5M2;  // written by ml_dtypes for float8_e5m2 alone; NumPy cannot read it back
      case 2:
        return ElementType::F16;
      case 4:
        return ElementType::F32;
      case 8:
        return ElementType::F64;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

/// NumPy types that hold `type`, for messages.
std::string accepted_for(ElementType type) {
  const std::string size = std::to_string(npy_item_size(type));
  const std::string raw = "'V" + size + "' or 'u" + size + "'";
  switch (type) {
    case ElementType::I1:
      return "'b1' or 'u1'";
    case ElementType::I8:
    case ElementType::I16:
    case ElementType::I32:
    case ElementType::I64:
      return "'i" + size + "' or 'u" + size + "'";
    case ElementType::F16:
    case ElementType::F32:
    case ElementType::F64:
    case ElementType::TF32:
      return "'f" + size + "' or 'u" + size + "'";
    case ElementType::F8E5M2:
      return "'f1', 'V1' or 'u1'";
    default:
      return raw;
  }
}

bool holds(const NpyHeader& h, ElementType type) {
  if (h.item_size != npy_item_size(type)) return false;
  if (h.kind == 'u') return true;
  const auto natural = natural_type(h);
  if (natural) return *natural == type || (*natural == ElementType::F32 && type == ElementType::TF32);
  const bool numpy_knows =
      info(type).is_int || type == ElementType::F16 || type == ElementType::F32 || type == ElementType::F64;
  return h.kind == 'V' && !numpy_knows;
}

std::string kind_name(const NpyHeader& h) {
  switch (h.kind) {
    case 'O':
      return "Python objects";
    case 'U':
      return "text";
    case 'S':
    case 'a':
      return "byte strings";
    case 'c':
      return "complex numbers";
    case 'M':
    case 'm':
      return "times";
    case 'V':
      return "raw bytes";
    case 'f':
      return "floats of " + std::to_string(h.item_size) + " bytes";
    case 'i':
    case 'u':
      return "integers of " + std::to_string(h.item_size) + " bytes";
    default:
      return "of an unknown kind";
  }
}

Result<ElementType> element_type(const NpyHeader& h, std::optional<ElementType> as, const Place& place,
                                 Diagnostics& diags) {
  const std::string found = "the element type is '" + h.descr + "'";
  if (as) {
    if (info(*as).memory_bits == 0 || *as == ElementType::Ptr) {
      return diags.error(Code::E0806, place, "element type " + name_of(*as) + " cannot be in an array");
    }
    if (holds(h, *as)) return *as;
    return diags.error(
        Code::E0806, place, found + ", expected " + accepted_for(*as) + " for " + name_of(*as),
        natural_type(h) ? "name the type that the file holds, or convert the file with NumPy's astype" : "");
  }
  if (const auto natural = natural_type(h)) return *natural;
  if (h.kind == 'V' && (h.item_size == 1 || h.item_size == 2)) {
    return diags.error(Code::E0806, place, found + " (raw bytes), which does not say what the numbers are",
                       h.item_size == 2
                           ? "write the type before the file name: bf16:FILE"
                           : "write the type before the file name: f8E4M3FN:FILE, f8E5M2:FILE, f8E8M0FNU:FILE or "
                             "f4E2M1FN:FILE");
  }
  return diags.error(Code::E0806, place,
                     found + " (" + kind_name(h) + "), expected b1, i1, i2, i4, i8, u1, u2, u4, u8, f2, f4 or f8",
                     "convert the array with NumPy's astype before saving it");
}

template <class T>
void swap_all(uint8_t* data, size_t bytes) {
  for (size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) std::reverse(data + i, data + i + sizeof(T));
}

void swap_bytes(uint8_t* data, size_t bytes, int64_t item) {
  if (item == 2) swap_all<uint16_t>(data, bytes);
  if (item == 4) swap_all<uint32_t>(data, bytes);
  if (item == 8) swap_all<uint64_t>(data, bytes);
}

/// Delivers the next bytes of the data; false after an error, which is reported.
using Fill = std::function<bool(uint8_t* to, size_t bytes)>;

Result<Array> read_data(const NpyHeader& h, std::optional<ElementType> as, int64_t available, const Fill& fill,
                        const Place& place, Diagnostics& diags, const ArrayLimits& limits) {
  const auto type = element_type(h, as, place, diags);
  if (!type) return Failed;
  const auto count = element_count(h.shape);
  const auto strides = h.fortran_order ? column_major_strides(h.shape) : row_major_strides(h.shape);
  int64_t bytes = 0;
  if (!count || !strides || __builtin_mul_overflow(*count, h.item_size, &bytes)) {
    return diags.error(Code::E0806, place, "the shape " + show_list(h.shape) + " has more than 2^63 - 1 bytes");
  }
  // Compared before memory is taken: a short file cannot ask for a large array. Pipes have no size and meet the limit
  // instead.
  if (available >= 0 && available != bytes) {
    return diags.error(Code::E0806, place,
                       "the data has " + std::to_string(available) + " bytes, expected " + std::to_string(bytes) +
                           " for '" + h.descr + "' and shape " + show_list(h.shape));
  }
  auto array = make_array(*type, h.shape, *strides, limits, place, diags);
  if (!array) return Failed;
  uint8_t* data = array->memory.data();
  if (info(*type).memory_bits != 4) {
    if (!fill(data, static_cast<size_t>(bytes))) return Failed;
    if (h.order == '>' && h.kind != 'V') swap_bytes(data, static_cast<size_t>(bytes), h.item_size);
    if (h.kind == 'b') {
      for (int64_t i = 0; i < bytes; ++i) data[i] = data[i] != 0;
    }
    return array;
  }
  uint8_t chunk[4096];
  for (int64_t done = 0; done < bytes;) {
    const int64_t n = std::min<int64_t>(bytes - done, sizeof chunk);
    if (!fill(chunk, static_cast<size_t>(n))) return Failed;
    for (int64_t i = 0; i < n; ++i) {
      if (chunk[i] > 15) {
        return diags.error(Code::E0806, place,
                           "byte " + std::to_string(done + i) + " of the data is " + std::to_string(chunk[i]) +
                               ", expected 0 to 15 for " + name_of(*type) + ", one element a byte");
      }
      store_bits(data, *type, done + i, chunk[i]);
    }
    done += n;
  }
  return array;
}

/// As NumPy writes each type, ml_dtypes included, except that f8E5M2 is raw: NumPy cannot read the 'f1' that it writes.
const char* descr_of(ElementType type) {
  switch (type) {
    case ElementType::I1:
      return "|b1";
    case ElementType::I8:
      return "|i1";
    case ElementType::I16:
      return "<i2";
    case ElementType::I32:
      return "<i4";
    case ElementType::I64:
      return "<i8";
    case ElementType::F16:
      return "<f2";
    case ElementType::BF16:
      return "<V2";
    case ElementType::F32:
    case ElementType::TF32:
      return "<f4";
    case ElementType::F64:
      return "<f8";
    default:
      return "<V1";
  }
}

struct Encoded {
  std::string header;
  std::vector<uint8_t> gathered;  ///< the data where it had to be rearranged
  std::span<const uint8_t> data;
};

Encoded encode_npy(const ArrayView& a) {
  Encoded out;
  const bool c_order = is_row_major(a);
  const bool fortran = !c_order && is_column_major(a);
  // A bool file with a byte other than 0 and 1 would come back changed.
  bool plain_bool = a.type == ElementType::I1;
  if (plain_bool) {
    for_each_element(a, [&](int64_t, int64_t position) { plain_bool &= a.data[position] <= 1; });
  }
  out.header = format_npy_header(a.type == ElementType::I1 && !plain_bool ? "|u1" : descr_of(a.type), fortran, a.shape);
  const int64_t count = a.count();
  const int64_t item = npy_item_size(a.type);
  if ((c_order || fortran) && info(a.type).memory_bits != 4) {
    out.data = {a.data + (count ? a.offset * item : 0), static_cast<size_t>(count * item)};
    return out;
  }
  ArrayView order = a;
  if (fortran) {
    std::reverse(order.shape.begin(), order.shape.end());
    std::reverse(order.strides.begin(), order.strides.end());
  }
  out.gathered.resize(static_cast<size_t>(count * item));
  for_each_element(order, [&](int64_t linear, int64_t position) {
    const uint64_t bits = load_bits(a.data, a.type, position);
    std::memcpy(out.gathered.data() + linear * item, &bits, static_cast<size_t>(item));
  });
  out.data = out.gathered;
  return out;
}

}  // namespace

Result<Array> read_npy(std::span<const uint8_t> bytes, std::optional<ElementType> as, const Place& place,
                       Diagnostics& diags, const ArrayLimits& limits) {
  const auto header = parse_npy_header(bytes, place, diags);
  if (!header) return Failed;
  bytes = bytes.subspan(header->data_begin);
  const Fill fill = [&](uint8_t* to, size_t n) {
    if (n != 0) std::memcpy(to, bytes.data(), n);
    bytes = bytes.subspan(n);
    return true;
  };
  return read_data(*header, as, static_cast<int64_t>(bytes.size()), fill, place, diags, limits);
}

Result<Array> load_npy(const std::string& path, std::optional<ElementType> as, const Place& place, Diagnostics& diags,
                       const ArrayLimits& limits) {
  auto file = InputFile::open(path, diags);
  if (!file) return Failed;
  Place where = place;
  where.file = path;
  std::vector<uint8_t> head(kNpyPrefix);
  const int64_t prefix = file->read(head.data(), head.size(), diags);
  if (prefix < 0) return Failed;
  head.resize(static_cast<size_t>(prefix));
  const auto end = npy_header_end(head, where, diags);
  if (!end) return Failed;
  // A header of fewer than two bytes ends before the prefix does; parsing it fails.
  const size_t old = std::min(head.size(), *end);
  head.resize(*end);
  const int64_t rest = file->read(head.data() + old, *end - old, diags);
  if (rest < 0) return Failed;
  head.resize(old + static_cast<size_t>(rest));
  const auto header = parse_npy_header(head, where, diags);
  if (!header) return Failed;
  int64_t delivered = 0;
  const Fill fill = [&](uint8_t* to, size_t bytes) {
    const int64_t n = file->read(to, bytes, diags);
    if (n < 0) return false;
    delivered += n;
    if (static_cast<size_t>(n) == bytes) return true;
    (void)diags.error(Code::E0806, where,
                      "the file ends inside its data, after " + std::to_string(delivered) + " bytes of it");
    return false;
  };
  const int64_t available = file->size() < 0 ? -1 : file->size() - static_cast<int64_t>(header->data_begin);
  return read_data(*header, as, available, fill, where, diags, limits);
}

std::vector<uint8_t> write_npy(const ArrayView& a) {
  const Encoded encoded = encode_npy(a);
  std::vector<uint8_t> out(encoded.header.begin(), encoded.header.end());
  out.insert(out.end(), encoded.data.begin(), encoded.data.end());
  return out;
}

Status save_npy(const std::string& path, const ArrayView& a, Diagnostics& diags) {
  const Encoded encoded = encode_npy(a);
  const std::span<const uint8_t> pieces[] = {
      {reinterpret_cast<const uint8_t*>(encoded.header.data()), encoded.header.size()}, encoded.data};
  return write_file(path, pieces, diags);
}

}  // namespace tile
