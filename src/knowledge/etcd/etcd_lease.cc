#include "knowledge/etcd/etcd_lease.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/host_port.h"
#include "knowledge/etcd/etcd_client.h"

namespace tactus::knowledge {
namespace {

using Json = nlohmann::json;

// 64-bit numbers are texts in etcd's JSON. 0 where there is none.
std::uint64_t NumberIn(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string TextAt(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : "";
}

// A key's value and its last change, in the n-th answer of a transaction.
struct Entry {
  std::string value;
  std::string changed = "0";
};
std::optional<Entry> EntryAt(const Json& reply, int answer) {
  const std::string first = fmt::format("/responses/{}/response_range/kvs/0", answer);
  if (!reply.contains(Json::json_pointer(first))) return std::nullopt;
  return Entry{FromBase64(TextAt(reply, (first + "/value").c_str())).value_or(""),
               TextAt(reply, (first + "/mod_revision").c_str())};
}

Json Put(const Json& entry) { return {{"request_put", entry}}; }

Json Range(const std::string& key) { return {{"request_range", {{"key", key}}}}; }

class EtcdLease : public Coordination {
 public:
  EtcdLease(std::vector<HttpEndpoint> members, std::string place, const std::string& cluster,
            const LeaseOptions& options)
      : place_(std::move(place)),
        options_(options),
        // A call that outlives the lease is of no use.
        client_(std::move(members), std::min(options.length / 4, Duration(Seconds(2)))),
        leader_key_(ToBase64("/tactus/" + cluster + "/leader")),
        term_key_(ToBase64("/tactus/" + cluster + "/term")) {}
  ~EtcdLease() override { Resign(); }

  const std::string& place() const override { return place_; }
  Expected<std::uint64_t> Acquire(TimePoint now, std::uint64_t above) override;
  Status Renew(TimePoint now) override;
  void Resign() override;

 private:
  Expected<Json> Call(std::string_view path, const Json& body);
  Expected<std::string> Grant();
  // Makes the leader's key with a new term, unless it is there.
  Expected<std::uint64_t> Take(std::uint64_t above);
  Status Lost(const std::string& why);

  std::string place_;
  LeaseOptions options_;
  EtcdClient client_;
  std::string leader_key_, term_key_;  // Base64
  std::string lease_;                  // empty: none
};

Expected<Json> EtcdLease::Call(std::string_view path, const Json& body) {
  auto reply = client_.Post(path, body.dump());
  if (!reply) return std::unexpected(reply.error());
  // A stream's answers are a line each.
  Json json = Json::parse(reply->body.substr(0, reply->body.find('\n')), nullptr, false);
  if (json.is_object() && reply->status == 200 && !json.contains("error")) return json;
  std::string said = json.is_object() ? TextAt(json, "/error") : "";
  if (said.empty()) said = fmt::format("HTTP status {}", reply->status);
  return Fail(reply->status == 404 ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
              fmt::format("{}: {} (in {}); see etcd's log", place_, said, path));
}

Expected<std::string> EtcdLease::Grant() {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.length).count();
  auto granted = Call("/v3/lease/grant", {{"TTL", std::to_string(seconds)}});
  if (!granted) return std::unexpected(granted.error());
  std::string lease = TextAt(*granted, "/ID");
  if (lease.empty()) {
    return Fail(ErrorCode::kUnavailable,
                place_ + ": it granted no lease; see that it is etcd 3.4 or later");
  }
  return lease;
}

Expected<std::uint64_t> EtcdLease::Acquire(TimePoint now, std::uint64_t above) {
  Resign();
  auto lease = Grant();
  if (!lease) return std::unexpected(lease.error());
  lease_ = std::move(*lease);
  auto term = Take(above);
  if (!term) {
    Resign();
    return term;
  }
  // etcd counts from the grant, which was after `now`; and it may have granted more.
  Hold(*term, now + options_.length);
  return term;
}

Expected<std::uint64_t> EtcdLease::Take(std::uint64_t above) {
  auto seen =
      Call("/v3/kv/txn", {{"success", Json::array({Range(leader_key_), Range(term_key_)})}});
  if (!seen) return std::unexpected(seen.error());
  if (const auto leader = EntryAt(*seen, 0)) {
    Heard(leader->value.substr(0, leader->value.rfind(", term ")));
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: another controller leads ({}); it is this one's turn when that "
                            "one's lease ends",
                            place_, leader->value));
  }
  const Entry last = EntryAt(*seen, 1).value_or(Entry{});
  const std::uint64_t term = std::max(NumberIn(last.value), above) + 1;
  const Json absent = {{"key", leader_key_}, {"target", "CREATE"}, {"create_revision", "0"}};
  const Json unchanged = {{"key", term_key_}, {"target", "MOD"}, {"mod_revision", last.changed}};
  const std::string holder = fmt::format("{}, term {}", options_.name, term);
  const Json leader = {{"key", leader_key_}, {"value", ToBase64(holder)}, {"lease", lease_}};
  const Json raised = {{"key", term_key_}, {"value", ToBase64(std::to_string(term))}};
  auto taken = Call("/v3/kv/txn", {{"compare", Json::array({absent, unchanged})},
                                   {"success", Json::array({Put(leader), Put(raised)})}});
  if (!taken) return std::unexpected(taken.error());
  if (taken->value("succeeded", Json(false)) == Json(true)) return term;
  return Fail(
      ErrorCode::kUnavailable,
      place_ + ": another controller was quicker; it is this one's turn when that one ends");
}

