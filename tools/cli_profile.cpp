// Sums of a profile by operation and by line, and their formatting.
#include "tools/cli_profile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

namespace tile::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Group {
  std::string name;  // operation, or file:line
  LineRef line;
  std::string ops;  // of a line
  ProfileCounts counts;
};

/// The longest first; equal times by name, so that the order of untimed rows is the same in every run.
void order(std::vector<Group>& groups) {
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.counts.nanoseconds != b.counts.nanoseconds ? a.counts.nanoseconds > b.counts.nanoseconds : a.name < b.name;
  });
}

std::vector<Group> by_op(const std::vector<ProfileRow>& rows) {
  std::map<std::string, Group> groups;
  for (const ProfileRow& r : rows) {
    Group& g = groups[r.op];
    g.name = r.op;
    g.counts += r.counts;
  }
  std::vector<Group> out;
  for (auto& [name, g] : groups) out.push_back(std::move(g));
  order(out);
  return out;
}

std::vector<Group> by_line(const std::vector<ProfileRow>& rows) {
  std::map<std::pair<std::string, uint32_t>, Group> groups;
  for (const ProfileRow& r : rows) {
    Group& g = groups[{r.line.file, r.line.line}];
    g.name = r.line.line ? r.line.text() : "no line";
    g.line = r.line;
    g.counts += r.counts;
    // Words of the list stand between spaces.
    if ((" " + g.ops + " ").find(" " + r.op + " ") == std::string::npos) g.ops += (g.ops.empty() ? "" : " ") + r.op;
  }
  std::vector<Group> out;
  for (auto& [key, g] : groups) out.push_back(std::move(g));
  order(out);
  return out;
}

int64_t total_time(const std::vector<ProfileRow>& rows) {
  int64_t total = 0;
  for (const ProfileRow& r : rows) total += r.counts.nanoseconds;
  return total;
}

double share(int64_t part, int64_t total) {
  return total > 0 ? static_cast<double>(part) / static_cast<double>(total) : 0;
}

std::string row(const Group& g, int64_t total, size_t width) {
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, " %12llu %12.3f %6.1f %% %14llu %14llu %16llu",
                static_cast<unsigned long long>(g.counts.count), static_cast<double>(g.counts.nanoseconds) * 1e-6,
                100 * share(g.counts.nanoseconds, total), static_cast<unsigned long long>(g.counts.bytes_read),
                static_cast<unsigned long long>(g.counts.bytes_written),
                static_cast<unsigned long long>(g.counts.flops));
  std::string name = g.name;
  name.resize(std::max(name.size(), width), ' ');
  return name + buffer + (g.ops.empty() ? "" : "  " + g.ops) + "\n";
}

std::string section(const char* title, const std::vector<Group>& groups, int64_t total) {
  size_t width = std::string(title).size();
  for (const Group& g : groups) width = std::max(width, g.name.size());
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, " %12s %12s %8s %14s %14s %16s\n", "count", "time ms", "share", "bytes read",
                "bytes written", "flops");
  std::string out = title;
  out.resize(width, ' ');
  out += buffer;
  for (const Group& g : groups) out += row(g, total, width);
  return out;
}

Json counts_json(Json j, const ProfileCounts& c, int64_t total) {
  j["count"] = c.count;
  j["seconds"] = static_cast<double>(c.nanoseconds) * 1e-9;
  j["share"] = share(c.nanoseconds, total);
  j["bytes_read"] = c.bytes_read;
  j["bytes_written"] = c.bytes_written;
  j["flops"] = c.flops;
  return j;
}

std::string dump(const Json& j, int indent) {
  return j.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string grid_text(const LaunchGrid& g) {
  return std::to_string(g[0]) + " x " + std::to_string(g[1]) + " x " + std::to_string(g[2]);
}

}  // namespace

