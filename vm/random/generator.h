// The state of one program under construction: values in scope, arrays, and a random choice for everything.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vm/random/random_program.h"
#include "vm/ir/function_builder.h"

namespace tile::random_program {

using Shape = std::vector<int64_t>;
using Ids = std::vector<uint32_t>;

/// SplitMix64: the same numbers everywhere, unlike the distributions of the standard library.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// 0 <= result < n, n > 0.
  uint32_t below(uint64_t n) { return static_cast<uint32_t>(next() % n); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T>
  const T& of(const std::vector<T>& items) {
    return items[below(items.size())];
  }

 private:
  uint64_t state_;
};

inline constexpr double kUnknown = -1;  ///< as a bound: any value, infinities and NaN too
inline constexpr double kSmall = 100;   ///< values within this fit every integer type but i1 and i4

struct Val {
  ValueId id = kNone;
  ElementType e = ElementType::I32;
  Shape shape;
  double bound = kUnknown;  ///< floats: an integer of at most this magnitude; integers: signed reading
};

/// An array in global memory that the kernel gets as an argument.
struct ArrayParam {
  ValueId base = kNone;
  ElementType e = ElementType::I32;
  Shape shape, strides;
  double bound = kUnknown;
  std::vector<ValueId> extents, steps;  ///< parameters, where the argument brings its shape
};

class Generator {
 public:
  /// @param params  room for parameters; those that the program does not need become i32 scalars
  Generator(const Options& options, size_t params);
  void run();
  [[nodiscard]] size_t params_needed() const { return needed_; }  ///< may be more than there was room for
  [[nodiscard]] Program take() { return std::move(program_); }

 private:
  using Groups = std::vector<Ids>;

  // random_program.cpp: values, arrays, views.
  InstId emit(Opcode op, const Groups& groups, const Ids& attrs, const Ids& types);
  ValueId emit1(Opcode op, const Groups& groups, const Ids& attrs, const Ids& types) {
    return f().result(emit(op, groups, attrs, types));
  }
  [[nodiscard]] Function& f() { return program_.module.functions.back(); }
  [[nodiscard]] TypeTable& types() { return program_.module.types; }
  TypeId tile(ElementType e, const Shape& shape) { return types().tile(e, shape); }
  TypeId type(const Val& v) { return tile(v.e, v.shape); }
  const Val& keep(Val v);
  Val constant(ElementType e, const Shape& shape, const std::vector<double>& values);
  AttrId dense(TypeId t, std::string bytes);
  Val random_constant(ElementType e, const Shape& shape);
  Val scalar(int64_t value, ElementType e = ElementType::I32) { return constant(e, {}, {static_cast<double>(value)}); }
  Val binary(Opcode op, const Val& a, const Val& b, const Ids& attrs = {});
  Val reshape(const Val& v, const Shape& shape);
  Val spread(const Val& v, const Shape& shape);  ///< a scalar to a shape
  Val masked(const Val& v, int64_t mask);        ///< integers: v and mask
  Val small(const Val& v);                       ///< integers: 0 to 7, for i1 0
  Val block_number();                            ///< scalar i32
  uint64_t blocks() const { return uint64_t{program_.grid[0]} * program_.grid[1] * program_.grid[2]; }
  Shape random_shape(size_t max_rank = 3);
  ElementType random_element(ElementSet set);
  /// A value of this type: one in scope, or made from one, or new.
  Val get(ElementType e, const Shape& shape, bool small_values = false);
  Val any(ElementSet set, size_t min_rank = 0, size_t max_rank = 3);
  Val fresh(ElementType e, const Shape& shape, bool small_values);

  ArrayParam array(ElementType e, const Shape& shape, const std::string& generator, double bound, bool gaps,
                   bool with_shape);
  ValueId param(TypeId type);
  std::pair<std::string, double> contents(ElementType e, bool small_values);
  Val load_input(ElementType e, const Shape& shape, bool small_values);
  Val load_view(ElementType e, const Shape& shape, bool small_values);
  Val load_pointers(ElementType e, const Shape& shape, bool small_values);
  ValueId tensor_view(const ArrayParam& a);
  ValueId partition_view(const ArrayParam& a, const Shape& tile_shape, uint32_t padding,
                         const std::vector<int32_t>& map);
  Val pointers(const ArrayParam& a, const Val& offsets);
  Val positions(const Shape& shape);  ///< 0, 1, 2... in row-major order, i32
  void store_output(const Val& v);
  void store_memory();  ///< writes a tile and reads it back
  void local_memory();
  void atomic_shared();
  void atomic_private();
  void atomic_view();
  void global_constant();
  void queries();
  void promises();

  // table_ops.cpp: operations whose row says all.
  void table_op();
  bool try_row(const OpDef& row);
  std::optional<Ids> choose_attrs(const OpDef& row);
  bool legal(const OpDef& row, const std::vector<ElementType>& elements, const Ids& attrs);
  bool guard(const OpDef& row, std::vector<Val>& operands, Ids& attrs, ElementType result);
  double result_bound(const OpDef& row, const std::vector<Val>& operands, ElementType result);

  // shape_ops.cpp: operations with rules of their own.
  void shape_op();
  void combine(bool scan);
  void product();
  void product_loop();
  void scaled_product();
  Val no_negative_zero(const Val& v);

  // control_ops.cpp
  void actions(unsigned n);
  void action();
  struct Outside {  // what a loop's region hides
    size_t values;
    bool writes;
    ValueId token;
  };
  void end_loop(InstId i, const Outside& outside, const std::vector<Val>& carried, bool token);
  void for_loop();
  void endless_loop();
  void branch();
  std::vector<Val> pick_carried();
  Val result_of(const Val& like, ValueId id) { return {id, like.e, like.shape, kUnknown}; }

  const Options options_;
  Rng rng_;
  Program program_;
  std::unique_ptr<FunctionBuilder> b_;
  std::vector<Val> vals_;         ///< in scope
  size_t used_ = 0, needed_ = 0;  ///< parameters
  unsigned depth_ = 0;
  unsigned outputs_ = 0, inputs_ = 0;
  bool writes_ = true;  ///< the token leads through the current region, so memory may be written
  ValueId token_ = kNone;
  Val block_;
};

/// Largest n such that all integers up to n are values of the type; 0 where negative ones are none.
double exact_limit(ElementType e);
int64_t count_of(const Shape& shape);

}  // namespace tile::random_program
