#include "reproduce_plot.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>

#include <fmt/format.h>

namespace tactus {
namespace {

// Colours that differ for most colour-blind readers as well, and a point shape for each.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73",
                                    "#cc79a7", "#e69f00", "#56b4e9"};
constexpr int kShapes[] = {7, 5, 9, 13, 11, 4};
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

std::string DataBlock(const std::string& name, const std::map<double, FigureRow>& rows,
                      const std::string& x, const std::string& y) {
  std::string text = fmt::format("${} << EOD\n", name);
  for (const auto& [load, row] : rows) {
    text += fmt::format("{} {}\n", x == "load" ? load : row.at(x), row.at(y));
  }
  return text + "EOD\n";
}

// The key stands below the panels, once: the first panel draws it for all.
std::string DrawPanel(const Figure& figure, const FigureData& data, std::size_t index) {
  const FigurePanel& panel = figure.panels[index];
  std::string blocks;
  std::string curves;
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    const std::string name = fmt::format("p{}s{}", index, i);
    blocks += DataBlock(name, data.at(figure.series[i].label), panel.x, panel.y);
    curves +=
        fmt::format("{}${} using 1:2 with linespoints lc rgb '{}' pt {} ps 1 lw 2 title \"{}\"",
                    curves.empty() ? "" : ", ", name, kColours[i % 6], kShapes[i % 6],
                    Plain(figure.series[i].label));
  }
  if (panel.limit) {
    std::set<std::string> drawn;
    for (std::size_t i = 0; i < figure.series.size(); ++i) {
      const std::string name = fmt::format("p{}l{}", index, i);
      const std::string points =
          DataBlock("x", data.at(figure.series[i].label), panel.x, "accuracy_limit_percent");
      if (!drawn.insert(points).second) continue;
      blocks += DataBlock(name, data.at(figure.series[i].label), panel.x, "accuracy_limit_percent");
      curves += fmt::format(", ${} using 1:2 with lines dt 3 lw 2 lc rgb '{}' title \"{}\"", name,
                            drawn.size() == 1 ? "#444444" : kColours[i % 6],
                            drawn.size() == 1 ? "accuracy limit" : "");
    }
  }
  std::string text = blocks;
  text += fmt::format("set xlabel \"{}\"\nset ylabel \"{}\"\nset xrange [0:*]\nset yrange [0:{}]\n",
                      Plain(panel.x_label), Plain(panel.y_label),
                      panel.y_max > 0 ? fmt::format("{}", panel.y_max) : "*");
  text += "unset label\nunset arrow\n";
  if (panel.line > 0) {
    text += fmt::format(
        "set arrow from graph 0, first {0} to graph 1, first {0} nohead dt 2 lc rgb '#888888'\n"
        "set label \"{1}\" at graph 0.02, first {0} offset 0,0.6 font ',10' tc rgb '#666666'\n",
        panel.line, Plain(panel.line_label));
  }
  return text + "plot " + curves + "\n";
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

std::string PlotScript(const Figure& figure, const FigureData& data,
                       const std::filesystem::path& stem, const std::string& note) {
  const std::size_t panels = std::max<std::size_t>(1, figure.panels.size());
  const int width = std::max(760, kPanelWidth * static_cast<int>(panels));
  // Room below for the key: a line for each curve, where their names are long.
  const std::size_t margin = 4 + std::min<std::size_t>(6, figure.series.size() + 1);
  std::string drawing = fmt::format(
      "set multiplot layout 1,{} title \"{}\\n{{/=10 {}}}\" font ',15'\n"
      "set key outside below center horizontal maxcols 2 samplen 2 font ',11'\n"
      "set bmargin {}\nset xlabel offset 0,0.4\nset ylabel offset 0.6,0\n"
      "set grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\n",
      panels, Plain(fmt::format("EdgeServing, Figure {}: {}", figure.number, figure.title)),
      Plain(note), margin);
  if (figure.panels.empty()) drawing += DrawExits(figure, data);
  for (std::size_t i = 0; i < figure.panels.size(); ++i) drawing += DrawPanel(figure, data, i);
  drawing += "unset multiplot\n";
  std::string script;
  for (const auto& [terminal, extension] :
       {std::pair{"svg", "svg"}, std::pair{"pngcairo", "png"}}) {
    script += fmt::format("reset\nset terminal {} size {},{} font 'Sans,12' background '#ffffff'\n",
                          terminal, width, kHeight);
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
