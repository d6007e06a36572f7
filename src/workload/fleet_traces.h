// The CSV files of a fleet: rates of links, and how many objects pictures show.
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

}  // namespace tactus
