#include "ensemble/ensemble_service.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "ensemble/call_tensors.h"

namespace tactus {
namespace {

std::string TextOf(const EnsembleDeclaration& declared) { return declared.model.config; }

// In the runtime's words (runtime/models/model_index.cc), which are Triton's.
std::unexpected<Error> NotReady(std::string_view model, std::int64_t version,
                                const std::string& why) {
  const std::string what = version < 0 ? std::string("has no available versions")
                                       : fmt::format("version {} is not at ready state", version);
  return Fail(ErrorCode::kUnavailable,
              fmt::format("Request for unknown model: '{}' {}: {}", model, what, why));
}

std::unexpected<Error> UnknownEnsemble(std::string_view model, std::int64_t version) {
  return NotFound(
      fmt::format("Request for unknown model: '{}' version {} is not found", model, version));
}

}  // namespace

EnsembleService::EnsembleService(InferenceService& steps, EnsembleOptions options,
                                 EnsembleFolders folders)
    : steps_(steps),
      options_(std::move(options)),
      folders_(std::move(folders)),
      around_(std::make_shared<EnsembleSurroundings>(
          options_.runs_steps != nullptr ? *options_.runs_steps : steps)) {
  around_->observer = options_.observer;
  around_->journal = options_.journal;
  around_->most_calls = options_.most_calls;
  around_->clock = options_.clock ? options_.clock : std::chrono::steady_clock::now;
  around_->origin = around_->clock();
  if (!options_.clock) around_->timer.Start([around = around_.get()] { return around->Now(); });
}

EnsembleService::~EnsembleService() {
  poller_.Stop();
  around_->timer.Stop();
}

void EnsembleService::Open(const std::vector<std::string>& names) {
  std::vector<std::string> wanted = names;
  if (std::ranges::find(names, "*") != names.end()) wanted = folders_.list();
  // All are read before one is looked at: what a step names may come after it.
  std::vector<std::string> whole;
  for (const std::string& name : wanted) {
    const std::lock_guard one_at_a_time(changing_);
    const Status read = Read(name, "");
    if (read) whole.push_back(name);
    if (!read) Say(read.error().message);
  }
  for (const std::string& name : whole) {
    const std::lock_guard one_at_a_time(changing_);
    const Status opened = Bring(name);
    if (!opened) Say(opened.error().message);
  }
  if (options_.poll_interval > Duration{}) {
    poller_.Start("poll ensembles", Every(options_.poll_interval, [this] { Poll(); }),
                  options_.poll_interval);
  }
}

Status EnsembleService::Declare(const std::string& name) {
  const std::lock_guard one_at_a_time(changing_);
  return Read(name, "");
}

bool EnsembleService::IsEnsemble(std::string_view model) const {
  const std::shared_lock lock(mutex_);
  return entries_.contains(model);
}

// Whatever was there serves on where it cannot be read.
Status EnsembleService::Read(const std::string& model, const std::string& config) {
  auto read = folders_.read(model, config);
  const std::unique_lock lock(mutex_);
  Entry& entry = entries_[model];
  entry.wanted = true;
  if (!read) {
    entry.reason = read.error().message;
    return std::unexpected(std::move(read.error()));
  }
  entry.reason.clear();
  std::map<std::int64_t, Version> versions;
  for (EnsembleDeclaration& declared : *read) {
    if (declared.pipeline.slo <= Duration{}) declared.pipeline.slo = options_.default_slo;
    Version& version = versions[declared.model.version];
    if (const auto old = entry.versions.find(declared.model.version); old != entry.versions.end()) {
      version = std::move(old->second);
      if (TextOf(version.declared) != TextOf(declared)) version.served = nullptr;
    } else {
      version.counters = std::make_shared<EnsembleCounters>();
    }
    version.declared = std::move(declared);
  }
  entry.versions = std::move(versions);
  return {};
}

bool EnsembleService::IsCurrent(const ServedEnsemble& served) const {
  const ServedEnsemble& plain = served.plain() != nullptr ? *served.plain() : served;
  const auto& steps = plain.pipeline().stages;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto model = plain.steps().Find(steps[s].model, steps[s].version);
    if (!model || *model != plain.models()[s]) return false;
  }
  return PlacesHold(served);
}

void EnsembleService::Keep(const std::shared_ptr<ServedEnsemble>& served) const {
  std::erase_if(bound_, [](const auto& entry) { return entry.second.expired(); });
  std::erase_if(by_number_, [](const auto& entry) { return entry.second.expired(); });
  served->number = next_number_++ & (options_.mark - 1);
  bound_[&served->spec()] = served;
  by_number_[served->number] = served;
}

Expected<std::shared_ptr<ServedEnsemble>> EnsembleService::Served(std::string_view model,
                                                                  std::int64_t version) const {
  std::shared_ptr<ServedEnsemble> served;
  const auto choose = [&](Entry& entry) -> Version* {
    if (version < 0) return entry.versions.empty() ? nullptr : &entry.versions.rbegin()->second;
    const auto found = entry.versions.find(version);
    return found == entry.versions.end() ? nullptr : &found->second;
  };
  {
    const std::shared_lock lock(mutex_);
    const auto found = entries_.find(model);
    if (found == entries_.end()) return UnknownEnsemble(model, version);
    Entry& entry = found->second;
    const Version* chosen = choose(entry);
    if (chosen == nullptr && !entry.versions.empty()) return UnknownEnsemble(model, version);
    if (chosen == nullptr) return Fail(ErrorCode::kUnavailable, entry.reason);
    served = chosen->served;
  }
  if (served != nullptr && IsCurrent(*served)) return served;
  const std::unique_lock lock(mutex_);
  const auto found = entries_.find(model);
  Version* chosen = found == entries_.end() ? nullptr : choose(found->second);
  if (chosen == nullptr) return UnknownEnsemble(model, version);
  if (chosen->served != nullptr && IsCurrent(*chosen->served)) return chosen->served;
  auto bound = Bind(chosen->declared, chosen->counters);
  if (!bound) return Fail(ErrorCode::kUnavailable, bound.error().message);
  Keep(*bound);
  if ((*bound)->plain() != nullptr) Keep((*bound)->plain());
  chosen->served = *bound;
  return chosen->served;
}

