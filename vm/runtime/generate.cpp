// Generators of array contents. Every operation on numbers here is one IEEE operation, in the order that spec/launch.md
// gives.
#include "vm/runtime/generate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "vm/runtime/scalar_text.h"

// A fused multiply-add would give other bits than the formulas.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace tile {
namespace {

struct ParameterDef {
  std::string_view name;
  enum class Form : uint8_t {
    Seed,
    Element,
    Float,
    Integer,
    Number
  } form;                     ///< Number: Float or Integer, as the type is
  std::string_view fallback;  ///< empty: must be given
};

struct GeneratorDef {
  std::string_view name;
  Generator::Kind kind;
  std::vector<ParameterDef> parameters;
  bool integers = true, floats = true;
};

using Form = ParameterDef::Form;

const std::vector<GeneratorDef>& generators() {
  static const std::vector<GeneratorDef> defs = {
      {"zeros", Generator::Kind::Zeros, {}},
      {"ones", Generator::Kind::Ones, {}},
      {"full", Generator::Kind::Full, {{"value", Form::Element, ""}}},
      {"arange", Generator::Kind::Arange, {{"start", Form::Number, "0"}, {"step", Form::Number, "1"}}},
      {"uniform",
       Generator::Kind::Uniform,
       {{"seed", Form::Seed, "1"}, {"lo", Form::Float, "0"}, {"hi", Form::Float, "1"}},
       false,
       true},
      {"normal",
       Generator::Kind::Normal,
       {{"seed", Form::Seed, "1"}, {"mean", Form::Float, "0"}, {"std", Form::Float, "1"}},
       false,
       true},
      {"randint",
       Generator::Kind::Randint,
       {{"seed", Form::Seed, "1"}, {"lo", Form::Integer, "0"}, {"hi", Form::Integer, ""}}},
      {"bits", Generator::Kind::Bits, {{"seed", Form::Seed, "1"}}},
      {"eye", Generator::Kind::Eye, {}},
  };
  return defs;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, 60)) + "'";
}

std::string signature(const GeneratorDef& def) {
  std::string text(def.name);
  for (size_t i = 0; i < def.parameters.size(); ++i) {
    const auto& p = def.parameters[i];
    text += (i ? ", " : "(") + std::string(p.name);
    if (!p.fallback.empty()) text += "=" + std::string(p.fallback);
  }
  return def.parameters.empty() ? text : text + ")";
}

struct Given {
  std::string_view name, value;
};

/// "a=1, 2" split at commas; no value where a part is empty.
std::optional<std::vector<Given>> split_parameters(std::string_view inside) {
  std::vector<Given> parts;
  if (trim(inside).empty()) return parts;
  for (;;) {
    const size_t comma = inside.find(',');
    const std::string_view part = trim(inside.substr(0, comma));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      parts.push_back({{}, part});
    } else {
      parts.push_back({trim(part.substr(0, equals)), trim(part.substr(equals + 1))});
      if (parts.back().name.empty()) return std::nullopt;
    }
    if (parts.back().value.empty()) return std::nullopt;
    if (comma == std::string_view::npos) return parts;
    inside.remove_prefix(comma + 1);
  }
}

class GeneratorReader {
 public:
  GeneratorReader(ElementType type, const Place& place, Diagnostics& diags)
      : type_(type), place_(place), diags_(diags) {}

