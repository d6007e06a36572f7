#include "reproduce/gpulets_figures.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr const char* kProfiledUse[] = {"plan.use_of=device",
                                        "contention.capacity=100,0.7,0.7,100,100"};

std::string File(const ReproduceOptions& options, const std::string& scenario) {
  return (std::filesystem::path(options.scenarios) / (scenario + ".toml")).string();
}

}  // namespace

std::string ExponentSetting(double exponent) { return fmt::format("plan.exponent={:g}", exponent); }

Figure GpuletFigure(const char* id, const char* title, std::vector<std::string> columns,
                    std::vector<Claim> (*claims)(const FigureData&)) {
  Figure figure;
  figure.id = id;
  figure.title = title;
  figure.columns = std::move(columns);
  figure.claims = claims;
  figure.most_seeds = 1;
  figure.source = [](const ReproduceOptions&) -> Expected<std::string> {
    return "planners alone, on STAND-IN latencies of the device and its shares";
  };
  return figure;
}

FigurePoint GpuletPoint(double x, const std::string& name, const std::string& scenario) {
  FigurePoint point;
  point.x = x;
  point.name = name;
  point.scenario = scenario;
  return point;
}

SetScenario ScenarioOf(const FigurePoint& point, const ReproduceOptions& options) {
  return {File(options, point.scenario), point.settings};
}

std::vector<SetScenario> MixesOf(const FigurePoint& point, const ReproduceOptions& options) {
  std::vector<SetScenario> mixes;
  for (const char* mix : kGpuletMixes) mixes.push_back({File(options, mix), point.settings});
  return mixes;
}

FigureSeries OverMixes(const std::string& label, const MixAnswer& answer, std::size_t count) {
  FigureSeries series{label, {}};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string mix = kGpuletMixes[i];
    FigurePoint point = GpuletPoint(static_cast<double>(i + 1), mix, mix);
    point.answer = [=](const FigurePoint& asked, const ReproduceOptions& options) {
      return answer(ScenarioOf(asked, options), options);
    };
    series.points.push_back(std::move(point));
  }
  return series;
}

Figure OnProfiledUse(Figure figure) {
  figure.id += "-use";
  figure.source = [source = std::move(figure.source)](const ReproduceOptions& options) {
    auto text = source(options);
    if (text) *text += "; SECOND STAND-IN for shares";
    return text;
  };
  for (FigureSeries& series : figure.series) {
    for (FigurePoint& point : series.points) {
      point.settings.insert(point.settings.begin(), std::begin(kProfiledUse),
                            std::end(kProfiledUse));
    }
  }
  return figure;
}

}  // namespace tactus
