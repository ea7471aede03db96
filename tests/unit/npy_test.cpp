// .npy files: every NumPy type and order, malformed headers of every kind, and exact round trips.
#include "vm/runtime/npy.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "vm/runtime/npy_header.h"

namespace tile {
namespace {

std::vector<uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

/// A version 1.0 file with this dictionary and data.
std::vector<uint8_t> file(const std::string& dictionary, const std::string& data = {}, char version = 1) {
  std::string text("\x93NUMPY", 6);
  text += version;
  text += '\0';
  text += static_cast<char>(dictionary.size() & 255);
  text += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return bytes_of(text + dictionary + data);
}

std::string dictionary(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
         ", }\n";
}

struct Outcome {
  std::optional<Array> array;
  std::string message, help;
  std::optional<Code> code;
};

Outcome read(const std::vector<uint8_t>& bytes, std::optional<ElementType> as = {}) {
  Diagnostics diags;
  Place place;
  place.file = "a.npy";
  Outcome outcome;
  if (auto array = read_npy(bytes, as, place, diags)) outcome.array = std::move(*array);
  REQUIRE(outcome.array.has_value() == diags.all().empty());
  if (const Diagnostic* error = diags.first_error()) {
    outcome.message = error->message;
    outcome.help = error->help;
    outcome.code = error->code;
    CHECK(error->place.file == "a.npy");
  }
  return outcome;
}

bool says(const Outcome& outcome, const std::string& part) {
  return outcome.code == Code::E0806 && outcome.message.find(part) != std::string::npos;
}

TEST_CASE("NumPy's number types become element types") {
  const std::string eight(8, '\x01');
  const struct {
    const char* descr;
    ElementType type;
    int64_t size;
  } cases[] = {{"|b1", ElementType::I1, 1},     {"|i1", ElementType::I8, 1},  {"|u1", ElementType::I8, 1},
               {"<i2", ElementType::I16, 2},    {"<u2", ElementType::I16, 2}, {"<i4", ElementType::I32, 4},
               {"<u4", ElementType::I32, 4},    {"<i8", ElementType::I64, 8}, {"<u8", ElementType::I64, 8},
               {"<f2", ElementType::F16, 2},    {"<f4", ElementType::F32, 4}, {"<f8", ElementType::F64, 8},
               {"<f1", ElementType::F8E5M2, 1}, {"=f4", ElementType::F32, 4}, {"f4", ElementType::F32, 4}};
  for (const auto& c : cases) {
    CAPTURE(c.descr);
    const auto outcome = read(file(dictionary(c.descr, "(" + std::to_string(8 / c.size) + ",)"), eight));
    REQUIRE(outcome.array);
    CHECK(outcome.array->type == c.type);
    CHECK(outcome.array->memory.size() == 8);
  }
}

TEST_CASE("big-endian numbers are swapped without loss") {
  const auto two = read(file(dictionary(">i2", "(2,)"), std::string("\x01\x02\xFF\xFE", 4)));
  REQUIRE(two.array);
  CHECK(load_bits(two.array->memory.data(), ElementType::I16, 0) == 0x0102);
  CHECK(load_bits(two.array->memory.data(), ElementType::I16, 1) == 0xFFFE);
  const auto four = read(file(dictionary(">f4", "()"), std::string("\x7F\xA0\x00\x01", 4)));
  REQUIRE(four.array);
  CHECK(load_bits(four.array->memory.data(), ElementType::F32, 0) == 0x7FA00001);  // a signalling NaN
  const auto eight = read(file(dictionary(">f8", "()"), std::string("\x01\x02\x03\x04\x05\x06\x07\x08", 8)));
  REQUIRE(eight.array);
  CHECK(load_bits(eight.array->memory.data(), ElementType::F64, 0) == 0x0102030405060708);
  const auto bits = read(file(dictionary(">u2", "()"), std::string("\x3F\x80", 2)), ElementType::BF16);
  REQUIRE(bits.array);
  CHECK(load_bits(bits.array->memory.data(), ElementType::BF16, 0) == 0x3F80);
}

TEST_CASE("Fortran order is kept as strides") {
  const auto outcome = read(file(dictionary("|i1", "(2, 3)", true), "abcdef"));
  REQUIRE(outcome.array);
  CHECK(outcome.array->strides == std::vector<int64_t>{1, 2});
  CHECK(load_bits(outcome.array->memory.data(), ElementType::I8, outcome.array->view().position(1)) == 'c');
}

TEST_CASE("types that NumPy does not know need to be named") {
  const auto raw = file(dictionary("<V2", "(1,)"), "\x80\x3F");
  CHECK(says(read(raw), "'<V2' (raw bytes)"));
  CHECK(read(raw).help == "write the type before the file name: bf16:FILE");
  REQUIRE(read(raw, ElementType::BF16).array);
  CHECK(says(read(raw, ElementType::F16), "expected 'f2' or 'u2' for f16"));
  CHECK(says(read(file(dictionary("<V1", "(1,)"), "x")), "raw bytes"));
  CHECK(read(file(dictionary("|V1", "(1,)"), "x"), ElementType::F8E4M3FN).array);
  CHECK(read(file(dictionary("|u1", "(1,)"), "x"), ElementType::F8E8M0FNU).array);
  CHECK(read(file(dictionary("<f1", "(1,)"), "x"), ElementType::F8E5M2).array);
  CHECK(says(read(file(dictionary("<f1", "(1,)"), "x"), ElementType::F8E4M3FN), "expected 'V1' or 'u1'"));
  CHECK(says(read(file(dictionary("|i1", "(1,)"), "x"), ElementType::F8E4M3FN), "the element type is '|i1', expected"));
  CHECK(read(file(dictionary("<f4", "(1,)"), "abcd"), ElementType::TF32).array);
  CHECK(read(file(dictionary("<u4", "(1,)"), "abcd"), ElementType::F32).array);
  CHECK(says(read(file(dictionary("<f4", "(1,)"), "abcd"), ElementType::I32), "expected 'i4' or 'u4' for i32"));
  CHECK(says(read(file(dictionary("<f4", "(1,)"), "abcd"), ElementType::F64), "expected 'f8' or 'u8' for f64"));
  CHECK(says(read(file(dictionary("|u1", "(1,)"), "a"), ElementType::I4), "i4 cannot be in an array"));
}

TEST_CASE("f4 is one byte an element in the file and packed in memory") {
  const auto outcome = read(file(dictionary("<V1", "(3,)"), std::string("\x01\x0F\x03", 3)), ElementType::F4E2M1FN);
  REQUIRE(outcome.array);
  CHECK(outcome.array->memory.size() == 2);
  CHECK(outcome.array->memory.data()[0] == 0xF1);
  CHECK(outcome.array->memory.data()[1] == 0x03);
  CHECK(says(read(file(dictionary("<V1", "(2,)"), "\x01\x10"), ElementType::F4E2M1FN),
             "byte 1 of the data is 16, expected 0 to 15"));
}

TEST_CASE("bools become 0 and 1, named i1 bytes stay") {
  const auto flags = read(file(dictionary("|b1", "(2,)"), std::string("\x05\x00", 2)));
  REQUIRE(flags.array);
  CHECK(flags.array->memory.data()[0] == 1);
  CHECK(read(file(dictionary("|u1", "(1,)"), "\x05"), ElementType::I1).array->memory.data()[0] == 5);
}

TEST_CASE("other NumPy types are refused with a remedy") {
  for (const char* descr : {"<c8", "<U3", "|S4", "|O", "<M8[s]", "<m8", "|V8", "<f16", "<f3", "<i3", "<q", "|b2"}) {
    CAPTURE(descr);
    const auto outcome = read(file(dictionary(descr, "(0,)")));
    CHECK(says(outcome, std::string("the element type is '") + descr + "'"));
    CHECK(outcome.help == "convert the array with NumPy's astype before saving it");
  }
  CHECK(says(read(file("{'descr': [('a', '<i4'), ('b', '<f8', (2,))], 'fortran_order': False, 'shape': (2,), }")),
             "structured"));
  CHECK(says(read(file("{'descr': '', 'fortran_order': False, 'shape': (2,), }")), "expected one such as '<f4'"));
}

TEST_CASE("headers in every spelling of the Python literal are read") {
  for (const char* header : {"{'shape':(1,),'fortran_order':False,'descr':'|u1'}",
                             "{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (1 , )}",
                             " {'descr': '|u1', 'fortran_order': True, 'shape': (1L,), }  \n",
                             "{'descr':'|u1','fortran_order':False,'shape':(1,1)}"}) {
    CAPTURE(header);
    CHECK(read(file(header, "x")).array);
  }
  for (char version : {2, 3}) CHECK(read(file(dictionary("|u1", "(1,)"), "x", version)).array);
}

TEST_CASE("broken headers are refused with what was found") {
  const struct {
    const char *header, *says;
  } cases[] = {
      {"", "the header ends, expected '{'"},
      {"{", "expected a key in quotes"},
      {"{'descr': '|u1'", "the header ends, expected ','"},
      {"{'descr': '|u1', 'fortran_order': False}", "lacks the key 'shape'"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'x': 1}", "has the key 'x'"},
      {"{'descr': '|u1', 'descr': '|u1'}", "twice"},
      {"{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}", "expected True or False"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1)}", "expected a tuple such as (1,)"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': 1}", "expected '('"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}", "'-' is found in the shape"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1 1)}", "expected ',' or ')'"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}", "larger than 2^63 - 1"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (4611686018427387904,4)}", "more than 2^63 - 1 bytes"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,)}", "more than 2^63 - 1 bytes"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (0,4611686018427387904,4)}", "more than 2^63 - 1 bytes"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x", "goes on behind"},
      {"{'descr': '|u\\x31', 'fortran_order': False, 'shape': (1,)}", "no closing quote, or an escape"},
      {"{'descr': b'|u1', 'fortran_order': False, 'shape': (1,)}", "expected descr in quotes"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,)", "the header ends, expected ','"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.header);
    const auto outcome = read(file(c.header, "x"));
    CAPTURE(outcome.message);
    CHECK(says(outcome, c.says));
  }
  std::string shape = "(";
  for (size_t i = 0; i < kMaxArrayRank; ++i) shape += "1,";
  CHECK(read(file(dictionary("|u1", shape + ")"), "x")).array);
  CHECK(says(read(file(dictionary("|u1", shape + "1)"), "x")), "more than 32 dimensions"));
}

