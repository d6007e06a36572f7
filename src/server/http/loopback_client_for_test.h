// For tests: a client that writes exactly the bytes it is told to, over a blocking socket.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/check.h"

namespace tactus {

struct ClientResponse {
  int status = 0;  // 0: the connection ended instead
  std::map<std::string, std::string> fields;
  std::string body;
};

class LoopbackClient {
 public:
  explicit LoopbackClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int result =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    CHECK(result == 0, "the server under test does not listen");
    // A test that hangs says nothing: a read that takes this long reads as the end.
    const timeval limit{60, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~LoopbackClient() { Close(); }
  LoopbackClient(const LoopbackClient&) = delete;
  LoopbackClient& operator=(const LoopbackClient&) = delete;

  // Whether somebody listens.
  static bool Connects(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
    const int result =
        ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::close(probe);
    return result == 0;
  }

  // False when the server has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // The server reads the end, and may still answer.
  void CloseSending() { ::shutdown(socket_, SHUT_WR); }
  // As a client that is lost: closing alone says only that no more is sent.
  void Reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    Close();
  }
  void Close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  // Bytes up to and with `mark`; what came before the end if it never comes.
  std::string ReadUntil(std::string_view mark) {
    for (;;) {
      const std::size_t at = read_.find(mark);
      if (at != read_.npos) return TakeFront(at + mark.size());
      if (!ReadMore()) return TakeFront(read_.size());
    }
  }

  // `head_only`: the answer to HEAD has no body, whatever its length says.
  ClientResponse Receive(bool head_only = false) {
    ClientResponse response;
    std::string head = ReadUntil("\r\n\r\n");
    while (head.starts_with("HTTP/1.1 100")) head = ReadUntil("\r\n\r\n");
    if (!head.starts_with("HTTP/1.1 ")) return response;
    response.status = std::stoi(head.substr(9, 3));
    std::size_t at = head.find("\r\n") + 2;
    while (at + 2 < head.size()) {
      const std::size_t end = head.find("\r\n", at);
      const std::size_t colon = head.find(": ", at);
      response.fields[head.substr(at, colon - at)] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    if (head_only) return response;
    const std::size_t length = std::stoul(response.fields["Content-Length"]);
    while (read_.size() < length && ReadMore()) {
    }
    response.body = TakeFront(length);
    return response;
  }

  ClientResponse Call(std::string_view request) {
    Send(request);
    return Receive();
  }

  // Whether the server has closed, without a byte more.
  bool AtEnd() { return read_.empty() && !ReadMore(); }

 private:
  bool ReadMore() {
    char buffer[65536];
    const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    read_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  std::string TakeFront(std::size_t n) {
    std::string front = read_.substr(0, n);
    read_.erase(0, n);
    return front;
  }

  int socket_;
  std::string read_;
};

}  // namespace tactus
