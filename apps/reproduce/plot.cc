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
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#666666", "#8c510a"};
constexpr std::array kShapes = {7, 5, 9, 13, 11, 4, 6, 8};
constexpr int kPanelWidth = 520;
constexpr int kHeight = 560;

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

// The series that a panel shows, with the names that they have there.
struct Curve {
  std::string series;
  std::string name;
};

std::vector<Curve> CurvesOf(const FigureData& data, const Figure& figure,
                            const FigurePanel& panel) {
  const std::string prefix = panel.group.empty() ? "" : panel.group + ": ";
  std::vector<Curve> curves;
  const auto add = [&](const std::string& label) {
    if (label.starts_with(prefix)) curves.push_back({label, label.substr(prefix.size())});
  };
  for (const FigureSeries& series : figure.series) {
    if (panel.stacked) continue;
    add(series.label);
  }
  if (!curves.empty()) return curves;
  for (const auto& [label, rows] : data) add(label);
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

std::string DataBlock(const std::string& name, const FigureData& data, const std::string& series,
                      const FigurePanel& panel) {
  std::string text = fmt::format("${} << EOD\n", name);
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

Drawing DrawLines(const FigurePanel& panel, const FigureData& data, std::size_t index,
                  const std::vector<Curve>& curves) {
  Drawing drawing;
  std::size_t most = 0;
  for (const Curve& curve : curves) most = std::max(most, data.at(curve.series).size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::string name = fmt::format("p{}s{}", index, i);
    drawing.blocks += DataBlock(name, data, curves[i].series, panel);
    // Marks on curves of many points would hide them.
    const std::string style =
        most > 40 ? "lines" : fmt::format("linespoints pt {} ps 1", kShapes[i % kShapes.size()]);
    drawing.Add(fmt::format("${} using 1:2 with {} lc rgb '{}' lw 2 title \"{}\"", name, style,
                            kColours[i % kColours.size()], Plain(curves[i].name)));
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

Drawing DrawBars(const Figure& figure, const FigurePanel& panel, const FigureData& data,
                 std::size_t index, const std::vector<Curve>& curves) {
  Drawing drawing;
  const std::string name = fmt::format("p{}", index);
  drawing.blocks = BarBlock(name, data, figure, panel, curves);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    drawing.Add(fmt::format("${} using {}:xtic(1) with histograms lc rgb '{}' title \"{}\"", name,
                            i + 2, kColours[i % kColours.size()], Plain(curves[i].name)));
  }
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
  for (std::size_t i = curves.size(); i-- > 0;) {
    drawing.Add(
        fmt::format("$p{}s{} using 1:2 with filledcurves x1 fs solid 0.8 lc rgb '{}' notitle",
                    index, i, kColours[i % kColours.size()]));
  }
  return drawing;
}

std::string DrawPanel(const Figure& figure, const FigureData& data, std::size_t index) {
  const FigurePanel& panel = figure.panels[index];
  const std::vector<Curve> curves = CurvesOf(data, figure, panel);
  const Drawing drawing = panel.bars      ? DrawBars(figure, panel, data, index, curves)
                          : panel.stacked ? DrawStack(panel, data, index, curves)
                                          : DrawLines(panel, data, index, curves);
  std::string text = drawing.blocks;
  text +=
      fmt::format("set xlabel \"{}\"\nset ylabel \"{}\"\nset yrange [0:{}]\n", Plain(panel.x_label),
                  Plain(panel.y_label), panel.y_max > 0 ? fmt::format("{}", panel.y_max) : "*");
  text += panel.bars ? "set xrange [*:*]\nset style histogram clustered gap 1\n"
                       "set style fill solid 0.85\n"
                     : "set xrange [0:*]\nset xtics autofreq\n";
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

}  // namespace

std::string PlotScript(const Paper& paper, const Figure& figure, const FigureData& data,
                       const std::filesystem::path& stem, int seeds) {
  const std::size_t panels = std::max<std::size_t>(1, figure.panels.size());
  const std::size_t columns = std::min(panels, figure.panels_in_row);
  const std::size_t rows = (panels + columns - 1) / columns;
  const int width = std::max(760, kPanelWidth * static_cast<int>(columns));
  const int height = kHeight * static_cast<int>(rows);
  // Room below for the key: a line for each curve, where their names are long.
  std::size_t curves = figure.series.size();
  for (const FigurePanel& panel : figure.panels) {
    if (!panel.stacked) curves = std::max(curves, CurvesOf(data, figure, panel).size());
  }
  const std::size_t margin = 4 + std::min<std::size_t>(6, curves + 1);
  std::string drawing = fmt::format(
      "set multiplot layout {},{} title \"{}\\n{{/=10 {}}}\" font ',15'\n"
      "set key outside below center horizontal maxcols 2 samplen 2 font ',11'\n"
      "set bmargin {}\nset xlabel offset 0,0.4\nset ylabel offset 0.6,0\n"
      "set grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\n",
      rows, columns, Plain(fmt::format("{}, {}: {}", paper.title, figure.Heading(), figure.title)),
      Plain(fmt::format("simulated with {}; {}", paper.basis,
                        seeds == 1 ? "one seed" : fmt::format("mean of {} seeds", seeds))),
      margin);
  if (figure.panels.empty()) drawing += DrawExits(figure, data);
  for (std::size_t i = 0; i < figure.panels.size(); ++i) drawing += DrawPanel(figure, data, i);
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
