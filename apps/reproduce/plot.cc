#include "reproduce/plot.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace tactus {
namespace {

// Colours that differ for most colour-blind readers as well, and a point shape for each.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                 "#56b4e9", "#666666", "#8c510a", "#000000", "#f0e442"};
constexpr std::array kShapes = {7, 5, 9, 13, 11, 4, 6, 8, 10, 12};
constexpr int kPanelWidth = 520;
constexpr int kWidePanel = 1100;  // of bars that have a row of their own
constexpr int kPlotHeight = 440;  // of a panel without its key
constexpr int kKeyRowHeight = 18;
constexpr std::size_t kLongName = 22;  // longer ones do not stand side by side in a key

// In gnuplot's double-quoted strings with enhanced text, '_', '^', '@' and '~' have meanings.
std::string Plain(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '"') continue;
    if (c == '_' || c == '^' || c == '@' || c == '~' || c == '{' || c == '}') plain += "\\\\";
    plain += c;
  }
  return plain;
}

// The series that a panel shows, with the names that they have there, and their colours.
struct Curve {
  std::string series;
  std::string name;
  std::size_t style = 0;
};

// A system looks the same in all panels, where there are colours enough for that, and in all
// figures where the paper's `colours` name it.
void GiveStyles(std::vector<Curve>& curves, const Figure& figure,
                const std::vector<std::string>& colours) {
  std::vector<std::string> names;
  for (const FigureSeries& series : figure.series) {
    for (const FigurePanel& panel : figure.panels) {
      const std::string prefix = panel.group.empty() ? "" : panel.group + ": ";
      if (!series.label.starts_with(prefix)) continue;
      const std::string name = series.label.substr(prefix.size());
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::map<std::string, std::size_t> styles;
  std::set<std::size_t> taken;
  for (std::size_t i = 0; i < colours.size(); ++i) {
    if (std::find(names.begin(), names.end(), colours[i]) == names.end()) continue;
    styles[colours[i]] = i;
    taken.insert(i);
  }
  if (names.size() <= kColours.size()) {
    std::size_t free = 0;
    for (const std::string& name : names) {
      if (styles.contains(name)) continue;
      while (taken.contains(free)) ++free;
      styles[name] = free++;
    }
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const auto style = styles.find(curves[i].name);
    curves[i].style = style == styles.end() ? i % kColours.size() : style->second;
  }
}

std::vector<Curve> CurvesOf(const FigureData& data, const Paper& paper, const Figure& figure,
                            const FigurePanel& panel) {
  const std::string prefix = panel.group.empty() ? "" : panel.group + ": ";
  std::vector<Curve> curves;
  const auto add = [&](const std::string& label) {
    if (!label.starts_with(prefix) || !data.contains(label)) return;
    curves.push_back({label, label.substr(prefix.size())});
  };
  for (const FigureSeries& series : figure.series) {
    if (panel.stacked) continue;
    add(series.label);
  }
  if (curves.empty()) {
    for (const auto& [label, rows] : data) add(label);
  }
  GiveStyles(curves, figure, paper.colours);
  return curves;
}

// y of a row as the panel shows it; nothing where the row, or what it is relative to, has none.
std::optional<double> Shown(const FigurePanel& panel, const FigureData& data, double x,
                            const FigureRow& row) {
  const auto y = row.find(panel.y);
  if (y == row.end()) return {};
  if (panel.relative_to.empty()) return y->second;
  const auto& base = data.at(panel.relative_to);
  const auto at = base.size() == 1 ? base.begin() : base.find(x);
  if (at == base.end() || !at->second.contains(panel.y) || at->second.at(panel.y) <= 0) return {};
  return y->second / at->second.at(panel.y);
}

// A line for each row that has the column: its value, and the rows in percent that have no larger.
std::string Distribution(const std::map<double, FigureRow>& rows, const std::string& column) {
  std::vector<double> values;
  for (const auto& [x, row] : rows) {
    if (row.contains(column)) values.push_back(row.at(column));
  }
  std::sort(values.begin(), values.end());
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{} {}\n", values[i],
                        100 * static_cast<double>(i + 1) / static_cast<double>(values.size()));
  }
  return text;
}

