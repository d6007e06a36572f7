// What gpu-lets' figures are built of: points whose answers read a scenario, bars over the mixes,
// and the two stand-ins for what batches take on shares of a device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reproduce/figure.h"
#include "reproduce/gpulets_claims.h"
#include "reproduce/gpulets_planners.h"

namespace tactus {

inline constexpr double kGpuletExponents[] = {0.5, 0.75, 1, 1.25, 1.5};

// The setting that says so.
std::string ExponentSetting(double exponent);

// Planners alone, with one seed.
Figure GpuletFigure(const char* id, const char* title, std::vector<std::string> columns,
                    std::vector<Claim> (*claims)(const FigureData&));

FigurePoint GpuletPoint(double x, const std::string& name, const std::string& scenario);

// The point's scenario with its settings; and the five mixes with these.
SetScenario ScenarioOf(const FigurePoint& point, const ReproduceOptions& options);
std::vector<SetScenario> MixesOf(const FigurePoint& point, const ReproduceOptions& options);

using MixAnswer =
    std::function<Expected<FigureRow>(const SetScenario& mix, const ReproduceOptions& options)>;

// A bar for each of the mixes, or of the first of them.
FigureSeries OverMixes(const std::string& label, const MixAnswer& answer,
                       std::size_t count = kGpuletMixes.size());

// The figure on the second stand-in, where batches can use as much of a device as was profiled
// (UseOf::kDevice in planners/gpulet/share_latency.h), and lanes of one share all of its L2 and
// DRAM: 90 % of batches lose less than 18 % there too. Its id is that of the first with "-use".
Figure OnProfiledUse(Figure figure);

// Those that run plans: gpulets_run_figures.cc.
std::vector<Figure> GpuletRunFigures();

}  // namespace tactus
