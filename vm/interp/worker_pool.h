// Threads that outlive a launch: starting one costs more than a small launch takes.
#pragma once

#include <functional>

namespace tile {

/// Calls work(0), ..., work(n - 1), each at most once and work(0) on this thread; returns when all that began have ended. A call may be
/// left out when the others have ended before its thread was awake: work must be what any of the calls could do alone.
void run_workers(unsigned n, const std::function<void(unsigned)>& work);

}  // namespace tile