std::string DataBlock(const std::string& name, const FigureData& data, const std::string& series,
                      const FigurePanel& panel) {
  std::string text = fmt::format("${} << EOD\n", name);
  if (panel.cdf) return text + Distribution(data.at(series), panel.x) + "EOD\n";
  for (const auto& [load, row] : data.at(series)) {
    const auto y = Shown(panel, data, load, row);
    if (!y || (panel.x != "load" && !row.contains(panel.x))) continue;
    text += fmt::format("{} {}\n", panel.x == "load" ? load : row.at(panel.x), *y);
  }
  return text + "EOD\n";
}

// One row a group of bars, one column a series. What is not there is a bar without height: gnuplot
// refuses a column without a number.
std::string BarBlock(const std::string& name, const FigureData& data, const Figure& figure,
                     const FigurePanel& panel, const std::vector<Curve>& curves) {
  std::map<double, std::string> groups;
  for (const FigureSeries& series : figure.series) {
    for (const FigurePoint& point : series.points) groups[point.x] = point.name;
  }
  std::string text = fmt::format("${} << EOD\n", name);
  for (const auto& [x, group] : groups) {
    text += '"' + Plain(group) + '"';
    for (const Curve& curve : curves) {
      const auto& rows = data.at(curve.series);
      const auto row = rows.find(x);
      const auto y = row == rows.end() ? std::nullopt : Shown(panel, data, x, row->second);
      text += y ? fmt::format(" {}", *y) : " 0";
    }
    text += "\n";
  }
  return text + "EOD\n";
}

// Commands that draw a panel, after the blocks of data that they read.
struct Drawing {
  std::string blocks;
  std::string curves;
  void Add(const std::string& curve) { curves += (curves.empty() ? "" : ", ") + curve; }
};

std::string NameOf(const Curve& curve, const FigurePanel& panel, std::size_t rows) {
  return panel.counted.empty() ? curve.name
                               : fmt::format("{} ({} {})", curve.name, rows, panel.counted);
}

void AddMarks(Drawing& drawing, const FigurePanel& panel, const std::map<double, FigureRow>& rows,
              const std::string& curve) {
  std::string points;
  for (const auto& [x, row] : rows) {
    const auto mark = row.find(panel.mark);
    if (mark != row.end() && mark->second > 0) points += fmt::format("{} {}\n", x, row.at(panel.y));
  }
  if (points.empty()) return;
  drawing.blocks += fmt::format("${}marks << EOD\n{}EOD\n", curve, points);
  drawing.Add(
      fmt::format("${}marks using 1:2 with points pt 6 ps 3 lw 2.5 lc rgb 'black' title \"{}\"",
                  curve, Plain(panel.mark_label)));
}

Drawing DrawLines(const FigurePanel& panel, const FigureData& data, std::size_t index,
                  const std::vector<Curve>& curves) {
  Drawing drawing;
  std::size_t most = 0;
  for (const Curve& curve : curves) most = std::max(most, data.at(curve.series).size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    const char* const colour = kColours[curve.style];
    const auto& rows = data.at(curve.series);
    if (rows.size() == 1 && most > 1) {  // a level, for all x
      const auto y = Shown(panel, data, rows.begin()->first, rows.begin()->second);
      if (!y) continue;
      drawing.Add(fmt::format("{} with lines dt 2 lc rgb '{}' lw 2 title \"{}\"", *y, colour,
                              Plain(curve.name)));
      continue;
    }
    const std::string name = fmt::format("p{}s{}", index, i);
    drawing.blocks += DataBlock(name, data, curve.series, panel);
    // Each thinner than the one before it, so that curves that coincide can all be seen.
    const double thick = 1.5 + 3.0 * static_cast<double>(curves.size() - 1 - i) /
                                   static_cast<double>(std::max<std::size_t>(1, curves.size() - 1));
    // Marks on curves of many points would hide them.
    const std::string style = most > 40 ? panel.cdf ? "steps" : "lines"
                                        : fmt::format("linespoints pt {} ps {:.1f}",
                                                      kShapes[curve.style], 0.6 + 0.2 * thick);
    drawing.Add(fmt::format("${} using 1:2 with {} lc rgb '{}' lw {:.1f} title \"{}\"", name, style,
                            colour, thick, Plain(NameOf(curve, panel, rows.size()))));
    AddMarks(drawing, panel, rows, name);
  }
  if (!panel.limit) return drawing;
  FigurePanel limit = panel;
  limit.y = "accuracy_limit_percent";
  std::set<std::string> drawn;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (!drawn.insert(DataBlock("x", data, curves[i].series, limit)).second) continue;
    const std::string name = fmt::format("p{}l{}", index, i);
    drawing.blocks += DataBlock(name, data, curves[i].series, limit);
    drawing.Add(fmt::format("${} using 1:2 with lines dt 3 lw 2 lc rgb '{}' title \"{}\"", name,
                            drawn.size() == 1 ? "#444444" : kColours[i % kColours.size()],
                            drawn.size() == 1 ? "accuracy limit" : ""));
  }
  return drawing;
}

