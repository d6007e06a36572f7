#include "engines/cuda/lane_session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "engines/optional_inputs.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

Status RefuseBytes(const ModelSpec& spec) {
  for (const auto* side : {&spec.inputs, &spec.outputs}) {
    for (const TensorSpec& tensor : *side) {
      if (tensor.type != DataType::kBytes) continue;
      return Fail(ErrorCode::kUnimplemented,
                  fmt::format("model '{}': tensor '{}' is of BYTES, which no device takes; "
                              "leave --device out to run the model on the processor",
                              spec.name, tensor.name));
    }
  }
  return {};
}

}  // namespace

// From Begin to its report.
struct LaneSession::Batch {
  std::unique_ptr<Staging> staging;
  std::size_t rows = 0;
  std::uint64_t counted_bytes = 0;  // of the staging, in staging_now_
  std::vector<DeviceTensor> inputs;
  DeviceOutputs outputs;
  Duration gather{};
  std::function<void(BatchResult&&)> done;
  bool misshapen = false;  // an output has not one row for each
};

LaneSession::LaneSession(Device& device, CompletionThread& completions, const ModelSpec& spec,
                         DeviceShare share)
    : device_(device),
      completions_(completions),
      driver_(device.driver()),
      share_(share),
      batches_(spec.max_batch > 0) {}

Expected<std::unique_ptr<LaneSession>> LaneSession::Load(Device& device,
                                                         CompletionThread& completions,
                                                         const ProgramLoader& load, ModelSpec& spec,
                                                         int level, DeviceShare share) {
  Status ok = device.Bind();
  if (!ok) return std::unexpected(ok.error());
  std::unique_ptr<LaneSession> session(new LaneSession(device, completions, spec, share));
  ok = session->MakeStreams(level);
  if (ok) ok = session->LoadProgram(load, spec);
  if (ok) ok = RefuseBytes(spec);
  if (ok) {
    ok = RefuseOptional(spec,
                        "a model on a device needs all inputs (leave --device out to run it on "
                        "the processor)");
  }
  if (!ok) return std::unexpected(ok.error());
  session->inputs_ = spec.inputs;
  session->outputs_ = spec.outputs;
  session->exits_ = spec.exits.size();
  session->batches_ = spec.max_batch > 0;
  return session;
}

LaneSession::~LaneSession() {
  (void)device_.Bind();
  program_.reset();
  spare_.clear();
  if (downloads_ != nullptr) device_.Destroy(downloads_);
  if (kernels_ != nullptr) device_.Destroy(kernels_);
}

Status LaneSession::MakeStreams(int level) {
  auto kernels = device_.MakeStream(level, share_);
  if (!kernels) return std::unexpected(kernels.error());
  kernels_ = *kernels;
  auto downloads = device_.MakeStream(level);
  if (!downloads) return std::unexpected(downloads.error());
  downloads_ = *downloads;
  return {};
}

Status LaneSession::LoadProgram(const ProgramLoader& load, ModelSpec& spec) {
  const std::lock_guard lock(device_.load_mutex());
  const auto before = device_.FreeMemory();
  if (!before) return std::unexpected(before.error());
  auto program = load(spec, {.device = device_.ordinal(), .handle = kernels_});
  if (!program) return std::unexpected(program.error());
  program_ = *std::move(program);
  const auto after = device_.FreeMemory();
  if (!after) return std::unexpected(after.error());
  weight_bytes_ = *before > *after ? *before - *after : 0;
  return {};
}

MemoryUse LaneSession::Memory() const {
  const std::lock_guard lock(spare_mutex_);
  return {.weight_bytes = weight_bytes_, .peak_bytes = weight_bytes_ + staging_bytes_};
}

Expected<std::unique_ptr<Staging>> LaneSession::TakeStaging() {
  {
    const std::lock_guard lock(spare_mutex_);
    if (!spare_.empty()) {
      std::unique_ptr<Staging> staging = std::move(spare_.back());
      spare_.pop_back();
      return staging;
    }
  }
  return Staging::Make(device_, share_, inputs_.size(), outputs_.size());
}

void LaneSession::Begin(const BatchJob& job, std::function<void(BatchResult&&)> done) {
  auto batch = std::make_shared<Batch>();
  batch->rows = job.rows.size();
  batch->done = std::move(done);
  const auto begin = Clock::now();
  Status ok = device_.Bind();
  if (ok) ok = Gather(job, *batch);
  batch->gather = Clock::now() - begin;
  if (ok) ok = Enqueue(job, *batch);
  const auto finish = [this, batch](Status status) {
    batch->done(Finish(*batch, std::move(status)));
  };
  if (!ok) return completions_.AddFailed(device_, std::move(ok.error()), finish);
  completions_.Add(device_, batch->staging->event(Staging::kDownloaded), finish);
}