TEST_CASE("foreign and cut files are refused at every length") {
  CHECK(says(read({}), "the file is empty"));
  CHECK(says(read(bytes_of("PK\x03\x04"
                           "zipzip")),
             "ZIP archive (.npz)"));
  CHECK(says(read(bytes_of("{\"a\": 1}")), "starts with '{\"a\": '"));
  CHECK(says(read(file("{}", "", 4)), "version is 4.0"));
  auto large = file("{}", "", 2);
  large[10] = 2;
  CHECK(says(read(large), "the limit is 65536"));
  for (char version : {1, 2}) {
    const auto whole = file(dictionary("<f4", "(2, 2)"), std::string(16, 'x'), version);
    REQUIRE(read(whole).array);
    for (size_t n = 0; n < whole.size(); ++n) {
      CAPTURE(n);
      CHECK(read({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)}).code == Code::E0806);
    }
    auto longer = whole;
    longer.push_back(0);
    CHECK(says(read(longer), "the data has 17 bytes, expected 16"));
  }
}

TEST_CASE("every byte of a header can be anything") {
  const auto whole = file(dictionary("<f4", "(2, 2)"), std::string(16, 'x'));
  for (size_t at = 0; at + 16 < whole.size(); ++at) {
    for (int value = 0; value < 256; value += 5) {
      auto changed = whole;
      changed[at] = static_cast<uint8_t>(value);
      (void)read(changed);
    }
  }
}

