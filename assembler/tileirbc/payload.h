// Constants of tileirbc: between the bytes of a record and the storage form of Attr::bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vm/base/element_type.h"

namespace tile::tileirbc {

/// Decodes the payload of a constant of `elements` numbers; all elements equal become one.
/// @param elements  as TypeTable::element_count() gives them
/// @return          false if the payload's size does not fit the type
[[nodiscard]] bool decode_payload(ElementType e, int64_t elements, std::string_view in, std::string& out);

/// The payload that the writer makes of `stored`, a Dense attribute's bytes: one element alone stays alone.
[[nodiscard]] std::string encode_payload(ElementType e, std::string_view stored);

}  // namespace tile::tileirbc
