// Draws an access map: cells coloured by the lowest number of a block that touches them, from blue (first) to red
// (last).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "vm/interp/access_map.h"

namespace tile {
namespace {

constexpr int kPanel = 400, kGap = 40, kMargin = 20, kLabel = 18;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        break;
    }
  }
  return out;
}

std::string number(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2f", x);
  std::string s = buffer;
  while (s.back() == '0') s.pop_back();
  if (s.back() == '.') s.pop_back();
  return s;
}

std::string block_name(uint64_t linear, const Grid& g) {
  return std::to_string(linear % g.x) + "," + std::to_string(linear / g.x % g.y) + "," +
         std::to_string(linear / g.x / g.y);
}

/// "#rrggbb" of a hue from 0 (red) to 240 (blue) with saturation 0.7. Viewers differ in whether they know hsl().
std::string color_of(double hue, double lightness) {
  const double chroma = (1 - std::fabs(2 * lightness - 1)) * 0.7, sector = hue / 60;
  const double second = chroma * (1 - std::fabs(std::fmod(sector, 2) - 1)), base = lightness - chroma / 2;
  double rgb[3] = {0, 0, 0};
  const int order[4][2] = {{0, 1}, {1, 0}, {1, 2}, {2, 1}};  // which channel has most and second most in each sector
  const int* o = order[std::min(static_cast<int>(sector), 3)];
  rgb[o[0]] = chroma;
  rgb[o[1]] = second;
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "#%02x%02x%02x", static_cast<unsigned>((rgb[0] + base) * 255 + 0.5) & 255u,
                static_cast<unsigned>((rgb[1] + base) * 255 + 0.5) & 255u,
                static_cast<unsigned>((rgb[2] + base) * 255 + 0.5) & 255u);
  return buffer;
}

/// Hue by the place in the grid; neighbours in number differ in lightness, so that their border is seen.
std::string color(uint64_t block, uint64_t blocks) {
  const double place = blocks > 1 ? static_cast<double>(block) / static_cast<double>(blocks - 1) : 0;
  return color_of(240 - 240 * place, block % 2 ? 0.62 : 0.5);
}

std::string range(int64_t first, int64_t count) {
  return count == 1 ? std::to_string(first) : std::to_string(first) + ".." + std::to_string(first + count - 1);
}

bool same(const AccessMap::Cell& a, const AccessMap::Cell& b) {
  return a.count == b.count && a.more == b.more && a.shared == b.shared &&
         std::equal(a.blocks.begin(), a.blocks.begin() + a.count, b.blocks.begin());
}

class Panel {
 public:
  Panel(const AccessMap::Picture& p, const Grid& grid, double height) : p_(p), grid_(grid), height_(height) {}

