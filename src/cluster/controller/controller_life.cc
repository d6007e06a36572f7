#include "cluster/controller/controller_life.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cluster/control/spare.h"
#include "cluster/control/state_file.h"
#include "cluster/controller/used_tokens.h"
#include "cluster/memory/candidate.h"
#include "cluster/memory/history_writer.h"
#include "cluster/memory/recollection.h"
#include "planners/fleet_registry.h"
#include "planners/fleet_scaling.h"

namespace tactus {
namespace {

class ControllerLife {
 public:
  ControllerLife(ControllerOptions options, const FleetInput& fleet, std::string planner,
                 ControllerLifeFlags flags, ControllerWorld world)
      : options_(std::move(options)),
        fleet_(fleet),
        planner_(std::move(planner)),
        flags_(std::move(flags)),
        world_(std::move(world)),
        log_(world_.log) {
    own_store_ = flags_.store.empty();
    if (own_store_) flags_.store = DefaultStore(options_.state.string());
    named_ = !flags_.name.empty();
    if (!named_) flags_.name = options_.listen;
  }

  Expected<int> Run();

 private:
  enum class End { kStopped, kSuperseded };
  // Errors that waiting does not mend: a wrong address, a newer schema, a folder that is missing.
  Status OpenMemory();
  Status Stand();
  // Until it is elected. False: a signal came first.
  Expected<bool> Wait();
  Expected<End> Lead();
  // What the store says; nothing where it is away.
  std::optional<Recollection> Remember();
  void Ready(int port);

  ControllerOptions options_;
  const FleetInput& fleet_;
  const std::string planner_;
  ControllerLifeFlags flags_;
  const ControllerWorld world_;
  const Controller::Log log_;
  std::unique_ptr<Candidate> candidate_;  // null: nobody elects
  bool named_ = false;
  bool own_store_ = false;
  bool ready_ = false;
};

Status ControllerLife::OpenMemory() {
  // The default store's folder is the controller's own.
  std::error_code made;
  std::filesystem::create_directories(options_.state, made);
  const auto store = knowledge::OpenStore(flags_.store);
  if (store) return {};
  const bool mends =
      store.error().code == ErrorCode::kResourceExhausted ||
      (store.error().code == ErrorCode::kUnavailable && !flags_.store.starts_with("sqlite:"));
  if (!mends) {
    return std::unexpected(Error{store.error().code, "--store: " + store.error().message});
  }
  log_("history: the knowledge base is away, and is not waited for: " + store.error().message);
  return {};
}

Status ControllerLife::Stand() {
  if (flags_.elect == "none") {
    if (!named_) return {};
    return InvalidArgument("--name is for the other controllers of an election; say --elect too");
  }
  auto coordination = knowledge::OpenCoordination(
      flags_.elect, {.name = flags_.name, .length = FromSeconds(flags_.lease_s)});
  if (!coordination) {
    return std::unexpected(
        Error{coordination.error().code, "--elect: " + coordination.error().message + "; or none"});
  }
  CandidacyOptions options;
  options.renew_every = FromSeconds(flags_.lease_s / 3);
  options.above = [state = options_.state] {
    const auto kept = ReadLeader(state);
    return kept ? kept->term : 0;
  };
  candidate_ = std::make_unique<Candidate>(
      std::make_unique<Candidacy>(*std::move(coordination), flags_.name, std::move(options), log_));
  return {};
}

void ControllerLife::Ready(int port) {
  // Where it waits it will lead: agents know the port from now on.
  options_.listen =
      options_.listen.substr(0, options_.listen.rfind(':') + 1) + std::to_string(port);
  if (std::exchange(ready_, true)) return;
  world_.print(fmt::format("tactus controller plans {} nodes by {}\nready control={}\n",
                           fleet_.devices.size(), planner_, port));
}

Expected<bool> ControllerLife::Wait() {
  auto spare = SpareController::Start(options_.listen, options_.tls,
                                      [this] { return candidate_->leader(); });
  if (!spare) return std::unexpected(spare.error());
  Ready((*spare)->port());
  for (;;) {
    if (world_.told_to_end()) return false;
    const std::uint64_t term = candidate_->term();
    if (term == 0) continue;
    if ((*spare)->term_heard() < term) return true;
    candidate_->StandAgain((*spare)->term_heard());
  }
}

std::optional<Recollection> ControllerLife::Remember() {
  auto store = knowledge::OpenStore(flags_.store);
  auto recollection = store ? Recollect(**store, fleet_, planner_, UtcNow())
                            : Expected<Recollection>(std::unexpected(store.error()));
  if (!recollection) {
    log_("it leads with what the nodes say: " + recollection.error().message);
    return std::nullopt;
  }
  return *std::move(recollection);
}

Expected<ControllerLife::End> ControllerLife::Lead() {
  ControllerOptions options = options_;
  options.use_token = UsedTokens(flags_.store, flags_.elect, own_store_);
  if (const auto recollection = Remember()) {
    options.least = recollection->highest;
    options.leader.remembered = recollection->remembered;
  }
  if (flags_.autoscale_s > 0) {
    options.leader.scale_every = FromSeconds(flags_.autoscale_s);
    options.leader.scaling = ScalingOf(planner_);
  }
  if (candidate_) {
    const std::uint64_t term = candidate_->term();
    if (term <= options.least.term) {  // or it has ended, and is stood for again
      candidate_->StandAgain(options.least.term);
      return End::kSuperseded;
    }
    options.leader.term = term;
    options.may_lead = [this, term] { return candidate_->term() == term; };
  }
  HistoryWriter writer(OpenedLater(flags_.store), fleet_, planner_, log_);
  auto controller = Controller::Start(
      std::move(options), fleet_,
      [this](const FleetInput& input) { return PlanFleet(planner_, input); }, log_,
      &writer.history());
  if (!controller) return std::unexpected(controller.error());
  writer.Start();
  Ready((*controller)->port());
  while (!world_.told_to_end()) {
    const std::string why = (*controller)->superseded();
    if (why.empty()) continue;
    log_(why + (candidate_ ? "; it waits for its turn"
                           : "; this one ends. Started again, it leads by a later term"));
    if (candidate_) candidate_->StandAgain(0);
    return End::kSuperseded;
  }
  return End::kStopped;
}

Expected<int> ControllerLife::Run() {
  if (Status memory = OpenMemory(); !memory) return std::unexpected(std::move(memory.error()));
  if (Status stands = Stand(); !stands) return std::unexpected(std::move(stands.error()));
  for (;;) {
    const auto elected = candidate_ ? Wait() : true;
    if (!elected) return std::unexpected(elected.error());
    if (!*elected) return 0;
    const auto end = Lead();
    if (!end) return std::unexpected(end.error());
    if (*end == End::kStopped) return 0;
    if (!candidate_) return 1;
  }
}

}  // namespace

std::string DefaultStore(const std::string& state) {
  return "sqlite:" + (std::filesystem::path(state) / "knowledge.db").string();
}

Expected<int> RunControllerLife(ControllerOptions options, const FleetInput& fleet,
                                const std::string& planner, const ControllerLifeFlags& flags,
                                ControllerWorld world) {
  return ControllerLife(std::move(options), fleet, planner, flags, std::move(world)).Run();
}

}  // namespace tactus
