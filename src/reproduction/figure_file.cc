#include "reproduction/figure_file.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

namespace tactus {
namespace {

constexpr std::pair<const char*, Question> kQuestions[] = {
    {"run", Question::kRun},
    {"peak", Question::kPeak},
    {"least-lanes", Question::kLeastLanes},
    {"batch-sizes", Question::kBatchSizes},
    {"queueing-delay", Question::kQueueingDelay},
    {"timeline", Question::kTimeline},
    {"distributions", Question::kDistributions},
    {"minutes", Question::kMinutes},
    {"partition", Question::kPartition},
    {"scheduler", Question::kScheduler},
    {"grid", Question::kGrid},
    {"gpulets", Question::kGpulets},
    {"fleet", Question::kFleet}};

Expected<toml::table> Parse(const std::filesystem::path& path) {
  try {
    return toml::parse_file(path.string());
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    return InvalidArgument(
        fmt::format("{}:{}: {}", path.string(), at.line, std::string(error.description())));
  }
}

std::string Text(const toml::table& table, std::string_view key,
                 const std::string& otherwise = "") {
  return table[key].value_or(otherwise);
}

std::string Text(const toml::node& node) {
  if (const auto text = node.value<std::string>()) return *text;
  return fmt::format("{:g}", node.value<double>().value_or(0));
}

std::vector<std::string> Texts(const toml::table& table, std::string_view key) {
  std::vector<std::string> texts;
  if (const toml::array* array = table[key].as_array()) {
    for (const toml::node& item : *array) texts.push_back(Text(item));
  }
  return texts;
}

// "{x}" and "{2x+16}" by their values.
std::string AtX(const std::string& text, double x) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t open = 0; (open = text.find('{', from)) != std::string::npos;) {
    const std::size_t close = text.find('}', open);
    const std::size_t mark = text.find('x', open);
    if (close == std::string::npos || mark > close) break;
    const double times =
        mark == open + 1 ? 1 : std::atof(text.substr(open + 1, mark - open - 1).c_str());
    const double plus = std::atof(text.substr(mark + 1, close - mark - 1).c_str());
    out += text.substr(from, open - from) + fmt::format("{:g}", times * x + plus);
    from = close + 1;
  }
  return out + text.substr(from);
}

// The value that stands for "{name}" in one of a block's series.
struct Chosen {
  std::string name;
  std::string value;

  std::string In(std::string text) const {
    if (name.empty()) return text;
    const std::string mark = "{" + name + "}";
    for (std::size_t at = 0; (at = text.find(mark)) != std::string::npos;) {
      text.replace(at, mark.size(), value);
    }
    return text;
  }
};

class FigureReader {
 public:
  FigureReader(const toml::table& paper, const toml::table& figure)
      : paper_(paper), figure_(figure) {}

  std::vector<FigureSeries> Series() {
    if (const toml::array* blocks = figure_["series"].as_array()) {
      for (const toml::node& block : *blocks) {
        if (const toml::table* table = block.as_table()) AddBlock(*table);
      }
    }
    return std::move(series_);
  }

 private:
  // What the block says, or else the figure.
  const toml::table& Has(const toml::table& block, std::string_view key) const {
    return block.contains(key) ? block : figure_;
  }

  void AddBlock(const toml::table& block) {
    const toml::table* each = block["each"].as_table();
    if (each == nullptr) return AddSystems(block, {});
    for (const auto& [name, values] : *each) {
      const toml::array* array = values.as_array();
      if (array == nullptr) continue;
      for (const toml::node& value : *array) {
        AddSystems(block, {std::string(name.str()), Text(value)});
      }
    }
  }

  void AddSystems(const toml::table& block, const Chosen& chosen) {
    if (block.contains("label")) return Add(block, chosen, Text(block, "label"), {});
    const toml::table none;
    const toml::table* all = paper_["systems"].as_table();
    for (const std::string& system : Texts(Has(block, "systems"), "systems")) {
      Add(block, chosen, system.substr(0, system.find('@')),
          Texts(all == nullptr ? none : *all, system));
    }
  }

  void Add(const toml::table& block, const Chosen& chosen, const std::string& label,
           std::vector<std::string> settings) {
    const std::string group = Text(block, "group");
    FigureSeries series{chosen.In(group.empty() ? label : group + ": " + label), {}};
    for (const std::string& more : Texts(Has(block, "settings"), "settings")) {
      settings.push_back(chosen.In(more));
    }
    const toml::array* points = Has(block, "points")["points"].as_array();
    if (points == nullptr) {
      AddPoint(series, block, chosen, settings, {}, 0);
    } else {
      for (const toml::node& point : *points) {
        if (const toml::table* table = point.as_table()) {
          AddPoints(series, block, chosen, settings, *table);
        }
      }
    }
    const toml::table* by_series = figure_["paper"].as_table();
    const std::vector<std::string> stated =
        by_series == nullptr ? std::vector<std::string>{} : Texts(*by_series, series.label);
    for (std::size_t i = 0; i < std::min(stated.size(), series.points.size()); ++i) {
      series.points[i].paper = std::atof(stated[i].c_str());
    }
    series_.push_back(std::move(series));
  }