Status LaneSession::Gather(const BatchJob& job, Batch& batch) {
  if (!batches_ && job.rows.size() != 1) {
    return InvalidArgument("a model without a batch dimension runs one request at a time");
  }
  if (job.exit.value() >= exits_) {
    return InvalidArgument(fmt::format("exit {} of a model that has {}", job.exit.value(), exits_));
  }
  auto staging = TakeStaging();
  if (!staging) return std::unexpected(staging.error());
  batch.staging = *std::move(staging);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (Status ok = GatherInput(i, job.rows, batch); !ok) return ok;
  }
  return {};
}

Status LaneSession::GatherInput(std::size_t i, std::span<const RowInputs> rows,
                                Batch& batch) const {
  const TensorView& first = rows[0].inputs[i];
  const TensorSpec& spec = inputs_[i];
  if (spec.reshape && !FitsDims(first.shape, spec.dims)) {
    return InvalidArgument(fmt::format("input '{}' has shape {}, which is none of {}", spec.name,
                                       ToString(first.shape), ToString(spec.dims)));
  }
  DeviceTensor tensor{.shape = spec.reshape ? Reshaped(first.shape, spec.dims, *spec.reshape)
                                            : Shape(first.shape.begin(), first.shape.end())};
  const std::size_t row_bytes = static_cast<std::size_t>(ElementCount(tensor.shape).value_or(0)) *
                                ElementSize(inputs_[i].type);
  for (const RowInputs& row : rows) {
    const TensorView& view = row.inputs[i];
    if (!std::ranges::equal(view.shape, first.shape)) {
      return InvalidArgument(
          fmt::format("input '{}': rows of shapes {} and {} cannot share a batch", inputs_[i].name,
                      ToString(first.shape), ToString(view.shape)));
    }
    if (view.bytes == row_bytes) continue;
    return InvalidArgument(fmt::format("input '{}' has {} bytes, but {} {} has {}", inputs_[i].name,
                                       view.bytes, Name(inputs_[i].type), ToString(first.shape),
                                       row_bytes));
  }
  if (batches_) tensor.shape[0] = static_cast<std::int64_t>(rows.size());
  tensor.bytes = row_bytes * rows.size();
  const auto host = batch.staging->input(i).Get(tensor.bytes);
  if (!host) return std::unexpected(host.error());
  for (std::size_t k = 0; k < rows.size() && row_bytes > 0; ++k) {
    std::memcpy(*host + k * row_bytes, rows[k].inputs[i].data, row_bytes);
  }
  const auto device = batch.staging->device_input(i).Get(tensor.bytes);
  if (!device) return std::unexpected(device.error());
  tensor.address = *device;
  batch.inputs.push_back(std::move(tensor));
  return {};
}

Status LaneSession::Enqueue(const BatchJob& job, Batch& batch) {
  {
    const std::lock_guard lock(spare_mutex_);
    batch.counted_bytes = batch.staging->device_bytes();
    staging_now_ += batch.counted_bytes;
    staging_bytes_ = std::max(staging_bytes_, staging_now_);
  }
  const std::lock_guard lock(enqueue_mutex_);
  Status ok = Upload(batch);
  if (ok) {
    auto outputs = program_->Enqueue(job.exit, batch.inputs);
    if (outputs) {
      batch.outputs = *std::move(outputs);
    } else {
      ok = std::unexpected(outputs.error());
    }
  }
  if (ok) ok = Download(batch);
  if (!ok) Await();
  return ok;
}

Status LaneSession::Upload(Batch& batch) {
  const CUstream uploads = device_.uploads();
  const Staging& staging = *batch.staging;
  const std::lock_guard lock(device_.upload_mutex());
  Status ok = Ask(driver_, driver_.record_event, staging.event(Staging::kUploadBegins), uploads);
  for (std::size_t i = 0; i < batch.inputs.size() && ok; ++i) {
    if (batch.inputs[i].bytes == 0) continue;
    ok = Ask(driver_, driver_.upload, static_cast<CUdeviceptr>(batch.inputs[i].address),
             static_cast<const void*>(batch.staging->input(i).data()), batch.inputs[i].bytes,
             uploads);
  }
  if (ok) ok = Ask(driver_, driver_.record_event, staging.event(Staging::kUploaded), uploads);
  if (ok) {
    ok = Ask(driver_, driver_.stream_waits, kernels_, staging.event(Staging::kUploaded), 0u);
  }
  if (ok) ok = Ask(driver_, driver_.record_event, staging.event(Staging::kKernelsBegin), kernels_);
  return ok;
}

