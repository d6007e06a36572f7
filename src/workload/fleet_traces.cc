#include "workload/fleet_traces.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/whole_file.h"

namespace tactus {
namespace {

struct Row {
  int line = 0;
  std::vector<std::string_view> fields;
};

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

// Every line that says something, each with as many fields as the first.
Expected<std::vector<Row>> Rows(std::string_view text, const std::filesystem::path& path) {
  std::vector<Row> rows;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    rows.push_back({number, Fields(line)});
    if (rows.back().fields.size() == rows.front().fields.size()) continue;
    return InvalidArgument(fmt::format("{}:{}: {} fields; the header has {}", path.string(), number,
                                       rows.back().fields.size(), rows.front().fields.size()));
  }
  if (rows.size() < 2) {
    return InvalidArgument(fmt::format("{}: needs a header and rows", path.string()));
  }
  return rows;
}

Expected<double> NumberOf(const Row& row, std::size_t field, const std::filesystem::path& path) {
  const std::string_view text = row.fields[field];
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  if (all && std::isfinite(number) && number >= 0 && number <= 1e9) return number;
  return InvalidArgument(
      fmt::format("{}:{}: '{}' must be a number from 0 to 1e9", path.string(), row.line, text));
}

}  // namespace

Expected<std::map<std::string, std::vector<LinkSample>>> LoadLinkTraces(
    const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "file of link traces");
  if (!text) return std::unexpected(text.error());
  const auto rows = Rows(*text, path);
  if (!rows) return std::unexpected(rows.error());
  if (rows->front().fields != std::vector<std::string_view>{"trace", "t_s", "mbps"}) {
    return InvalidArgument(
        fmt::format("{}:{}: the header must be trace,t_s,mbps", path.string(), rows->front().line));
  }
  std::map<std::string, std::vector<LinkSample>> traces;
  for (std::size_t i = 1; i < rows->size(); ++i) {
    const Row& row = (*rows)[i];
    const auto t_s = NumberOf(row, 1, path);
    if (!t_s) return std::unexpected(t_s.error());
    const auto mbps = NumberOf(row, 2, path);
    if (!mbps) return std::unexpected(mbps.error());
    std::vector<LinkSample>& trace = traces[std::string(row.fields[0])];
    if (trace.empty() ? *t_s != 0 : *t_s <= trace.back().t_s) {
      return InvalidArgument(fmt::format("{}:{}: the times of a trace begin with 0 and ascend",
                                         path.string(), row.line));
    }
    trace.push_back({*t_s, *mbps});
  }
  return traces;
}

Expected<std::map<std::string, std::vector<double>>> LoadCounts(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "object counts");
  if (!text) return std::unexpected(text.error());
  const auto rows = Rows(*text, path);
  if (!rows) return std::unexpected(rows.error());
  const std::vector<std::string_view>& header = rows->front().fields;
  if (header.front() != "t_s") {
    return InvalidArgument(
        fmt::format("{}:{}: the first column must be t_s", path.string(), rows->front().line));
  }
  std::map<std::string, std::vector<double>> counts;
  for (std::size_t i = 1; i < rows->size(); ++i) {
    const Row& row = (*rows)[i];
    const auto t_s = NumberOf(row, 0, path);
    if (!t_s) return std::unexpected(t_s.error());
    if (*t_s != static_cast<double>(i - 1)) {
      return InvalidArgument(
          fmt::format("{}:{}: t_s must be {}: a row a second", path.string(), row.line, i - 1));
    }
    for (std::size_t k = 1; k < header.size(); ++k) {
      const auto number = NumberOf(row, k, path);
      if (!number) return std::unexpected(number.error());
      counts[std::string(header[k])].push_back(*number);
    }
  }
  return counts;
}

Expected<std::vector<CurvePoint>> LoadCurve(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "curve");
  if (!text) return std::unexpected(text.error());
  const auto rows = Rows(*text, path);
  if (!rows) return std::unexpected(rows.error());
  if (rows->front().fields != std::vector<std::string_view>{"t_s", "times"}) {
    return InvalidArgument(
        fmt::format("{}:{}: the header must be t_s,times", path.string(), rows->front().line));
  }
  std::vector<CurvePoint> curve;
  for (std::size_t i = 1; i < rows->size(); ++i) {
    const Row& row = (*rows)[i];
    const auto t_s = NumberOf(row, 0, path);
    if (!t_s) return std::unexpected(t_s.error());
    const auto times = NumberOf(row, 1, path);
    if (!times) return std::unexpected(times.error());
    if (curve.empty() ? *t_s != 0 : *t_s <= curve.back().t_s) {
      return InvalidArgument(
          fmt::format("{}:{}: times begin with 0 and ascend", path.string(), row.line));
    }
    curve.push_back({*t_s, *times});
  }
  return curve;
}

Status AddExits(const std::filesystem::path& path, FleetInput& input) {
  const auto text = ReadWhole(path, "exits");
  if (!text) return std::unexpected(text.error());
  const auto rows = Rows(*text, path);
  if (!rows) return std::unexpected(rows.error());
  if (rows->front().fields != std::vector<std::string_view>{"kind", "part", "accuracy"}) {
    return InvalidArgument(fmt::format("{}:{}: the header must be kind,part,accuracy",
                                       path.string(), rows->front().line));
  }
  for (std::size_t i = 1; i < rows->size(); ++i) {
    const Row& row = (*rows)[i];
    const auto kind = std::ranges::find(input.kinds, row.fields[0]);
    if (kind == input.kinds.end()) {
      return InvalidArgument(
          fmt::format("{}:{}: no device is of kind '{}'", path.string(), row.line, row.fields[0]));
    }
    const auto part = NumberOf(row, 1, path);
    if (!part) return std::unexpected(part.error());
    const auto accuracy = NumberOf(row, 2, path);
    if (!accuracy) return std::unexpected(accuracy.error());
    const KindId id{static_cast<KindId::rep>(kind - input.kinds.begin())};
    for (FleetCost& cost : input.costs) {
      if (cost.kind == id) cost.exits.push_back({*part, *accuracy});
    }
  }
  return {};
}

}  // namespace tactus
