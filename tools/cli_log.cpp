// Lines of --verbose. The only file that needs spdlog.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "tools/cli_options.h"

namespace tile::cli {

void log(const CommonOptions& options, const std::string& line) {
  if (!options.verbose) return;
  static const auto logger = [] {
    auto made = std::make_shared<spdlog::logger>("tile", std::make_shared<spdlog::sinks::stderr_sink_st>());
    made->set_pattern("[%H:%M:%S.%e] %v");
    return made;
  }();
  logger->info("{}", line);
}

}  // namespace tile::cli
