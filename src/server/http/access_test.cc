// Every endpoint with every token: without this table one path may be left open by a change.
#include "server/access/access.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "server/access/pki_for_test.h"
#include "server/http/server_fixture_for_test.h"

namespace tactus {
namespace {

class HttpAccessTest : public ServerFixture {
 protected:
  void SetUp() override {
    WriteText(folder_ / "tokens",
              "r read read-0123456789abcdef\ni infer infer-0123456789abcdef\n"
              "a admin admin-0123456789abcdef\n");
    auto access = Access::Open({.tls = {}, .tokens = folder_ / "tokens"}, {});
    ASSERT_TRUE(access.has_value()) << access.error().message;
    options_.access = *access;
  }

  static std::string Request(std::string_view verb, std::string_view path, std::string_view scope) {
    const std::string field =
        scope.empty() ? "" : fmt::format("Authorization: Bearer {}-0123456789abcdef\r\n", scope);
    return fmt::format("{} {} HTTP/1.1\r\nHost: x\r\n{}Content-Length: 0\r\n\r\n", verb, path,
                       field);
  }

  const TemporaryFolder folder_;
};

TEST_F(HttpAccessTest, EveryEndpointByEveryScope) {
  struct Row {
    const char* verb;
    const char* path;
    const char* needs;
  };
  const Row table[] = {
      {"GET", "/v2/health/live", ""},
      {"GET", "/v2/health/ready", ""},
      {"GET", "/v2", "read"},
      {"GET", "/v2/models/numbers", "read"},
      {"GET", "/v2/models/numbers/ready", "read"},
      {"GET", "/v2/models/numbers/versions/1", "read"},
      {"GET", "/v2/models/numbers/config", "read"},
      {"GET", "/v2/models/numbers/stats", "read"},
      {"GET", "/v2/models/stats", "read"},
      {"POST", "/v2/repository/index", "read"},
      {"GET", "/no/such/path", "read"},
      {"GET", "/v2/tactus/live", "read"},
      {"POST", "/v2/tactus/whatif", "read"},
      {"GET", "/v2/streams", "read"},
      {"GET", "/v2/streams/door", "read"},
      {"HEAD", "/v2/streams/door", "read"},
      {"GET", "/v2/streams/door/events", "read"},
      {"GET", "/v2/streams/door/video", "read"},
      {"GET", "/v2/streams/door/view", ""},
      {"POST", "/v2/streams/door", "admin"},
      {"DELETE", "/v2/streams/door", "admin"},
      {"PUT", "/v2/streams/door", "admin"},
      {"POST", "/v2/models/numbers/infer", "infer"},
      {"POST", "/v2/models/numbers/versions/1/infer", "infer"},
      {"POST", "/v2/models/numbers/generate", "infer"},
      {"POST", "http://other/v2/models/numbers/infer", "infer"},
      {"POST", "/v2/repository/models/numbers/load", "admin"},
      {"POST", "/v2/repository/models/numbers/unload", "admin"},
      {"GET", "/v2/trace/setting", "read"},
      {"GET", "/v2/models/numbers/trace/setting", "read"},
      {"POST", "/v2/trace/setting", "admin"},
      {"POST", "/v2/models/numbers/trace/setting", "admin"},
      {"POST", "/v2/logging", "admin"},
      {"POST", "/v2/systemsharedmemory/region/a/register", "admin"},
      {"POST", "/v2/cudasharedmemory/region/a/register", "admin"},
  };
  for (const Row& row : table) {
    for (const std::string_view scope : {"", "unknown", "read", "infer", "admin"}) {
      const bool head = std::string_view(row.verb) == "HEAD";
      LoopbackClient client(port());
      client.Send(Request(row.verb, row.path, scope));
      const int status = client.Receive(head).status;
      const bool open = *row.needs == '\0';
      const bool known = scope != "" && scope != "unknown";
      const int refusal = open || scope == row.needs ? 0 : known ? 403 : 401;
      const int refused = status == 401 || status == 403 ? status : 0;
      EXPECT_EQ(refused, refusal) << row.verb << " " << row.path << " with '" << scope << "'";
    }
  }
}

TEST_F(HttpAccessTest, ARefusedBodyIsNotReadAndTheAnswerSaysWhatIsWanted) {
  LoopbackClient client(port());
  client.Send(
      "POST /v2/models/numbers/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n");
  const ClientResponse refused = client.Receive();  // before a byte of the body was sent
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.fields.at("WWW-Authenticate"), "Bearer");
  EXPECT_TRUE(Contains(refused.body, "wants a token")) << refused.body;
  EXPECT_EQ(service_.calls(), 0);
}

TEST_F(HttpAccessTest, TheMetricsPageIsForReaders) {
  options_.port = 0;
  HttpServer page(options_, [] { return std::string("up 1\n"); });
  const auto port = page.Start();
  ASSERT_TRUE(port.has_value());
  const auto status = [&](std::string_view scope) {
    return LoopbackClient(*port).Call(Request("GET", "/metrics", scope)).status;
  };
  EXPECT_EQ(status(""), 401);
  EXPECT_EQ(status("infer"), 403);
  EXPECT_EQ(status("read"), 200);
}

}  // namespace
}  // namespace tactus