  std::string draw(const std::vector<AccessMap::Cell>& cells, double x0, double y0, const char* verb) {
    std::string out = "<rect x=\"" + number(x0) + "\" y=\"" + number(y0) + "\" width=\"" + std::to_string(kPanel) +
                      "\" height=\"" + number(height_) + "\" fill=\"#eee\"/>\n";
    const double w = static_cast<double>(kPanel) / static_cast<double>(p_.grid_columns),
                 h = height_ / static_cast<double>(p_.grid_rows);
    std::string marks;
    const auto at = [&](int64_t r, int64_t c) -> const AccessMap::Cell& {
      return cells[static_cast<size_t>(r * p_.grid_columns + c)];
    };
    std::vector<uint8_t> drawn(cells.size(), 0);
    for (int64_t r = 0; r < p_.grid_rows; ++r) {
      for (int64_t c = 0; c < p_.grid_columns; ++c) {
        const AccessMap::Cell& cell = at(r, c);
        if (cell.count == 0 || drawn[static_cast<size_t>(r * p_.grid_columns + c)]) continue;
        // The largest rectangle of equal cells to the right, then down.
        int64_t right = c + 1, down = r + 1;
        while (right < p_.grid_columns && !drawn[static_cast<size_t>(r * p_.grid_columns + right)] &&
               same(cell, at(r, right)))
          ++right;
        const auto row_is_same = [&](int64_t row) {
          for (int64_t k = c; k < right; ++k)
            if (drawn[static_cast<size_t>(row * p_.grid_columns + k)] || !same(cell, at(row, k))) return false;
          return true;
        };
        while (down < p_.grid_rows && row_is_same(down)) ++down;
        for (int64_t row = r; row < down; ++row)
          for (int64_t k = c; k < right; ++k) drawn[static_cast<size_t>(row * p_.grid_columns + k)] = 1;
        const double x = x0 + w * static_cast<double>(c), y = y0 + h * static_cast<double>(r);
        const double width = w * static_cast<double>(right - c), height = h * static_cast<double>(down - r);
        const std::string box = " x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
                                "\" height=\"" + number(height) + "\"";
        out += "<rect" + box + " fill=\"" + color(cell.blocks[0], grid_.blocks()) + "\"><title>" +
               title(cell, r, down, c, right, verb) + "</title></rect>\n";
        if (cell.shared) marks += "<rect" + box + " fill=\"url(#shared)\" pointer-events=\"none\"/>\n";
        extend(cell.blocks[0], x, y, width, height);
      }
    }
    return out + marks + labels();
  }

 private:
  struct Extent {
    double left, top, right, bottom, area;
  };

  std::string title(const AccessMap::Cell& cell, int64_t r, int64_t down, int64_t c, int64_t right,
                    const char* verb) const {
    const int64_t first = c * p_.cell_columns, columns = std::min(right * p_.cell_columns, p_.columns) - first;
    const int64_t row = r * p_.cell_rows, rows = std::min(down * p_.cell_rows, p_.rows) - row;
    std::string out = p_.rows > 1 ? "rows " + range(row, rows) + ", columns " + range(first, columns)
                                  : "elements " + range(first, columns);
    out += std::string(" ") + verb + (cell.count == 1 && !cell.more ? " by block " : " by blocks ");
    for (uint8_t k = 0; k < cell.count; ++k) out += (k ? "  " : "") + block_name(cell.blocks[k], grid_);
    if (cell.more) out += " and more";
    if (cell.shared) out += "; several blocks write the same element";
    return out;
  }

  void extend(uint64_t block, double x, double y, double w, double h) {
    const auto [it, fresh] = extents_.try_emplace(block, Extent{x, y, x + w, y + h, 0});
    Extent& e = it->second;
    e.left = std::min(e.left, x);
    e.top = std::min(e.top, y);
    e.right = std::max(e.right, x + w);
    e.bottom = std::max(e.bottom, y + h);
    e.area += w * h;
  }

  // The number of a block, where its cells form a rectangle with room for it.
  std::string labels() {
    std::string out;
    for (const auto& [block, e] : extents_) {
      const double w = e.right - e.left, h = e.bottom - e.top;
      std::string name = block_name(block, grid_);
      if (grid_.z == 1) name.resize(name.rfind(','));
      if (grid_.z == 1 && grid_.y == 1) name.resize(name.rfind(','));
      if (h < 11 || w < 6.5 * static_cast<double>(name.size()) + 2 || e.area < 0.99 * w * h) continue;
      out += "<text x=\"" + number((e.left + e.right) / 2) + "\" y=\"" + number((e.top + e.bottom) / 2 + 3.5) +
             "\" class=\"b\">" + name + "</text>\n";
    }
    extents_.clear();
    return out;
  }

  const AccessMap::Picture& p_;
  const Grid& grid_;
  double height_;
  std::map<uint64_t, Extent> extents_;
};

std::string list(const std::vector<int64_t>& values) {
  std::string out = "[";
  for (size_t k = 0; k < values.size(); ++k) out += (k ? ", " : "") + std::to_string(values[k]);
  return out + "]";
}

}  // namespace

