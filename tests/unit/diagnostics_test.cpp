// Diagnostics: codes, positions, rendering as text and JSON, suggestions.
#include "vm/base/diagnostics.h"

#include "vm/base/diagnostic_limits.h"

#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

using namespace tile;

namespace {

Place at(const std::string& text, size_t begin, size_t length, const std::string& name = "k.tile") {
  Place p;
  p.source = std::make_shared<Source>(name, text);
  p.span = {static_cast<uint32_t>(begin), static_cast<uint32_t>(length)};
  return p;
}

Diagnostic diagnostic(Place place, std::string message = "found x, expected y") {
  return {Code::E0504, std::move(place), std::move(message), {}, {}, {}};
}

std::string rendered(Place place) {
  return render(diagnostic(std::move(place)));
}

/// The source line and the caret line of a rendered diagnostic, without the margin.
struct Snippet {
  std::string line, marks;
};
Snippet snippet(const std::string& text, size_t begin, size_t length) {
  const std::string out = rendered(at(text, begin, length));
  const size_t first = out.find('\n') + 1, second = out.find('\n', first) + 1;
  const auto strip = [](std::string s) {
    const size_t bar = s.find(" |");
    s = s.substr(bar + 2, s.size() - bar - 3);
    return s.empty() ? s : s.substr(1);
  };
  return {strip(out.substr(first, second - first)), strip(out.substr(second, out.find('\n', second) + 1 - second))};
}

/// The text above the carets.
std::string marked(const Snippet& s) {
  const size_t begin = s.marks.find('^');
  return begin >= s.line.size() ? "" : s.line.substr(begin, s.marks.rfind('^') + 1 - begin);
}

}  // namespace

TEST_CASE("every code has its own name, a subclass and a meaning") {
  std::set<std::string> names;
  for (size_t i = 0; i < static_cast<size_t>(Code::kCount); ++i) {
    const CodeInfo& info = code_info(static_cast<Code>(i));
    CHECK(names.insert(info.name).second);
    CHECK(std::string(info.subclass) != "");
    CHECK(std::string(info.meaning) != "");
    CHECK(info.meaning[std::string(info.meaning).size() - 1] != '.');
  }
  CHECK(std::string(code_info(Code::E0504).name) == "E0504");
  CHECK(code_info(Code::T0101).cls == FailureClass::Trap);
}

TEST_CASE("the exit code follows from the failure class") {
  CHECK(exit_code(FailureClass::Malformed) == 1);
  CHECK(exit_code(FailureClass::Invalid) == 1);
  CHECK(exit_code(FailureClass::Unsupported) == 1);
  CHECK(exit_code(FailureClass::Usage) == 2);
  CHECK(exit_code(FailureClass::Environment) == 3);
  CHECK(exit_code(FailureClass::Trap) == 4);
  CHECK(exit_code(FailureClass::Exhausted) == 6);
  CHECK(exit_code(FailureClass::Internal) == 70);
  CHECK(exit_code(FailureClass::Warning) == 0);
  CHECK(std::string(class_name(FailureClass::Exhausted)) == "exhausted");
}

TEST_CASE("a source knows lines and columns at its edges") {
  const Source s("k.tile", "ab\n\r\ncd\r\n");
  const auto is = [&](uint32_t offset, uint32_t line, uint32_t col) {
    const auto found = s.line_col(offset);
    return found.line == line && found.col == col;
  };
  CHECK(is(0, 1, 1));
  CHECK(is(2, 1, 3));
  CHECK(is(3, 2, 1));
  CHECK(is(5, 3, 1));
  CHECK(is(9, 4, 1));
  CHECK(is(4000000000u, 4, 1));
  CHECK(s.line(0) == "");
  CHECK(s.line(1) == "ab");
  CHECK(s.line(2) == "");
  CHECK(s.line(3) == "cd");
  CHECK(s.line(4) == "");
  CHECK(s.line(5) == "");
  CHECK(Source("", "").line_col(0).line == 1);
}

