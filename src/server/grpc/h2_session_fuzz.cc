// What a client sends on its connection, in pieces of any size, up to whole messages: HTTP/2 (and
// its library), the header, the prefix of each message. Calls are answered at once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include "base/check.h"
#include "server/grpc/h2_session.h"
#include "server/grpc/message_reader.h"

namespace tactus {
namespace {

constexpr std::size_t kMostMessage = 1 << 16;

// Echoes the number of bytes that each message had.
class EchoStream final : public H2Session::Stream {
 public:
  EchoStream(H2Session& session, std::map<std::int32_t, std::unique_ptr<EchoStream>>& all,
             std::int32_t id)
      : session_(session), all_(all), id_(id) {}

  void OnField(std::string_view name, std::string_view value) override {
    fields_ += name.size() + value.size();
  }
  void OnTooLarge() override { End(); }
  void OnHead() override { session_.Widen(id_, kMostMessage); }
  void OnBytes(std::span<const std::byte> bytes) override {
    while (!ended_) {
      if (reader_.state() == MessageReader::State::kBegun) {
        if (reader_.size() > kMostMessage) return End();
        reader_.flag() == 0 ? reader_.Hold() : reader_.Skip();
        continue;
      }
      if (reader_.state() == MessageReader::State::kWhole) {
        const Message message = reader_.Release();
        for (const std::byte b : message.data ? message.bytes() : std::span<const std::byte>{}) {
          sum_ += static_cast<std::uint64_t>(b);
        }
        continue;
      }
      if (bytes.empty()) return;
      const std::size_t taken = reader_.Take(bytes);
      CHECK(taken <= bytes.size(), "it takes what is there");
      bytes = bytes.subspan(taken);
    }
  }
  void OnNoMore() override { End(); }
  void OnClosed() override {
    CHECK(all_.erase(id_) == 1, "a stream closes once");  // ends this object
  }
  Ready OutReady(std::size_t) override { return {.size = 0, .last = ended_}; }
  void OutTake(std::size_t, H2Output&) override { CHECK(false, "there are no bytes to take"); }
  H2Session::Fields OutTrailers() override { return {{"grpc-status", "0"}}; }

 private:
  void End() {
    if (ended_) return;
    ended_ = true;
    session_.Respond(id_, *this, {{":status", "200"}, {"grpc-status", "0"}}, sum_ % 2 == 0);
  }

  H2Session& session_;
  std::map<std::int32_t, std::unique_ptr<EchoStream>>& all_;
  const std::int32_t id_;
  MessageReader reader_;
  std::uint64_t sum_ = 0;
  std::size_t fields_ = 0;
  bool ended_ = false;
};

class Connection final : public H2Session::Owner {
 public:
  Connection() : session_({.max_streams = 8, .max_header = 1 << 10}, *this) {}

  H2Session::Stream* OnCall(std::int32_t id) override {
    auto& made = all_[id];
    CHECK(made == nullptr, "a stream begins once");
    made = std::make_unique<EchoStream>(session_, all_, id);
    CHECK(all_.size() <= 100, "streams that are refused do not stay");
    if (all_.size() == 2) session_.SetFirstWindow(1 << 14);
    session_.Ping(all_.size());
    return made.get();
  }
  void OnPong(std::uint64_t ping) override { pongs_ += ping; }
  void OnFirstWindow() override {
    for (const auto& [id, each] : all_) session_.Widen(id, 1);
  }
  // False: it is over.
  bool Take(std::span<const std::byte> bytes) {
    const bool fine = session_.Feed(bytes);
    H2Output out;
    return session_.Pull(1 << 20, out) && fine && !session_.over();
  }

 private:
  std::map<std::int32_t, std::unique_ptr<EchoStream>> all_;
  std::uint64_t pongs_ = 0;
  H2Session session_;
};

}  // namespace
}  // namespace tactus

// The first byte says how large the pieces are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{1} + data[0] * std::size_t{16};
  std::span<const std::byte> rest = std::as_bytes(std::span(data + 1, size - 1));
  tactus::Connection connection;
  while (!rest.empty() && connection.Take(rest.first(std::min(piece, rest.size())))) {
    rest = rest.subspan(std::min(piece, rest.size()));
  }
  return 0;
}
