#include "server/net/client_stream.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using std::chrono::milliseconds;

class ClientStreamTest : public testing::Test {
 protected:
  ClientStreamTest() {
    using boost::asio::ip::tcp;
    tcp::acceptor acceptor(loop_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    client_.connect(acceptor.local_endpoint());
    tcp::socket accepted(loop_);
    acceptor.accept(accepted);
    stream_ = std::make_unique<ClientStream>(ClientStream::Socket(std::move(accepted)), nullptr);
  }

  void Say(std::string_view text) {
    boost::asio::write(client_, boost::asio::buffer(text.data(), text.size()));
  }
  void Listen() {
    stream_->Read(space_, [this](boost::system::error_code error, std::size_t n) {
      ++reads_;
      error_ = error;
      heard_.append(space_.data(), n);
    });
  }
  void Run() {
    loop_.restart();
    loop_.run();
  }

  boost::asio::io_context loop_{1};
  boost::asio::ip::tcp::socket client_{loop_};
  std::unique_ptr<ClientStream> stream_;
  std::array<char, 8> space_{};
  int reads_ = 0;
  boost::system::error_code error_;
  std::string heard_;
};

// Without this, a call's deadline would begin when somebody has time for it, not when it came.
TEST_F(ClientStreamTest, SaysHowLongBytesHadBeenThere) {
  stream_->StampArrivals();
  // The kernel begins a little after the first socket on the machine asked for it.
  for (int tries = 0; tries < 100 && stream_->waited() == milliseconds(0); ++tries) {
    heard_.clear();
    Say("hello");
    std::this_thread::sleep_for(milliseconds(30));
    Listen();
    Run();
    EXPECT_EQ(heard_, "hello");
  }
  EXPECT_GE(stream_->waited(), milliseconds(25));  // a clock may be put right meanwhile, by little
}

TEST_F(ClientStreamTest, KnowsNothingWhereNobodyAsked) {
  Say("hello");
  Listen();
  Run();
  EXPECT_EQ(stream_->waited(), milliseconds(0));
}

// What is there already is no reason to call back at once: the reader is not done with the last.
TEST_F(ClientStreamTest, ReadsOnItsLoopWhatIsThereAndWhatComes) {
  Say("one");
  Listen();
  EXPECT_EQ(reads_, 0);
  Run();
  EXPECT_EQ(reads_, 1);
  Listen();
  loop_.restart();
  loop_.poll();
  EXPECT_EQ(reads_, 1) << "nothing has come";
  Say(", two and more");
  Run();
  EXPECT_EQ(heard_, "one, two an") << "as much as there is room for";
  Listen();
  Run();
  EXPECT_EQ(heard_, "one, two and more");
  EXPECT_FALSE(error_);
}

TEST_F(ClientStreamTest, AnEndIsAnEndAndAClosedSocketAnError) {
  client_.close();
  Listen();
  Run();
  EXPECT_EQ(error_, boost::asio::error::eof);
  stream_->socket().close();
  Listen();
  Run();
  EXPECT_TRUE(error_);
  EXPECT_NE(error_, boost::asio::error::eof);
  EXPECT_EQ(reads_, 2);
}

}  // namespace
}  // namespace tactus
