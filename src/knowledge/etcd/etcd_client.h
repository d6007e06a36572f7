// Calls to etcd's v3 API as JSON over HTTP/1.1, in the clear.
// https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "http_client/post.h"

namespace tactus::knowledge {

// One thread at a time.
class EtcdClient {
 public:
  // `timeout` is that of one member; a call may ask them all, beginning with the last that
  // answered.
  EtcdClient(std::vector<HttpEndpoint> members, Duration timeout);

  // kUnavailable: no member answered. Then nobody knows whether the call was carried out.
  Expected<HttpReply> Post(std::string_view path, const std::string& body);

 private:
  std::vector<HttpEndpoint> members_;
  Duration timeout_;
  std::size_t last_good_ = 0;
};

}  // namespace tactus::knowledge
