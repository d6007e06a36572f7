#include "server/access/client_limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace tactus {

// What each client has now.
struct ClientBook {
  struct Entry {
    std::size_t calls = 0;
    std::size_t connections = 0;
    double tokens = 0;  // calls that the rate allows at `filled`
    ClientLimits::Clock::time_point filled;
    std::shared_ptr<ByteBudget> bytes;
  };

  explicit ClientBook(ClientLimitOptions given)
      : options(given), all_bytes(std::make_shared<ByteBudget>(given.all_bytes)) {}

  Entry& Find(const std::string& client);
  void Forget(const std::string& client);
  // The seconds until the rate allows a call; 0: now, and it is counted.
  double Spend(Entry& entry, ClientLimits::Clock::time_point now) const;

  const ClientLimitOptions options;
  const std::shared_ptr<ByteBudget> all_bytes;
  mutable std::mutex mutex;
  std::unordered_map<std::string, Entry> entries;  // under the mutex
};

namespace {

// Clients that have nothing are kept for their rate's sake up to so many.
constexpr std::size_t kMostForgotten = 4096;

bool Holds(const ClientBook::Entry& entry) {
  return entry.calls > 0 || entry.connections > 0 || entry.bytes.use_count() > 1;
}

double Burst(double rate) { return std::max(1.0, rate); }

bool ReadNumber(std::string_view text, double least, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value) &&
         value >= least && value <= 1e9;
}

}  // namespace

ClientBook::Entry& ClientBook::Find(const std::string& client) {
  const auto [found, made] = entries.try_emplace(client);
  Entry& entry = found->second;
  if (!made) return entry;
  entry.tokens = Burst(options.rate);
  entry.bytes = std::make_shared<ByteBudget>(options.bytes, all_bytes);
  return entry;
}

void ClientBook::Forget(const std::string& client) {
  const auto found = entries.find(client);
  if (found == entries.end() || Holds(found->second)) return;
  if (options.rate == 0) {
    entries.erase(found);
  } else if (entries.size() > kMostForgotten) {
    std::erase_if(entries, [](const auto& entry) { return !Holds(entry.second); });
  }
}

double ClientBook::Spend(Entry& entry, ClientLimits::Clock::time_point now) const {
  if (options.rate == 0) return 0;
  if (entry.filled != ClientLimits::Clock::time_point{} && now > entry.filled) {
    const double passed = std::chrono::duration<double>(now - entry.filled).count();
    entry.tokens = std::min(Burst(options.rate), entry.tokens + passed * options.rate);
  }
  entry.filled = std::max(entry.filled, now);
  if (entry.tokens < 1) return (1 - entry.tokens) / options.rate;
  entry.tokens -= 1;
  return 0;
}

Status ReadClientLimits(const std::string& text, ClientLimitOptions& options) {
  std::vector<std::string_view> names;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const bool known = name == "calls" || name == "rate" || name == "mb" || name == "connections";
    double value = 0;
    const bool fine = known && equals != item.npos &&
                      ReadNumber(item.substr(equals + 1), name == "rate" ? 0 : 1, value) &&
                      (name == "rate" || value == std::floor(value));
    if (!fine) {
      return InvalidArgument(
          fmt::format("'{}' is none of calls=N, rate=CALLS_PER_SECOND (0: any), mb=N, "
                      "connections=N, with N from 1",
                      item));
    }
    if (std::ranges::count(names, name) > 0) {
      return InvalidArgument(fmt::format("'{}' is given twice; state it once", name));
    }
    names.push_back(name);
    const auto whole = static_cast<std::size_t>(value);
    if (name == "calls") options.calls = whole;
    if (name == "rate") options.rate = value;
    if (name == "mb") options.bytes = whole << 20;
    if (name == "connections") options.connections = whole;
  }
  return {};
}

ClientLimits::ClientLimits(ClientLimitOptions options)
    : body_(std::make_shared<ClientBook>(options)) {}

const ClientLimitOptions& ClientLimits::options() const { return body_->options; }
const std::shared_ptr<ByteBudget>& ClientLimits::all_bytes() const { return body_->all_bytes; }

std::size_t ClientLimits::known() const {
  const std::scoped_lock lock(body_->mutex);
  return body_->entries.size();
}

std::expected<ClientLimits::Lease, ClientLimits::OverLimit> ClientLimits::Connect(
    const std::string& client) {
  const std::scoped_lock lock(body_->mutex);
  ClientBook::Entry& entry = body_->Find(client);
  if (entry.connections >= body_->options.connections) {
    return std::unexpected(
        OverLimit{fmt::format("this client has {} connections, as many as it may: close some, or "
                              "use each for more calls",
                              entry.connections)});
  }
  ++entry.connections;
  Lease lease;
  lease.body_ = body_;
  lease.client_ = client;
  return lease;
}

std::expected<ClientLimits::Call, ClientLimits::OverLimit> ClientLimits::Begin(
    const std::string& client, Clock::time_point now) {
  const std::scoped_lock lock(body_->mutex);
  ClientBook::Entry& entry = body_->Find(client);
  if (entry.calls >= body_->options.calls) {
    return std::unexpected(OverLimit{fmt::format(
        "this client has {} calls under way, as many as it may: wait for answers", entry.calls)});
  }
  if (const double wait = body_->Spend(entry, now); wait > 0) {
    return std::unexpected(OverLimit{
        fmt::format("this client makes more than {:g} calls per second", body_->options.rate),
        static_cast<int>(std::ceil(wait))});
  }
  ++entry.calls;
  Call call;
  call.lease.body_ = body_;
  call.lease.client_ = client;
  call.lease.kind_ = Lease::Kind::kCall;
  call.bytes = entry.bytes;
  return call;
}

ClientLimits::Call ClientLimits::Hold(const std::string& client) {
  const std::scoped_lock lock(body_->mutex);
  Call call;
  call.lease.body_ = body_;
  call.lease.client_ = client;
  call.lease.kind_ = Lease::Kind::kBytes;
  call.bytes = body_->Find(client).bytes;
  return call;
}

void ClientLimits::Lease::Return() {
  const auto body = std::exchange(body_, nullptr);
  if (body == nullptr) return;
  const std::scoped_lock lock(body->mutex);
  ClientBook::Entry& entry = body->Find(client_);
  if (kind_ == Kind::kCall) --entry.calls;
  if (kind_ == Kind::kConnection) --entry.connections;
  body->Forget(client_);
}

std::string ClientLimits::BytesText(ByteBudget::Taken taken) {
  return taken == ByteBudget::Taken::kBeyondLimit
             ? "this client has as many bytes of calls under way as it may: wait for answers, "
               "and take them"
             : "the server holds as many bytes of requests and answers as it may: try again later";
}

}  // namespace tactus