Status EtcdLease::Renew(TimePoint now) {
  if (!Leads(now)) return Lost("this controller does not lead, or renewed too late");
  auto kept = Call("/v3/lease/keepalive", {{"ID", lease_}});
  if (!kept) return std::unexpected(kept.error());
  // A lease that has ended has no time to live.
  if (NumberIn(TextAt(*kept, "/result/TTL")) == 0) return Lost("its lease has ended");
  // Somebody may have removed the key.
  const Json mine = {{"key", leader_key_}, {"target", "LEASE"}, {"lease", lease_}};
  auto held = Call("/v3/kv/txn", {{"compare", Json::array({mine})}});
  if (!held) return std::unexpected(held.error());
  if (held->value("succeeded", Json(false)) != Json(true)) return Lost("its key was removed");
  Extend(now + options_.length);
  return {};
}

Status EtcdLease::Lost(const std::string& why) {
  Resign();
  return Fail(ErrorCode::kCancelled,
              fmt::format("{}: leadership is lost: {}; acquire a new term", place_, why));
}

void EtcdLease::Resign() {
  Lose();
  if (lease_.empty()) return;
  // Where nobody answers, the lease ends by itself.
  (void)Call("/v3/lease/revoke", {{"ID", lease_}});
  lease_.clear();
}

}  // namespace

Expected<std::unique_ptr<Coordination>> OpenEtcdLease(std::string_view where,
                                                      const LeaseOptions& options) {
  const std::string_view rest = where.substr(where.find("://") + 3);
  const std::size_t slash = rest.find('/');
  std::vector<HttpEndpoint> members;
  bool sound = slash != std::string_view::npos && slash + 1 < rest.size();
  for (std::string_view list = rest.substr(0, slash); sound && !list.empty();) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const auto member = ParseHostPort(list.substr(0, comma));
    sound = member && member->port != 0;
    if (sound) members.push_back({member->host, std::to_string(member->port)});
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  if (!sound || members.empty()) {
    return InvalidArgument(
        fmt::format("'{}' names no etcd; write etcd://HOST:PORT[,HOST:PORT...]/CLUSTER", where));
  }
  return std::make_unique<EtcdLease>(std::move(members), "etcd " + std::string(rest),
                                     std::string(rest.substr(slash + 1)), options);
}

}  // namespace tactus::knowledge