std::string profile_table(const Profile& profile, const ProfileTitle& title) {
  const auto rows = profile.instructions();
  const int64_t total = total_time(rows);
  char buffer[256];
  std::snprintf(buffer, sizeof buffer,
                "%llu blocks in %.3f ms on %u thread%s; times are sums over threads and include measuring\n",
                static_cast<unsigned long long>(profile.blocks()), profile.seconds() * 1e3, profile.workers(),
                profile.workers() == 1 ? "" : "s");
  return "profile of @" + title.entry + ", grid " + grid_text(title.grid) + ": " + buffer +
         section("operation", by_op(rows), total) + "\n" + section("line", by_line(rows), total);
}

std::string profile_json(const Profile& profile, const ProfileTitle& title) {
  const auto rows = profile.instructions();
  const int64_t total = total_time(rows);
  Json j;
  j["entry"] = title.entry;
  j["grid"] = title.grid;
  j["launches"] = profile.launches();
  j["blocks"] = profile.blocks();
  j["threads"] = profile.workers();
  j["seconds"] = profile.seconds();
  j["operation_seconds"] = static_cast<double>(total) * 1e-9;
  j["operations"] = Json::array();
  for (const Group& g : by_op(rows)) j["operations"].push_back(counts_json({{"op", g.name}}, g.counts, total));
  j["lines"] = Json::array();
  for (const Group& g : by_line(rows))
    j["lines"].push_back(counts_json({{"file", g.line.file}, {"line", g.line.line}, {"ops", g.ops}}, g.counts, total));
  j["instructions"] = Json::array();
  for (const ProfileRow& r : rows)
    j["instructions"].push_back(counts_json(
        {{"instruction", r.inst}, {"op", r.op}, {"file", r.line.file}, {"line", r.line.line}}, r.counts, total));
  return dump(j, 1) + "\n";
}

std::string profile_trace(const Profile& profile, const Module& module, const Function& entry,
                          const ProfileTitle& title) {
  std::string out =
      "{\"displayTimeUnit\":\"ns\",\"otherData\":" +
      dump({{"entry", title.entry}, {"grid", grid_text(title.grid)}, {"dropped_events", profile.dropped_events()}},
           -1) +
      ",\n\"traceEvents\":[\n";
  out += dump({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", "tilevm @" + title.entry}}}}, -1);
  // What stands the same in every slice of an instruction.
  std::vector<std::string> fixed;
  for (InstId i = 0; i < entry.insts.size(); ++i) {
    const LineRef at = line_of(module, entry, i);
    fixed.push_back(dump(Json(std::string(entry.def(i).name)), -1) +
                    ",\"cat\":\"op\",\"args\":{\"line\":" + dump(Json(at.text()), -1) + "}");
  }
  const uint64_t gx = title.grid[0], gy = title.grid[1];
  char buffer[160];
  for (unsigned w = 0; w < profile.workers(); ++w) {
    out += ",\n" + dump({{"name", "thread_name"},
                         {"ph", "M"},
                         {"pid", 1},
                         {"tid", w},
                         {"args", {{"name", "worker " + std::to_string(w)}}}},
                        -1);
    for (const Profile::Event& e : profile.events(w)) {
      std::string what;
      if (e.inst == kNone) {
        const std::string block = std::to_string(e.block % gx) + "," + std::to_string(e.block / gx % gy) + "," +
                                  std::to_string(e.block / gx / gy);
        what = "\"block " + block + "\",\"cat\":\"block\",\"args\":{}";
      } else {
        what = fixed[e.inst];
      }
      // Microseconds with the nanoseconds behind the point.
      std::snprintf(buffer, sizeof buffer, ",\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%lld.%03lld,\"dur\":%lld.%03lld}",
                    w, static_cast<long long>(e.start / 1000), static_cast<long long>(e.start % 1000),
                    static_cast<long long>(e.duration / 1000), static_cast<long long>(e.duration % 1000));
      out += ",\n{\"name\":" + what + buffer;
    }
  }
  return out + "\n]}\n";
}

}  // namespace tile::cli
