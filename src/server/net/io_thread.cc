#include "server/net/io_thread.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "platform/cpu_affinity.h"
#include "server/net/net_connection.h"

namespace tactus {
namespace {

// How finely time limits of connections are kept. One walk over all of them costs less than a timer
// set and cleared for every request.
constexpr std::chrono::milliseconds kSweepPeriod{100};

}  // namespace

IoThread::IoThread(std::size_t index, std::shared_ptr<NetContext> server)
    : index_(index), server_(std::move(server)), io_(1), sweep_(io_), turns_(io_) {}

void IoThread::Run() {
  NameThisThread(fmt::format("io-{}", index_));
  if (server_->shares_cores) WaitForTurns();
  Sweep();
  io_.run();
}

void IoThread::Drain(std::chrono::milliseconds grace, std::chrono::milliseconds farewell) {
  boost::asio::post(io_, [this, grace, farewell] {
    draining_ = true;
    drain_until_ = Clock::now() + grace;
    farewell_ = farewell;
    // Closing removes from the set that is walked.
    const std::vector<NetConnection*> all(connections_.begin(), connections_.end());
    for (NetConnection* connection : all) connection->CloseIfIdle();
    sweep_.cancel();
  });
}

void IoThread::Add(NetConnection* connection) {
  connections_.insert(connection);
  connection->crowd_ = &by_address_[connection->address()];
  ++*connection->crowd_;
}

void IoThread::Remove(NetConnection* connection) {
  if (connections_.erase(connection) == 0) return;
  if (--*connection->crowd_ == 0) by_address_.erase(connection->address());
}

std::optional<std::string> IoThread::MakeRoom(const NetConnection& newcomer) {
  const auto now = std::chrono::steady_clock::now();
  NetConnection* goes = nullptr;
  int most = 0;  // connections of its address, where they are more than the newcomer's
  for (NetConnection* connection : connections_) {
    if (connection == &newcomer) continue;
    const bool crowds = *connection->crowd_ > *newcomer.crowd_;
    const int crowd = crowds ? *connection->crowd_ : 0;
    if (!connection->MayGo(now, crowds ? Clock::duration{} : NetConnection::kSilence)) continue;
    if (goes != nullptr &&
        std::pair(-crowd, connection->heard()) >= std::pair(-most, goes->heard())) {
      continue;
    }
    goes = connection;
    most = crowd;
  }
  if (goes == nullptr) return std::nullopt;
  std::string address = goes->address();
  goes->Abort();
  return address;
}

void IoThread::Sweep() {
  const auto now = std::chrono::steady_clock::now();
  if (LoopLag* const lag = server_->lag.get(); lag != nullptr && swept_) {
    lag->Note(std::max(now - sweep_.expiry(), std::chrono::steady_clock::duration{}), now);
  }
  swept_ = true;
  const std::vector<NetConnection*> all(connections_.begin(), connections_.end());
  const bool over = draining_ && now >= drain_until_;
  for (NetConnection* connection : all) {
    if (over && !expired_) {
      connection->Expire();
    } else if (over && now >= abort_at_) {
      connection->Abort();
    } else {
      connection->CheckTime(now);
    }
  }
  if (over && !expired_) abort_at_ = now + farewell_;
  expired_ = over;
  // Without the timer the loop ends with its last connection.
  if (draining_ && connections_.empty()) return;
  auto next = now + kSweepPeriod;
  if (draining_ && drain_until_ > now) next = std::min(next, drain_until_);
  sweep_.expires_at(next);
  sweep_.async_wait([this](boost::system::error_code) { Sweep(); });
}

}  // namespace tactus
