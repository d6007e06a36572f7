// street_link: an emulated link between two network namespaces, where the kernel has no netem.
//
//   street_link --left server:up0:10.77.0.1/30 --right north:up0:10.77.0.2/30
//     --up lte.csv:3 --down 100 --latency-ms 20 --loss 0.001
//
// Each side is a tun device of its namespace. A packet that goes into one comes out of the other
// when the simulator's Link (sim/network/link.h) says so: rate by a trace, latency, a queue of some
// bytes beyond which packets are dropped. SIGUSR1 cuts the link, SIGUSR2 mends it, and it says so.
// Until SIGTERM; then a line of JSON with what went which way. Needs root.
#include "sim/network/link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/rng.h"
#include "workload/csv.h"

namespace tactus {
namespace {

constexpr std::size_t kMostPacket = 65'536;

[[noreturn]] void End(const std::string& why) {
  fmt::print(stderr, "street_link: {}\n", why);
  std::exit(2);
}

TimePoint Now() {
  static const auto start = std::chrono::steady_clock::now();
  return kStart + (std::chrono::steady_clock::now() - start);
}

// NAMESPACE:DEVICE:ADDRESS/BITS
struct Side {
  std::string space;
  std::string device;
  std::string address;
};

Side SideOf(const std::string& text) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == text.npos ? text.npos : text.find(':', first + 1);
  if (second == text.npos) End("'" + text + "' is not NAMESPACE:DEVICE:ADDRESS/BITS");
  return {text.substr(0, first), text.substr(first + 1, second - first - 1),
          text.substr(second + 1)};
}

// The device stays in its namespace, whichever this process is in.
int OpenTun(const Side& side) {
  const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int space = open(("/run/netns/" + side.space).c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) {
    End(side.space + ": no such network namespace, or this is not root: " + std::strerror(errno));
  }
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq asked{};
  asked.ifr_flags = IFF_TUN | IFF_NO_PI;
  side.device.copy(asked.ifr_name, IFNAMSIZ - 1);
  if (tun < 0 || ioctl(tun, TUNSETIFF, &asked) != 0) {
    End(side.device + " in " + side.space + ": no tun device to be had: " + std::strerror(errno));
  }
  for (const std::string& command :
       {fmt::format("ip addr add {} dev {}", side.address, side.device),
        fmt::format("ip link set {} up", side.device)}) {
    if (std::system(command.c_str()) != 0) End("`" + command + "` failed in " + side.space);
  }
  if (setns(home, CLONE_NEWNET) != 0) End("no way back into the first namespace");
  close(space);
  close(home);
  return tun;
}

// MBPS, or FILE:TRACE of a CSV with the columns trace, t_s and mbps.
RateTrace RateOf(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) {
    char* end = nullptr;
    const double mbps = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !(mbps > 0)) End("'" + text + "' is no rate and no FILE:TRACE");
    return RateTrace(mbps);
  }
  const auto table = ReadCsv(text.substr(0, colon));
  if (!table) End(table.error().message);
  std::vector<RateStep> steps;
  for (const CsvTable::Row& row : table->rows) {
    if (row.cells.size() != 3) End(text + ": its columns are not trace, t_s, mbps");
    if (row.cells[0] != text.substr(colon + 1)) continue;
    steps.push_back(
        {kStart + FromSeconds(std::atof(row.cells[1].c_str())), std::atof(row.cells[2].c_str())});
  }
  if (steps.empty()) End(text + ": the file has no such trace");
  const Duration repeat = steps.back().at - kStart + Seconds(30);
  return RateTrace(std::move(steps), repeat);
}

struct Flags {
  std::string left;
  std::string right;
  std::string up = "100";    // from right to left
  std::string down = "100";  // from left to right
  double latency = 5;        // milliseconds, as on the command line
  double loss = 0;
  double queue_kb = 256;
  std::uint64_t seed = 1;
};

// One direction.
class Way {
 public:
  Way(int from, int to, const std::string& rate, const Flags& flags, std::string_view name)
      : from_(from),
        to_(to),
        link_({.rate = RateOf(rate),
               .latency = FromMillis(flags.latency),
               .most_waiting = flags.queue_kb * 1e3}),
        loss_(flags.loss),
        luck_(Rng::Stream(flags.seed, name)) {}

