// What tests of both stores share: a store of either kind, empty, and records to put into it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "knowledge/process_test.h"
#include "knowledge/store.h"

namespace tactus::knowledge {

enum class StoreKind { kSqlite, kPostgres };

inline std::string KindName(const ::testing::TestParamInfo<StoreKind>& info) {
  return info.param == StoreKind::kSqlite ? "Sqlite" : "Postgres";
}

// 2026-03-01, an hour that no daylight-saving rule touches.
inline constexpr UtcTime kNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::hours(12);

class StoreCase : public ::testing::TestWithParam<StoreKind> {
 protected:
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    if (GetParam() == StoreKind::kSqlite) {
      where_ = "sqlite:" + (folder_ / "knowledge.db").string();
      return;
    }
    if (const std::string why = PostgresServer::WhyNot(); !why.empty()) GTEST_SKIP() << why;
    if (!server_) server_ = std::make_unique<PostgresServer>();
    static int databases = 0;
    where_ = server_->MakeDatabase("case" + std::to_string(databases++));
  }

  const std::string& where() const { return where_; }
  std::unique_ptr<Store> Open() const {
    auto store = OpenStore(where_);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }

 private:
  static inline std::unique_ptr<PostgresServer> server_;
  TemporaryFolder folder_;
  std::string where_;
};

// Fails the test, with what the store said, unless the result is a value.
template <class T>
T Must(Expected<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace tactus::knowledge