std::string AccessMap::svg(const std::string& title) const {
  std::string body;
  double y = kMargin + kLabel;
  body += "<text x=\"" + std::to_string(kMargin) + "\" y=\"" + number(y - 4) + "\" class=\"t\">" + escaped(title) +
          "</text>\n";
  y += kLabel;
  body += "<text x=\"" + std::to_string(kMargin) + "\" y=\"" + number(y - 4) + "\">grid " + std::to_string(grid_.x) +
          " x " + std::to_string(grid_.y) + " x " + std::to_string(grid_.z) +
          "; colour: lowest block that touches it</text>\n";
  const uint64_t blocks = grid_.blocks();
  const int bar = 120, at = kMargin + kPanel + kGap + 50;
  body += "<text x=\"" + std::to_string(kMargin + kPanel + kGap) + "\" y=\"" + number(y - 4) + "\">block 0</text>\n";
  for (int k = 0; k < bar; k += 4)
    body += "<rect x=\"" + std::to_string(at + k) + "\" y=\"" + number(y - 14) +
            "\" width=\"4\" height=\"12\" fill=\"" + color_of(240.0 - 240.0 * k / (bar - 4), 0.5) + "\"/>\n";
  body += "<text x=\"" + std::to_string(at + bar + 6) + "\" y=\"" + number(y - 4) + "\">block " +
          std::to_string(blocks - 1) + "</text>\n";
  y += 10;
  for (const Picture& p : pictures_) {
    const double height = std::clamp(
        static_cast<double>(kPanel) * static_cast<double>(p.rows) / static_cast<double>(p.columns), 24.0, 1.0 * kPanel);
    std::string caption = p.array.name + ": " + std::string(info(p.array.type).name) + list(p.array.shape);
    if (p.by_memory) {
      caption += ", in the order of memory";
    } else if (p.array.shape.size() > 2) {
      caption += ", all dimensions but the last as rows";
    }
    if (p.cell_rows > 1 || p.cell_columns > 1)
      caption += ", a cell is " + std::to_string(p.cell_rows) + " x " + std::to_string(p.cell_columns) + " elements";
    if (!p.tracked) caption += ", writes by several blocks are not told apart";
    y += kLabel;
    body += "<text x=\"" + std::to_string(kMargin) + "\" y=\"" + number(y - 4) + "\" class=\"t\">" + escaped(caption) +
            "</text>\n";
    y += kLabel;
    body += "<text x=\"" + std::to_string(kMargin) + "\" y=\"" + number(y - 4) + "\">read</text>\n<text x=\"" +
            std::to_string(kMargin + kPanel + kGap) + "\" y=\"" + number(y - 4) + "\">written</text>\n";
    Panel panel(p, grid_, height);
    body += panel.draw(p.reads, kMargin, y, "read");
    body += panel.draw(p.writes, kMargin + kPanel + kGap, y, "written");
    y += height + 12;
  }
  const std::string width = std::to_string(2 * kMargin + 2 * kPanel + kGap), height = number(y + kMargin);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height + "\" viewBox=\"0 0 " +
         width + " " + height +
         "\">\n<style>text{font:12px "
         "sans-serif;fill:#222}.t{font-weight:bold}.b{font-size:10px;fill:#fff;text-anchor:middle;pointer-events:none;"
         "stroke:#000;stroke-opacity:.4;stroke-width:2px;paint-order:stroke}rect{shape-rendering:crispEdges}</style>\n"
         "<defs><pattern id=\"shared\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 6L6 0\" "
         "stroke=\"#000\" stroke-width=\"1.5\"/>"
         "</pattern></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" +
         body + "</svg>\n";
}

std::string AccessMap::html(const std::string& title) const {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>" + escaped(title) +
         "</title></head>\n<body>\n" + svg(title) +
         "<p>Hover a cell to see its elements and blocks. Hatched: several blocks write the same "
         "element.</p>\n</body>\n</html>\n";
}

}  // namespace tile
