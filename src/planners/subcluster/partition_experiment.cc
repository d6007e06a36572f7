#include "planners/subcluster/partition_experiment.h"

#include <array>

#include <fmt/format.h>

#include "base/rng.h"

namespace tactus {
namespace {

struct Parameters {
  const char* name;
  double millions;
};

// keras.io/api/applications; SSDMobilenet: Howard et al., "MobileNets", Table 13; BERT: Devlin et
// al., BERT-base.
constexpr std::array kParameters = {
    Parameters{"NASNetMobile", 5.3},
    Parameters{"MobileNetV3Small", 2.9},
    Parameters{"DenseNet169", 14.3},
    Parameters{"DenseNet121", 8.1},
    Parameters{"DenseNet201", 20.2},
    Parameters{"EfficientNetV2B0", 7.2},
    Parameters{"MobileNetV3Large", 5.4},
    Parameters{"InceptionV3", 23.9},
    Parameters{"EfficientNetV2B1", 8.2},
    Parameters{"ResNet50V2", 25.6},
    Parameters{"ResNet152V2", 60.4},
    Parameters{"ResNet101V2", 44.7},
    Parameters{"InceptionResNetV2", 55.9},
    Parameters{"EfficientNetB0", 5.3},
    Parameters{"MobileNetV2", 3.5},
    Parameters{"ResNet101", 44.7},
    Parameters{"EfficientNetB1", 7.9},
    Parameters{"ResNet50", 25.6},
    Parameters{"EfficientNetV2B2", 10.2},
    Parameters{"VGG19", 143.7},
    Parameters{"ResNet152", 60.4},
    Parameters{"MobileNet", 4.3},
    Parameters{"VGG16", 138.4},
    Parameters{"EfficientNetB2", 9.2},
    Parameters{"EfficientNetV2B3", 14.5},
    Parameters{"NASNetLarge", 88.9},
    Parameters{"EfficientNetV2S", 21.6},
    Parameters{"EfficientNetB3", 12.3},
    Parameters{"EfficientNetV2L", 119.0},
    Parameters{"EfficientNetV2M", 54.4},
    Parameters{"EfficientNetB5", 30.6},
    Parameters{"Xception", 22.9},
    Parameters{"SSDMobilenet", 6.8},
    Parameters{"EfficientNetB4", 19.5},
    Parameters{"BERT", 110.0},
    Parameters{"EfficientNetB6", 43.3},
    Parameters{"EfficientNetB7", 66.7},
};

constexpr double kBytes = 4;  // of a parameter in single precision

}  // namespace

std::vector<PartitionModel> PartitionZoo() {
  std::vector<PartitionModel> zoo;
  for (const Parameters& model : kParameters) {
    const double megabytes = model.millions * 1e6 * kBytes / (1 << 20);
    zoo.push_back({.name = model.name, .static_mb = megabytes});
  }
  return zoo;
}

PartitionProblem MakePartitionProblem(const PartitionExperiment& experiment, std::uint64_t seed) {
  const std::vector<PartitionModel> zoo = PartitionZoo();
  Rng choices = Rng::Stream(seed, "partition experiment/models");
  Rng rates = Rng::Stream(seed, "partition experiment/rates");
  PartitionProblem problem{.sub_clusters = experiment.sub_clusters,
                           .most_memory_mb = experiment.most_memory_mb};
  std::vector<int> variants(zoo.size());
  for (int i = 0; i < experiment.models; ++i) {
    const std::size_t which = choices.Below(zoo.size());
    PartitionModel model = zoo[which];
    model.name = fmt::format("{}-{}", model.name, ++variants[which]);
    model.rate_rps = rates.Exponential(1 / experiment.mean_rate_rps);
    model.dynamic_mb = experiment.dynamic_mb;
    problem.models.push_back(std::move(model));
  }
  return problem;
}

Expected<PartitionOutcome> RunPartitionConfiguration(const PartitionExperiment& experiment,
                                                     PartitionSolver solver, std::uint64_t seed,
                                                     PartitionSearchOptions options,
                                                     const StopPartition& stop) {
  const PartitionProblem problem = MakePartitionProblem(experiment, seed);
  options.seed = seed;
  auto found = solver == PartitionSolver::kSearch ? SearchPartition(problem, options, stop)
                                                  : DrawPartition(problem, options, stop);
  if (!found) {
    return Fail(found.error().code,
                fmt::format("configuration {}: {}", seed, found.error().message));
  }
  return PartitionOutcome{solver, seed, std::move(*found)};
}

}  // namespace tactus
