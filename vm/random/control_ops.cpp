// What the next action is, and control flow with carried tiles.
#include <algorithm>

#include "vm/random/generator.h"

namespace tile::random_program {

void Generator::actions(unsigned n) {
  for (unsigned k = 0; k < n; ++k) action();
}

void Generator::action() {
  if (rng_.chance(options_.product_loops)) return product_loop();
  const uint32_t what = rng_.below(100);
  if (what < 50) return table_op();
  if (what < 62) return shape_op();
  if (what < 67) return combine(false);
  if (what < 70) return combine(true);
  if (what < 74) return rng_.chance(80) ? product() : scaled_product();
  if (what < 78) return depth_ < 2 ? for_loop() : table_op();
  if (what < 82) return depth_ < 2 ? branch() : table_op();
  if (what < 84) return depth_ < 2 ? endless_loop() : table_op();
  if (what < 87) return store_memory();
  if (what < 88) return local_memory();
  if (what < 89) return atomic_shared();
  if (what < 90) return atomic_private();
  if (what < 91) return atomic_view();
  if (what < 92) return global_constant();
  if (what < 94) return queries();
  if (what < 95) return promises();
  if (!vals_.empty()) store_output(Val(vals_[vals_.size() - 1 - rng_.below(std::min<size_t>(vals_.size(), 8))]));
}

std::vector<Val> Generator::pick_carried() {
  std::vector<Val> out;
  const unsigned n = 1 + rng_.below(3);
  for (unsigned k = 0; k < n; ++k) out.push_back(any(ElementSet{kAny.bits & ~kPtr.bits}));
  return out;
}

// Ends the loop `i`: what was known before its region counts again, and its results are known.
void Generator::end_loop(InstId i, const Outside& outside, const std::vector<Val>& carried, bool token) {
  --depth_;
  b_->end_region();
  b_->end_op();
  vals_.resize(outside.values);
  writes_ = outside.writes;
  token_ = token ? f().result(i, carried.size()) : outside.token;
  for (size_t k = 0; k < carried.size(); ++k) keep(result_of(carried[k], f().result(i, k)));
}

void Generator::for_loop() {
  const std::vector<Val> carried = pick_carried();
  const bool token = writes_ && rng_.chance(70);
  const ElementType e = random_element(set_of(ElementType::I32, ElementType::I32, ElementType::I64, ElementType::I16));
  const unsigned trips = rng_.below(4), step = 1 + rng_.below(3), first = rng_.below(5);
  Val upper = scalar(first + trips * step, e);
  if (rng_.chance(40)) {
    upper.id = param(tile(e, {}));
    program_.args.push_back(std::string(info(e).name) + ":" + std::to_string(first + trips * step));
  }
  Ids init, types_of, args{tile(e, {})};
  for (const Val& v : carried) {
    init.push_back(v.id);
    types_of.push_back(type(v));
  }
  if (token) {
    init.push_back(token_);
    types_of.push_back(types().token());
  }
  args.insert(args.end(), types_of.begin(), types_of.end());
  const Val lower = scalar(first, e), by = scalar(step, e);
  const InstId i = emit(Opcode::For, {{lower.id}, {upper.id}, {by.id}, init}, {rng_.chance(25)}, types_of);
  const Outside outside{vals_.size(), writes_, token_};
  const ValueId arg = b_->next_value();
  b_->begin_region(args);
  keep({arg, e, {}, kUnknown});
  for (size_t k = 0; k < carried.size(); ++k) keep(result_of(carried[k], arg + 1 + static_cast<ValueId>(k)));
  if (token) token_ = arg + 1 + static_cast<ValueId>(carried.size());
  writes_ = token;
  ++depth_;
  actions(2 + rng_.below(5));
  Ids next;
  for (const Val& v : carried) next.push_back(get(v.e, v.shape).id);
  if (rng_.chance(30))
    std::reverse(
        next.begin(),
        next.begin() +
            static_cast<std::ptrdiff_t>(
                carried.size() > 1 && type(carried[0]) == type(carried.back()) && carried.size() == 2 ? 2 : 0));
  if (token) next.push_back(token_);
  emit(Opcode::Continue, {next}, {}, {});
  end_loop(i, outside, carried, token);
}

void Generator::branch() {
  const bool with_else = rng_.chance(70), token = writes_ && with_else && rng_.chance(70);
  const std::vector<Val> results = with_else ? pick_carried() : std::vector<Val>{};
  Val condition = get(ElementType::I1, {});
  if (rng_.chance(40))
    condition = {emit1(Opcode::CmpI, {{block_.id}, {scalar(1).id}}, {rng_.below(6), 1}, {tile(ElementType::I1, {})}),
                 ElementType::I1,
                 {},
                 kUnknown};
  Ids types_of;
  for (const Val& v : results) types_of.push_back(type(v));
  if (token) types_of.push_back(types().token());
  const InstId i = emit(Opcode::If, {{condition.id}}, {}, types_of);
  const bool writes = writes_;
  const ValueId outer_token = token_;
  writes_ = token;
  ++depth_;
  for (int side = 0; side < 2; ++side) {
    if (side == 1 && !with_else) {
      b_->absent_region();
      break;
    }
    const size_t mark = vals_.size();
    token_ = outer_token;
    b_->begin_region({});
    actions(1 + rng_.below(4));
    Ids out;
    for (const Val& v : results) out.push_back(get(v.e, v.shape).id);
    if (token) out.push_back(token_);
    emit(Opcode::Yield, {out}, {}, {});
    b_->end_region();
    vals_.resize(mark);
  }
  --depth_;
  b_->end_op();
  writes_ = writes;
  token_ = token ? f().result(i, results.size()) : outer_token;
  for (size_t k = 0; k < results.size(); ++k) keep(result_of(results[k], f().result(i, k)));
}

// Counts in i32 up to a bound; the results are some of the carried values, handed out by break in an if.
void Generator::endless_loop() {
  const std::vector<Val> carried = pick_carried();
  const bool token = writes_ && rng_.chance(70);
  const Val zero = scalar(0), one = scalar(1), most = scalar(rng_.below(4));
  Ids init{zero.id}, types_of{tile(ElementType::I32, {})}, out_types;
  for (const Val& v : carried) {
    init.push_back(v.id);
    types_of.push_back(type(v));
    out_types.push_back(type(v));
  }
  if (token) {
    init.push_back(token_);
    types_of.push_back(types().token());
    out_types.push_back(types().token());
  }
  const InstId i = emit(Opcode::Loop, {init}, {}, out_types);
  const Outside outside{vals_.size(), writes_, token_};
  const ValueId arg = b_->next_value();
  b_->begin_region(types_of);
  const Val count{arg, ElementType::I32, {}, kUnknown};
  keep(count);
  for (size_t k = 0; k < carried.size(); ++k) keep(result_of(carried[k], arg + 1 + static_cast<ValueId>(k)));
  if (token) token_ = arg + 1 + static_cast<ValueId>(carried.size());
  writes_ = token;
  ++depth_;
  actions(1 + rng_.below(3));
  const ValueId done = emit1(Opcode::CmpI, {{count.id}, {most.id}}, {5, 1}, {tile(ElementType::I1, {})});
  emit(Opcode::If, {{done}}, {}, {});
  const size_t inner = vals_.size();
  b_->begin_region({});
  Ids out;
  for (const Val& v : carried) out.push_back(get(v.e, v.shape).id);
  if (token) out.push_back(token_);
  emit(Opcode::Break, {out}, {}, {});
  b_->end_region();
  b_->absent_region();
  b_->end_op();
  vals_.resize(inner);
  actions(1 + rng_.below(3));
  Ids next{binary(Opcode::AddI, count, one, {0}).id};
  for (const Val& v : carried) next.push_back(get(v.e, v.shape).id);
  if (token) next.push_back(token_);
  emit(Opcode::Continue, {next}, {}, {});
  end_loop(i, outside, carried, token);
}

Program make(const Options& options) {
  // The number of parameters must be known before the first operation: a first try finds it.
  size_t params = 96;
  for (;;) {
    Generator first(options, params);
    first.run();
    const size_t used = first.params_needed();
    if (used > params) {
      params = used + 16;
      continue;
    }
    Generator second(options, used);
    second.run();
    return second.take();
  }
}

std::string Program::job(const std::string& kernel) const {
  std::string name;
  for (const char c : kernel) name += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  std::string out = "{\"kernel\": \"" + name + "\", \"grid\": [" + std::to_string(grid[0]) + ", " +
                    std::to_string(grid[1]) + ", " + std::to_string(grid[2]) + "], \"args\": [";
  for (size_t k = 0; k < args.size(); ++k) out += (k ? ", \"" : "\"") + args[k] + "\"";
  return out + "]}\n";
}

}  // namespace tile::random_program
