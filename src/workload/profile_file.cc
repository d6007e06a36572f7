#include "workload/profile_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/whole_file.h"
#include "workload/json_reader.h"

namespace tactus {
namespace {

using nlohmann::json;

constexpr int kMostBatch = 4096;
constexpr int kMostThreads = 4096;
constexpr const char* kMeasureAgain = "; measure again with `tactus profile`, or repair the file";

ProfileCell ReadCell(const JsonReader& reader) {
  ProfileCell cell;
  cell.repetitions = static_cast<int>(reader.Integer("repetitions", 0, 1'000'000'000, 0));
  cell.mean_ms = reader.Number("mean_ms", 0);
  // A derived cell states one latency.
  cell.p50_ms = reader.Number("p50_ms", 0, cell.mean_ms);
  cell.min_ms = reader.Number("min_ms", 0, std::min(cell.mean_ms, cell.p50_ms));
  cell.p95_ms = reader.Number("p95_ms", 0, std::max(cell.mean_ms, cell.p50_ms));
  cell.p99_ms = reader.Number("p99_ms", 0, cell.p95_ms);
  cell.max_ms = reader.Number("max_ms", 0, cell.p99_ms);
  cell.cv = reader.Number("cv", 0, 0);
  if (reader.Has("device")) {
    reader.Object("device", [&](const JsonReader& times) {
      cell.device = ProfiledDeviceTimes{times.Number("upload_ms", 0), times.Number("kernels_ms", 0),
                                        times.Number("download_ms", 0)};
    });
  }
  const std::array rising = {cell.min_ms, cell.p50_ms, cell.p95_ms, cell.p99_ms, cell.max_ms};
  if (!std::is_sorted(rising.begin(), rising.end())) {
    reader.Complain(nullptr, "min, P50, P95, P99 and max must not decrease in this order");
  }
  if (cell.mean_ms <= 0) reader.Complain("mean_ms", "must be above 0");
  return cell;
}

void ReadUse(const JsonReader& reader, ProfileCell& cell) {
  cell.transfer_ms = reader.Number("transfer_ms", 0, 0);
  if (cell.transfer_ms >= cell.min_ms) {
    reader.Complain("transfer_ms", "must be below min_ms, of which it is a part");
  }
  reader.Object("throughput", [&](const JsonReader& shares) {
    const auto& names = kResourceNames;
    shares.Only({names[0], names[1], names[2], names[3], names[4]});
    for (std::size_t r = 0; r < kResources; ++r) {
      cell.throughput[r] = shares.Number(kResourceNames[r], 0);
      if (cell.throughput[r] > 1) {
        shares.Complain(kResourceNames[r], "is a share of the device's peak, at most 1");
      }
    }
  });
}

// Cells may stand in any order; each batch from 1 to max_batch must be there once.
void ReadCells(const JsonReader& reader, int max_batch, ProfiledModel& model, ProfiledExit& exit) {
  std::vector<bool> seen(max_batch, false);
  exit.cells.resize(max_batch);
  reader.Each("cells", [&](const JsonReader& element) {
    const auto batch = static_cast<int>(element.Integer("batch", 1, max_batch));
    ProfileCell cell = ReadCell(element);
    if (!model.resources_source.empty()) {
      ReadUse(element, cell);
    } else if (element.Has("throughput") || element.Has("transfer_ms")) {
      model.unsourced_resources = true;
    }
    if (batch < 1 || batch > max_batch) return;
    if (seen[batch - 1]) return element.Complain("batch", "is there twice");
    seen[batch - 1] = true;
    exit.cells[batch - 1] = cell;
  });
  for (int b = 1; b <= max_batch; ++b) {
    if (seen[b - 1]) continue;
    return reader.Complain("cells", fmt::format("batch {} of 1 to {} is missing", b, max_batch));
  }
}

void ReadThreads(const JsonReader& reader, ProfiledExit& exit) {
  if (!reader.Has("by_threads")) return;
  reader.Each("by_threads", [&](const JsonReader& element) {
    const int before = exit.by_threads.empty() ? 0 : exit.by_threads.back().threads;
    const ProfiledThreads& read =
        exit.by_threads.emplace_back(static_cast<int>(element.Integer("threads", 1, kMostThreads)),
                                     element.Number("one_ms", 0), element.Number("largest_ms", 0));
    if (read.threads <= before) element.Complain("threads", "must ascend, without repeats");
    if (read.one_ms <= 0) element.Complain("one_ms", "must be above 0");
    if (read.largest_ms <= 0) element.Complain("largest_ms", "must be above 0");
  });
}

ProfiledModel ReadModel(const JsonReader& reader) {
  ProfiledModel model;
  model.name = reader.Text("name");
  model.max_batch = static_cast<int>(reader.Integer("max_batch", 1, kMostBatch));
  model.slo_ms = reader.Number("slo_ms", 0, 0);
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
  model.weight_bytes = reader.Integer("weight_bytes", 0, kMostBytes, 0);
  model.peak_memory_bytes = reader.Integer("peak_memory_bytes", 0, kMostBytes, 0);
  model.resources_source = reader.Text("resources_source", true);
  model.service_ratio = reader.Number("service_ratio", ProfileFile::kLeastRatio, 1);
  std::set<std::string> names;
  reader.Each("exits", [&](const JsonReader& element) {
    ProfiledExit& exit = model.exits.emplace_back();
    exit.name = element.Text("name");
    exit.accuracy = element.Number("accuracy", 0, 0);
    if (exit.accuracy > 1) element.Complain("accuracy", "is a fraction, at most 1");
    if (!names.insert(exit.name).second) element.Complain("name", "is there twice");
    ReadCells(element, model.max_batch, model, exit);
    ReadThreads(element, exit);
    Fit(exit);
  });
  if (model.exits.empty()) reader.Complain("exits", "must hold at least one exit");
  return model;
}

DeviceFacts ReadDevice(const JsonReader& machine) {
  DeviceFacts read;
  machine.Object("device", [&](const JsonReader& element) {
    const auto whole = [&](const char* key, std::int64_t high = 1'000'000) {
      return element.Integer(key, 0, high);
    };
    read.name = element.Text("name");
    read.uuid = element.Text("uuid", true);
    read.capability = static_cast<int>(whole("capability"));
    read.multiprocessors = static_cast<int>(whole("multiprocessors"));
    read.memory_bytes = static_cast<std::uint64_t>(whole("memory_bytes", std::int64_t{1} << 50));
    read.driver = static_cast<int>(whole("driver"));
    read.power_limit_watts = static_cast<int>(whole("power_limit_watts"));
  });
  return read;
}

ProfileFile ReadProfile(const JsonReader& reader) {
  ProfileFile profile;
  reader.Integer("tactus_profile", ProfileFile::kVersion, ProfileFile::kVersion);
  reader.Object("machine", [&](const JsonReader& element) {
    profile.machine.fingerprint = element.Text("fingerprint", true);
    profile.machine.cpu = element.Text("cpu", true);
    profile.machine.cores = static_cast<int>(element.Integer("cores", 0, 1'000'000, 0));
    profile.machine.os = element.Text("os", true);
    profile.machine.engine = element.Text("engine", true);
    profile.machine.threads = static_cast<int>(element.Integer("threads", 1, kMostThreads, 1));
    if (element.Has("device")) profile.machine.device = ReadDevice(element);
    profile.machine.share = element.Number("share", 0.001, 1);
    if (profile.machine.share > 1) element.Complain("share", "is a fraction, at most 1");
  });
  profile.commit = reader.Text("commit", true);
  profile.created = reader.Text("created", true);
  profile.provenance = reader.Text("provenance");
  profile.launch_overhead_ms = reader.Number("launch_overhead_ms", 0, 0);
  profile.finish_overhead_ms = reader.Number("finish_overhead_ms", 0, 0);
  profile.answer_overhead_ms = reader.Number("answer_overhead_ms", 0, 0);
  profile.service_trace = reader.Numbers("service_trace", ProfileFile::kLeastRatio);
  profile.service_window_ms = reader.Number("service_window_ms", 0, 0);
  if (!profile.service_trace.empty() && profile.service_window_ms < 1) {
    reader.Complain("service_window_ms", "must be a number from 1 on");
  }
  std::set<std::string> names;
  reader.Each("models", [&](const JsonReader& element) {
    profile.models.push_back(ReadModel(element));
    if (!names.insert(profile.models.back().name).second)
      element.Complain("name", "is there twice");
  });
  return profile;
}

std::string Quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

void WriteDevice(const ProfiledDeviceTimes& times, std::string& out) {
  fmt::format_to(
      std::back_inserter(out),
      ",\n     \"device\": {{\"upload_ms\": {}, \"kernels_ms\": {}, \"download_ms\": {}}}",
      times.upload_ms, times.kernels_ms, times.download_ms);
}

void WriteThreads(const std::vector<ProfiledThreads>& measured, std::string& out) {
  if (measured.empty()) return;
  out += ",\n    \"by_threads\": [";
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const ProfiledThreads& each = measured[i];
    fmt::format_to(std::back_inserter(out),
                   "{}{{\"threads\": {}, \"one_ms\": {}, \"largest_ms\": {}}}", i == 0 ? "" : ", ",
                   each.threads, each.one_ms, each.largest_ms);
  }
  out += "]";
}

void WriteUse(const ProfileCell& cell, std::string& out) {
  fmt::format_to(std::back_inserter(out), ",\n     \"transfer_ms\": {}, \"throughput\": {{",
                 cell.transfer_ms);
  for (std::size_t r = 0; r < kResources; ++r) {
    fmt::format_to(std::back_inserter(out), "{}\"{}\": {}", r == 0 ? "" : ", ", kResourceNames[r],
                   cell.throughput[r]);
  }
  out += '}';
}

void WriteModel(const ProfiledModel& model, std::string& out) {
  auto it = std::back_inserter(out);
  fmt::format_to(it,
                 "  {{\"name\": {}, \"max_batch\": {}, \"slo_ms\": {}, \"weight_bytes\": {},\n"
                 "   \"peak_memory_bytes\": {}, \"service_ratio\": {}, ",
                 Quoted(model.name), model.max_batch, model.slo_ms, model.weight_bytes,
                 model.peak_memory_bytes, model.service_ratio);
  const bool uses = !model.resources_source.empty();
  if (uses) {
    fmt::format_to(it, "\"resources_source\": {},\n   ", Quoted(model.resources_source));
  }
  out += "\"exits\": [";
  const char* between_exits = "\n";
  for (const ProfiledExit& exit : model.exits) {
    fmt::format_to(it,
                   "{}   {{\"name\": {}, \"accuracy\": {}, \"alpha_ms\": {}, \"beta_ms\": {}, "
                   "\"fit_error\": {}, \"cells\": [",
                   between_exits, Quoted(exit.name), exit.accuracy, exit.alpha_ms, exit.beta_ms,
                   exit.fit_error);
    between_exits = ",\n";
    for (std::size_t i = 0; i < exit.cells.size(); ++i) {
      const ProfileCell& c = exit.cells[i];
      fmt::format_to(it,
                     "{}    {{\"batch\": {}, \"repetitions\": {}, \"mean_ms\": {}, \"min_ms\": {}, "
                     "\"p50_ms\": {}, \"p95_ms\": {}, \"p99_ms\": {}, \"max_ms\": {}, \"cv\": {}",
                     i == 0 ? "\n" : ",\n", i + 1, c.repetitions, c.mean_ms, c.min_ms, c.p50_ms,
                     c.p95_ms, c.p99_ms, c.max_ms, c.cv);
      if (c.device) WriteDevice(*c.device, out);
      if (uses) WriteUse(c, out);
      out += '}';
    }
    out += "]";
    WriteThreads(exit.by_threads, out);
    out += "}";
  }
  out += "]}";
}

}  // namespace

double Quantile(const ProfileCell& cell, double q) {
  const std::array<double, 5> at = {0, 0.50, 0.95, 0.99, 1};
  const std::array<double, 5> ms = {cell.min_ms, cell.p50_ms, cell.p95_ms, cell.p99_ms,
                                    cell.max_ms};
  for (std::size_t i = 1; i < at.size(); ++i) {
    if (q > at[i]) continue;
    return ms[i - 1] + (ms[i] - ms[i - 1]) * (q - at[i - 1]) / (at[i] - at[i - 1]);
  }
  return cell.max_ms;
}

void Fit(ProfiledExit& exit) {
  const auto n = static_cast<double>(exit.cells.size());
  double sum_b = 0, sum_l = 0, sum_bb = 0, sum_bl = 0;
  for (std::size_t i = 0; i < exit.cells.size(); ++i) {
    const double b = static_cast<double>(i + 1), l = exit.cells[i].mean_ms;
    sum_b += b;
    sum_l += l;
    sum_bb += b * b;
    sum_bl += b * l;
  }
  const double spread = n * sum_bb - sum_b * sum_b;
  exit.alpha_ms = spread > 0 ? (n * sum_bl - sum_b * sum_l) / spread : 0;
  exit.beta_ms = n > 0 ? (sum_l - exit.alpha_ms * sum_b) / n : 0;
  exit.fit_error = 0;
  for (std::size_t i = 0; i < exit.cells.size(); ++i) {
    const double l = exit.cells[i].mean_ms;
    const double fitted = exit.alpha_ms * static_cast<double>(i + 1) + exit.beta_ms;
    if (l > 0) exit.fit_error = std::max(exit.fit_error, std::abs(fitted - l) / l);
  }
}

double MemoryOf(const ProfiledModel& profiled) {
  return static_cast<double>(std::max(profiled.peak_memory_bytes, profiled.weight_bytes)) / 1e6;
}

const ProfiledModel* ProfileFile::Find(const std::string& model) const {
  for (const ProfiledModel& candidate : models) {
    if (candidate.name == model) return &candidate;
  }
  return nullptr;
}

Expected<ProfileFile> ParseProfile(std::string_view text, std::string_view where) {
  return ReadJson(text, where, kMeasureAgain, ReadProfile);
}

Expected<ProfileFile> LoadProfile(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "profile", "; make one with `tactus profile`");
  if (!text) return std::unexpected(text.error());
  return ParseProfile(*text, path.string());
}

namespace {

// With the comma before it; empty where there is none.
std::string DeviceText(const Machine& machine) {
  const std::optional<DeviceFacts>& a = machine.device;
  if (!a) return "";
  return fmt::format(
      ",\n  \"share\": {}, \"device\": {{\"name\": {}, \"uuid\": {}, \"capability\": {}, "
      "\"multiprocessors\": {}, \"memory_bytes\": {}, \"driver\": {}, "
      "\"power_limit_watts\": {}}}",
      machine.share, Quoted(a->name), Quoted(a->uuid), a->capability, a->multiprocessors,
      a->memory_bytes, a->driver, a->power_limit_watts);
}

}  // namespace

Status SaveProfile(const ProfileFile& profile, const std::filesystem::path& path) {
  std::string out = fmt::format(
      "{{\"tactus_profile\": {},\n \"machine\": {{\"fingerprint\": {}, \"cpu\": {}, \"cores\": {}, "
      "\"os\": {}, \"engine\": {}, \"threads\": {}{}}},\n \"commit\": {}, \"created\": {},\n "
      "\"provenance\": {},\n"
      " \"launch_overhead_ms\": {}, \"finish_overhead_ms\": {}, \"answer_overhead_ms\": {},\n"
      " \"service_window_ms\": {}, \"service_trace\": [{:.4g}],\n \"models\": [",
      ProfileFile::kVersion, Quoted(profile.machine.fingerprint), Quoted(profile.machine.cpu),
      profile.machine.cores, Quoted(profile.machine.os), Quoted(profile.machine.engine),
      profile.machine.threads, DeviceText(profile.machine), Quoted(profile.commit),
      Quoted(profile.created), Quoted(profile.provenance), profile.launch_overhead_ms,
      profile.finish_overhead_ms, profile.answer_overhead_ms, profile.service_window_ms,
      fmt::join(profile.service_trace, ", "));
  for (std::size_t i = 0; i < profile.models.size(); ++i) {
    out += i == 0 ? "\n" : ",\n";
    WriteModel(profile.models[i], out);
  }
  out += "]}\n";
  return WriteWhole(out, path, "profile");
}

Status CheckSlo(const ProfileFile& profile, const Model& model, const ProfileOptions& options) {
  const ProfiledModel* measured = profile.Find(model.name);
  if (measured == nullptr || model.slo <= Duration{}) return {};
  double quickest_ms = 0;
  std::string which;
  for (const ModelExit& wanted : model.exits) {
    for (const ProfiledExit& exit : measured->exits) {
      if (exit.name != wanted.name) continue;
      for (std::size_t b = 0; b < exit.cells.size(); ++b) {
        if (b >= static_cast<std::size_t>(model.max_batch)) break;
        if (!which.empty() && exit.cells[b].min_ms >= quickest_ms) continue;
        quickest_ms = exit.cells[b].min_ms;
        which = fmt::format("exit {}, batch {}", exit.name, b + 1);
      }
    }
  }
  const double speed = std::ranges::max(options.speeds);
  if (speed != 1) which += fmt::format(", on lanes of speed {:.6g}", speed);
  quickest_ms /= speed;
  const double hand_over_ms =
      profile.launch_overhead_ms + profile.finish_overhead_ms + profile.answer_overhead_ms;
  const double needed_ms = quickest_ms + options.jitter_ms + hand_over_ms;
  if (quickest_ms == 0 || FromMillis(needed_ms) <= model.slo) return {};
  std::string sum = fmt::format("{:.3f} ms", quickest_ms);
  if (options.jitter_ms > 0) sum += fmt::format(" + {:.3f} ms of jitter", options.jitter_ms);
  if (hand_over_ms > 0) sum += fmt::format(" + {:.3f} ms of hand-over", hand_over_ms);
  return InvalidArgument(fmt::format(
      "model '{}': no batch can meet its SLO of {:.6g} ms: the quickest ({}) takes {} at "
      "best; give it an SLO above {:.3f} ms, or a quicker exit",
      model.name, ToMillis(model.slo), which, sum, needed_ms));
}

namespace {

// The rows of one lane class.
Status AddRows(const ProfiledModel& measured, const Model& model, double speed,
               const ProfileOptions& options, ProfileTable::ModelRows& rows) {
  rows.margin = FromMillis(options.jitter_ms);
  for (const ModelExit& wanted : model.exits) {
    const auto exit = std::ranges::find(measured.exits, wanted.name, &ProfiledExit::name);
    if (exit == measured.exits.end()) {
      return NotFound(fmt::format("the profile of model '{}' has no exit '{}'{}", model.name,
                                  wanted.name, kMeasureAgain));
    }
    for (int b = 0; b < model.max_batch; ++b) {
      const ProfileCell& cell = exit->cells[b];
      const double ms =
          options.percentile > 0 ? Quantile(cell, options.percentile / 100) : cell.mean_ms;
      rows.latency.push_back(FromMillis(ms / speed + options.jitter_ms));
      if (measured.resources_source.empty()) continue;
      rows.use.push_back({cell.throughput, FromMillis(cell.transfer_ms)});
    }
  }
  return {};
}

}  // namespace

Expected<ProfileTable> MakeTable(const ProfileFile& profile, std::span<const Model> models,
                                 const ProfileOptions& options) {
  if (!(options.percentile >= 0 && options.percentile <= 100)) {
    return InvalidArgument("the profile's percentile must lie in (0, 100], or be 0 for the mean");
  }
  std::vector<ProfileTable::ModelRows> table;
  for (const Model& model : models) {
    const ProfiledModel* measured = profile.Find(model.name);
    if (measured == nullptr) {
      return NotFound(fmt::format("the profile has no model '{}'{}", model.name, kMeasureAgain));
    }
    if (model.max_batch < 1 || model.max_batch > measured->max_batch) {
      return NotFound(fmt::format("model '{}' wants batches up to {}, its profile knows 1 to {}{}",
                                  model.name, model.max_batch, measured->max_batch, kMeasureAgain));
    }
    if (auto slo = CheckSlo(profile, model, options); !slo) return std::unexpected(slo.error());
    ProfileTable::ModelRows& rows = table.emplace_back();
    rows.exits = model.exit_count();
    rows.max_batch = model.max_batch;
    for (const double speed : options.speeds) {
      if (auto read = AddRows(*measured, model, speed, options, rows); !read) {
        return std::unexpected(read.error());
      }
    }
  }
  return ProfileTable(static_cast<int>(options.speeds.size()), table);
}

}  // namespace tactus
