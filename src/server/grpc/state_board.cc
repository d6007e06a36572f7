#include "server/grpc/state_board.h"

#include <set>
#include <utility>
#include <vector>

namespace tactus {

class BoardStream;

struct BoardState {
  // What a stream is to tell, or how it is to end.
  struct Said {
    std::string message;
    std::optional<CallEnd> end;
  };
  Said Of(const std::string& key) {
    const std::lock_guard lock(mutex);
    const auto found = messages.find(key);
    return {.message = found == messages.end() ? unknown : found->second, .end = end};
  }
  std::vector<std::shared_ptr<BoardStream>> Streams();

  const std::string unknown;
  std::mutex mutex;  // guards what follows
  std::map<std::string, std::string> messages;
  std::map<BoardStream*, std::weak_ptr<BoardStream>> streams;
  std::optional<CallEnd> end;
};

// One message at a time, the newest state only.
class BoardStream final : public CallMethod, public std::enable_shared_from_this<BoardStream> {
 public:
  BoardStream(std::shared_ptr<BoardState> board, StateBoard::KeyOf key_of,
              std::shared_ptr<ServerCall> call)
      : board_(std::move(board)), key_of_(std::move(key_of)), call_(std::move(call)) {}
  ~BoardStream() override {
    const std::lock_guard lock(board_->mutex);
    board_->streams.erase(this);
  }

  Admission Admit(std::size_t, std::span<const std::byte>) override {
    return key_ ? Admission::kSkip : Admission::kRead;
  }
  void OnMessage(Message message) override {
    if (key_) return;
    auto key = message.packed ? Fail(ErrorCode::kUnimplemented, "this request may not be packed")
                              : key_of_(message);
    if (!key) return call_->End(EndOf(std::unexpected(std::move(key.error())), false));
    key_ = *std::move(key);
    {
      const std::lock_guard lock(board_->mutex);
      board_->streams.emplace(this, weak_from_this());
    }
    Update();
  }
  void OnNoMore(bool cut) override {
    if (key_ && !cut) return;  // it listens on
    call_->End(EndOf(std::unexpected(NoWholeMessage()), false));
  }
  void OnSent() override {
    sending_ = false;
    Update();
  }

  // From any thread: the state may have changed.
  void Wake() {
    call_->Post([self = shared_from_this()] { self->Update(); });
  }

 private:
  void Update() {
    if (sending_) return;
    BoardState::Said said = board_->Of(*key_);
    if (said.end) return call_->End(*std::move(said.end));
    if (told_ == said.message) return;
    OutMessage out;
    out.Add(said.message);
    told_ = std::move(said.message);
    sending_ = true;
    call_->Send(std::move(out));
  }

  const std::shared_ptr<BoardState> board_;
  const StateBoard::KeyOf key_of_;
  const std::shared_ptr<ServerCall> call_;
  std::optional<std::string> key_;
  std::optional<std::string> told_;
  bool sending_ = false;
};

std::vector<std::shared_ptr<BoardStream>> BoardState::Streams() {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<BoardStream>> all;
  for (const auto& [raw, weak] : streams) {
    if (auto stream = weak.lock()) all.push_back(std::move(stream));
  }
  return all;
}

StateBoard::StateBoard(std::string unknown)
    : state_(new BoardState{
          .unknown = std::move(unknown), .mutex = {}, .messages = {}, .streams = {}, .end = {}}) {}

void StateBoard::Tell(const std::string& key, std::string message) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->messages[key] = std::move(message);
  }
  for (const auto& stream : state_->Streams()) stream->Wake();
}

std::optional<std::string> StateBoard::Find(const std::string& key) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->messages.find(key);
  if (found == state_->messages.end()) return std::nullopt;
  return found->second;
}

void StateBoard::EndStreams(CallEnd end) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->end = std::move(end);
  }
  for (const auto& stream : state_->Streams()) stream->Wake();
}

RpcMethod StateBoard::Watch(std::size_t most_bytes, KeyOf key_of) const {
  return {.most_bytes = most_bytes,
          .idles = true,
          .begin = [state = state_, key_of = std::move(key_of)](
                       std::shared_ptr<ServerCall> call) -> std::shared_ptr<CallMethod> {
            return std::make_shared<BoardStream>(state, key_of, std::move(call));
          }};
}

}  // namespace tactus
