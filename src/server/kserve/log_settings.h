// What a server logs, which clients may read and change while it runs: Triton's extension
// "logging", over both protocols.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <variant>

#include "base/expected.h"

namespace tactus {

struct LogChoice {
  // "I1125 09:30:00.123456 text"; with the whole date; a JSON object.
  enum class Form { kDefault, kIso8601, kJson };

  bool info = true;
  bool warning = true;
  bool error = true;
  std::uint32_t verbose_level = 0;  // from 1 on, lines for whoever looks for a fault
  Form form = Form::kIso8601;
  bool operator==(const LogChoice&) const = default;
};

using LogValue = std::variant<bool, std::uint32_t, std::string>;
using LogValues = std::map<std::string, LogValue>;

class LogSettings {
 public:
  // `apply` is called with each new choice, by one thread at a time.
  LogSettings(LogChoice first, std::function<void(const LogChoice&)> apply);

  // All settings by Triton's names: log_error, log_file (empty: standard error), log_format,
  // log_info, log_verbose_level, log_warning.
  LogValues Get() const;
  // Changes those in `values`, all or none. InvalidArgument, with the name, for a setting that does
  // not exist and a value that it cannot have; kUnimplemented for log_file.
  Status Set(const LogValues& values);

 private:
  mutable std::mutex mutex_;
  LogChoice choice_;
  const std::function<void(const LogChoice&)> apply_;
};

}  // namespace tactus
