// Errors as values: what can happen at run time is returned, never thrown across a module.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace tactus {

enum class ErrorCode {
  kInvalidArgument,  // the caller's data is wrong; repeating it will not help
  kNotFound,
  kAlreadyExists,
  kUnavailable,  // may succeed later
  kDeadlineExceeded,
  kCancelled,
  kResourceExhausted,
  kUnimplemented,
  kInternal,
};

// `message` names the place and the remedy: "scenarios/a.toml:12: model 'x' has no profile; run
// ...".
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

template <class T>
using Expected = std::expected<T, Error>;
using Status = std::expected<void, Error>;

inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}
inline std::unexpected<Error> InvalidArgument(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}
inline std::unexpected<Error> NotFound(std::string message) {
  return Fail(ErrorCode::kNotFound, std::move(message));
}
inline std::unexpected<Error> Internal(std::string message) {
  return Fail(ErrorCode::kInternal, std::move(message));
}

}  // namespace tactus
