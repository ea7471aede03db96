// Job files and flat launch descriptions: reading, errors at their place, expectations and outputs.
#include "vm/runtime/job.h"

#include <doctest/doctest.h>

#include <string>

#include "temp_dir.h"
#include "vm/runtime/atomic_file.h"
#include "vm/runtime/npy.h"

namespace tile {
namespace {

const char* const kJob = R"({
  "kernel": "vadd.tile", "entry": "vadd", "grid": [4, 2],
  "args": ["a=array:f32[8]=arange", {"name": "b", "array": "f32[8]=ones"}, {"name": "c", "ptr": "f32[8]=zeros"}, {"ptr": "@c", "offset": 4},
           {"i32": 8}, {"f16": 0.5}, {"i1": true}, {"f32": "0x3f800000"}, {"i64": -3}],
  "out": {"c": "out/c.npy", "0": "a.npy"},
  "expect": [{"arg": "c", "generate": "zeros"},
             {"arg": "a", "unchanged": true},
             {"arg": 1, "generate": "f32[8]=ones", "compare": {"rule": "ulp", "n": 2, "why": "sums"}},
             {"arg": "b", "file": "f32:b.npy", "compare": {"rule": "close", "abs": 0.5, "rel": 1e-3}},
             {"arg": "b", "file": "b.npy", "compare": {"rule": "bound", "file": "bound.npy"}},
             {"arg": "b", "file": "b.npy", "compare": {"rule": "order_free", "count": 4, "unit": 2}}],
  "outcome": "ok", "prints": ["x\n"], "threads": 3
})";

std::string all_errors(const Diagnostics& diags) {
  std::string text;
  for (const auto& d : diags.all()) {
    text += std::string(code_info(d.code).name);
    if (d.place.source && d.place.span.valid()) {
      const auto at = d.place.source->line_col(d.place.span.begin);
      text += " " + std::to_string(at.line) + ":" + std::to_string(at.col);
    }
    text += " " + d.message + "|" + d.help + "\n";
  }
  return text;
}

std::string errors_of(const std::string& json) {
  Diagnostics diags;
  CHECK_FALSE(parse_job(json, "j.json", "", diags));
  return all_errors(diags);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a job file with everything in it") {
  Diagnostics diags;
  const auto job = parse_job(kJob, "dir/j.json", "dir/", diags);
  CAPTURE(all_errors(diags));
  REQUIRE(job);
  CHECK(job->kernel_path() == "dir/vadd.tile");
  CHECK(job->entry == "vadd");
  CHECK(job->grid == LaunchGrid{4, 2, 1});
  REQUIRE(job->args.size() == 9);
  CHECK(job->args[3].byte_offset == 4);
  CHECK(job->args[3].source.reference == "c");
  CHECK(job->args[5].bits == 0x3800);
  CHECK(job->args[6].bits == 1);
  CHECK(job->args[7].bits == 0x3F800000);
  CHECK(job->args[8].bits == static_cast<uint64_t>(-3));
  REQUIRE(job->outs.size() == 2);
  CHECK(job->outs[0].argument == 2);
  CHECK(job->outs[1].argument == 0);
  REQUIRE(job->expectations.size() == 6);
  CHECK(job->expectations[0].rule.kind == CompareRule::Kind::Exact);
  CHECK(job->expectations[1].unchanged);
  CHECK(job->expectations[2].rule.ulps == 2);
  CHECK(job->expectations[3].rule.rel == 1e-3);
  CHECK(job->expectations[4].bound_path == "bound.npy");
  CHECK(job->expectations[5].rule.free_count == 4);
  CHECK_FALSE(job->outcome);
  CHECK(job->prints == std::vector<std::string>{"x\n"});
  CHECK(job->threads == 3);
}