Expected<std::shared_ptr<const ModelSpec>> EnsembleService::Find(std::string_view model,
                                                                 std::int64_t version) const {
  if (!IsEnsemble(model)) return steps_.Find(model, version);
  auto served = Served(model, version);
  if (!served && served.error().code == ErrorCode::kUnavailable) {
    return NotReady(model, version, served.error().message);
  }
  if (!served) return std::unexpected(std::move(served.error()));
  return std::shared_ptr<const ModelSpec>(*served, &(*served)->spec());
}

Status EnsembleService::ModelReady(std::string_view model, std::int64_t version) const {
  if (!IsEnsemble(model)) return steps_.ModelReady(model, version);
  const auto served = Served(model, version);
  if (!served && served.error().code == ErrorCode::kUnavailable) {
    return NotReady(model, version, served.error().message);
  }
  if (!served) return std::unexpected(served.error());
  const Status ready = StepsReady(**served);
  return ready ? ready : NotReady(model, version, ready.error().message);
}

Status EnsembleService::StepsReady(const ServedEnsemble& served) {
  const ServedEnsemble& plain = served.plain() != nullptr ? *served.plain() : served;
  for (const auto& step : plain.pipeline().stages) {
    const Status ready = plain.steps().ModelReady(step.model, step.version);
    if (ready) continue;
    return Fail(ErrorCode::kUnavailable,
                fmt::format("step '{}': {}", step.name, ready.error().message));
  }
  return {};
}

CallId EnsembleService::Refuse(InferCall& call, ErrorCode code, std::string why,
                               Observer* observer) {
  if (observer != nullptr && !call.step) observer->OnRefused(call.model->name, code);
  InferReply reply;
  reply.status = Fail(code, std::move(why));
  reply.served.outcome = code == ErrorCode::kDeadlineExceeded ? Outcome::kExpired : Outcome::kShed;
  reply.model = call.model;
  reply.refused = true;
  const std::function<void(InferReply &&)> answer = std::move(call.reply);
  answer(std::move(reply));
  return 0;
}

CallId EnsembleService::Infer(InferCall&& call) {
  std::shared_ptr<ServedEnsemble> ensemble;
  {
    const std::shared_lock lock(mutex_);
    const auto found = bound_.find(call.model.get());
    if (found != bound_.end()) ensemble = found->second.lock();
  }
  if (ensemble == nullptr) return steps_.Infer(std::move(call));
  // Who asks for some outputs has those steps run that they need, and no others.
  if (const auto plain = ensemble->plain(); plain != nullptr && !plain->NeedsAll(call.outputs)) {
    ensemble = plain;
  }
  Observer* const observer = ensemble->is_part() ? nullptr : options_.observer;
  const auto passed = std::chrono::duration_cast<Duration>(around_->clock() - call.received);
  if (call.limit.IsOver(std::max(passed, Duration{}))) {
    return Refuse(call, ErrorCode::kDeadlineExceeded,
                  "the deadline had passed when the request arrived", observer);
  }
  if (around_->calls.fetch_add(1, std::memory_order_relaxed) >= around_->most_calls) {
    around_->calls.fetch_sub(1, std::memory_order_relaxed);
    return Refuse(call, ErrorCode::kResourceExhausted,
                  fmt::format("the server is full: it holds at most {} calls of ensembles",
                              around_->most_calls),
                  observer);
  }
  const CallId counted = next_call_.fetch_add(1, std::memory_order_relaxed);
  const CallId id = (counted << 32) | options_.mark | ensemble->number;
  ensemble->Infer(std::move(call), id);
  return id;
}

void EnsembleService::Cancel(CallId call) {
  if ((call & options_.mark) == 0) return steps_.Cancel(call);
  std::shared_ptr<ServedEnsemble> ensemble;
  {
    const std::shared_lock lock(mutex_);
    const auto number = static_cast<std::uint32_t>(call & (options_.mark - 1));
    const auto found = by_number_.find(number);
    if (found != by_number_.end()) ensemble = found->second.lock();
  }
  if (ensemble != nullptr) ensemble->Cancel(call);
}

void EnsembleService::Poll() {
  const std::lock_guard one_at_a_time(changing_);
  const std::vector<std::string> names = folders_.list();
  for (const std::string& name : names) {
    const Status read = Read(name, "");
    const std::string why = read ? "" : read.error().message;
    if (std::exchange(poll_said_[name], why) != why && !why.empty()) Say(why);
  }
  const std::unique_lock maps(mutex_);
  std::erase_if(entries_, [&](const auto& entry) {
    return std::ranges::find(names, entry.first) == names.end();
  });
}

}  // namespace tactus