// Where a bar is, of n in each group: gnuplot gives each 1 / (n + 1) of it, with the group's number
// in the middle.
double BarAt(double group, std::size_t bar, std::size_t n) {
  const double all = static_cast<double>(n);
  return group + (static_cast<double>(bar) - (all - 1) / 2) / (all + 1);
}

// Over the bars of a group that is the only one: there is room for them.
void AddNumbers(Drawing& drawing, const FigurePanel& panel, const FigureData& data,
                std::size_t index, const std::vector<Curve>& curves) {
  std::string block;
  double most = 0;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const auto& rows = data.at(curves[i].series);
    if (rows.size() > 1) return;
    for (const auto& [x, row] : rows) {
      const auto y = Shown(panel, data, x, row);
      if (!y) continue;
      block += fmt::format("{} {} {:.4g}\n", BarAt(0, i, curves.size()), *y, *y);
      most = std::max(most, *y);
    }
  }
  block += fmt::format("0 {} \"\"\n", 1.06 * most);  // the axis ends above the numbers
  drawing.blocks += fmt::format("$p{}numbers << EOD\n{}EOD\n", index, block);
  drawing.Add(
      fmt::format("$p{}numbers using 1:2:3 with labels offset 0,0.6 font ',11' notitle", index));
}

// The paper's numbers as crosses on the bars that they belong to; nothing where it states none.
void AddPaper(Drawing& drawing, const FigurePanel& panel, const FigureData& data, std::size_t index,
              const std::vector<Curve>& curves) {
  if (panel.y != "peak_rps") return;
  std::string block = fmt::format("$p{}paper << EOD\n", index);
  const std::string empty = block;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    double group = 0;
    for (const auto& [x, row] : data.at(curves[i].series)) {
      const double at = BarAt(group++, i, curves.size());
      if (row.contains("paper")) block += fmt::format("{} {}\n", at, row.at("paper"));
    }
  }
  if (block == empty) return;
  drawing.blocks += block + "EOD\n";
  drawing.Add(
      fmt::format("$p{}paper using 1:2 with points pt 2 ps 1.2 lw 2 lc rgb 'black' "
                  "title \"the paper's\"",
                  index));
}

Drawing DrawBars(const Figure& figure, const FigurePanel& panel, const FigureData& data,
                 std::size_t index, const std::vector<Curve>& curves) {
  Drawing drawing;
  const std::string name = fmt::format("p{}", index);
  drawing.blocks = BarBlock(name, data, figure, panel, curves);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    drawing.Add(fmt::format("${} using {}:xtic(1) with histograms lc rgb '{}' title \"{}\"", name,
                            i + 2, kColours[curves[i].style], Plain(curves[i].name)));
  }
  AddPaper(drawing, panel, data, index, curves);
  AddNumbers(drawing, panel, data, index, curves);
  return drawing;
}

