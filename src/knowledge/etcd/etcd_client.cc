#include "knowledge/etcd/etcd_client.h"

#include <utility>

#include <fmt/format.h>

namespace tactus::knowledge {

EtcdClient::EtcdClient(std::vector<HttpEndpoint> members, Duration timeout)
    : members_(std::move(members)), timeout_(timeout) {}

Expected<HttpReply> EtcdClient::Post(std::string_view path, const std::string& body) {
  Expected<HttpReply> reply = Fail(ErrorCode::kUnavailable, "etcd: no member is named; name one");
  for (std::size_t tried = 0; tried < members_.size(); ++tried) {
    const HttpEndpoint& member = members_[last_good_];
    reply = PostOnce(member, path, "application/json", body, timeout_);
    // A member without a quorum answers 503.
    if (reply && reply->status < 500) return reply;
    if (!reply) {
      reply.error().message = fmt::format("etcd {}: {}; see that etcd runs and can be reached",
                                          member.text(), reply.error().message);
    }
    last_good_ = (last_good_ + 1) % members_.size();
  }
  return reply;
}

}  // namespace tactus::knowledge
