// Reading the mailbox. A kernel that went wrong may have written anything there, so nothing in it is trusted.
#include "backend/device/mailbox.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "vm/interp/print_text.h"

namespace tile {
namespace {

Mailbox header(std::span<const std::byte> memory) {
  Mailbox box{};
  if (memory.size() >= sizeof box) std::memcpy(&box, memory.data(), sizeof box);
  return box;
}

std::optional<Code> trap_code(uint32_t number) {
  char name[16];
  std::snprintf(name, sizeof name, "T%04u", number);
  for (uint16_t c = 0; c < static_cast<uint16_t>(Code::kCount); ++c)
    if (std::strcmp(code_info(static_cast<Code>(c)).name, name) == 0) return static_cast<Code>(c);
  return std::nullopt;
}

std::string block_text(const uint32_t (&block)[3]) {
  return "(" + std::to_string(block[0]) + ", " + std::to_string(block[1]) + ", " + std::to_string(block[2]) + ")";
}

}  // namespace

std::string trap_words(Code code, const Module& module, const Function& entry, InstId inst) {
  if (code == Code::T0102) {
    const OpDef& def = entry.def(inst);
    if (const int a = attr_index(def, "message"); a >= 0 && def.name == "assert")
      return "assert: " + std::string(module.str(entry.attr(inst, static_cast<size_t>(a))));
  }
  return std::string(entry.def(inst).name) + ": " + code_info(code).meaning;
}

size_t mailbox_size(const Module& module) {
  const auto prints = [](const Function& f) { return std::any_of(f.insts.begin(), f.insts.end(), [](const auto& i) { return i.op == Opcode::PrintTko; }); };
  return sizeof(Mailbox) + (std::any_of(module.functions.begin(), module.functions.end(), prints) ? kPrintRingBytes : 0);
}

void reset_mailbox(std::span<std::byte> memory) {
  // Only what was written is cleared: the ring is large and mostly untouched.
  const auto ring = memory.subspan(sizeof(Mailbox));
  std::fill_n(ring.begin(), std::min<uint64_t>(header(memory).head, ring.size()), std::byte{0});
  Mailbox box{};
  box.ring_bytes = static_cast<uint32_t>(ring.size());
  std::memcpy(memory.data(), &box, sizeof box);
}

bool report_trap(std::span<const std::byte> memory, const Module& module, const Function& entry, Diagnostics& diags, const LinearGrid* linear) {
  Mailbox box = header(memory);
  if (box.trap == 0) return false;
  if (linear) {
    const uint64_t x = std::max(1u, linear->grid[0]), y = std::max(1u, linear->grid[1]), number = box.block[0] + linear->first;
    box.block[0] = static_cast<uint32_t>(number % x);
    box.block[1] = static_cast<uint32_t>(number / x % y);
    box.block[2] = static_cast<uint32_t>(number / x / y);
  }
  const auto code = trap_code(box.code);
  const std::string where = ", in block " + block_text(box.block);
  if (!code) {
    (void)diags.error(Code::I0001, module.place(entry), "the kernel ended with the unknown fault " + std::to_string(box.code) + where);
    return true;
  }
  if (box.inst >= entry.insts.size()) {
    (void)diags.error(*code, module.place(entry), code_info(*code).meaning + where);
    return true;
  }
  (void)diags.error(*code, module.place(entry, box.inst), trap_words(*code, module, entry, box.inst) + where);
  return true;
}

std::string format_print_record(const PrintRecord& record, const Module& module, const Function& entry) {
  const auto unknown = [&](const std::string& what) {
    return what + " in block " + block_text(record.block) + ": a record of " + std::to_string(record.payload.size()) + " bytes of unknown form\n";
  };
  if (record.inst >= entry.insts.size()) return unknown("operation " + std::to_string(record.inst));
  if (entry.insts[record.inst].op != Opcode::PrintTko) return unknown(std::string(entry.def(record.inst).name));
  std::vector<PrintValue> values;
  uint64_t at = 0;
  for (const ValueId v : entry.group(record.inst, 0)) {
    const TypeId type = entry.type(v);
    const ElementType e = module.types.element_of(type);
    const uint64_t bytes = static_cast<uint64_t>(module.types.element_count(type)) * info(e).storage;
    if (at > record.payload.size() || bytes > record.payload.size() - at) return unknown(std::string(entry.def(record.inst).name));
    const auto shape = module.types.shape_of(type);
    values.push_back({e, {shape.begin(), shape.end()}, record.payload.data() + at});
    at += (bytes + 7) & ~uint64_t{7};
  }
  return print_text(parse_print_format(module.str(entry.attr(record.inst, 0))), values);
}

void deliver_prints(std::span<const std::byte> memory, const Module& module, const Function& entry, const std::function<void(const std::string&)>& print, Diagnostics& diags) {
  constexpr size_t kRecordHeader = 24;  // bytes, inst, block[3], complete
  const Mailbox box = header(memory);
  if (memory.size() < sizeof box || (box.head == 0 && box.lost == 0)) return;
  const auto ring = memory.subspan(sizeof box);
  // The head goes on where the ring is full, so that it also counts what was lost.
  const uint64_t end = std::min<uint64_t>(box.head, ring.size());
  uint64_t at = 0, unfinished = 0;
  while (end - at >= kRecordHeader) {
    uint32_t words[6];
    std::memcpy(words, &ring[at], sizeof words);
    const uint32_t bytes = words[0];
    if (bytes == 0) {  // claimed by a record that did not fit, or whose block was ended before it could begin
      if (box.head <= ring.size()) ++unfinished;
      break;
    }
    if (bytes < kRecordHeader || bytes > end - at) {
      diags.warn(module.place(entry), "the print buffer is damaged after " + std::to_string(at) + " bytes");
      break;
    }
    if (words[5] == 0) ++unfinished;
    if (print && words[5] != 0) print(format_print_record({words[1], {words[2], words[3], words[4]}, ring.subspan(at + kRecordHeader, bytes - kRecordHeader)}, module, entry));
    at += (uint64_t{bytes} + 7) & ~uint64_t{7};  // records start at multiples of 8
    if (at > end) break;
  }
  if (unfinished != 0) diags.warn(module.place(entry), std::to_string(unfinished) + " prints were not complete when the launch ended and are left out");
  if (box.lost != 0) diags.warn(module.place(entry), std::to_string(box.lost) + " prints did not fit into the print buffer and are lost");
}

}  // namespace tile