// Areas from the sum of all down to the first, each over what it hides.
Drawing DrawStack(const FigurePanel& panel, const FigureData& data, std::size_t index,
                  const std::vector<Curve>& curves) {
  Drawing drawing;
  std::map<double, double> sums;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::string block = fmt::format("$p{}s{} << EOD\n", index, i);
    for (const auto& [x, row] : data.at(curves[i].series)) {
      const auto y = row.find(panel.y);
      block += fmt::format("{} {}\n", x, sums[x] += y == row.end() ? 0 : y->second);
    }
    drawing.blocks += block + "EOD\n";
  }
  const bool named = curves.size() <= kColours.size();  // beyond, a colour says nothing
  for (std::size_t i = curves.size(); i-- > 0;) {
    drawing.Add(
        fmt::format("$p{}s{} using 1:2 with filledcurves x1 fs solid 0.8 lc rgb '{}' {}", index, i,
                    kColours[i % kColours.size()],
                    named ? fmt::format("title \"{}\"", Plain(curves[i].name)) : "notitle"));
  }
  return drawing;
}

// Where the axis of y ends: gnuplot finds no end by itself, and says so, where all is 0.
std::string EndOfY(const FigurePanel& panel, const FigureData& data,
                   const std::vector<Curve>& curves) {
  if (panel.y_max > 0) return fmt::format("{}", panel.y_max);
  const bool all_0 = !panel.cdf && std::ranges::all_of(curves, [&](const Curve& curve) {
    return std::ranges::all_of(data.at(curve.series), [&](const auto& at) {
      const auto y = at.second.find(panel.y);
      return y == at.second.end() || y->second == 0;
    });
  });
  return all_0 ? "1" : "*";
}

std::string DrawPanel(const Paper& paper, const Figure& figure, const FigureData& data,
                      std::size_t index) {
  const FigurePanel& panel = figure.panels[index];
  const std::vector<Curve> curves = CurvesOf(data, paper, figure, panel);
  const Drawing drawing = panel.bars      ? DrawBars(figure, panel, data, index, curves)
                          : panel.stacked ? DrawStack(panel, data, index, curves)
                                          : DrawLines(panel, data, index, curves);
  std::string text = drawing.blocks;
  text += fmt::format("set xlabel \"{}\"\nset ylabel \"{}\"\nset yrange [{}:{}]\n",
                      Plain(panel.x_label), Plain(panel.y_label), panel.y_min,
                      EndOfY(panel, data, curves));
  text += panel.bars    ? "set xrange [*:*]\nset style histogram clustered gap 1\n"
                          "set style fill solid 0.85\n"
          : panel.log_x ? "set xrange [*:*]\nset xtics autofreq\n"
                        : fmt::format("set xrange [{}:{}]\nset xtics autofreq\n", panel.x_min,
                                      panel.x_max > 0 ? fmt::format("{}", panel.x_max) : "*");
  text +=
      panel.log_x ? "set logscale x\nset format x '10^{%T}'\n" : "unset logscale x\nset format x\n";
  text += panel.title.empty()
              ? "unset title\n"
              : fmt::format("set title \"{}\" font ',12' offset 0,-0.5\n", Plain(panel.title));
  text += "unset label\nunset arrow\n";
  if (panel.line > 0) {
    text += fmt::format(
        "set arrow from graph 0, first {0} to graph 1, first {0} nohead dt 2 lc rgb '#888888'\n"
        "set label \"{1}\" at graph 0.02, first {0} offset 0,0.6 font ',10' tc rgb '#666666'\n",
        panel.line, Plain(panel.line_label));
  }
  return text + "plot " + drawing.curves + "\n";
}

std::string DrawExits(const Figure& figure, const FigureData& data) {
  std::string text = "$exits << EOD\n";
  for (const auto& [load, row] : data.at(figure.series.front().label)) {
    text += fmt::format("{} {} {} {} {}\n", load, 100 * row.at("layer1"), 100 * row.at("layer2"),
                        100 * row.at("layer3"), 100 * row.at("final"));
  }
  text +=
      "EOD\n"
      "set style data histograms\nset style histogram rowstacked\n"
      "set style fill solid 0.85 border -1\nset boxwidth 0.75\nset yrange [0:100]\n"
      "set xlabel \"requests/s of ResNet152 (of 6 in all)\"\nset ylabel \"requests (%)\"\n"
      "plot $exits using 5:xtic(1) title 'final' lc rgb '#0072b2', "
      "'' using 4 title 'layer3' lc rgb '#56b4e9', '' using 3 title 'layer2' lc rgb '#e69f00', "
      "'' using 2 title 'layer1' lc rgb '#d55e00'\n";
  return text;
}