  Result<Generator> read(std::string_view text) {
    text = trim(text);
    const size_t open = text.find('(');
    const std::string_view name = trim(text.substr(0, open));
    const GeneratorDef* def = nullptr;
    std::vector<std::string_view> names;
    for (const auto& candidate : generators()) {
      names.push_back(candidate.name);
      if (candidate.name == name) def = &candidate;
    }
    if (def == nullptr) {
      std::string known;
      for (const auto& candidate : names) known += (known.empty() ? "" : ", ") + std::string(candidate);
      const std::string near = nearest(name, names);
      return bad("there is no generator " + quoted(name) + ", expected one of " + known,
                 near.empty() ? "" : "did you mean " + near + "?");
    }
    std::string_view inside;
    if (open != std::string_view::npos) {
      if (text.back() != ')') return bad("the brackets of " + quoted(text) + " are not closed");
      inside = text.substr(open + 1, text.size() - open - 2);
    }
    const bool is_int = info(type_).is_int;
    if (is_int ? !def->integers : !def->floats) {
      return diags_.error(
          Code::E0803, place_,
          std::string(def->name) + " makes floats, the element type is " + std::string(info(type_).name),
          "use randint(seed, lo, hi) or bits(seed)");
    }
    const auto given = split_parameters(inside);
    if (!given) return bad("a parameter of " + quoted(text) + " is empty, expected " + signature(*def));
    std::vector<std::string_view> values(def->parameters.size());
    if (!assign(*def, *given, values)) return Failed;
    Generator g;
    g.kind = def->kind;
    int numbers = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto& parameter = def->parameters[i];
      if (values[i].empty()) values[i] = parameter.fallback;
      if (values[i].empty())
        return bad("the parameter " + std::string(parameter.name) + " is missing, expected " + signature(*def));
      if (!set(g, parameter, values[i], numbers)) return Failed;
    }
    if (g.kind == Generator::Kind::Ones || g.kind == Generator::Kind::Eye) {
      g.value = is_int ? 1 : finite_bits(type_, 1.0);
    }
    if (g.kind == Generator::Kind::Randint && !check_range(g)) return Failed;
    if (g.kind == Generator::Kind::Uniform && !std::isfinite(g.second - g.first))
      return bad("hi - lo of uniform is too large for f64");
    return g;
  }

 private:
  FailedTag bad(std::string message, std::string help = {}) {
    return diags_.error(Code::E0804, place_, std::move(message), std::move(help));
  }

  bool assign(const GeneratorDef& def, const std::vector<Given>& given, std::vector<std::string_view>& values) {
    bool named = false;
    for (size_t i = 0; i < given.size(); ++i) {
      size_t at = i;
      if (given[i].name.empty()) {
        if (named || i >= values.size()) {
          (void)bad(named ? "the parameter " + quoted(given[i].value) + " without a name follows one with a name"
                          : std::to_string(given.size()) + " parameters are given, expected " + signature(def));
          return false;
        }
      } else {
        named = true;
        std::vector<std::string_view> names;
        for (const auto& p : def.parameters) names.push_back(p.name);
        at = 0;
        while (at < names.size() && names[at] != given[i].name) ++at;
        if (at == names.size()) {
          const std::string near = nearest(given[i].name, names);
          (void)bad(
              std::string(def.name) + " has no parameter " + quoted(given[i].name) + ", expected " + signature(def),
              near.empty() ? "" : "did you mean " + near + "?");
          return false;
        }
      }
      if (!values[at].empty()) {
        (void)bad("the parameter " + std::string(def.parameters[at].name) + " is given twice");
        return false;
      }
      values[at] = given[i].value;
    }
    return true;
  }

  bool set(Generator& g, const ParameterDef& parameter, std::string_view value, int& numbers) {
    switch (parameter.form) {
      case Form::Seed: {
        auto seed = parse_unsigned(value);
        if (!seed) seed = parse_hex(value);
        if (!seed) return (void)bad("the seed is " + quoted(value) + ", expected a number from 0 to 2^64 - 1"), false;
        g.seed = *seed;
        return true;
      }
      case Form::Element: {
        const auto bits = parse_scalar(value, type_, place_, diags_);
        if (!bits) return false;
        g.value = *bits;
        return true;
      }
      case Form::Number:
      case Form::Integer:
        if (parameter.form == Form::Integer || info(type_).is_int) {
          uint64_t bits = 0;
          if (const auto i = parse_int(value)) {
            bits = static_cast<uint64_t>(*i);
          } else if (const auto u = parse_unsigned(value); u && parameter.form == Form::Number) {
            bits = *u;
          } else {
            return (void)bad(std::string(parameter.name) + " is " + quoted(value) + ", expected an integer of 64 bits"),
                   false;
          }
          (numbers++ == 0 ? g.low : g.range) = bits;
          return true;
        }
        [[fallthrough]];
      case Form::Float: {
        const auto number = parse_double(value);
        if (!number || !std::isfinite(*number)) {
          return (void)bad(std::string(parameter.name) + " is " + quoted(value) + ", expected a finite number"), false;
        }
        (numbers++ == 0 ? g.first : g.second) = *number;
        return true;
      }
    }
    return false;
  }

  /// `low` and `range` hold lo and hi as read; range becomes hi - lo.
  bool check_range(Generator& g) {
    const int64_t lo = static_cast<int64_t>(g.low), hi = static_cast<int64_t>(g.range);
    if (lo >= hi) {
      (void)bad("randint has lo " + std::to_string(lo) + " and hi " + std::to_string(hi) +
                ", expected lo below hi; hi itself is never made");
      return false;
    }
    const int bits = info(type_).bits;
    if (info(type_).is_int && bits < 64) {
      const int64_t least = bits == 1 ? 0 : -(int64_t{1} << (bits - 1)), most = (int64_t{1} << bits) - 1;
      if (lo < least || hi - 1 > most) {
        (void)bad("randint makes " + std::to_string(lo) + " to " + std::to_string(hi - 1) + ", expected " +
                  std::to_string(least) + " to " + std::to_string(most) + " for " + std::string(info(type_).name));
        return false;
      }
    }
    g.range = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
    return true;
  }

  ElementType type_;
  const Place& place_;
  Diagnostics& diags_;
};

