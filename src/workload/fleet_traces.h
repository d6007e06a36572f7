// The CSV files of a fleet: rates of links, how many objects pictures show, exits of models.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "workload/fleet_scenario.h"

namespace tactus {

// Columns trace, t_s, mbps: by trace, in order of time, from 0 on. Errors name file and line.
Expected<std::map<std::string, std::vector<LinkSample>>> LoadLinkTraces(
    const std::filesystem::path& path);
// Columns t_s (0, 1, 2, ...) and others: by column, a number for each second.
Expected<std::map<std::string, std::vector<double>>> LoadCounts(const std::filesystem::path& path);
// Columns t_s (from 0 on, ascending) and times.
Expected<std::vector<CurvePoint>> LoadCurve(const std::filesystem::path& path);
// Columns kind, part, accuracy: every model of that kind of device gets the kind's exits.
Status AddExits(const std::filesystem::path& path, FleetInput& input);

}  // namespace tactus