  // All that came; it is lost while the link is cut.
  void Take(bool cut) {
    for (;;) {
      const ssize_t size = read(from_, buffer_.data(), buffer_.size());
      if (size <= 0) return;
      ++taken_;
      if (cut || luck_.Uniform() < loss_) {
        ++lost_;
        continue;
      }
      const Sending sending = link_.Send(Now(), static_cast<double>(size), kNever);
      if (sending.outcome != SendOutcome::kDelivered) continue;
      under_way_.push_back({sending.at, {buffer_.begin(), buffer_.begin() + size}});
    }
  }
  void Deliver(TimePoint now) {
    for (; !under_way_.empty() && under_way_.front().at <= now; under_way_.pop_front()) {
      const std::vector<std::byte>& packet = under_way_.front().bytes;
      if (write(to_, packet.data(), packet.size()) < 0) ++lost_;
    }
  }
  TimePoint next() const { return under_way_.empty() ? kNever : under_way_.front().at; }
  std::string Told() const {
    const LinkTotals& t = link_.totals();
    return fmt::format(
        R"({{"taken":{},"packets":{},"bytes":{:.0f},"full":{},"lost":{},"busy_s":{:.3f}}})", taken_,
        t.delivered, t.bytes, t.full + t.dead, lost_, ToSeconds(t.busy));
  }

 private:
  struct Packet {
    TimePoint at;
    std::vector<std::byte> bytes;
  };

  const int from_;
  const int to_;
  Link link_;
  const double loss_;
  Rng luck_;
  std::deque<Packet> under_way_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kMostPacket);
  std::int64_t taken_ = 0;
  std::int64_t lost_ = 0;  // cut, by chance, or not wanted by the other side
};

int Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int Run(const Flags& flags) {
  const int signals = Signals();
  const int left = OpenTun(SideOf(flags.left));
  const int right = OpenTun(SideOf(flags.right));
  Way down(left, right, flags.down, flags, "down");
  Way up(right, left, flags.up, flags, "up");
  fmt::print("ready\n");
  std::fflush(stdout);
  bool cut = false;
  for (;;) {
    std::array<pollfd, 3> watched{{{left, POLLIN, 0}, {right, POLLIN, 0}, {signals, POLLIN, 0}}};
    const Duration wait = std::max(Duration{}, std::min(down.next(), up.next()) - Now());
    const Duration most = std::min(wait, Duration{Seconds(1)});
    const timespec until{most.count() / 1'000'000'000, most.count() % 1'000'000'000};
    ppoll(watched.data(), watched.size(), &until, nullptr);
    signalfd_siginfo signal{};
    while (read(signals, &signal, sizeof signal) == sizeof signal) {
      if (signal.ssi_signo == SIGUSR1 || signal.ssi_signo == SIGUSR2) {
        // What came before the signal is judged before it.
        down.Take(cut);
        up.Take(cut);
        cut = signal.ssi_signo == SIGUSR1;
        fmt::print("{}\n", cut ? "cut" : "mended");
        std::fflush(stdout);
        continue;
      }
      fmt::print("{{\"up\":{},\"down\":{}}}\n", up.Told(), down.Told());
      return 0;
    }
    down.Take(cut);
    up.Take(cut);
    const TimePoint now = Now();
    down.Deliver(now);
    up.Deliver(now);
  }
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  tactus::Flags flags;
  CLI::App app{"An emulated link between two network namespaces."};
  app.add_option("--left", flags.left, "NAMESPACE:DEVICE:ADDRESS/BITS")->required();
  app.add_option("--right", flags.right, "The other side")->required();
  app.add_option("--up", flags.up, "From right to left: Mbit/s, or FILE.csv:TRACE");
  app.add_option("--down", flags.down, "From left to right, the same");
  app.add_option("--latency-ms", flags.latency, "Each way")->check(CLI::Range(0.0, 1e4));
  app.add_option("--loss", flags.loss, "Part of the packets")->check(CLI::Range(0.0, 0.99));
  app.add_option("--queue-kb", flags.queue_kb, "Beyond these packets are dropped")
      ->check(CLI::Range(2.0, 1e6));
  app.add_option("--seed", flags.seed, "Which packets are lost");
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(flags);
}
