// Fibers over the contexts of POSIX, which every C library of the supported systems has: a build of the interpreter needs no further library.
#include "vm/interp/fibers.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define TILE_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TILE_FIBER_ASAN 1
#endif
#endif
#ifdef TILE_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace tile {
namespace {

// Regions nest at most a few hundred deep, each with three calls of some hundred bytes; a view access has a kilobyte of coordinates.
constexpr size_t kStack = size_t{1} << 20, kGuard = size_t{1} << 12;

}  // namespace

struct Fibers::State {
  struct Fiber {
    ucontext_t context{};
    void* memory = MAP_FAILED;
    void* fake = nullptr;  // what the address sanitizer keeps of a stack that is left
  };
  std::vector<Fiber> fibers;
  ucontext_t main{};
  void* main_fake = nullptr;
  const void* main_stack = nullptr;
  size_t main_size = 0;
  std::function<void(size_t)> body;
  std::function<size_t()> next;
  size_t current = kNone;
  bool ok = true;

  /// Leaves `from` (kNone: the caller of run()) for `to`. `ends`: the stack of `from` is not used again.
  void change(size_t from, size_t to, bool ends) {
    current = to;
    ucontext_t* here = from == kNone ? &main : &fibers[from].context;
    ucontext_t* there = to == kNone ? &main : &fibers[to].context;
#ifdef TILE_FIBER_ASAN
    void** fake = from == kNone ? &main_fake : &fibers[from].fake;
    const void* stack = to == kNone ? main_stack : static_cast<std::byte*>(fibers[to].memory) + kGuard;
    __sanitizer_start_switch_fiber(ends ? nullptr : fake, stack, to == kNone ? main_size : kStack);
#endif
    if (ends) {
      setcontext(there);
      return;
    }
    swapcontext(here, there);
    arrived(from == kNone ? main_fake : fibers[from].fake);
  }
  void arrived([[maybe_unused]] void* fake) {
#ifdef TILE_FIBER_ASAN
    const void* stack = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(fake, &stack, &size);
    if (main_stack == nullptr) {  // the first change comes from the stack of run()
      main_stack = stack;
      main_size = size;
    }
#endif
  }
  static void enter(unsigned low, unsigned high) {
    auto* self = reinterpret_cast<State*>(static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32);
    self->arrived(nullptr);
    const size_t me = self->current;
    self->body(me);
    self->change(me, self->next(), true);
  }
};

Fibers::Fibers(size_t n, std::function<void(size_t)> body) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.body = std::move(body);
  s.fibers.resize(n);
  for (State::Fiber& f : s.fibers) {
    f.memory = mmap(nullptr, kStack + kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f.memory == MAP_FAILED || mprotect(f.memory, kGuard, PROT_NONE) != 0 || getcontext(&f.context) != 0) {
      s.ok = false;
      return;
    }
    f.context.uc_stack.ss_sp = static_cast<std::byte*>(f.memory) + kGuard;
    f.context.uc_stack.ss_size = kStack;
    f.context.uc_link = nullptr;
    const auto self = reinterpret_cast<uintptr_t>(&s);  // makecontext() hands on integers only
    makecontext(&f.context, reinterpret_cast<void (*)()>(&State::enter), 2, static_cast<unsigned>(self), static_cast<unsigned>(static_cast<uint64_t>(self) >> 32));
  }
}

Fibers::~Fibers() {
  for (State::Fiber& f : state_->fibers)
    if (f.memory != MAP_FAILED) munmap(f.memory, kStack + kGuard);
}

bool Fibers::ready() const { return state_->ok; }
size_t Fibers::current() const { return state_->current; }

void Fibers::run(size_t first, std::function<size_t()> next) {
  state_->next = std::move(next);
  state_->change(kNone, first, false);
}

void Fibers::hand_over(size_t to) {
  if (to != state_->current) state_->change(state_->current, to, false);
}

}  // namespace tile
