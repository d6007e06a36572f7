// `tactus check --models`: what a server with these options would warn of, or refuse, at its start.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "serving/serve_options.h"

namespace tactus {

struct ServingDoubts {
  std::vector<std::string> doubts;   // a line each
  std::vector<std::string> notes;    // what is nobody's mistake: a line each
  std::vector<std::string> refused;  // models that would not serve, and why
};

// Before a model is checked: how many were, of how many.
using CheckProgress =
    std::function<void(std::size_t done, std::size_t all, const std::string& model)>;

// Reads folders and profiles, and loads ONNX graphs, one at a time, to try what they are; it
// measures nothing. An error for options with which the server would not start.
Expected<ServingDoubts> CheckServing(const ServeOptions& options,
                                     const CheckProgress& progress = {});

}  // namespace tactus
