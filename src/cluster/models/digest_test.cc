// Without these two machines could know one model by two names.
#include "cluster/models/digest.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

// FIPS 180-2, appendix B.
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST(Digest, IsSha256AndReadAsItIsWritten) {
  EXPECT_EQ(DigestOf("abc").text(), kAbc);
  EXPECT_EQ(DigestOf("").text(), kEmpty);
  EXPECT_EQ(Digest::Parse(kAbc), DigestOf("abc"));
  Sha256 sum;
  sum.Add("a");
  sum.Add("bc");
  EXPECT_EQ(sum.Take().text(), kAbc);
  EXPECT_EQ(sum.Take().text(), kEmpty) << "it begins anew";
}

TEST(Digest, NothingElseIsOne) {
  const std::string abc = kAbc;
  std::string capital = abc;
  capital[0] = 'B';
  for (const std::string& text : {std::string(), abc.substr(1), abc + "0", capital,
                                  "../" + abc.substr(3), "g" + abc.substr(1)}) {
    EXPECT_FALSE(Digest::Parse(text)) << text;
  }
}

TEST(Digest, OfAFileIsThatOfItsBytes) {
  const TemporaryFolder folder;
  const std::string bytes(700'001, 'x');
  std::ofstream(folder / "f", std::ios::binary) << bytes;
  const auto file = DigestOfFile(folder / "f");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->size, bytes.size());
  EXPECT_EQ(file->digest, DigestOf(bytes));
  const auto none = DigestOfFile(folder / "none");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("none: cannot read"), std::string::npos);
}

}  // namespace
}  // namespace tactus
