#include "cluster/controller/used_tokens.h"

#include "cluster/memory/history_writer.h"
#include "knowledge/store.h"

namespace tactus {
namespace {

// A file is for the controllers of one machine, which a file elects.
bool IsShared(const std::string& store, const std::string& elect, bool own) {
  if (elect == "none") return true;
  const bool file = store.starts_with("sqlite:");
  return !own && (!file || elect.starts_with("sqlite:"));
}

}  // namespace

std::function<Status(const Token&, const std::string& key)> UsedTokens(const std::string& store,
                                                                       const std::string& elect,
                                                                       bool own) {
  if (!IsShared(store, elect, own)) {
    return [](const Token&, const std::string&) -> Status {
      return InvalidArgument(
          "the controllers have no --store in common, so each could take the token; give them one, "
          "or make certificates by tactus cluster certificate");
    };
  }
  return [store](const Token& token, const std::string& key) -> Status {
    const auto opened = knowledge::OpenStore(store);
    if (!opened) return std::unexpected(opened.error());
    const auto used = (*opened)->Use({.token = token.sum,
                                      .node = token.node,
                                      .public_key = key,
                                      .at = UtcNow(),
                                      .expires = token.expires});
    if (!used) return std::unexpected(used.error());
    return {};
  };
}

}  // namespace tactus
