// Internal consistency checks: for what this project broke, never for a user's mistake (those get diagnostics).
#pragma once

namespace tile {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define TILE_CHECK(condition) \
  do {                        \
    if (!(condition)) ::tile::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