TEST_CASE("reporting returns Failed, counts errors and remembers the first") {
  Diagnostics d;
  const auto fail = [&]() -> Result<int> { return d.error(Code::E0101, {}, "the header ends after 3 bytes"); };
  d.warn({}, "an unusual name");
  CHECK(!d.has_errors());
  CHECK(d.first_error() == nullptr);
  CHECK(!fail().ok());
  d.error(Code::T0101, {}, "second");
  CHECK(d.error_count() == 2);
  REQUIRE(d.first_error() != nullptr);
  CHECK(d.first_error()->code == Code::E0101);
  d.clear();
  CHECK(!d.has_errors());
  CHECK(d.all().empty());
}

TEST_CASE("errors and warnings past the limit are not kept") {
  Diagnostics d;
  d.limit = 3;
  for (int i = 0; i < 10; ++i) {
    d.warn({}, "w");
    d.error(Code::E0302, {}, "e");
  }
  CHECK(d.full());
  CHECK(d.error_count() == 10);
  CHECK(d.all().size() == 6);
  CHECK(render(d).find("note: only the first 3 errors are shown") != std::string::npos);
}

TEST_CASE("long texts of a diagnostic are cut, and notes beyond a number are counted") {
  const auto kept = [](Diagnostic d) {
    Diagnostics all;
    all.error(std::move(d));
    return all.all().at(0);
  };
  Diagnostic longest = diagnostic({}, std::string(kMaxDiagnosticMessage, 'm'));
  longest.help = std::string(kMaxDiagnosticMessage, 'h');
  longest.place.function = std::string(kMaxDiagnosticName, 'f');
  longest.place.printed = std::string(kMaxDiagnosticInstruction, 'p');
  for (size_t i = 0; i < kMaxDiagnosticNotes; ++i) longest.notes.push_back({{}, "n"});
  const Diagnostic whole = kept(longest);
  CHECK(whole.message == longest.message);
  CHECK(whole.help == longest.help);
  CHECK(whole.place.function == longest.place.function);
  CHECK(whole.place.printed == longest.place.printed);
  CHECK(whole.notes.size() == kMaxDiagnosticNotes);

  longest.message += 'm';
  longest.help += 'h';
  longest.place.function += 'f';
  longest.place.printed += 'p';
  longest.notes.push_back({{}, "n"});
  const Diagnostic cut = kept(longest);
  CHECK(cut.message == std::string(kMaxDiagnosticMessage - 3, 'm') + "...");
  CHECK(cut.help == std::string(kMaxDiagnosticMessage - 3, 'h') + "...");
  CHECK(cut.place.function == std::string(kMaxDiagnosticName - 3, 'f') + "...");
  CHECK(cut.place.printed == std::string(kMaxDiagnosticInstruction - 3, 'p') + "...");
  REQUIRE(cut.notes.size() == kMaxDiagnosticNotes + 1);
  CHECK(cut.notes.back().message == "1 more note is not shown");

  // Not inside of a character.
  std::string umlauts;
  for (size_t i = 0; i <= kMaxDiagnosticMessage / 2; ++i) umlauts += "\xc3\xa4";
  CHECK(kept(diagnostic({}, umlauts)).message == umlauts.substr(0, kMaxDiagnosticMessage - 4) + "...");
}

TEST_CASE("a number of warnings is kept") {
  Diagnostics d;
  for (size_t i = 0; i < kMaxWarnings; ++i) d.warn({}, "w");
  CHECK(d.all().size() == kMaxWarnings);
  CHECK(render(d).find("not shown") == std::string::npos);
  d.warn({}, "w");
  CHECK(d.all().size() == kMaxWarnings);
  CHECK(render(d).ends_with("note: 1 more warning is not shown\n"));
  d.warn({}, "w");
  CHECK(render(d).ends_with("note: 2 more warnings are not shown\n"));
}

