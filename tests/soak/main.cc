// tactus_soak_test [--first=SEED] [--lives=N] [--seconds=S] [--requests=N]: the soaks, each for N
// lives, or S seconds in all; those that count requests, for N of them. Without any each runs
// for the few seconds that `./run test` can spare.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "metrics/report.h"
#include "soak_options.h"

namespace tactus {
namespace {

std::uint64_t first_seed = 1;
std::uint64_t lives_of_all = 0;  // 0: each test's own
std::uint64_t seconds_of_all = 0;
std::uint64_t requests_of_all = 0;

bool ReadFlag(std::string_view argument, std::string_view flag, std::uint64_t& value) {
  if (!argument.starts_with(flag)) return false;
  argument.remove_prefix(flag.size());
  const auto read = std::from_chars(argument.data(), argument.data() + argument.size(), value);
  return read.ec == std::errc{} && read.ptr == argument.data() + argument.size();
}

// What was run, so that a soak without a finding can be cited.
class SoakSummary : public ::testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const ::testing::TestInfo& test) override {
    const ::testing::TestResult& result = *test.result();
    for (int i = 0; i < result.test_property_count(); ++i) {
      lives_ += std::strtoull(result.GetTestProperty(i).value(), nullptr, 10);
    }
  }
  void OnTestProgramEnd(const ::testing::UnitTest& all) override {
    std::printf("%s\n",
                fmt::format("{} lives in {} tests, seeds from {} on; {} failed; commit {}, {}",
                            lives_, all.test_to_run_count(), first_seed, all.failed_test_count(),
                            BuildCommit(), MachineKind())
                    .c_str());
  }

 private:
  std::uint64_t lives_ = 0;
};

}  // namespace

bool Seeds::More(std::uint64_t done) const {
  const bool more = until == std::chrono::steady_clock::time_point{}
                        ? done < lives
                        : std::chrono::steady_clock::now() < until;
  if (!more) ::testing::Test::RecordProperty("lives", std::to_string(done));
  return more;
}

Seeds SeedsOf(std::uint64_t lives) {
  Seeds seeds{.first = first_seed, .lives = lives_of_all > 0 ? lives_of_all : lives};
  if (seconds_of_all > 0) {
    const auto tests = ::testing::UnitTest::GetInstance()->test_to_run_count();
    seeds.until = std::chrono::steady_clock::now() +
                  std::chrono::milliseconds(1000 * seconds_of_all / static_cast<unsigned>(tests));
  }
  return seeds;
}

std::uint64_t RequestsOf(std::uint64_t requests) {
  return requests_of_all > 0 ? requests_of_all : requests;
}

std::string Again(std::uint64_t seed) {
  return "seed " + std::to_string(seed) + ", commit " + BuildCommit() +
         "; again: tactus_soak_test --lives=1 --first=" + std::to_string(seed);
}

}  // namespace tactus

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (!tactus::ReadFlag(argv[i], "--lives=", tactus::lives_of_all) &&
        !tactus::ReadFlag(argv[i], "--first=", tactus::first_seed) &&
        !tactus::ReadFlag(argv[i], "--requests=", tactus::requests_of_all) &&
        !tactus::ReadFlag(argv[i], "--seconds=", tactus::seconds_of_all)) {
      std::fprintf(stderr,
                   "unknown argument %s; --lives=N, --first=SEED, --seconds=S and --requests=N are "
                   "known\n",
                   argv[i]);
      return 2;
    }
  }
  ::testing::UnitTest::GetInstance()->listeners().Append(
      new tactus::SoakSummary);  // gtest's to delete
  return RUN_ALL_TESTS();
}
