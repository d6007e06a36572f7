// Which calls are traced: Triton's extension "trace", over both protocols. Clients read and change
// the settings while the server runs; what a trace holds is in trace_file.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "service/trace_parent.h"

namespace tactus {

// A setting's values by Triton's name: one, or several for trace_level; none clears the setting.
using TraceValues = std::map<std::string, std::vector<std::string>>;

// A call that is to be traced.
struct TraceSample {
  std::uint64_t id = 0;             // from 1 on
  std::uint32_t log_frequency = 0;  // traces in each numbered file; 0: all in one file
};

// Thread-safe.
class TraceSettings {
 public:
  enum class Mode {
    kTriton,         // to a file, once a client asks for them
    kOpenTelemetry,  // to a collector, from the start on
  };

  // `to`: the file, or the collector's address; empty: nowhere, so that no call can be traced.
  explicit TraceSettings(std::string to, Mode mode = Mode::kTriton);

  // All settings of a model (empty: the global ones) by Triton's names: log_frequency, trace_count
  // (how many are still to be traced, -1: no limit), trace_file, trace_level, trace_mode,
  // trace_rate. What a model does not set itself is the global setting.
  TraceValues Get(const std::string& model) const;
  // Changes those in `values` for a model (empty: the global ones), all or none. InvalidArgument,
  // with the name and what is allowed, for a setting that does not exist, a value that it cannot
  // have and a level without a file; kUnimplemented for the level TENSORS, another mode and
  // another file.
  Status Set(const std::string& model, const TraceValues& values);

  // Whether any call may have to be traced: one relaxed load.
  bool on() const { return on_.load(std::memory_order_relaxed); }
  // A call of the model begins: is it to be traced? Every trace_rate-th is, until trace_count have
  // been. A model with a rate, or a count, of its own counts by itself; the others count together.
  // With kOpenTelemetry, a call with a parent is traced where its caller is, whatever the rate.
  std::optional<TraceSample> Sample(std::string_view model,
                                    const std::optional<TraceParent>& parent = {});

 private:
  // Settings of the server or of a model; what is not set is as one level above.
  struct Scope {
    std::optional<bool> timestamps;
    std::optional<std::uint32_t> rate;
    std::optional<std::int64_t> count;  // still to be traced; < 0: any number
    std::optional<std::uint32_t> log_frequency;
    std::uint64_t calls = 0;  // since the rate was set
  };

  // The scope of the two that has the setting, or the global one.
  template <class T>
  Scope& Owner(Scope* own, std::optional<T> Scope::*setting) {
    return own != nullptr && (own->*setting) ? *own : global_;
  }
  Scope Defaults() const;
  Status Take(const std::string& name, const std::vector<std::string>& values, Scope& scope) const;
  Status TakeLevel(const std::vector<std::string>& values, Scope& scope) const;
  std::string ModeName() const;
  std::string File() const;
  bool AnyOn() const;

  const std::string to_;
  const Mode mode_;
  mutable std::mutex mutex_;
  Scope global_ = Defaults();  // all is set
  std::map<std::string, Scope, std::less<>> models_;
  std::uint64_t sampled_ = 0;
  std::atomic<bool> on_;
};

}  // namespace tactus