TEST_CASE("errors stand at their line and column, several at once") {
  CHECK(errors_of("{\"kernel\": \"k\",\n  \"grids\": [1]}") ==
        "E0807 2:3 the job has the unknown key 'grids', expected kernel, entry, grid, args, out, expect, outcome, "
        "prints, threads, schedule, order, numerics, what|did you mean grid?\n");
  CHECK(has(errors_of("{\"kernel\": \"k\", \"entry\": 5, \"threads\": -1, \"grid\": [0, 16777216, 1, 1]}"),
            "E0807 1:26 entry is the number 5, expected a text"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"entry\": 5, \"threads\": -1}"),
            "E0807 1:40 threads is the number -1, expected a whole number from 0 to 4096"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"grid\": [0, 16777216]}"), "E0805 1:26 the grid's extent along x is 0"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"grid\": [0, 16777216]}"),
            "E0805 1:29 the grid's extent along y is 16777216"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"grid\": []}"), "0 extents"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"grid\": [1.5]}"), "the number 1.5"));
  CHECK(has(errors_of("{}"), "the key 'kernel' is missing"));
  CHECK(has(errors_of("[]"), "the job is a list, expected an object"));
  CHECK(has(errors_of("{\"kernel\": \"k\",\n\"kernel\": \"l\"}"), "E0807 2:1 the key 'kernel' is given twice"));
  CHECK(has(errors_of("{\"kernel\": \"a\\u0000b\"}"), "kernel holds a zero byte"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"outcome\": \"T0999\"}"),
            "outcome is the text 'T0999', expected ok, assert"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"args\": {}}"), "args is an object, expected a list"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"args\": [5]}"), "an argument is the number 5"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"args\": [\n \"i32:x\"]}"), "E0804 2:2 'x' is not an integer"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"args\": [{\"i32\": 1, \"i64\": 2}]}"), "both i32 and i64"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"args\": [{\"i32\": 1, \"offset\": 2}]}"), "only ptr takes an offset"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"args\": [{\"name\": \"x\"}]}"), "the argument has no value"));
  CHECK(
      has(errors_of("{\"kernel\": \"k\", \"args\": [{\"name\": \"x y\", \"i32\": 1}]}"), "the name is the text 'x y'"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"args\": [{\"aray\": \"x\"}]}"), "did you mean array?"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"args\": [{\"i32\": null}]}"), "i32 is null"));
  CHECK(has(errors_of("{\"kernel\": \"k\", \"args\": [\"ptr:@x\"]}"), "there is no argument 'x'"));
  const std::string args = "{\"kernel\": \"k\", \"args\": [\"n=i32:1\", \"c=array:f32[2]=zeros\"], ";
  CHECK(has(errors_of(args + "\"out\": {\"n\": \"x.npy\"}}"), "argument 0 (n) is a scalar"));
  CHECK(has(errors_of(args + "\"out\": {\"d\": \"x.npy\"}}"), "there is no argument 'd', expected one of n, c"));
  CHECK(has(errors_of(args + "\"out\": [1]}"), "out is a list"));
  CHECK(has(errors_of(args + "\"expect\": [{\"arg\": \"c\"}]}"), "needs one of file, generate and unchanged"));
  CHECK(has(errors_of(args + "\"expect\": [{\"arg\": \"c\", \"file\": \"f\", \"unchanged\": true}]}"), "needs one of"));
  CHECK(has(errors_of(args + "\"expect\": [{\"arg\": \"c\", \"unchanged\": false}]}"),
            "unchanged is false, expected true"));
  CHECK(has(errors_of(args + "\"expect\": [{\"arg\": \"c\", \"generate\": \"zeroes\"}]}"), "did you mean zeros?"));
  CHECK(has(errors_of(args + "\"expect\": [{\"arg\": \"c\", \"file\": \"@c\"}]}"), "expected the name of a .npy file"));
  CHECK(has(errors_of(args + "\"expect\": [{\"arg\": -1, \"generate\": \"zeros\"}]}"), "arg is the number -1"));
  CHECK(has(errors_of(args + "\"expect\": [{\"arg\": 2, \"generate\": \"zeros\"}]}"), "there is no argument 2"));
  const std::string expect = args + "\"expect\": [{\"arg\": \"c\", \"generate\": \"zeros\", \"compare\": ";
  CHECK(has(errors_of(expect + "{\"rule\": \"exactly\"}}]}"), "there is no rule 'exactly'"));
  CHECK(has(errors_of(expect + "{\"rule\": \"ulp\"}}]}"), "the key 'n' is missing"));
  CHECK(has(errors_of(expect + "{\"rule\": \"ulp\", \"n\": -1}}]}"),
            "n is the number -1, expected a number of at least 0"));
  CHECK(has(errors_of(expect + "{\"rule\": \"exact\", \"n\": 1}}]}"), "unknown key 'n'"));
  CHECK(has(errors_of(expect + "{\"n\": 1}}]}"), "the key 'rule' is missing"));
  CHECK(has(errors_of(expect + "5}]}"), "compare is the number 5"));
}