/// Natural logarithm for 0 < x < 1 from its series in (m - 1) / (m + 1), 1e-16 relative.
double plain_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752440) {
    m = m * 2.0;
    exponent = exponent - 1;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double sum = 0.0;
  for (int k = 23; k >= 1; k -= 2) {
    const double term = 1.0 / k;
    sum = sum * z;
    sum = sum + term;
  }
  const double whole = exponent * 0.69314718055994530942;
  const double part = 2.0 * s * sum;
  return whole + part;
}

double polynomial(const double (&c)[8], double x) {
  double sum = c[7];
  for (int i = 6; i >= 0; --i) {
    sum = sum * x;
    sum = sum + c[i];
  }
  return sum;
}

// M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988), PPND16: numerators and denominators, lowest power
// first.
constexpr double kCentralTop[8] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                   1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                   3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr double kCentralBottom[8] = {1.0,
                                      4.2313330701600911252e1,
                                      6.8718700749205790830e2,
                                      5.3941960214247511077e3,
                                      2.1213794301586595867e4,
                                      3.9307895800092710610e4,
                                      2.8729085735721942674e4,
                                      5.2264952788528545610e3};
constexpr double kMiddleTop[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                  3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kMiddleBottom[8] = {1.0,
                                     2.05319162663775882187e0,
                                     1.67638483018380384940e0,
                                     6.89767334985100004550e-1,
                                     1.48103976427480074590e-1,
                                     1.51986665636164571966e-2,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
constexpr double kFarTop[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                               2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kFarBottom[8] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};

// Below this number of elements threads cost more than they save; about 10 ms of work.
constexpr uint64_t kManyElements = uint64_t{1} << 18;
constexpr uint64_t kMostThreads = 32;

/// 0 <= u < 1, a multiple of 2^-53.
double unit(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

uint64_t low_bits(ElementType type, uint64_t bits) {
  if (type == ElementType::TF32) return bits & 0xFFFFE000;
  const int width = info(type).bits;
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

}  // namespace

uint64_t random_bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double square = q * q;
    const double r = 0.180625 - square;
    const double top = q * polynomial(kCentralTop, r);
    return top / polynomial(kCentralBottom, r);
  }
  const double tail = q < 0 ? p : 1.0 - p;
  double r = std::sqrt(-plain_log(tail));
  double x = 0;
  if (r <= 5.0) {
    r = r - 1.6;
    x = polynomial(kMiddleTop, r) / polynomial(kMiddleBottom, r);
  } else {
    r = r - 5.0;
    x = polynomial(kFarTop, r) / polynomial(kFarBottom, r);
  }
  return q < 0 ? -x : x;
}

Result<Generator> parse_generator(std::string_view text, ElementType type, const Place& place, Diagnostics& diags) {
  if (info(type).memory_bits == 0 || type == ElementType::Ptr) {
    return diags.error(Code::E0803, place, "element type " + std::string(info(type).name) + " cannot be in an array");
  }
  return GeneratorReader(type, place, diags).read(text);
}

uint64_t generate_element(const Generator& g, ElementType type, uint64_t linear, uint64_t columns) {
  const bool is_int = info(type).is_int;
  switch (g.kind) {
    case Generator::Kind::Zeros:
      return 0;
    case Generator::Kind::Ones:
    case Generator::Kind::Full:
      return g.value;
    case Generator::Kind::Eye:
      return columns != 0 && linear / columns == linear % columns ? g.value : 0;
    case Generator::Kind::Arange: {
      if (is_int) return low_bits(type, g.low + linear * g.range);
      const double distance = static_cast<double>(linear) * g.second;
      return finite_bits(type, g.first + distance);
    }
    case Generator::Kind::Uniform: {
      const double width = g.second - g.first;
      const double part = unit(random_bits(g.seed, linear)) * width;
      return finite_bits(type, g.first + part);
    }
    case Generator::Kind::Normal: {
      const double p = (static_cast<double>(random_bits(g.seed, linear) >> 12) + 0.5) * 0x1p-52;
      const double part = g.second * normal_quantile(p);
      return finite_bits(type, g.first + part);
    }
    case Generator::Kind::Randint: {
      __extension__ using Wide = unsigned __int128;
      const auto above = static_cast<uint64_t>(static_cast<Wide>(random_bits(g.seed, linear)) * g.range >> 64);
      const uint64_t value = g.low + above;
      return is_int ? low_bits(type, value) : finite_bits(type, static_cast<double>(static_cast<int64_t>(value)));
    }
    case Generator::Kind::Bits:
      return low_bits(type, random_bits(g.seed, linear));
  }
  return 0;
}

void generate(const Generator& g, Array& a) {
  const ArrayView view = a.view();
  uint8_t* data = a.memory.data();
  const bool dense = is_row_major(view) || is_column_major(view);
  if (!dense && a.memory.size() != 0) std::memset(data, 0xFF, a.memory.size());
  // Fresh memory is zero already; leaving it untouched makes large outputs cheap.
  if (dense && g.kind == Generator::Kind::Zeros) return;
  const uint64_t columns = view.shape.empty() ? 1 : static_cast<uint64_t>(view.shape.back());
  // Every element depends on its number alone, so large arrays are made in parts. Types smaller than a byte share bytes.
  const uint64_t count = static_cast<uint64_t>(view.count());
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  if (is_row_major(view) && view.offset == 0 && info(view.type).memory_bits >= 8 && count >= kManyElements && cores > 1) {
    const uint64_t parts = std::min<uint64_t>(cores, kMostThreads), each = (count + parts - 1) / parts;
    const auto make = [&](uint64_t from, uint64_t to) {
      for (uint64_t i = from; i < to; ++i) store_bits(data, view.type, static_cast<int64_t>(i), generate_element(g, view.type, i, columns));
    };
    std::vector<std::thread> threads;
    uint64_t begun = 0;  // where no thread can be had, this one makes the rest
    try {
      for (; begun + each < count; begun += each) threads.emplace_back(make, begun, begun + each);
    } catch (const std::system_error&) {
    }
    make(begun, count);
    for (std::thread& t : threads) t.join();
    return;
  }
  for_each_element(view, [&](int64_t linear, int64_t position) {
    store_bits(data, view.type, position, generate_element(g, view.type, static_cast<uint64_t>(linear), columns));
  });
}

}  // namespace tile
