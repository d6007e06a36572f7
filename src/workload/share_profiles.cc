#include "workload/share_profiles.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

// For each share a table of one lane class.
Expected<std::vector<ProfileTable>> MakeTables(std::span<const ShareProfile> shares,
                                               std::span<const Model> models,
                                               const ProfileOptions& options) {
  std::vector<ProfileTable> tables;
  for (const ShareProfile& each : shares) {
    std::vector<Model> wanted(models.begin(), models.end());
    for (Model& model : wanted) {
      if (each.share < 1) model.slo = {};
    }
    auto table = MakeTable(each.profile, wanted, options);
    if (!table) {
      return Fail(table.error().code, fmt::format("the profile of {:g} % of a device: {}",
                                                  100 * each.share, table.error().message));
    }
    tables.push_back(*std::move(table));
  }
  return tables;
}

}  // namespace

Status CheckShares(std::span<const ShareProfile> shares) {
  double before = 0;
  for (const ShareProfile& each : shares) {
    if (each.share <= before) {
      return InvalidArgument(
          fmt::format("profiles of shares must ascend, each share once; {:g} % comes after {:g} %",
                      100 * each.share, 100 * before));
    }
    before = each.share;
  }
  if (before == 1) return {};
  return InvalidArgument(
      fmt::format("the profiles of shares end at {:g} %; give that of the whole device too, as "
                  "100=FILE",
                  100 * before));
}

namespace {

Expected<MeasuredShare> ParseMeasuredShare(std::string_view text) {
  const std::size_t equals = text.find('=');
  double percent = 0;
  const char* const end = text.data() + std::min(equals, text.size());
  const auto [stop, error] = std::from_chars(text.data(), end, percent);
  if (equals == std::string_view::npos || error != std::errc() || stop != end ||
      !(percent > 0 && percent <= 100)) {
    return InvalidArgument(fmt::format(
        "'{}' is not PERCENT=FILE, with a percentage of the device from above 0 to 100", text));
  }
  return MeasuredShare{percent, text.substr(equals + 1)};
}

}  // namespace

Expected<std::vector<MeasuredShare>> ParseMeasuredShares(std::span<const std::string> texts) {
  std::vector<MeasuredShare> shares;
  for (const std::string& text : texts) {
    auto share = ParseMeasuredShare(text);
    if (!share) return std::unexpected(std::move(share.error()));
    shares.push_back(*std::move(share));
  }
  return shares;
}

Expected<std::vector<ShareProfile>> LoadShareProfiles(std::span<const MeasuredShare> shares) {
  std::vector<ShareProfile> loaded;
  for (const MeasuredShare& each : shares) {
    auto profile = LoadProfile(each.profile);
    if (!profile) return std::unexpected(std::move(profile.error()));
    loaded.push_back({each.percent / 100, *std::move(profile)});
  }
  if (auto fit = CheckShares(loaded); !fit) return std::unexpected(std::move(fit.error()));
  return loaded;
}

Expected<ProfileTable> MakeTable(std::span<const ShareProfile> shares,
                                 std::span<const Model> models, const ProfileOptions& options) {
  if (auto ok = CheckShares(shares); !ok) return std::unexpected(ok.error());
  const auto tables = MakeTables(shares, models, options);
  if (!tables) return std::unexpected(tables.error());
  std::vector<ProfileTable::ModelRows> all;
  for (ModelId::rep m = 0; m < models.size(); ++m) {
    const ModelId id{m};
    auto& rows = all.emplace_back();
    rows.exits = models[m].exit_count();
    rows.max_batch = models[m].max_batch;
    rows.margin = tables->front().margin(id);
    bool knows_use = true;
    for (const ProfileTable& table : *tables) knows_use = knows_use && table.knows_use(id);
    for (const ProfileTable& table : *tables) {
      for (ExitId::rep e = 0; e < static_cast<ExitId::rep>(rows.exits); ++e) {
        for (int b = 1; b <= rows.max_batch; ++b) {
          rows.latency.push_back(table.Latency(id, ExitId{e}, b, LaneClass{0}));
          if (knows_use) rows.use.push_back(table.Use(id, ExitId{e}, b, LaneClass{0}));
        }
      }
    }
  }
  return ProfileTable(static_cast<int>(shares.size()), all);
}

}  // namespace tactus
