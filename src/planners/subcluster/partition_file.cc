#include "planners/subcluster/partition_file.h"

#include <array>
#include <optional>
#include <set>
#include <span>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <toml++/toml.h>

#include "base/whole_file.h"

namespace tactus {
namespace {

constexpr double kMost = 1e12;

template <class Owner>
struct Key {
  const char* name;
  double Owner::*number;
};

constexpr std::array kClusterKeys = {
    Key<PartitionProblem>{"memory_mb", &PartitionProblem::most_memory_mb},
    Key<PartitionProblem>{"rate_rps", &PartitionProblem::most_rate_rps},
    Key<PartitionProblem>{"memory_weight", &PartitionProblem::memory_weight},
};
constexpr std::array kModelKeys = {
    Key<PartitionModel>{"rate_rps", &PartitionModel::rate_rps},
    Key<PartitionModel>{"static_mb", &PartitionModel::static_mb},
    Key<PartitionModel>{"dynamic_mb", &PartitionModel::dynamic_mb},
    Key<PartitionModel>{"move_cost", &PartitionModel::move_cost},
};

template <class Owner>
std::string NamesOf(std::string first, std::span<const Key<Owner>> keys) {
  for (const auto& key : keys) first += fmt::format(", {}", key.name);
  return first;
}

class Reader {
 public:
  Reader(const std::filesystem::path& where, PartitionProblem& problem)
      : where_(where), problem_(problem) {}

  Status Read(const toml::table& root) {
    bool cluster = false;
    for (const auto& [key, node] : root) {
      Status read;
      if (key.str() == "cluster") {
        cluster = true;
        read = ReadCluster(node);
      } else if (key.str() == "models") {
        read = ReadModels(node);
      } else {
        read =
            Fail(node, fmt::format("{}: unknown; there are [cluster] and [[models]]", key.str()));
      }
      if (!read) return read;
    }
    if (!cluster) return InvalidArgument(where_.string() + ": needs a [cluster]");
    return {};
  }

 private:
  Status ReadCluster(const toml::node& node) {
    const auto* table = node.as_table();
    if (table == nullptr) return Fail(node, "cluster: write it as [cluster]");
    bool counted = false;
    for (const auto& [key, value] : *table) {
      if (key.str() != "sub_clusters") {
        if (auto read =
                Number<PartitionProblem>(value, key.str(), kClusterKeys, "sub_clusters", problem_);
            !read) {
          return read;
        }
        continue;
      }
      const auto count = value.value_exact<std::int64_t>();
      if (!count || *count < 1 || *count > kMostSubClusters) {
        return Fail(value, fmt::format("sub_clusters: must be a whole number from 1 to {}",
                                       kMostSubClusters));
      }
      problem_.sub_clusters = static_cast<int>(*count);
      counted = true;
    }
    if (!counted) return Fail(node, "[cluster]: needs sub_clusters, how many there are");
    return {};
  }

  Status ReadModels(const toml::node& node) {
    const auto* array = node.as_array();
    if (array == nullptr) return Fail(node, "models: write each as [[models]]");
    for (const toml::node& element : *array) {
      const auto* table = element.as_table();
      if (table == nullptr) return Fail(element, "models: write each as [[models]]");
      if (auto read = ReadModel(*table); !read) return read;
    }
    return {};
  }

  Status ReadModel(const toml::table& table) {
    PartitionModel model;
    for (const auto& [key, value] : table) {
      if (key.str() == "name") {
        const auto name = value.value_exact<std::string>();
        if (!name || name->empty()) return Fail(value, "name: must be a string, not empty");
        model.name = *name;
        continue;
      }
      auto read = Number<PartitionModel>(value, key.str(), kModelKeys, "name", model);
      if (!read) return read;
    }
    if (model.name.empty()) return Fail(table, "[[models]]: needs a name");
    for (const char* needed : {"rate_rps", "static_mb"}) {
      if (table.contains(needed)) continue;
      return Fail(table, fmt::format("model '{}': needs {}", model.name, needed));
    }
    if (!names_.insert(model.name).second) {
      return Fail(table, fmt::format("model '{}' is there twice; name variants apart", model.name));
    }
    problem_.models.push_back(std::move(model));
    return {};
  }

  template <class Owner>
  Status Number(const toml::node& value, std::string_view name, std::span<const Key<Owner>> keys,
                const char* other, Owner& owner) {
    for (const auto& key : keys) {
      if (name != key.name) continue;
      const auto number = value.value<double>();
      if (!value.is_number() || !number || !(*number >= 0 && *number <= kMost)) {
        return Fail(value, fmt::format("{}: must be a number from 0 to {:g}", name, kMost));
      }
      owner.*key.number = *number;
      return {};
    }
    return Fail(value, fmt::format("{}: unknown; there are {}", name, NamesOf(other, keys)));
  }

  std::unexpected<Error> Fail(const toml::node& node, std::string_view what) const {
    const toml::source_position& at = node.source().begin;
    return InvalidArgument(fmt::format("{}:{}:{}: {}", where_.string(), at.line, at.column, what));
  }

  // A search weighs all of them for each change: see Annealing::Weigh.
  static constexpr std::int64_t kMostSubClusters = 4096;

  const std::filesystem::path& where_;
  PartitionProblem& problem_;
  std::set<std::string> names_;
};

}  // namespace

Expected<PartitionProblem> ParsePartitionProblem(std::string_view text,
                                                 const std::filesystem::path& where) {
  PartitionProblem problem;
  try {
    const toml::table root = toml::parse(text);
    if (auto read = Reader(where, problem).Read(root); !read) return std::unexpected(read.error());
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    return InvalidArgument(fmt::format("{}:{}:{}: not valid TOML: {}", where.string(), at.line,
                                       at.column, error.description()));
  }
  if (auto valid = Validate(problem); !valid) {
    return Fail(valid.error().code, fmt::format("{}: {}", where.string(), valid.error().message));
  }
  return problem;
}

Expected<PartitionProblem> LoadPartitionProblem(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "partition problem");
  if (!text) return std::unexpected(text.error());
  return ParsePartitionProblem(*text, path);
}

Status ParsePreviousPartition(std::string_view text, const std::filesystem::path& where,
                              PartitionProblem& problem) {
  const auto root = nlohmann::json::parse(text, nullptr, false);
  const auto models = root.is_object() ? root.find("models") : root.end();
  if (models == root.end() || !models->is_object()) {
    return InvalidArgument(where.string() +
                           ": holds no partition; give a file that tactus plan "
                           "partition --json wrote");
  }
  problem.previous.assign(problem.models.size(), kNowhere);
  for (std::size_t i = 0; i < problem.models.size(); ++i) {
    const std::string& name = problem.models[i].name;
    const auto place = models->find(name);
    if (place == models->end()) continue;
    if (!place->is_number_integer() || *place < 0) {
      return InvalidArgument(
          fmt::format("{}: model '{}' is in no sub-cluster; it must be a whole "
                      "number from 0 on",
                      where.string(), name));
    }
    if (*place < problem.sub_clusters) problem.previous[i] = place->get<int>();
  }
  return {};
}

Status LoadPreviousPartition(const std::filesystem::path& path, PartitionProblem& problem) {
  const auto text = ReadWhole(path, "previous partition");
  if (!text) return std::unexpected(text.error());
  return ParsePreviousPartition(*text, path, problem);
}

}  // namespace tactus
