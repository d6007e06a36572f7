// For tests of engines: rows that own their bytes, and a Completions that keeps what it is told.
#pragma once

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"

namespace tactus::testing {

// The input tensors of one row.
class Row {
 public:
  template <class T>
  Row& Add(Shape shape, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return AddBytes(std::move(shape), std::move(bytes));
  }
  Row& AddStrings(Shape shape, const std::vector<std::string>& strings) {
    std::vector<std::byte> bytes;
    for (const std::string& text : strings) {
      for (int i = 0; i < 4; ++i) bytes.push_back(std::byte(text.size() >> (8 * i) & 0xff));
      for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
    }
    return AddBytes(std::move(shape), std::move(bytes));
  }
  Row& AddBytes(Shape shape, std::vector<std::byte> bytes) {
    tensors_->push_back({std::move(shape), std::move(bytes), false});
    return *this;
  }
  // The row leaves this input out.
  Row& Absent() {
    tensors_->push_back({{}, {}, true});
    return *this;
  }
  // Makes the bytes outlive the row for engines that ask for it.
  Row& Own() {
    owned_ = true;
    return *this;
  }

  // Good until the next Add.
  RowInputs inputs() {
    views_.clear();
    for (const Tensor& t : *tensors_) {
      views_.push_back({t.bytes.data(), t.bytes.size(), t.shape, t.absent});
    }
    return {views_, owned_ ? std::shared_ptr<const void>(tensors_) : nullptr};
  }

 private:
  struct Tensor {
    Shape shape;
    std::vector<std::byte> bytes;
    bool absent;
  };
  std::shared_ptr<std::vector<Tensor>> tensors_ = std::make_shared<std::vector<Tensor>>();
  std::vector<TensorView> views_;
  bool owned_ = false;
};

class Answers final : public Completions {
 public:
  void Done(BatchId id, BatchResult&& result) noexcept override {
    std::lock_guard lock(mutex_);
    ++times_[id];
    results_[id] = std::move(result);
    changed_.notify_all();
  }

  // Waits for as many reports as it takes.
  BatchResult Wait(BatchId id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return times_.contains(id); });
    return results_[id];
  }
  int times(BatchId id) {
    std::lock_guard lock(mutex_);
    return times_.contains(id) ? times_[id] : 0;
  }
  std::size_t batches() {
    std::lock_guard lock(mutex_);
    return times_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<BatchId, int> times_;
  std::map<BatchId, BatchResult> results_;
};

// Submits on this thread and waits for the answer.
inline BatchResult RunBatch(Engine& engine, ModelHandle model, std::vector<Row>& rows, int exit = 0,
                            std::uint64_t id = 1) {
  std::vector<RowInputs> inputs;
  for (Row& row : rows) inputs.push_back(row.inputs());
  Answers answers;
  engine.Submit(model, {BatchId{id}, ModelId{0}, ExitId(static_cast<std::uint32_t>(exit)), inputs},
                answers);
  return answers.Wait(BatchId{id});
}
inline BatchResult RunBatch(Engine& engine, ModelHandle model, Row row, int exit = 0) {
  std::vector<Row> rows{std::move(row)};
  return RunBatch(engine, model, rows, exit);
}

template <class T>
std::vector<T> Values(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace tactus::testing