TEST_CASE("broken JSON is reported where it breaks") {
  CHECK(has(errors_of("{\"kernel\": \"k\",\n}"), "E0807 2:1 this is not JSON: "));
  CHECK(has(errors_of(""), "E0807 1:1 this is not JSON: unexpected end of input"));
  CHECK(has(errors_of("{\"a\": \"\xFF\"}"), "this is not JSON: invalid string: ill-formed UTF-8 byte"));
  CHECK(has(errors_of("{\"a\": 1e999}"), "this is not JSON"));
  CHECK(has(errors_of(std::string(65, '[')), "nests deeper than 64 levels"));
  CHECK(has(errors_of(std::string(1000000, '[')), "nests deeper than 64 levels"));
  const std::string text = kJob;
  for (size_t n = 0; n + 1 < text.size(); ++n) {
    Diagnostics diags;
    CHECK_FALSE(parse_job(text.substr(0, n), "j.json", "", diags));
    CHECK(diags.has_errors());
  }
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', '"', '{', ']', '9', '\xC0', '-', 'e'}) {
      std::string changed = text;
      changed[at] = c;
      Diagnostics diags;
      const bool ok = parse_job(changed, "j.json", "", diags).ok();
      CHECK(ok == diags.all().empty());
    }
  }
}

LaunchArguments launched(const Job& job, const std::vector<ParamType>& params) {
  Diagnostics diags;
  auto args = expand(job.args, params, {job.base_dir, job.entry, {}}, diags);
  CAPTURE(all_errors(diags));
  REQUIRE(args);
  return std::move(*args);
}

TEST_CASE("expectations are checked, outputs written below the job file's folder") {
  const test::TempDir dir;
  Diagnostics diags;
  const std::string text =
      R"({"kernel": "k", "args": ["a=array:f32[2,2]=arange", "b=ptr:bf16[3]=ones", "x=array:@a"], "out": {"b": "b2.npy", "x": "x.npy"},
    "expect": [{"arg": "a", "unchanged": true}, {"arg": "x", "generate": "arange"}, {"arg": "b", "file": "b.npy"}]})";
  const auto written = text;
  REQUIRE(write_file(dir.file("j.json"), {reinterpret_cast<const uint8_t*>(written.data()), written.size()}, diags));
  auto ones = make_array(ElementType::BF16, {3}, {1}, {}, {}, diags);
  for (int i = 0; i < 3; ++i) store_bits(ones->memory.data(), ElementType::BF16, i, 0x3F80);
  REQUIRE(save_npy(dir.file("b.npy"), ones->view(), diags));
  const auto job = read_job(dir.file("j.json"), diags);
  CAPTURE(all_errors(diags));
  REQUIRE(job);
  const ElementType P = ElementType::Ptr, I = ElementType::I32, F = ElementType::F32;
  auto args = launched(*job, {{P, F, ""},
                              {I, {}, ""},
                              {I, {}, ""},
                              {I, {}, ""},
                              {I, {}, ""},
                              {P, ElementType::BF16, ""},
                              {P, F, ""},
                              {I, {}, ""},
                              {I, {}, ""},
                              {I, {}, ""},
                              {I, {}, ""}});
  CHECK(check_expectations(*job, args, diags));
  REQUIRE(write_outs(*job, args, diags));
  const auto back = load_npy(dir.file("b2.npy"), ElementType::BF16, {}, diags);
  REQUIRE(back);
  CHECK(load_bits(back->memory.data(), ElementType::BF16, 2) == 0x3F80);
  CHECK(load_npy(dir.file("x.npy"), {}, {}, diags)->shape == std::vector<int64_t>{2, 2});
  CHECK(diags.all().empty());
  store_bits(args.buffers[0].memory.data(), F, 3, 0);
  store_bits(args.buffers[1].memory.data(), ElementType::BF16, 0, 0);
  CHECK_FALSE(check_expectations(*job, args, diags));
  REQUIRE(diags.error_count() == 3);
  CHECK(diags.all()[0].code == Code::E0809);
  CHECK(diags.all()[0].place.argument == "argument 0 (a)");
  CHECK(diags.all()[0].message ==
        "1 of 4 elements differs, first at [1, 1]: 0 (0x00000000), expected 3 (0x40400000), rule bits");
  CHECK(diags.all()[2].place.argument == "argument 1 (b)");
}