// The rows of the longest key, and the names that stand side by side in one.
struct KeyShape {
  std::size_t rows = 0;
  std::size_t columns = 2;
};

KeyShape ShapeOfKeys(const Paper& paper, const Figure& figure, const FigureData& data) {
  if (figure.panels.empty()) return {.rows = 2};
  KeyShape shape;
  std::size_t most = 0;
  for (const FigurePanel& panel : figure.panels) {
    const std::vector<Curve> curves = CurvesOf(data, paper, figure, panel);
    if (panel.stacked && curves.size() > kColours.size()) continue;
    most = std::max(most, curves.size() + (panel.limit || panel.bars ? 1 : 0));
    for (const Curve& curve : curves) {
      if (curve.name.size() > kLongName && figure.panels_in_row > 1) shape.columns = 1;
    }
  }
  if (figure.panels_in_row == 1) shape.columns = 4;
  shape.rows = (most + shape.columns - 1) / shape.columns;
  return shape;
}

// In points, so that a heading is no wider than its picture: a letter takes about 0.75 pixels a
// point.
int FontOf(const std::string& heading, int width) {
  return std::clamp(static_cast<int>(width / (0.75 * static_cast<double>(heading.size()))), 8, 15);
}

}  // namespace

std::string PlotScript(const Paper& paper, const Figure& figure, const FigureData& data,
                       const std::filesystem::path& stem, const std::string& source) {
  const std::size_t panels = std::max<std::size_t>(1, figure.panels.size());
  const std::size_t columns = std::min(panels, figure.panels_in_row);
  const std::size_t rows = (panels + columns - 1) / columns;
  const KeyShape key = ShapeOfKeys(paper, figure, data);
  const int width = figure.panels_in_row == 1
                        ? kWidePanel
                        : std::max(760, kPanelWidth * static_cast<int>(columns));
  const int height =
      (kPlotHeight + kKeyRowHeight * static_cast<int>(key.rows)) * static_cast<int>(rows);
  const std::string heading =
      fmt::format("{}, {}: {}", paper.title, figure.Heading(), figure.title);
  std::string drawing = fmt::format(
      "set multiplot layout {},{} title \"{}\\n{{/=10 {}}}\" font ',{}'\n"
      "set key outside below center horizontal maxcols {} samplen 2 font ',11'\n"
      "set bmargin {}\nset xlabel offset 0,0.4\nset ylabel offset 0.6,0\n"
      "set grid back lt 1 lw 0.5 lc rgb '#e0e0e0'\nset border 3\nset tics nomirror\n",
      rows, columns, Plain(heading), Plain(source), FontOf(heading, width), key.columns,
      3.8 + 0.87 * static_cast<double>(key.rows));
  if (figure.panels.empty()) drawing += DrawExits(figure, data);
  for (std::size_t i = 0; i < figure.panels.size(); ++i)
    drawing += DrawPanel(paper, figure, data, i);
  drawing += "unset multiplot\n";
  std::string script;
  for (const auto& [terminal, extension] :
       {std::pair{"svg", "svg"}, std::pair{"pngcairo", "png"}}) {
    script += fmt::format("reset\nset terminal {} size {},{} font 'Sans,12' background '#ffffff'\n",
                          terminal, width, height);
    script +=
        fmt::format("set output \"{}.{}\"\n{}set output\n", stem.string(), extension, drawing);
  }
  return script;
}

Status Draw(const std::string& script, const std::filesystem::path& stem) {
  const std::filesystem::path path = stem.string() + ".gp";
  std::ofstream file(path);
  file << script;
  file.close();
  if (!file) return InvalidArgument("cannot write " + path.string());
  // gnuplot reads the script from the pipe, so no shell sees a path of ours.
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> gnuplot(popen("gnuplot", "w"), pclose);
  if (gnuplot == nullptr) return Internal("cannot start gnuplot");
  std::fwrite(script.data(), 1, script.size(), gnuplot.get());
  const int status = pclose(gnuplot.release());
  if (status != 0) {
    return Fail(ErrorCode::kUnavailable,
                "gnuplot did not draw " + path.string() +
                    "; what it said stands above; where it is missing, install Debian's "
                    "gnuplot-nox. The CSV file is complete.");
  }
  return {};
}

}  // namespace tactus
