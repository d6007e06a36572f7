#include "cluster/control/renewal.h"

#include <array>
#include <ctime>
#include <utility>

#include "base/whole_file.h"
#include "cluster/control/join.h"

namespace tactus {
namespace {

constexpr int kLastPart = 3;  // of its time

std::string UtcText(std::chrono::sys_seconds at) {
  const std::time_t seconds = at.time_since_epoch().count();
  std::tm broken{};
  gmtime_r(&seconds, &broken);
  std::array<char, 32> text{};
  (void)std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &broken);
  return text.data();
}

}  // namespace

Renewal RenewalOf(const Validity& validity, std::chrono::sys_seconds now) {
  if (now >= validity.until) return Renewal::kExpired;
  const bool due = (validity.until - now) * kLastPart < validity.until - validity.from;
  return due ? Renewal::kDue : Renewal::kNotDue;
}

CertificateRenewal::CertificateRenewal(std::vector<std::string> controllers,
                                       std::filesystem::path folder, Log log,
                                       std::chrono::milliseconds look_every)
    : controllers_(std::move(controllers)),
      folder_(std::move(folder)),
      log_(std::move(log)),
      thread_("renewal", Every(look_every, [this] { Look(); })) {}

void CertificateRenewal::Say(const std::string& what) {
  if (std::exchange(said_, what) != what && !what.empty()) log_(what);
}

void CertificateRenewal::Look() {
  const std::filesystem::path file = folder_ / "node.pem";
  const auto pem = ReadWhole(file, "certificate");
  const auto validity = pem ? ValidityOf(*pem) : Expected<Validity>(std::unexpected(pem.error()));
  if (!validity) return Say(file.string() + ": " + validity.error().message);
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  switch (RenewalOf(*validity, now)) {
    case Renewal::kNotDue:
      return Say("");
    case Renewal::kExpired:
      return Say(file.string() + " expired at " + UtcText(validity->until) +
                 ", and no controller lets this node in; start it again with --join and a token of "
                 "tactus cluster token");
    case Renewal::kDue:
      break;
  }
  if (const Status renewed = RenewCertificate(controllers_, folder_); !renewed) {
    return Say(file.string() + " is good until " + UtcText(validity->until) +
               ", and is not renewed yet: " + renewed.error().message);
  }
  Say(file.string() + " is renewed");
}

}  // namespace tactus