TEST_CASE("diagnostics keep a bounded amount of text, and the first error whatever it takes") {
  const std::string message(kMaxDiagnosticMessage, 'm');
  Diagnostics d;
  const size_t kMost = d.limit * kDiagnosticTextShare / kMaxDiagnosticMessage;
  for (size_t i = 0; i < kMost; ++i) d.error(Code::E0302, {}, message);
  CHECK(d.all().size() == kMost);
  CHECK(render(d).find("only the first") == std::string::npos);
  d.error(Code::E0302, {}, "e");
  d.warn({}, "w");
  CHECK(d.all().size() == kMost);
  CHECK(d.error_count() == kMost + 1);
  CHECK(render(d).ends_with("note: only the first " + std::to_string(kMost) + " errors are shown\n"));

  // Warnings before it leave no room, but the class of a failure is that of the first error.
  Diagnostics first;
  for (size_t i = 0; i < kMaxWarnings; ++i) first.warn({{}, {}, {}, -1, std::string(kMaxDiagnosticName, 'f')}, message);
  first.limit = 1;
  first.error(Code::E0302, {}, message);
  first.error(Code::E0302, {}, "second");
  REQUIRE(first.first_error() != nullptr);
  CHECK(first.first_error()->message == message);
  CHECK(first.all().size() == kMaxWarnings + 1);
  CHECK(render(first).ends_with("note: only the first error is shown\n"));
}

TEST_CASE("rendering ends at a bound and says so") {
  // Bytes that are not text take four times their size.
  const std::string message(kMaxDiagnosticMessage - 1, '\x01');
  Diagnostics d;
  const size_t one = render(diagnostic({}, message)).size(), most = (kMaxRenderedDiagnostics + one - 1) / one;
  for (size_t i = 0; i < most; ++i) d.error(diagnostic({}, message));
  CHECK(render(d).size() == most * one);
  d.error(diagnostic({}, message));
  REQUIRE(d.all().size() == most + 1);
  const std::string note = "note: only the first " + std::to_string(most) + " errors are shown\n";
  CHECK(render(d).size() == most * one + note.size());
  CHECK(render(d).ends_with(note));
}

TEST_CASE("a text diagnostic shows place, message, code, line, carets, notes and help") {
  const std::string text = "a\n  %m = maxf %row, %bias : tile<128xf32>\n";
  Diagnostic d = diagnostic(at(text, text.find("%bias"), 5), "maxf: rhs has element type f16, expected f32");
  d.notes.push_back({at(text, 0, 1), "%bias is defined here"});
  d.notes.push_back({{}, "a note without a place"});
  d.help = "insert a conversion";
  CHECK(render(d) ==
        "k.tile:2:19: error: maxf: rhs has element type f16, expected f32 [E0504]\n"
        "    2 |   %m = maxf %row, %bias : tile<128xf32>\n"
        "      |                   ^^^^^\n"
        "k.tile:1:1: note: %bias is defined here\n"
        "note: a note without a place\n"
        "help: insert a conversion\n");
}

TEST_CASE("an empty span and a span at the end of the line get one caret") {
  CHECK(snippet("abc\n", 1, 0).marks == " ^");
  CHECK(snippet("abc\n", 3, 0).marks == "   ^");
  CHECK(snippet("abc\ndef", 7, 0).marks == "   ^");
  CHECK(snippet("", 0, 0).marks == "^");
  CHECK(rendered(at("", 0, 0)) == "k.tile:1:1: error: found x, expected y [E0504]\n    1 |\n      | ^\n");
}

TEST_CASE("a span over several lines is marked to the end of its first line") {
  const Snippet s = snippet("first line\nsecond\n", 6, 12);
  CHECK(s.line == "first line");
  CHECK(marked(s) == "line");
}

TEST_CASE("tabs are expanded in the line and under it") {
  const Snippet s = snippet("\ta\tbc\n", 3, 2);
  CHECK(s.line == "    a   bc");
  CHECK(marked(s) == "bc");
  CHECK(snippet("a\tb", 1, 1).marks == " ^^^");
}

