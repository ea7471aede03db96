// Barriers between two warpgroups that take iterations of the program's loop in turn.
#pragma once

#include "backend/ptx/lowering.h"

namespace tile {

/// Of the first warps of both, whose threads start bulk stores: a store begins when that of the iteration before is done.
inline constexpr unsigned kOrderBarrier = kTurnBarrier + 2, kOrderThreads = 64;

}  // namespace tile
