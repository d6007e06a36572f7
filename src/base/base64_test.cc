#include "base/base64.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(Base64, RoundTripsEveryByteAndRefusesWhatItIsNot) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(FromBase64(ToBase64(bytes)), bytes);
    bytes += static_cast<char>(i);
  }
  EXPECT_EQ(ToBase64("foobar"), "Zm9vYmFy");  // RFC 4648, section 10
  EXPECT_EQ(ToBase64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(ToBase64("foob"), "Zm9vYg==");
  for (const char* text : {"Zg", "Zg=", "Z===", "Zm9v!m==", "=Zg=", "Zg==Zg=="}) {
    EXPECT_EQ(FromBase64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tactus
