// The knowledge base of a cluster: what a controller remembers from one life to the next, and what
// its planners and its users look up. In SQLite, in a file of the controller's own, or in
// PostgreSQL; both pass one suite. Only the controller that leads writes.
//
//   auto store = OpenStore("sqlite:/var/lib/tactus/knowledge.db");
//   Batch batch{.term = 3, .sequence = 17};
//   batch.arrivals.push_back(...);
//   store->Commit(batch);                        // all of it or nothing
//   store->LinkBandwidth("yard", "rack", {now - 60s, now});
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "knowledge/records.h"

namespace tactus::knowledge {

// What is written at once. Texts are UTF-8 without NUL, numbers are finite, instants lie between
// the years 2000 and 2200.
struct Batch {
  // Of the controller that writes (coordination.h). The store refuses every term below the highest
  // that it has seen: a controller that no longer leads cannot write, whatever it believes.
  std::uint64_t term = 0;
  // Of this batch in its term, ascending: a batch that is written again, because nobody saw
  // whether it was committed, is not written twice. 0: not numbered.
  std::uint64_t sequence = 0;

  std::vector<Device> devices = {};
  std::vector<Link> links = {};
  std::vector<Model> models = {};
  std::vector<Pipeline> pipelines = {};
  std::vector<Profile> profiles = {};
  std::vector<ArrivalSample> arrivals = {};
  std::vector<BatchLatencySample> batch_latencies = {};
  std::vector<OutcomeSample> outcomes = {};
  std::vector<NetworkSample> network = {};
  std::vector<DeviceLoadSample> device_loads = {};
  std::vector<Plan> plans = {};
  std::vector<Verdict> verdicts = {};  // after the plans
  std::vector<Event> events = {};      // their numbers are the store's to give

  std::size_t records() const;
  std::size_t bytes() const;  // about, in memory
};

enum class Written { kNow, kBefore };  // kBefore: this sequence number was committed earlier

enum class Resolution { kRaw, kMinute, kHour };

// Raw samples, their minutes and their hours.
struct Retention {
  std::chrono::microseconds raw = std::chrono::hours(48);
  std::chrono::microseconds minutes = std::chrono::days(30);
  std::chrono::microseconds hours = std::chrono::days(365);
  // A minute or an hour is rolled up when it has been over for so long. Samples of it that come
  // later (a store that was away) stay raw.
  std::chrono::microseconds settle = std::chrono::minutes(15);
  // Of each table, deleted by one call; a day of PostgreSQL's raw samples goes at once.
  std::int64_t most_deleted = 50'000;
};

struct Retained {
  std::int64_t rolled = 0;      // rows of roll-ups that were made
  std::int64_t deleted = 0;     // rows
  std::int64_t partitions = 0;  // days of samples that were dropped whole
  bool done = true;             // false: more is to be deleted; call again
};

struct Highest {
  std::uint64_t epoch = 0;
  std::uint64_t term = 0;
};

// What a controller that leads writes with. One thread at a time. Errors name the store, what was
// done and the remedy:
//   kUnavailable        the store is away or busy; try again
//   kResourceExhausted  its disk is full
//   kCancelled          the batch's term is over: another controller leads
//   kInvalidArgument, kAlreadyExists, kNotFound  what was asked makes no sense, also the next time
//   kInternal           anything else, such as a damaged file
class StoreWriter {
 public:
  virtual ~StoreWriter() = default;

  // For messages: "sqlite /var/lib/tactus/knowledge.db". Never a password.
  virtual const std::string& place() const = 0;

  // One transaction: when it returns, the batch is on disk; on an error nothing of it is, except
  // that after kUnavailable it may have been committed (then write it again with its sequence
  // number). kAlreadyExists: a plan whose epoch is taken. kNotFound: a verdict on a plan that is
  // not there.
  virtual Expected<Written> Commit(const Batch& batch) = 0;

  // Rolls up and deletes, as of `now`, in small transactions. Plans and events go after
  // Retention::hours, but for the last adopted plan and whatever came after it.
  virtual Expected<Retained> Retain(UtcTime now, const Retention& limits = {}) = 0;
};

class Store : public StoreWriter {
 public:
  // Writes down, in a transaction of its own, that the token was used. kBefore: for this public
  // key, earlier. kAlreadyExists: for another. Of several that ask at once, one is the first, in
  // whatever term. Forgets those that have expired, a month after it: clocks differ.
  virtual Expected<Written> Use(const TokenUse& use) = 0;

  // By key.
  virtual Expected<std::vector<Device>> Devices() = 0;
  virtual Expected<std::vector<Link>> Links() = 0;
  virtual Expected<std::vector<Model>> Models() = 0;
  virtual Expected<std::vector<Pipeline>> Pipelines() = 0;
  virtual Expected<std::vector<Profile>> Profiles() = 0;

  // Of a window, by instant and then by key. A roll-up is the mean of its samples, the sum of its
  // counts, and of percentiles the highest: a P99 of an hour is that of its worst sample.
  virtual Expected<std::vector<ArrivalSample>> Arrivals(Window window, Resolution by) = 0;
  virtual Expected<std::vector<BatchLatencySample>> BatchLatencies(Window window,
                                                                   Resolution by) = 0;
  virtual Expected<std::vector<OutcomeSample>> Outcomes(Window window, Resolution by) = 0;
  virtual Expected<std::vector<NetworkSample>> NetworkSamples(Window window, Resolution by) = 0;
  virtual Expected<std::vector<DeviceLoadSample>> DeviceLoads(Window window, Resolution by) = 0;

  // Mbit/s of which a share of `quantile` of the window's raw samples is at most so fast (nearest
  // rank); nothing where there is no sample.
  virtual Expected<std::optional<double>> LinkBandwidth(std::string_view from_site,
                                                        std::string_view to_site, Window window,
                                                        double quantile = 0.25) = 0;

  // Of the adopted plans the one of the highest epoch.
  virtual Expected<std::optional<Plan>> LastAdoptedPlan() = 0;
  // Made in the window, by epoch.
  virtual Expected<std::vector<Plan>> Plans(Window made) = 0;
  virtual Expected<Plan> PlanOf(std::uint64_t epoch) = 0;          // kNotFound
  virtual Expected<Highest> HighestSeen() = 0;                     // 0 where there is none
  virtual Expected<std::vector<Event>> Events(Window window) = 0;  // in order
  // With a number above `number`, in order, the first `most`.
  virtual Expected<std::vector<Event>> EventsSince(std::uint64_t number, std::size_t most) = 0;
};

// "sqlite:PATH" (the file is made where there is none) or "postgresql://USER@HOST:PORT/DATABASE".
// Brings an older schema up to date, each step in a transaction; kInvalidArgument for a schema that
// is newer than this program knows, and for PostgreSQL where this build has no libpqxx.
Expected<std::unique_ptr<Store>> OpenStore(std::string_view where);

}  // namespace tactus::knowledge