TEST_CASE("headers are written as NumPy writes them") {
  const std::string start("\x93NUMPY\x01\x00v\x00", 10);
  const struct {
    const char* descr;
    bool fortran;
    std::vector<int64_t> shape;
    std::string dictionary;
  } cases[] = {{"<f4", false, {}, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"},
               {"|b1", false, {5}, "{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }"},
               {"<V2", true, {2, 3}, "{'descr': '<V2', 'fortran_order': True, 'shape': (2, 3), }"}};
  for (const auto& c : cases) {
    const std::string header = format_npy_header(c.descr, c.fortran, c.shape);
    CHECK(header.size() == 128);
    CHECK(header.substr(0, 10) == start);
    CHECK(header.substr(10, c.dictionary.size()) == c.dictionary);
    CHECK(header.back() == '\n');
  }
  // The longest header of version 1.0 that this rank can give stays below its limit.
  CHECK(format_npy_header("<f4", false, std::vector<int64_t>(kMaxArrayRank, INT64_MAX)).size() % 64 == 0);
}

TEST_CASE("arrays of every type and order come back bit for bit") {
  for (size_t t = 0; t < kElementTypes; ++t) {
    const auto type = static_cast<ElementType>(t);
    if (info(type).memory_bits == 0 || type == ElementType::Ptr) continue;
    for (const auto& strides : std::vector<std::vector<int64_t>>{{3, 1}, {1, 5}, {7, 2}, {1, 9}}) {
      CAPTURE(info(type).name);
      Diagnostics diags;
      auto a = make_array(type, {5, 3}, strides, {}, {}, diags);
      REQUIRE(a);
      for_each_element(a->view(), [&](int64_t linear, int64_t position) {
        store_bits(a->memory.data(), type, position, 0x9E3779B97F4A7C15 * static_cast<uint64_t>(linear + 1) >> 3);
      });
      const auto back = read_npy(write_npy(a->view()), type, {}, diags);
      REQUIRE(back);
      CHECK(back->shape == a->shape);
      CHECK(back->strides ==
            (strides[0] == 1 && strides[1] == 5 ? std::vector<int64_t>{1, 5} : std::vector<int64_t>{3, 1}));
      for (int64_t i = 0; i < 15; ++i) {
        CHECK(load_bits(back->memory.data(), type, back->view().position(i)) ==
              load_bits(a->memory.data(), type, a->view().position(i)));
      }
    }
  }
}

}  // namespace
}  // namespace tile