TEST_CASE("control bytes, bytes that are not UTF-8 and reordering characters are escaped") {
  CHECK(snippet("a\x1b[31mb", 6, 1).line == "a\\x1B[31mb");
  CHECK(marked(snippet("a\x1b[31mb", 6, 1)) == "b");
  CHECK(snippet("a\xff\xc0\xaf z", 5, 1).line == "a\\xFF\\xC0\\xAF z");
  CHECK(marked(snippet("a\xff\xc0\xaf z", 5, 1)) == "z");
  CHECK(snippet("\xed\xa0\x80", 0, 1).line == "\\xED\\xA0\\x80");
  CHECK(snippet("\xf4\x90\x80\x80", 0, 1).line == "\\xF4\\x90\\x80\\x80");
  CHECK(snippet("\xe2\x80\xae x", 4, 1).line == "\\u{202E} x");
  CHECK(snippet(std::string("a\0b", 3), 2, 1).line == "a\\x00b");
  CHECK(snippet("\xc3\xa4 x", 3, 1).line == "\xc3\xa4 x");
  CHECK(snippet("\xc3\xa4 x", 3, 1).marks == "  ^");
  CHECK(snippet("\xe2\x82", 0, 1).line == "\\xE2\\x82");
}

TEST_CASE("names and messages from input cannot break a line") {
  Diagnostic d = diagnostic(at("x", 0, 1, "a\nb"), "symbol \x1b]0;x\x07\n");
  d.help = "\xff";
  const std::string out = render(d);
  CHECK(out.starts_with("a\\nb:1:1: error: symbol \\x1B]0;x\\x07\\n [E0504]\n"));
  CHECK(out.ends_with("help: \\xFF\n"));
}

TEST_CASE("a long line is cut to a window around the mark") {
  std::string text(5000, 'a');
  text.replace(3000, 4, "here");
  Snippet s = snippet(text, 3000, 4);
  CHECK(s.line.size() <= 120);
  CHECK(s.line.starts_with("..."));
  CHECK(s.line.ends_with("..."));
  CHECK(marked(s) == "here");

  s = snippet(text, 3000, 2000);
  CHECK(s.marks.size() <= 120);
  CHECK(marked(s).starts_with("here"));

  s = snippet(text, 5000, 0);
  CHECK(s.line.starts_with("..."));
  CHECK(s.marks.size() == s.line.size() + 1);

  s = snippet(std::string(5000, '\x01') + "Z", 5000, 1);
  CHECK(marked(s) == "Z");
  CHECK(s.line.size() <= 120);
}

TEST_CASE("every offset and length of an awkward text can be rendered") {
  const std::string text =
      "\t\xc3\xa4\n\r\n\xff\xe2\x80\xae" + std::string(200, '\t') + "\xf0\x9f\x98\x80\n" + std::string("\0", 1);
  for (size_t begin = 0; begin <= text.size() + 1; ++begin) {
    for (const size_t length : {size_t{0}, size_t{1}, size_t{3}, size_t{1000}}) {
      CHECK(rendered(at(text, begin, length)).find('^') != std::string::npos);
    }
  }
}

TEST_CASE("a place in bytecode names function, instruction and operation, and marks the operand") {
  Place p;
  p.file = "k.tilebc";
  p.function = "softmax";
  p.instruction = 17;
  p.op = "maxf";
  p.operand = 1;
  p.operand_name = "rhs";
  p.printed = "%18 = maxf %3, %16#1 : tile<128xf32>";
  CHECK(rendered(p) ==
        "k.tilebc: @softmax inst 17 (maxf): error: found x, expected y [E0504]\n"
        "      | %18 = maxf %3, %16#1 : tile<128xf32>\n"
        "      |                ^^^^^\n");
  p.operand = 2;  // no such operand in the text: name it instead
  CHECK(rendered(p) ==
        "k.tilebc: @softmax inst 17 (maxf) operand 2 (rhs): error: found x, expected y [E0504]\n"
        "      | %18 = maxf %3, %16#1 : tile<128xf32>\n");
  p.printed.clear();
  p.debug_loc = "k.py:12:4";
  CHECK(rendered(p) ==
        "k.tilebc: @softmax inst 17 (maxf) operand 2 (rhs): error: found x, expected y [E0504]\n"
        "k.py:12:4: note: the instruction was made from here\n");
}