const char* const kLaunch = R"({
 "kernel": "k", "entry": "k", "what": "test", "bytecode": "codes/k.tileirbc", "versions": ["13.4"], "target": "sm_90", "grid": [2, 1, 1],
 "params": [{"kind": "pointer", "type": "ptr<i16>", "buffer": 0, "offset": 4}, {"kind": "scalar", "type": "i32", "value": -16},
            {"kind": "scalar", "type": "f32", "value": 0.25, "bits": "0x3e8293ee"}, {"kind": "pointer", "type": "ptr<i16>", "buffer": 0, "offset": 2},
            {"kind": "pointer", "type": "ptr<bf16>", "buffer": 1, "offset": 0}],
 "buffers": [{"name": "in", "file": "buffer_0.npy", "dtype": "i16", "offset": 2, "shape": [2, 2], "strides": [3, 1]},
             {"name": "in", "file": "buffer_1.npy", "dtype": "bf16", "offset": 1, "shape": [2], "strides": [1],
              "expected": "expected_1.npy", "compare": {"rule": "exact"}, "h200": "equal to expected"}],
 "outcome": "ok", "prints": [], "inputs_sha256": "0", "h200": {"status": "ok"}
})";

void save(const test::TempDir& dir, const std::string& name, ElementType type, const std::vector<uint64_t>& bits) {
  Diagnostics diags;
  auto a = make_array(type, {static_cast<int64_t>(bits.size())}, {1}, {}, {}, diags);
  for (size_t i = 0; i < bits.size(); ++i) store_bits(a->memory.data(), type, static_cast<int64_t>(i), bits[i]);
  REQUIRE(save_npy(dir.file(name), a->view(), diags));
}

