#include "profiling/profile_samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/whole_file.h"
#include "metrics/recorder.h"

namespace tactus {
namespace {

constexpr const char* kHeading = "tactus-profile-samples 1";

// Words are separated by blanks, so a blank in a name is written as %20.
std::string Escape(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '%' || c <= ' ') {
      text += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text;
}

std::string Unescape(const std::string& text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      name += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      name += text[i];
    }
  }
  return name;
}

std::unexpected<Error> Unreadable(const std::filesystem::path& path, int line) {
  return InvalidArgument(
      fmt::format("{}:{}: not samples of `tactus profile`; remove the file, or "
                  "measure without --resume",
                  path.string(), line));
}

}  // namespace

Status SaveSamples(const Samples& samples, const Machine& machine,
                   const std::filesystem::path& path) {
  std::ostringstream file;
  file << kHeading << "\nmachine " << machine.fingerprint << '\n';
  for (const auto& [key, runs] : samples) {
    file << "cell " << Escape(key.model) << ' ' << key.bytes << ' ' << Escape(key.exit) << ' '
         << key.batch;
    for (const Duration run : runs) file << ' ' << run.count();
    file << '\n';
  }
  return WriteWhole(file.str(), path, "file of samples");
}

Expected<Samples> LoadSamples(const Machine& machine, const std::filesystem::path& path) {
  auto whole = ReadWhole(path, "file of samples");
  if (!whole) return std::unexpected(std::move(whole.error()));
  std::istringstream file(*std::move(whole));
  std::string line;
  if (!std::getline(file, line) || line != kHeading) return Unreadable(path, 1);
  if (!std::getline(file, line) || !line.starts_with("machine ")) return Unreadable(path, 2);
  if (line.substr(8) != machine.fingerprint) {
    return InvalidArgument(fmt::format(
        "{}: measured on another machine or with another engine; measure without --resume",
        path.string()));
  }
  Samples samples;
  for (int number = 3; std::getline(file, line); ++number) {
    std::istringstream words(line);
    std::string word;
    CellKey key;
    words >> word >> key.model >> key.bytes >> key.exit >> key.batch;
    if (!words || word != "cell" || key.batch < 1) return Unreadable(path, number);
    key.model = Unescape(key.model);
    key.exit = Unescape(key.exit);
    std::vector<Duration>& runs = samples[key];
    for (std::int64_t ns = 0; words >> ns;) {
      if (ns < 0) return Unreadable(path, number);
      runs.push_back(Nanos(ns));
    }
    if (!words.eof()) return Unreadable(path, number);
  }
  return samples;
}

double MedianDrift(std::span<const Duration> runs) {
  const auto median = [](std::span<const Duration> some) {
    std::vector<Duration> copy(some.begin(), some.end());
    return ToMillis(Percentile(copy, 50));
  };
  if (runs.size() < 3) return 0;
  const double all = median(runs);
  double most = 0;
  for (std::size_t third = 0; third < 3; ++third) {
    const std::size_t begin = third * runs.size() / 3;
    const std::size_t end = (third + 1) * runs.size() / 3;
    most = std::max(most, std::abs(median(runs.subspan(begin, end - begin)) - all));
  }
  return all > 0 ? most / all : 0;
}

ProfileCell Condense(std::vector<Duration> samples) {
  CHECK(!samples.empty(), "a cell without runs has no distribution");
  ProfileCell cell;
  cell.repetitions = static_cast<int>(samples.size());
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  cell.min_ms = ToMillis(*least);
  cell.max_ms = ToMillis(*most);
  const double n = static_cast<double>(samples.size());
  for (const Duration sample : samples) cell.mean_ms += ToMillis(sample) / n;
  double variance = 0;
  for (const Duration sample : samples) {
    variance += std::pow(ToMillis(sample) - cell.mean_ms, 2) / n;
  }
  if (cell.mean_ms > 0) cell.cv = std::sqrt(variance) / cell.mean_ms;
  cell.p50_ms = ToMillis(Percentile(samples, 50));
  cell.p95_ms = ToMillis(Percentile(samples, 95));
  cell.p99_ms = ToMillis(Percentile(samples, 99));
  return cell;
}

void LetRise(std::vector<ProfileCell>& cells) {
  struct Level {
    double sum;
    std::size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  using Number = double& (*)(ProfileCell&);
  for (const Number number :
       std::initializer_list<Number>{[](ProfileCell& cell) -> double& { return cell.mean_ms; },
                                     [](ProfileCell& cell) -> double& { return cell.min_ms; },
                                     [](ProfileCell& cell) -> double& { return cell.p50_ms; },
                                     [](ProfileCell& cell) -> double& { return cell.p95_ms; },
                                     [](ProfileCell& cell) -> double& { return cell.p99_ms; },
                                     [](ProfileCell& cell) -> double& { return cell.max_ms; }}) {
    std::vector<Level> levels;
    for (ProfileCell& cell : cells) {
      Level last{number(cell), 1};
      while (!levels.empty() && levels.back().mean() > last.mean()) {
        last.sum += levels.back().sum;
        last.count += levels.back().count;
        levels.pop_back();
      }
      levels.push_back(last);
    }
    std::size_t at = 0;
    for (const Level& level : levels) {
      for (std::size_t i = 0; i < level.count; ++i) number(cells[at++]) = level.mean();
    }
  }
}

}  // namespace tactus
