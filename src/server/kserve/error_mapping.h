// How an Error looks on the wire, in the one table that both protocols read.
//
//   code               HTTP  gRPC                   --strict-triton
//   InvalidArgument    400   INVALID_ARGUMENT
//   NotFound           404   NOT_FOUND
//   AlreadyExists      409   ALREADY_EXISTS         HTTP 400
//   Unavailable        503   UNAVAILABLE
//   ResourceExhausted  503   RESOURCE_EXHAUSTED     UNAVAILABLE "Exceeds maximum queue size"
//   DeadlineExceeded   504   DEADLINE_EXCEEDED      503 / UNAVAILABLE "Request timeout expired"
//   Cancelled          499   CANCELLED              HTTP 400
//   Unimplemented      501   UNIMPLEMENTED
//   Internal           500   INTERNAL
#pragma once

#include <string>

#include "base/expected.h"

namespace tactus {

struct WireError {
  int http = 500;
  int grpc = 13;             // the number of grpc::StatusCode
  bool retry_after = false;  // worth asking again a second later
  std::string text;
};

WireError ToWire(const Error& error, bool strict_triton);

// Refused for want of room, of time or of a model: whoever asked may ask again.
bool IsRefusal(const Status& status);

}  // namespace tactus