TEST_CASE("flat launch descriptions become jobs over whole buffers") {
  const test::TempDir dir;
  Diagnostics diags;
  std::filesystem::create_directories(dir.path() / "launches" / "k-1");
  std::filesystem::create_directories(dir.path() / "codes");
  const std::string text = kLaunch, at = "launches/k-1/";
  REQUIRE(
      write_file(dir.file(at + "launch.json"), {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, diags));
  REQUIRE(write_file(dir.file("codes/k.tileirbc"), std::span<const uint8_t>(), diags));
  save(dir, at + "buffer_0.npy", ElementType::I16, {0xFFFF, 0xFFFF, 1, 2, 0xFFFF, 3, 4, 0xFFFF});
  save(dir, at + "buffer_1.npy", ElementType::I16, {0xFFFF, 5, 6, 0xFFFF});
  save(dir, at + "expected_1.npy", ElementType::I16, {0xFFFF, 0x3F80, 0x7FC0, 0xFFFF});
  auto job = read_launch_json(dir.file(at + "launch.json"), diags);
  REQUIRE(job);
  CHECK(std::filesystem::exists(job->kernel_path()));
  // Unsigned files are what holds bf16; the writer above says i2.
  CHECK(expand(job->args, {}, {job->base_dir, "k", {}}, diags).ok() == false);
  CHECK(has(all_errors(diags), "the element type is '<i2', expected 'V2' or 'u2' for bf16"));
  diags.clear();
  save(dir, at + "buffer_1.npy", ElementType::BF16, {0xFFFF, 5, 6, 0xFFFF});
  save(dir, at + "expected_1.npy", ElementType::BF16, {0xFFFF, 0x3F80, 0x7FC0, 0xFFFF});
  const ElementType P = ElementType::Ptr;
  auto args = launched(*job, {{P, ElementType::I16, ""},
                              {ElementType::I32, {}, ""},
                              {ElementType::F32, {}, ""},
                              {P, ElementType::I16, ""},
                              {P, ElementType::BF16, ""}});
  CHECK(args.params[0].byte_offset == 4);
  CHECK(args.params[1].bits == 0xFFFFFFF0);
  CHECK(args.params[2].bits == 0x3E8293EE);
  CHECK(args.params[3].buffer == 0);
  CHECK(args.params[3].byte_offset == 2);
  CHECK(args.params[4].buffer == 1);
  REQUIRE(job->expectations.size() == 2);
  CHECK_FALSE(check_expectations(*job, args, diags));
  CHECK(has(all_errors(diags), "2 of 2 elements differ, first at [0]"));
  diags.clear();
  uint8_t* out = args.buffers[1].memory.data();
  store_bits(out, ElementType::BF16, 1, 0x3F80);
  store_bits(out, ElementType::BF16, 2, 0xFFFF);
  CHECK(check_expectations(*job, args, diags));
  store_bits(out, ElementType::BF16, 3, 0);
  store_bits(args.buffers[0].memory.data(), ElementType::I16, 5, 0);
  CHECK_FALSE(check_expectations(*job, args, diags));
  CHECK(has(all_errors(diags),
            "memory outside of the array is changed, first element 3 of the buffer: 0x0000, expected 0xffff"));
  CHECK(has(all_errors(diags), "1 of 4 elements differs, first at [1, 0]"));
}

TEST_CASE("flat launch descriptions with faults") {
  auto errors = [](const std::string& from, const std::string& to) {
    std::string text = kLaunch;
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    Diagnostics diags;
    CHECK_FALSE(parse_launch_json(text, "launch.json", "", diags));
    return all_errors(diags);
  };
  CHECK(has(errors("\"outcome\": \"ok\"", "\"outcome\": \"oh\""), "expected ok or assert"));
  CHECK(has(errors("\"grid\": [2, 1, 1]", "\"grid\": [2, 1]"), "2 extents, expected 3"));
  CHECK(has(errors("\"buffer\": 0", "\"buffer\": 2"), "expected a whole number from 0 to 1"));
  CHECK(has(errors("ptr<i16>", "ptr<i8>"), "expected ptr<i16>"));
  CHECK(has(errors("\"kind\": \"pointer\"", "\"kind\": \"points\""), "expected scalar or pointer"));
  CHECK(has(errors("\"type\": \"i32\"", "\"type\": \"ptr\""), "a scalar has the type ptr"));
  CHECK(has(errors("\"type\": \"i32\"", "\"type\": \"u32\""), "did you mean i32?"));
  CHECK(has(errors("\"strides\": [3, 1]", "\"strides\": [3]"), "1 strides and 2 extents"));
  CHECK(has(errors("\"strides\": [3, 1]", "\"strides\": [-3, 1]"), "an entry of strides is the number -3"));
  CHECK(has(errors("\"expected\": \"expected_1.npy\",", ""), "compare is given without expected"));
  CHECK(has(errors("\"offset\": 4", "\"offset\": 4.5"), "the number 4.5"));
  CHECK(has(errors("\"entry\"", "\"entri\""), "did you mean entry?"));
  Diagnostics diags;
  CHECK_FALSE(read_launch_json("/no/such/launch.json", diags));
  CHECK_FALSE(read_job("/no/such/job.json", diags));
  CHECK(folder_of("a/b.json") == "a/");
  CHECK(folder_of("b.json").empty());
  CHECK(path_in("a/", "b") == "a/b");
  CHECK(path_in("a", "b") == "a/b");
  CHECK(path_in("a", "/b") == "/b");
}

}  // namespace
}  // namespace tile
