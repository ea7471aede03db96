// Diagnostics for programs: one JSON object on each line. Parts of a place that are not known are left out.
#include <nlohmann/json.hpp>

#include "vm/base/diagnostics.h"

namespace tile {
namespace {

// Keys stay in the order in which they are written, so that equal diagnostics give equal bytes.
using Json = nlohmann::ordered_json;

void put(Json& out, const char* key, const std::string& value) {
  if (!value.empty()) out[key] = value;
}

void put(Json& out, const char* key, int64_t value) {
  if (value >= 0) out[key] = value;
}

void put_place(Json& out, const Place& p) {
  put(out, "file", p.source ? p.source->name() : p.file);
  if (p.source && p.span.valid()) {
    const auto [line, col] = p.source->line_col(p.span.begin);
    out["line"] = line;
    out["column"] = col;
    out["length"] = p.span.length;
  }
  put(out, "byte_offset", p.byte_offset);
  put(out, "function", p.function);
  put(out, "instruction", p.instruction);
  put(out, "op", p.op);
  put(out, "operand", p.operand);
  put(out, "operand_name", p.operand_name);
  put(out, "printed", p.printed);
  put(out, "argument", p.argument);
  put(out, "debug_loc", p.debug_loc);
}

}  // namespace

std::string render_json(const Diagnostics& d) {
  std::string out;
  for (const Diagnostic& one : d.all()) {
    const CodeInfo& info = code_info(one.code);
    Json object;
    object["code"] = info.name;
    object["class"] = class_name(info.cls);
    object["subclass"] = one.subclass.empty() ? info.subclass : one.subclass;
    object["severity"] = info.cls == FailureClass::Warning ? "warning" : "error";
    object["message"] = one.message;
    put_place(object, one.place);
    put(object, "help", one.help);
    if (!one.notes.empty()) {
      Json notes = Json::array();
      for (const Note& note : one.notes) {
        Json entry;
        entry["message"] = note.message;
        put_place(entry, note.place);
        notes.push_back(std::move(entry));
      }
      object["notes"] = std::move(notes);
    }
    // Names come from input and may be any bytes: what is not UTF-8 becomes U+FFFD instead of an exception.
    out += object.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  }
  return out;
}

}  // namespace tile
