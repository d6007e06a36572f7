#include "cluster/control/model_placer.h"

#include <chrono>
#include <utility>

namespace tactus {
namespace {

constexpr std::chrono::milliseconds kNextAfter{200};

}  // namespace

ModelPlacer::ModelPlacer(ModelStore& store, std::unique_ptr<BlobSource> source, std::string node,
                         std::function<void(const std::string&)> log)
    : source_(std::move(source)),
      fetch_(store, *source_,
             {.node = std::move(node),
              .came = [this](std::uint64_t bytes) { fetched_ += bytes; },
              .log = std::move(log),
              .busy =
                  [this] {
                    const std::scoped_lock lock(mutex_);
                    return jobs_.size() > 1;
                  },
              .wait = {}}) {
  thread_ = std::thread([this] { Run(); });
}

ModelPlacer::~ModelPlacer() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    for (Job& each : jobs_) each.stop.request_stop();
    come_.notify_all();
  }
  thread_.join();
}

void ModelPlacer::Place(const ModelRef& ref, const std::set<std::string>& wanted, Done done) {
  Job job{.model = ref.name,
          .digest = Digest::Parse(ref.digest).value_or(Digest{}),
          .wanted = {},
          .done = std::move(done),
          .stop = {}};
  for (const std::string& each : wanted) {
    if (const auto digest = Digest::Parse(each)) job.wanted.insert(*digest);
  }
  const std::scoped_lock lock(mutex_);
  jobs_.push_back(std::move(job));
  come_.notify_all();
}

void ModelPlacer::Stop(const std::string& model) {
  const std::scoped_lock lock(mutex_);
  for (Job& each : jobs_) {
    if (each.model == model) each.stop.request_stop();
  }
}

void ModelPlacer::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    come_.wait(lock, [this] { return ended_ || !jobs_.empty(); });
    if (ended_) return;
    const Job job = jobs_.front();
    lock.unlock();
    auto links = fetch_.Fetch(job.model, job.digest, job.wanted, job.stop.get_token());
    lock.lock();
    if (ended_) return;
    jobs_.pop_front();
    if (!links && links.error().code == ErrorCode::kUnavailable) {
      jobs_.push_back(job);  // others may be had without the controller
      come_.wait_for(lock, kNextAfter, [this] { return ended_; });
      continue;
    }
    lock.unlock();
    job.done(std::move(links));
    lock.lock();
  }
}

}  // namespace tactus
