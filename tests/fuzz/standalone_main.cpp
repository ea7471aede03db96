// A small driver for fuzz targets without libFuzzer: runs every given file, then random changes of them until the time
// is up or as many are through as were asked for. What is found steers nothing, but with an optimised build it is fast. It
// understands the options of tests/fuzz/run.sh and ignores the others.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);

namespace {

using Bytes = std::vector<uint8_t>;

std::string artifact = "last-input";
const uint8_t* current = nullptr;  // the input that is running
size_t current_size = 0;
volatile std::sig_atomic_t stopped = 0;

// Keeps the input that brought the program down. Nothing else is safe to do here.
void on_failure(int signal) {
  const int file = open(artifact.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0) {
    for (size_t at = 0; at < current_size;) {
      const ssize_t n = write(file, current + at, current_size - at);
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    close(file);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(const Bytes& input) {
  // A copy of exactly this size lets a sanitizer see the first byte behind it.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), copy.get());
  current = copy.get();
  current_size = input.size();
  LLVMFuzzerTestOneInput(copy.get(), input.size());
  current_size = 0;
}

// A few random edits: flip, overwrite, insert, erase, repeat, or splice in a piece of another input.
Bytes mutate(Bytes input, const std::vector<Bytes>& pool, std::mt19937_64& random, size_t longest) {
  static constexpr uint8_t kAwkward[] = {0x00, 0x01, 0x7F, 0x80, 0xFF, '\n', '%', '"'};
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  for (size_t edits = 1 + below(6); edits > 0; --edits) {
    const size_t at = below(input.size() + 1);
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t left = input.size() - at;
    switch (below(6)) {
      case 0:
        if (left > 0) input[at] ^= static_cast<uint8_t>(1u << below(8));
        break;
      case 1:
        if (left > 0) input[at] = kAwkward[below(sizeof kAwkward)];
        break;
      case 2:
        input.insert(place, static_cast<uint8_t>(random()));
        break;
      case 3:
        input.erase(place, place + static_cast<std::ptrdiff_t>(below(std::min<size_t>(left, 16) + 1)));
        break;
      case 4: {
        const Bytes piece(place, place + static_cast<std::ptrdiff_t>(below(std::min<size_t>(left, 64) + 1)));
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
        break;
      }
      default: {
        const Bytes& other = pool[below(pool.size())];
        const size_t from = below(other.size() + 1), count = below(std::min<size_t>(other.size() - from, 256) + 1);
        input.insert(place, other.begin() + static_cast<std::ptrdiff_t>(from),
                     other.begin() + static_cast<std::ptrdiff_t>(from + count));
      }
    }
  }
  // Then the target's own changes, which know the form.
  const size_t size = std::min(input.size(), longest);
  input.resize(std::max(longest, size + 1));
  input.resize(LLVMFuzzerCustomMutator(input.data(), size, longest, static_cast<unsigned>(random())));
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  size_t most_runs = SIZE_MAX;
  size_t longest = 65536;
  uint64_t seed = std::random_device{}();
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const auto value = [&](std::string_view name) { return arg.starts_with(name) ? argv[i] + name.size() : nullptr; };
    if (const char* v = value("-max_total_time=")) {
      seconds = std::atof(v);
    } else if (const char* v5 = value("-runs=")) {
      most_runs = std::strtoull(v5, nullptr, 10);
    } else if (const char* v2 = value("-max_len=")) {
      longest = std::strtoull(v2, nullptr, 10);
    } else if (const char* v3 = value("-seed=")) {
      seed = std::strtoull(v3, nullptr, 10);
    } else if (const char* v4 = value("-artifact_prefix=")) {
      artifact = std::string(v4) + "last-input";
    } else if (!arg.starts_with('-')) {
      if (std::filesystem::is_directory(arg)) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(arg)) {
          if (entry.is_regular_file()) files.push_back(entry.path());
        }
      } else {
        files.emplace_back(arg);
      }
    }
  }
  // A sanitizer's report ends in SIGABRT too, with the options that run.sh gives.
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_failure);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stopped = 1; });
  std::sort(files.begin(), files.end());
  std::printf("seed %llu, %zu files\n", static_cast<unsigned long long>(seed), files.size());
  std::fflush(stdout);

  std::vector<Bytes> pool;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    pool.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    run(pool.back());
  }
  if (pool.empty()) pool.emplace_back();

  std::mt19937_64 random(seed);
  const auto began = std::chrono::steady_clock::now();
  const auto stop = began + std::chrono::duration<double>(seconds);
  auto next_report = began + std::chrono::seconds(5);
  size_t runs = files.size();
  for (; runs < most_runs && !stopped; ++runs) {
    if (runs % 64 == 0) {
      const auto now = std::chrono::steady_clock::now();
      if (now >= stop) break;
      if (now >= next_report) {  // as libFuzzer says how far it is
        std::printf("#%zu\n", runs);
        std::fflush(stdout);
        next_report = now + std::chrono::seconds(5);
      }
    }
    run(mutate(pool[random() % pool.size()], pool, random, longest));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("Done %zu runs in %.0f second(s)\nstat::number_of_executed_units: %zu\n", runs, took.count(), runs);
  return 0;
}
