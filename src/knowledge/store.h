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
  // The term of the controller that writes (coordination.h). The store refuses terms below the
  // highest that it has seen: a controller that no longer leads cannot write, whatever it believes.
  std::uint64_t term = 0;
  // The number of this batch in its term, ascending: a batch that is written again, because nobody
  // saw whether it was committed, is not written twice. 0: not numbered.
  std::uint64_t sequence = 0;

  std::vector<ArrivalSample> arrivals = {};
  std::vector<NetworkSample> network = {};
  std::vector<Plan> plans = {};
  std::vector<Verdict> verdicts = {};  // after the plans
  std::vector<Event> events = {};      // their numbers are the store's to give

  std::size_t records() const;
  std::size_t bytes() const;  // about, in memory
};

enum class Written { kNow, kBefore };  // kBefore: this sequence number was committed earlier

// How long a record is kept. The last adopted plan and whatever came after it stay for ever.
struct Retention {
  std::chrono::microseconds samples = std::chrono::hours(48);
  std::chrono::microseconds plans_and_events = std::chrono::days(365);
  // Samples of each table that one call deletes; a day of PostgreSQL's goes at once.
  std::int64_t most_deleted = 50'000;
};

struct Retained {
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

  // Deletes what is old, as of `now`, in small transactions.
  virtual Expected<Retained> Retain(UtcTime now, const Retention& limits = {}) = 0;
};

class Database;

// Over SQLite or PostgreSQL (sql/database.h).
class Store final : public StoreWriter {
 public:
  // `database` has today's schema: OpenStore() makes it.
  explicit Store(std::unique_ptr<Database> database);
  ~Store() override;

  const std::string& place() const override;
  Expected<Written> Commit(const Batch& batch) override;
  Expected<Retained> Retain(UtcTime now, const Retention& limits = {}) override;

  // Writes down, in a transaction of its own, that the token was used. kBefore: for this public
  // key, earlier. kAlreadyExists: for another. Of several that ask at once, one is the first, in
  // whatever term. Forgets those that have expired, a month after it: clocks differ.
  Expected<Written> Use(const TokenUse& use);

  // The samples of a window, by instant and then by key.
  Expected<std::vector<ArrivalSample>> Arrivals(Window window);
  Expected<std::vector<NetworkSample>> NetworkSamples(Window window);
  // Mbit/s of which a share of `quantile` of the window's samples is at most so fast (nearest
  // rank); nothing where there is no sample.
  Expected<std::optional<double>> LinkBandwidth(std::string_view from_site,
                                                std::string_view to_site, Window window,
                                                double quantile = 0.25);

  // The adopted plan of the highest epoch.
  Expected<std::optional<Plan>> LastAdoptedPlan();
  // Made in the window, by epoch.
  Expected<std::vector<Plan>> Plans(Window made);
  Expected<Plan> PlanOf(std::uint64_t epoch);          // kNotFound
  Expected<Highest> HighestSeen();                     // 0 where there is none
  Expected<std::vector<Event>> Events(Window window);  // in order

 private:
  // Takes the term and the sequence number, or says why not.
  Expected<Written> Fence(const Batch& batch);

  const std::unique_ptr<Database> database_;
};

// "sqlite:PATH" (the file is made where there is none) or "postgresql://USER@HOST:PORT/DATABASE".
// Brings an older schema up to date, each step in a transaction; kInvalidArgument for a schema that
// is newer than this program knows, and for PostgreSQL where this build has no libpq.
Expected<std::unique_ptr<Store>> OpenStore(std::string_view where);

}  // namespace tactus::knowledge