  void AddPoints(FigureSeries& series, const toml::table& block, const Chosen& chosen,
                 const std::vector<std::string>& settings, const toml::table& point) {
    const auto next = static_cast<double>(series.points.size() + 1);
    if (const toml::array* many = point["x"].as_array()) {
      for (const toml::node& x : *many) {
        AddPoint(series, block, chosen, settings, point, x.value_or(next));
      }
      return;
    }
    AddPoint(series, block, chosen, settings, point, point["x"].value_or(next));
  }

  void AddPoint(FigureSeries& series, const toml::table& block, const Chosen& chosen,
                const std::vector<std::string>& settings, const toml::table& said, double x) {
    FigurePoint& point = series.points.emplace_back();
    point.x = x;
    point.name = Text(said, "name");
    point.scenario =
        chosen.In(Text(said.contains("scenario") ? said : Has(block, "scenario"), "scenario"));
    point.profile = Text(Has(block, "profile"), "profile");
    point.learnt_from = Text(Has(block, "learnt_from"), "learnt_from");
    for (const std::string& setting : settings) point.settings.push_back(AtX(setting, x));
    for (const std::string& setting : Texts(said, "settings")) {
      point.settings.push_back(AtX(chosen.In(setting), x));
    }
    for (const std::string& setting : Texts(figure_, "also")) point.settings.push_back(setting);
    for (const toml::table* from : {&figure_, &block, &said}) {
      const toml::table* with = (*from)["with"].as_table();
      if (with == nullptr) continue;
      for (const auto& [key, value] : *with) {
        point.with[std::string(key.str())] = chosen.In(Text(value));
      }
    }
  }

  const toml::table& paper_;
  const toml::table& figure_;
  std::vector<FigureSeries> series_;
};

Expected<Figure> LoadFigure(const std::filesystem::path& folder, const toml::table& paper,
                            const std::string& id) {
  const std::filesystem::path path = folder / (StemOf(id) + ".toml");
  auto table = Parse(path);
  if (!table) return std::unexpected(table.error());
  if (const std::string like = Text(*table, "like"); !like.empty()) {
    auto other = Parse(folder / (StemOf(like) + ".toml"));
    if (!other) return std::unexpected(other.error());
    for (auto& [key, value] : *other) table->insert(key, value);
  }
  Figure figure;
  figure.id = id;
  figure.title = Text(*table, "title");
  const std::string ask = Text(*table, "ask", "run");
  const auto question = std::ranges::find(kQuestions, ask, [](const auto& q) { return q.first; });
  if (question == std::end(kQuestions)) {
    return InvalidArgument(fmt::format("{}: ask = '{}' is no question", path.string(), ask));
  }
  figure.question = question->second;
  figure.columns = Texts(table->contains("columns") ? *table : paper, "columns");
  figure.source = Text(*table, "source");
  figure.most_seeds = (*table)["seeds"].value_or(0);
  figure.series = FigureReader(paper, *table).Series();
  for (const FigureSeries& series : figure.series) {
    if (series.label.find_first_of(",\n") == std::string::npos) continue;
    return InvalidArgument(
        fmt::format("{}: label '{}': write it without a comma, as it is a cell "
                    "of the figure's CSV file",
                    path.string(), series.label));
  }
  return figure;
}

}  // namespace

Expected<Paper> LoadPaper(const std::filesystem::path& folder,
                          const std::vector<std::string>& wanted) {
  if (!std::filesystem::exists(folder / "paper.toml")) {
    return InvalidArgument(folder.string() +
                           " is no paper's folder; call tactus from the root of its source, or "
                           "give --figures DIR");
  }
  const auto table = Parse(folder / "paper.toml");
  if (!table) return std::unexpected(table.error());
  Paper paper;
  paper.key = folder.filename().string();
  paper.title = Text(*table, "title");
  paper.basis = Text(*table, "basis");
  const std::vector<std::string> ids = Texts(*table, "figures");
  for (const std::string& id : wanted) {
    if (std::ranges::find(ids, id) == ids.end()) {
      return InvalidArgument(
          fmt::format("--figure {}: {} has {} here", id, paper.title, fmt::join(ids, ", ")));
    }
  }
  for (const std::string& id : ids) {
    if (!wanted.empty() && std::ranges::find(wanted, id) == wanted.end()) continue;
    auto figure = LoadFigure(folder, *table, id);
    if (!figure) return std::unexpected(figure.error());
    paper.figures.push_back(std::move(*figure));
  }
  return paper;
}

}  // namespace tactus
