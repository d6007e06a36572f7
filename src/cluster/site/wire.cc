#include "cluster/site/wire.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "service/deadline.h"
#include "site.pb.h"

namespace tactus {
namespace {

// Of one message; what is beyond is somebody's mistake.
constexpr int kMostModels = 4096;
constexpr int kMostExits = 1024;
constexpr int kMostLanes = 65'536;
constexpr int kMostBatch = 1024;
constexpr Term kMostTerm = Term{1} << 62;  // nobody leads so often
constexpr std::int64_t kMostLatencies = 1 << 22;
constexpr std::size_t kMostDigest = 64;  // digits

site::BatchKey* Put(const BatchKey& key, site::BatchKey* wire) {
  wire->set_term(key.term);
  wire->set_batch(key.batch);
  return wire;
}
BatchKey KeyFrom(const site::BatchKey& wire) { return {wire.term(), wire.batch()}; }

void PutTensors(const std::vector<TensorSpec>& tensors,
                google::protobuf::RepeatedPtrField<site::Tensor>& wire) {
  for (const TensorSpec& tensor : tensors) {
    site::Tensor& put = *wire.Add();
    put.set_name(tensor.name);
    put.set_datatype(std::string(Name(tensor.type)));
    for (const std::int64_t dim : tensor.dims) put.add_dims(dim);
    put.set_optional(tensor.optional);
    put.set_any_shape(tensor.any_shape);
    if (!tensor.reshape) continue;
    site::Dims& reshape = *put.mutable_reshape();
    for (const std::int64_t dim : *tensor.reshape) reshape.add_dims(dim);
  }
}

void PutModel(const WorkerModel& model, site::Model& wire) {
  const ModelSpec& spec = model.spec;
  wire.set_name(spec.name);
  wire.set_version(spec.version);
  wire.set_platform(spec.platform);
  wire.set_max_batch(spec.max_batch);
  wire.set_largest_batch(model.rows.max_batch);
  wire.set_slo_ns(model.model.slo.count());
  wire.set_priority(model.model.priority);
  PutTensors(spec.inputs, *wire.mutable_inputs());
  PutTensors(spec.outputs, *wire.mutable_outputs());
  for (const ExitSpec& exit : spec.exits) {
    site::Exit& put = *wire.add_exits();
    put.set_name(exit.name);
    put.set_accuracy(exit.accuracy);
  }
  for (const auto& [key, value] : spec.parameters) (*wire.mutable_parameters())[key] = value;
  wire.set_config(spec.config);
  wire.set_digest(spec.digest);
  wire.set_assumed_batch(spec.assumed_batch.has_value());
  wire.set_rows_in_front(spec.rows_in_front);
  for (const Duration latency : model.rows.latency) wire.add_latency_ns(latency.count());
  wire.set_margin_ns(model.rows.margin.count());
}

std::unexpected<Error> Bad(const std::string& what) {
  return InvalidArgument("a peer of the site sent " + what);
}

Status TakeTensors(const google::protobuf::RepeatedPtrField<site::Tensor>& wire,
                   std::vector<TensorSpec>& tensors) {
  for (const site::Tensor& tensor : wire) {
    const auto type = ParseDataType(tensor.datatype());
    if (!type) return Bad("a tensor of no known type: '" + tensor.datatype().substr(0, 32) + "'");
    tensors.push_back({tensor.name(), *type, {tensor.dims().begin(), tensor.dims().end()}});
    TensorSpec& taken = tensors.back();
    taken.optional = tensor.optional();
    taken.any_shape = tensor.any_shape();
    if (!tensor.has_reshape()) continue;
    const auto& dims = tensor.reshape().dims();
    taken.reshape.emplace(dims.begin(), dims.end());
    if (!SameElements(taken.dims, *taken.reshape)) return Bad("a reshape of other elements");
  }
  return {};
}

bool SoundModel(const site::Model& wire) {
  const std::int64_t cells = static_cast<std::int64_t>(wire.exits_size()) * wire.largest_batch();
  constexpr std::int64_t kLongest = TimeLimit::kLongest.count();
  return !wire.name().empty() && wire.digest().size() <= kMostDigest && wire.exits_size() > 0 &&
         wire.exits_size() <= kMostExits && wire.largest_batch() > 0 &&
         wire.largest_batch() <= kMostBatch && wire.max_batch() >= 0 &&
         wire.max_batch() <= kMostBatch && wire.latency_ns_size() == cells && wire.slo_ns() > 0 &&
         wire.slo_ns() <= kLongest && wire.priority() > 0 && wire.priority() <= kLowestPriority &&
         wire.margin_ns() >= 0 && wire.margin_ns() <= kLongest &&
         std::all_of(wire.latency_ns().begin(), wire.latency_ns().end(),
                     [](std::int64_t ns) { return ns > 0 && ns <= kLongest; }) &&
         std::all_of(wire.exits().begin(), wire.exits().end(), [](const site::Exit& exit) {
           return std::isfinite(exit.accuracy()) && exit.accuracy() >= 0 && exit.accuracy() <= 1;
         });
}

Expected<WorkerModel> ModelFrom(const site::Model& wire) {
  if (!SoundModel(wire)) return Bad("model '" + wire.name().substr(0, 64) + "' out of range");
  WorkerModel model;
  ModelSpec& spec = model.spec;
  spec.name = wire.name();
  spec.version = wire.version();
  spec.platform = wire.platform();
  spec.max_batch = wire.max_batch();
  spec.slo = Nanos(wire.slo_ns());
  spec.priority = wire.priority();
  if (Status taken = TakeTensors(wire.inputs(), spec.inputs); !taken) {
    return std::unexpected(taken.error());
  }
  if (Status taken = TakeTensors(wire.outputs(), spec.outputs); !taken) {
    return std::unexpected(taken.error());
  }
  model.model = {.name = spec.name,
                 .slo = spec.slo,
                 .max_batch = wire.largest_batch(),
                 .priority = spec.priority,
                 .exits = {}};
  for (const site::Exit& exit : wire.exits()) {
    spec.exits.push_back({exit.name(), {}, exit.accuracy()});
    model.model.exits.push_back({exit.name(), exit.accuracy()});
  }
  spec.parameters = {wire.parameters().begin(), wire.parameters().end()};
  spec.config = wire.config();
  spec.digest = wire.digest();
  if (wire.assumed_batch()) spec.assumed_batch = spec.max_batch;
  spec.rows_in_front = wire.rows_in_front();
  model.rows = {.exits = wire.exits_size(),
                .max_batch = wire.largest_batch(),
                .latency = {},
                .margin = Nanos(wire.margin_ns())};
  for (const std::int64_t ns : wire.latency_ns()) model.rows.latency.push_back(Nanos(ns));
  return model;
}

Expected<std::vector<WorkerModel>> ModelsFrom(
    const google::protobuf::RepeatedPtrField<site::Model>& wire) {
  if (wire.size() > kMostModels) return Bad("more than " + std::to_string(kMostModels) + " models");
  std::int64_t latencies = 0;
  std::set<ModelKey> keys;
  std::vector<WorkerModel> models;
  for (const site::Model& each : wire) {
    latencies += each.latency_ns_size();
    if (latencies > kMostLatencies) return Bad("more latencies than anybody can have measured");
    auto model = ModelFrom(each);
    if (!model) return std::unexpected(model.error());
    if (!keys.insert(KeyOf(each.name())).second) {
      return Bad("two models of one name or hash: '" + each.name().substr(0, 64) + "'");
    }
    models.push_back(*std::move(model));
  }
  return models;
}

}  // namespace

void Encode(const FromPeer& message, TimePoint now, site::FromPeer& wire) {
  wire.set_seen(message.seen);
  for (const WorkerIntroduction& worker : message.join) {
    site::Worker& put = *wire.add_join();
    put.set_name(worker.name);
    put.set_address(worker.address);
    put.set_lanes(worker.lanes);
    put.set_busy(worker.busy);
    for (const WorkerModel& model : worker.models) PutModel(model, *put.add_models());
  }
  for (const Offer& offer : message.offers) {
    site::Offer& put = *wire.add_offers();
    put.set_request(offer.request.value());
    put.set_model(offer.model);
    put.set_remaining_ns((offer.deadline - now).count());
    put.set_shape(offer.shape);
    put.set_priority(offer.priority);
    put.set_withdrawn(offer.withdrawn);
  }
  for (const VoidRows& each : message.voids) {
    site::VoidRows& put = *wire.add_voids();
    Put(each.key, put.mutable_key());
    put.set_rows(each.rows);
    put.set_unreachable(each.unreachable);
  }
  for (const BatchDone& each : message.done) {
    site::BatchDone& put = *wire.add_done();
    Put(each.key, put.mutable_key());
    put.set_took_ns(each.took.count());
    put.set_status(static_cast<std::uint32_t>(each.status));
  }
}

Expected<FromPeer> Decode(const site::FromPeer& wire, TimePoint now) {
  if (wire.seen() >= kMostTerm) return Bad("a term that nobody can have reached");
  FromPeer message;
  message.seen = wire.seen();
  for (const site::Worker& each : wire.join()) {
    auto models = ModelsFrom(each.models());
    if (!models) return std::unexpected(models.error());
    if (each.name().empty() || each.lanes() < 1 || each.lanes() > kMostLanes || each.busy() < 0 ||
        each.busy() > each.lanes()) {
      return Bad("a worker without a name, or with " + std::to_string(each.lanes()) + " lanes");
    }
    message.join.push_back({.name = each.name(),
                            .address = each.address(),
                            .lanes = each.lanes(),
                            .busy = each.busy(),
                            .models = *std::move(models)});
  }
  constexpr std::int64_t kLongest = TimeLimit::kLongest.count();
  message.offers.reserve(static_cast<std::size_t>(wire.offers_size()));
  for (const site::Offer& each : wire.offers()) {
    if (each.priority() > static_cast<std::uint32_t>(kLowestPriority)) {
      return Bad("an offer of priority " + std::to_string(each.priority()));
    }
    const Duration left = Nanos(std::clamp(each.remaining_ns(), -kLongest, kLongest));
    message.offers.push_back({.request = RequestId{each.request()},
                              .model = each.model(),
                              .deadline = now + left,
                              .shape = each.shape(),
                              .priority = each.priority(),
                              .withdrawn = each.withdrawn()});
  }
  for (const site::VoidRows& each : wire.voids()) {
    message.voids.push_back({KeyFrom(each.key()), each.rows(), each.unreachable()});
  }
  for (const site::BatchDone& each : wire.done()) {
    if (each.status() > static_cast<std::uint32_t>(BatchStatus::kLost)) {
      return Bad("a batch of no known status");
    }
    message.done.push_back({KeyFrom(each.key()),
                            Nanos(std::clamp<std::int64_t>(each.took_ns(), 0, kLongest)),
                            static_cast<BatchStatus>(each.status())});
  }
  return message;
}

void Encode(const ToPeer& message, site::ToPeer& wire) {
  wire.set_term(message.term);
  wire.set_leads(message.leads);
  wire.set_has_workers(message.has_workers);
  wire.set_refused(message.refused);
  for (const WorkerPlace& place : message.workers) {
    site::Place& put = *wire.add_workers();
    put.set_worker(place.worker);
    put.set_name(place.name);
    put.set_address(place.address);
  }
  for (const WorkerModel& model : message.models) PutModel(model, *wire.add_models());
  for (const Grant& grant : message.grants) {
    site::Grant& put = *wire.add_grants();
    Put(grant.key, put.mutable_key());
    put.set_model(grant.model);
    put.set_exit(grant.exit.value());
    put.set_worker(grant.worker);
    put.set_rows(grant.rows);
    for (const RequestId request : grant.requests) put.add_requests(request.value());
  }
  for (const Refusal& refusal : message.refusals) {
    site::Refusal& put = *wire.add_refusals();
    put.set_request(refusal.request.value());
    put.set_model(refusal.model);
    put.set_reason(static_cast<std::uint32_t>(refusal.reason));
  }
}

Expected<ToPeer> Decode(const site::ToPeer& wire) {
  if (wire.term() >= kMostTerm) return Bad("a term that nobody can have reached");
  ToPeer message{.term = wire.term(), .leads = wire.leads(), .has_workers = wire.has_workers()};
  message.refused = wire.refused();
  for (const site::Place& place : wire.workers()) {
    message.workers.push_back({place.worker(), place.name(), place.address()});
  }
  auto models = ModelsFrom(wire.models());
  if (!models) return std::unexpected(models.error());
  message.models = *std::move(models);
  for (const site::Grant& each : wire.grants()) {
    Grant grant{.key = KeyFrom(each.key()),
                .model = each.model(),
                .exit = ExitId{each.exit()},
                .worker = each.worker(),
                .rows = each.rows(),
                .requests = {}};
    if (each.requests_size() < 1 || each.requests_size() > kMostBatch ||
        each.rows() < static_cast<std::uint32_t>(each.requests_size()) ||
        each.rows() > static_cast<std::uint32_t>(kMostBatch)) {
      return Bad("a grant of " + std::to_string(each.requests_size()) + " requests in " +
                 std::to_string(each.rows()) + " rows");
    }
    for (const std::uint64_t request : each.requests()) grant.requests.emplace_back(request);
    message.grants.push_back(std::move(grant));
  }
  for (const site::Refusal& each : wire.refusals()) {
    if (each.reason() > static_cast<std::uint32_t>(DropReason::kUnloaded)) {
      return Bad("a refusal for no known reason");
    }
    message.refusals.push_back(
        {RequestId{each.request()}, each.model(), static_cast<DropReason>(each.reason())});
  }
  return message;
}

}  // namespace tactus
