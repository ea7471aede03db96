// Launches of text kernels for tests that watch them.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "assembler/assembler.h"
#include "vm/runtime/device.h"
#include "vm/runtime/launch_args.h"

namespace tile::observe_kit {

/// A kernel with its arguments, ready to run any number of times.
struct Kernel {
  std::shared_ptr<const ValidModule> module;
  const Function* entry = nullptr;
  std::vector<ArgSpec> specs;
  LaunchArguments args;
  std::unique_ptr<Device> device;
  Diagnostics diags;
  std::string prints;

  Kernel(const std::string& text, const std::vector<std::string>& arguments) {
    auto parsed = parse_text(std::make_shared<const Source>("k.tile", text), diags);
    INFO(render(diags));
    REQUIRE(parsed);
    take(std::move(parsed.value()), arguments);
  }
  Kernel(Module m, const std::vector<std::string>& arguments) { take(std::move(m), arguments); }

  /// Runs it; false after a trap, with the reason in diags.
  bool run(std::vector<Observer*> observers, LaunchGrid grid = {1, 1, 1}, unsigned threads = 1) {
    RunOptions options;
    options.threads = threads;
    options.observers = std::move(observers);
    options.print = [this](const std::string& text) { prints += text; };
    return device->launch(*entry, grid, args, options, diags).ok();
  }

 private:
  void take(Module m, const std::vector<std::string>& arguments) {
    auto valid = validate(std::move(m), diags);
    INFO(render(diags));
    REQUIRE(valid);
    module = std::make_shared<const ValidModule>(*std::move(valid));
    const auto found = find_entry(**module, "", diags);
    REQUIRE(found);
    entry = *found;
    auto parsed = parse_args(arguments, diags);
    REQUIRE(parsed);
    specs = std::move(parsed.value());
    auto expanded = expand(specs, entry_params(**module, *entry), {}, diags);
    INFO(render(diags));
    REQUIRE(expanded);
    args = std::move(expanded.value());
    auto made = make_cpu_device(module, diags);
    REQUIRE(made);
    device = std::move(made.value());
  }
};

}  // namespace tile::observe_kit