Status LaneSession::Download(Batch& batch) {
  const Staging& staging = *batch.staging;
  Status ok = Ask(driver_, driver_.record_event, staging.event(Staging::kComputed), kernels_);
  if (ok) {
    ok = Ask(driver_, driver_.stream_waits, downloads_, staging.event(Staging::kComputed), 0u);
  }
  if (ok) {
    ok = Ask(driver_, driver_.record_event, staging.event(Staging::kDownloadBegins), downloads_);
  }
  if (ok && batch.outputs.tensors.size() != outputs_.size()) {
    return Internal(fmt::format("a batch gave {} outputs of {}", batch.outputs.tensors.size(),
                                outputs_.size()));
  }
  for (std::size_t i = 0; i < batch.outputs.tensors.size() && ok; ++i) {
    const DeviceTensor& tensor = batch.outputs.tensors[i];
    if (batches_ &&
        (tensor.shape.empty() || tensor.shape[0] != static_cast<std::int64_t>(batch.rows))) {
      batch.misshapen = true;
      return Internal(
          fmt::format("output '{}' has shape {} for a batch of {}; a model that batches gives one "
                      "row for each of its inputs",
                      outputs_[i].name, ToString(tensor.shape), batch.rows));
    }
    const TensorSpec& spec = outputs_[i];
    if (spec.reshape && !FitsDims(tensor.shape, *spec.reshape)) {
      return Internal(fmt::format("output '{}' has shape {}, which its reshape {} does not allow",
                                  spec.name, ToString(tensor.shape), ToString(*spec.reshape)));
    }
    const auto host = batch.staging->output(i).Get(tensor.bytes);
    if (!host) return std::unexpected(host.error());
    if (tensor.bytes == 0) continue;
    ok = Ask(driver_, driver_.download, static_cast<void*>(*host),
             static_cast<CUdeviceptr>(tensor.address), tensor.bytes, downloads_);
  }
  if (ok) ok = Ask(driver_, driver_.record_event, staging.event(Staging::kDownloaded), downloads_);
  if (ok) {
    ok = Ask(driver_, driver_.launch_host, downloads_, &CompletionThread::Ring,
             static_cast<void*>(&completions_));
  }
  return ok;
}

void LaneSession::Await() const {
  for (const CUstream stream : {device_.uploads(), kernels_, downloads_}) {
    (void)Ask(driver_, driver_.await_stream, stream);
  }
}

Duration LaneSession::Between(const Batch& batch, Staging::Event from, Staging::Event to) const {
  float milliseconds = 0;
  const Status ok = Ask(driver_, driver_.elapsed, &milliseconds, batch.staging->event(from),
                        batch.staging->event(to));
  return ok ? FromMillis(static_cast<double>(milliseconds)) : Duration{};
}

std::shared_ptr<const BatchOutput> LaneSession::Answer(Batch& batch) const {
  auto storage = std::make_shared<std::vector<std::vector<std::byte>>>();
  auto output = std::make_shared<BatchOutput>();
  for (std::size_t i = 0; i < batch.outputs.tensors.size(); ++i) {
    DeviceTensor& tensor = batch.outputs.tensors[i];
    const std::byte* data = batch.staging->output(i).data();
    const std::vector<std::byte>& copy = storage->emplace_back(data, data + tensor.bytes);
    const TensorSpec& spec = outputs_[i];
    Shape shape = std::move(tensor.shape);
    if (spec.reshape) {
      shape = Reshaped(shape, *spec.reshape, spec.dims);
    } else if (shape.empty() && !batches_) {
      shape.assign(spec.dims.size(), 1);  // a package's scalar may be stated as [1]
    }
    output->tensors.push_back({.shape = std::move(shape), .data = copy});
  }
  output->storage = std::move(storage);
  return output;
}

BatchResult LaneSession::Finish(Batch& batch, Status status) {
  BatchResult result;
  result.gather = batch.gather;
  if (status) {
    const auto begin = Clock::now();
    const DeviceTimes device{Between(batch, Staging::kUploadBegins, Staging::kUploaded),
                             Between(batch, Staging::kKernelsBegin, Staging::kComputed),
                             Between(batch, Staging::kDownloadBegins, Staging::kDownloaded)};
    result.device = device;
    result.gather += device.upload;
    result.infer = Between(batch, Staging::kUploaded, Staging::kDownloadBegins);
    result.scatter = device.download;
    result.output = Answer(batch);
    result.scatter += Clock::now() - begin;
  } else {
    result.lane_lost = IsDeviceLost(status.error());
    result.misshapen = batch.misshapen;
    result.status = std::move(status);
  }
  batch.outputs = {};
  const std::lock_guard lock(spare_mutex_);
  staging_now_ -= batch.counted_bytes;
  if (batch.staging != nullptr) spare_.push_back(std::move(batch.staging));
  return result;
}

}  // namespace tactus