TEST_CASE("places by byte, by argument, by file and without any part") {
  Place bytes;
  bytes.file = "k.tileirbc";
  bytes.byte_offset = 24;
  CHECK(rendered(bytes) == "k.tileirbc: byte 24: error: found x, expected y [E0504]\n");
  bytes.function = "f";
  CHECK(rendered(bytes) == "k.tileirbc: @f, byte 24: error: found x, expected y [E0504]\n");
  Place argument;
  argument.argument = "argument 3 (%c)";
  CHECK(rendered(argument) == "argument 3 (%c): error: found x, expected y [E0504]\n");
  Place file;
  file.file = "x.npy";
  CHECK(rendered(file) == "x.npy: error: found x, expected y [E0504]\n");
  CHECK(rendered({}) == "error: found x, expected y [E0504]\n");
  Diagnostics d;
  d.warn({}, "odd");
  CHECK(render(d) == "warning: odd [W0001]\n");
}

TEST_CASE("colour changes nothing but colour") {
  Diagnostic d = diagnostic(at("abc def", 4, 3));
  d.help = "h";
  std::string colored = render(d, true), plain;
  for (size_t i = 0; i < colored.size(); ++i) {
    if (colored[i] == '\x1b')
      i = colored.find('m', i);
    else
      plain += colored[i];
  }
  CHECK(colored != plain);
  CHECK(plain == render(d));
}

TEST_CASE("JSON carries every known part, one object a line") {
  Diagnostics d;
  Diagnostic one = diagnostic(at("abc\ndef", 5, 2));
  one.help = "remedy";
  one.notes.push_back({at("abc\ndef", 0, 1), "here"});
  one.subclass = "Special";
  d.error(one);
  Place p;
  p.file = "k.tilebc";
  p.function = "f";
  p.instruction = 0;
  p.operand = 1;
  d.error(Code::T0101, p, "index 4 of 4");
  d.warn({}, "odd");

  const std::string out = render_json(d);
  const size_t first = out.find('\n'), second = out.find('\n', first + 1);
  const auto a = nlohmann::json::parse(out.substr(0, first));
  CHECK(a == nlohmann::json::parse(R"({"code": "E0504", "class": "invalid", "subclass": "Special", "severity": "error",
      "message": "found x, expected y", "file": "k.tile", "line": 2, "column": 2, "length": 2, "help": "remedy",
      "notes": [{"message": "here", "file": "k.tile", "line": 1, "column": 1, "length": 1}]})"));
  const auto b = nlohmann::json::parse(out.substr(first + 1, second - first - 1));
  CHECK(b == nlohmann::json::parse(R"({"code": "T0101", "class": "trap", "subclass": "OutOfBounds", "severity": "error",
      "message": "index 4 of 4", "file": "k.tilebc", "function": "f", "instruction": 0, "operand": 1})"));
  CHECK(nlohmann::json::parse(out.substr(second + 1))["severity"] == "warning");
}

TEST_CASE("JSON replaces bytes that are not UTF-8 and stays ASCII on one line") {
  Diagnostics d;
  Place p;
  p.function = "\xff\xfe";
  d.error(Code::E0404, p, "symbol \xc3\x28\n");
  const std::string out = render_json(d);
  CHECK(out.find('\n') == out.size() - 1);
  for (const char c : out) CHECK(static_cast<uint8_t>(c) < 0x80);
  CHECK(nlohmann::json::parse(out)["function"] == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("nearest suggests one word that is at most a third away") {
  const std::vector<std::string_view> ops = {"addf", "addi", "subf", "maxf", "reshape", "permute", "broadcast"};
  CHECK(nearest("reshpae", ops) == "reshape");
  CHECK(nearest("brodcast", ops) == "broadcast");
  CHECK(nearest("addg", ops) == "addf");  // of two equally near ones the first
  CHECK(nearest("add", ops) == "addf");
  CHECK(nearest("ad", ops) == "");
  CHECK(nearest("gather", ops) == "");
  CHECK(nearest("", ops) == "");
  CHECK(nearest(std::string(1000, 'a'), {std::string_view("aaa")}) == "");
  CHECK(nearest("x", {}) == "");
}
