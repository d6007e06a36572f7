#include "stream/stream_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using testing::HasSubstr;

// Without this, a key could be read into another's place.
TEST(StreamConfig, ReadsEachKey) {
  const auto config = ParseStreamConfig(
      R"({"source": "a.mp4", "model": "street", "url": "host:8001", "ca": "ca.pem",
          "token_file": "token", "fps": 12.5, "every": 2, "queue": 3, "in_flight": 4,
          "slo_ms": 250, "reconnect_s": 0.5, "attempts": 6, "timeout_s": 7, "loop": true,
          "realtime": false, "webhook": "http://[::1]/api/secret"})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->source.source, "a.mp4");
  EXPECT_EQ(config->source.timeout, Seconds(7));
  EXPECT_EQ(config->model, "street");
  EXPECT_EQ(config->server.url, "host:8001");
  EXPECT_EQ(config->server.ca, "ca.pem");
  EXPECT_EQ(config->server.token_file, "token");
  EXPECT_EQ(config->flow.most_rate, 12.5);
  EXPECT_EQ(config->flow.every, 2);
  EXPECT_EQ(config->flow.queue, 3);
  EXPECT_EQ(config->flow.in_flight, 4);
  EXPECT_EQ(config->flow.slo, Millis(250));
  EXPECT_EQ(config->reconnect.interval, Millis(500));
  EXPECT_EQ(config->reconnect.attempts, 6);
  EXPECT_TRUE(config->loop);
  EXPECT_FALSE(config->realtime);
  ASSERT_TRUE(config->webhook);
  EXPECT_EQ(config->webhook->endpoint.text(), "[::1]:80");
  EXPECT_EQ(config->webhook->path, "/api/secret");
  EXPECT_THAT(ToJson(*config), HasSubstr(R"("webhook":"http://[::1]:80/***")"));
  const auto again = ParseStreamConfig(ToJson(*config));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(ToJson(*again), ToJson(*config));
  const auto quick =
      ParseStreamConfig(R"({"source": "a", "model": "m", "reconnect_s": 0.3, "timeout_s": 0.7})");
  ASSERT_TRUE(quick) << quick.error().message;
  EXPECT_THAT(ToJson(*quick), HasSubstr(R"("reconnect_s":0.3,)"));
  EXPECT_THAT(ToJson(*quick), HasSubstr(R"("timeout_s":0.7})"));
}

// Without this, a wrong value would be another one's default, or end the server.
TEST(StreamConfig, SaysWhichKeyIsWrongAndWhatItTakes) {
  const std::pair<const char*, const char*> table[] = {
      {"", "JSON object"},
      {"[1]", "JSON object"},
      {R"({"model": "m"})", "'source' must be given"},
      {R"({"source": "a"})", "'model' must be given"},
      {R"({"source": "", "model": "m"})", "'source' must be a text"},
      {R"({"source": 1, "model": "m"})", "'source' must be a text"},
      {R"({"source": "a\u0000b", "model": "m"})", "'source' must be a text"},
      {R"({"source": "http://a/\r\nX: y", "model": "m"})", "'source' must be a text"},
      {R"({"source": "a", "model": "m", "fsp": 3})", "no key 'fsp'"},
      {R"({"source": "a", "model": "m", "fps": -1})", "'fps' must be a number from 0"},
      {R"({"source": "a", "model": "m", "fps": 1e999})", "JSON object"},
      {R"({"source": "a", "model": "m", "every": 0})", "'every'"},
      {R"({"source": "a", "model": "m", "every": 1.5})", "'every' must be a whole number"},
      {R"({"source": "a", "model": "m", "queue": 65})", "'queue'"},
      {R"({"source": "a", "model": "m", "queue": null})", "'queue'"},
      {R"({"source": "a", "model": "m", "reconnect_s": 0})", "'reconnect_s'"},
      {R"({"source": "a", "model": "m", "loop": 1})", "'loop' must be true or false"},
      {R"({"source": "a", "model": "m", "webhook": "https://a/b"})",
       "'webhook' must be an address"},
      {R"({"source": "a", "model": "m", "webhook": "http://:80/"})",
       "'webhook' must be an address"},
      {R"({"source": "http://a/", "model": "m", "loop": true})", "'loop' must be left out"},
      {R"({"source": "ftp://me:secret@x/y", "model": "m"})",
       "the source 'ftp://***@x/y': no such kind; give a path, or"}};
  for (const auto& [text, problem] : table) {
    const auto config = ParseStreamConfig(text);
    ASSERT_FALSE(config) << text;
    EXPECT_THAT(config.error().message, HasSubstr(problem)) << text;
  }
}

// Without this, a stream's name could leave its path or its label on the metrics page.
TEST(StreamConfig, NamesArePlain) {
  for (const char* good : {"a", "door-2", "Cam_1.left"}) EXPECT_TRUE(IsStreamName(good)) << good;
  for (const char* bad : {"", ".", "..", "a/b", "a b", "a\"", "\xC3\xA4", "."}) {
    EXPECT_FALSE(IsStreamName(bad)) << bad;
  }
  EXPECT_FALSE(IsStreamName(std::string(65, 'a')));
}

}  // namespace
}  // namespace tactus
