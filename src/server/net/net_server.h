// A port, the I/O threads of those who come, and the rules by which they are let in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/expected.h"

namespace tactus {

struct NetContext;

// Includes Boost.Asio in its .cc only; connections are made by the protocol.
class NetServer {
 public:
  struct Newcomer;  // net_newcomer.h
  // Makes the protocol's connection; on the first I/O thread.
  using Make = std::function<std::shared_ptr<class NetConnection>(Newcomer&&)>;

  // `threads` from 1. `protocol`: what TLS agrees on (ALPN), such as "h2"; empty: nothing.
  NetServer(std::shared_ptr<NetContext> context, int threads, std::string protocol, Make make);
  ~NetServer();

  // Listens and starts the threads; once. As ListeningSocket::Open.
  Expected<std::uint16_t> Start(const std::string& address, std::uint16_t port);
  bool started() const;
  // Accepts no more. Idempotent.
  void Close();
  // As IoThread::Drain, for all of them; returns at once.
  void Drain(std::chrono::milliseconds grace, std::chrono::milliseconds farewell);
  // After Drain: returns when the last connection is gone, and every call that it had.
  void Join();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
