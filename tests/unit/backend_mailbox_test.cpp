// The mailbox as a launch may leave it: whole, cut short by a trap, full, or damaged.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "assembler/assembler.h"
#include "backend/device/mailbox.h"
#include "vm/ir/valid_module.h"
#include "vm/runtime/device.h"

using namespace tile;

namespace {

struct Box {
  std::shared_ptr<const ValidModule> module;
  const Function* entry = nullptr;
  InstId print = kNone;
  std::vector<std::byte> memory = std::vector<std::byte>(sizeof(Mailbox) + 256);
  Diagnostics diags;

  Box() {
    auto parsed = parse_text(std::make_shared<const Source>("k.tile", R"(cuda_tile.module @m { entry @k(%a: tile<i32>) {
      %t = print_tko "value %d\0A", %a : tile<i32> -> token
      %c = cmpi equal %a, %a, signed : tile<i32> -> tile<i1>
      assert %c, "odd" : tile<i1>
      return
    } })"), diags);
    REQUIRE(parsed);
    auto valid = validate(std::move(parsed.value()), diags);
    REQUIRE(valid);
    module = std::make_shared<const ValidModule>(*std::move(valid));
    const auto found = find_entry(**module, "", diags);
    REQUIRE(found);
    entry = *found;
    for (InstId i = 0; i < entry->insts.size(); ++i)
      if (entry->insts[i].op == Opcode::PrintTko) print = i;
    reset_mailbox(memory);
  }

  template <class F>
  void change(F f) {
    Mailbox box;
    std::memcpy(&box, memory.data(), sizeof box);
    f(box);
    std::memcpy(memory.data(), &box, sizeof box);
  }
  /// Claims room; `words` are the record's first ones, the rest stays zero.
  void record(std::initializer_list<uint32_t> words, uint64_t bytes = 32) {
    uint64_t at = 0;
    change([&](Mailbox& box) {
      at = box.head;
      box.head += bytes;
    });
    std::memcpy(memory.data() + sizeof(Mailbox) + at, words.begin(), words.size() * sizeof(uint32_t));
  }
  void value(uint32_t v) { record({28, print, 1, 2, 3, 1, v}); }

  std::string text() {
    std::string out;
    deliver_prints(memory, **module, *entry, [&](const std::string& s) { out += s; }, diags);
    return out;
  }
};

}  // namespace

TEST_CASE("mailbox: complete prints are delivered, those that a trap cut short are counted") {
  Box box;
  box.value(7);
  SUBCASE("all complete") {
    box.value(8);
    CHECK(box.text() == "value 7\nvalue 8\n");
    CHECK(box.diags.all().empty());
  }
  SUBCASE("values are missing") {
    box.record({28, box.print, 0, 0, 0, 0});
    box.value(8);
    CHECK(box.text() == "value 7\nvalue 8\n");
    REQUIRE(box.diags.all().size() == 1);
    CHECK(render(box.diags).find("1 prints were not complete") != std::string::npos);
  }
  SUBCASE("room was claimed and nothing written") {
    box.record({});
    CHECK(box.text() == "value 7\n");
    CHECK(render(box.diags).find("1 prints were not complete") != std::string::npos);
  }
  SUBCASE("the ring is full") {
    box.change([](Mailbox& m) { m.head = 1000, m.lost = 3; });
    CHECK(box.text() == "value 7\n");
    REQUIRE(box.diags.all().size() == 1);
    CHECK(render(box.diags).find("3 prints did not fit") != std::string::npos);
  }
  SUBCASE("a size that cannot be") {
    box.record({5, box.print});
    CHECK(box.text() == "value 7\n");
    CHECK(render(box.diags).find("damaged after 32 bytes") != std::string::npos);
  }
  SUBCASE("an operation that prints nothing, or that there is not") {
    box.record({28, box.print + 2, 0, 0, 0, 1});
    box.record({28, 1u << 30, 0, 0, 0, 1});
    const std::string text = box.text();
    CHECK(text.find("assert in block (0, 0, 0): a record of 4 bytes of unknown form") != std::string::npos);
    CHECK(text.find("operation 1073741824 in block") != std::string::npos);
  }
  reset_mailbox(box.memory);
  CHECK(box.text().empty());
}

TEST_CASE("mailbox: traps are told at their operation") {
  Box box;
  CHECK(!report_trap(box.memory, **box.module, *box.entry, box.diags));
  const auto told = [&](uint32_t code, InstId inst) {
    box.change([&](Mailbox& m) { m.trap = 1, m.code = code, m.inst = inst, m.block[0] = 4; });
    Diagnostics diags;
    CHECK(report_trap(box.memory, **box.module, *box.entry, diags));
    return render(diags);
  };
  CHECK(told(102, box.print + 2).find("assert: odd, in block (4, 0, 0)") != std::string::npos);
  CHECK(told(101, box.print).find("T0101") != std::string::npos);
  CHECK(told(102, 1u << 30).find("in block (4, 0, 0)") != std::string::npos);
  CHECK(told(99999, 0).find("unknown fault 99999") != std::string::npos);
}
