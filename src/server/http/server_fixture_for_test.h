// For tests: an HTTP server on a free loopback port in front of a service that answers at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

#include "server/http/fake_service_for_test.h"
#include "server/http/http_server.h"
#include "server/http/loopback_client_for_test.h"

namespace tactus {

class ServerFixture : public testing::Test {
 protected:
  // Started on the first use, so that a test can set options first.
  std::uint16_t port() {
    if (!server_) {
      options_.port = 0;
      server_.emplace(options_, service_);
      const auto port = server_->Start();
      EXPECT_TRUE(port.has_value());
      port_ = port.value_or(0);
    }
    return port_;
  }
  ClientResponse Call(std::string_view request) { return LoopbackClient(port()).Call(request); }

  FakeService service_;
  HttpOptions options_;
  std::optional<HttpServer> server_;
  std::uint16_t port_ = 0;
};

inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace tactus
