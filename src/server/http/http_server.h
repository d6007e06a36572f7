// The HTTP/1.1 front end: KServe v2 over REST, or the metrics page on a port of its own.
//
//   HttpServer server({.port = 8000}, service);
//   Expected<std::uint16_t> port = server.Start();
//   ...
//   server.Stop(std::chrono::seconds(5));   // before the service stops answering
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/expected.h"
#include "service/inference_service.h"
#include "service/refusal.h"

namespace tactus {

class Access;
class BodyAdmission;
class ClientLimits;
class LogSettings;
class FeedWatcher;
class LoopLag;
class ModelFolders;
class Objectives;
class PacedRefusals;
class StreamSet;
class TraceSettings;

struct HttpOptions {
  // Loopback unless the operator says otherwise.
  std::string address = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: any free port; Start says which
  // I/O threads. Requests are parsed and answers written on them, inference runs elsewhere.
  int threads = 1;
  bool shares_cores = false;  // of the I/O threads with lanes
  // Threads that unpack bodies and read long texts, so that the I/O threads need not.
  int decode_threads = 1;
  // A larger body is refused with 413. For compressed bodies it bounds the inflated size too.
  std::size_t max_body = std::size_t{64} << 20;
  // Request line and header fields together; more is 431.
  std::size_t max_header = std::size_t{16} << 10;
  // One more takes the place of another that has no request, one of the address that has most of
  // them; where all are busy it is answered 503 and closed.
  std::size_t max_connections = 1024;
  // Hears of those, once a minute.
  std::function<void(const std::string&)> warn = nullptr;
  // Where `limits` is null: bytes of request bodies being received or held, all connections
  // together; beyond it 503. Bounds memory whatever the clients announce.
  std::size_t max_pending_bytes = std::size_t{1} << 30;
  // A connection without a request is closed after `idle`; one that is slow to send its head, its
  // body or to take the answer is closed after these. Checked every 100 ms.
  std::chrono::milliseconds idle_timeout{75'000};
  std::chrono::milliseconds head_timeout{10'000};
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds write_timeout{60'000};
  // Triton's status codes and texts where they differ from the standard's or from sense.
  bool strict_triton = false;
  // TLS and tokens; null: neither.
  std::shared_ptr<const Access> access;
  // What each client may have, shared by all front ends; beyond it 429. Null: no limits.
  std::shared_ptr<ClientLimits> limits;
  // Says when a client hears that its call was refused. Null: at once.
  std::shared_ptr<PacedRefusals> refusals = nullptr;
  // Told of each inference call that is refused before the service has it, but for those of
  // `bodies`. Empty: nobody is.
  CountRefusal refused = nullptr;
  // Decides which bodies of inference calls are read. Null: all.
  std::shared_ptr<BodyAdmission> bodies = nullptr;
  // Told by how much the I/O threads are late, ten times a second. Null: nobody is.
  std::shared_ptr<LoopLag> lag;
  // What the names in x-llm-d-inference-objective mean. Null: nothing.
  std::shared_ptr<const Objectives> objectives;
  // Read and changed by /v2/logging. Null: the server does not know that extension.
  std::shared_ptr<LogSettings> log_settings = nullptr;
  // Read and changed by /v2/trace/setting, and of a model. Null: as above.
  std::shared_ptr<TraceSettings> trace_settings = nullptr;
  // Where files that are sent with a load go. Null: the server takes none.
  std::shared_ptr<ModelFolders> folders = nullptr;
  // Who watches the live page, /ui. Empty: there is no such page.
  std::function<Expected<std::shared_ptr<FeedWatcher>>(std::string_view client)> watch_live =
      nullptr;
  // Answers POST /v2/tactus/whatif, JSON with JSON, on whichever thread. Empty: nobody does.
  std::function<void(std::string question, std::function<void(Expected<std::string>)> reply)>
      what_if = nullptr;
};

class HttpServer {
 public:
  // KServe v2, and /v2/streams where there are `streams`; both outlive the server.
  HttpServer(HttpOptions options, InferenceService& service, StreamSet* streams = nullptr);
  // GET /metrics answers `text()`, called on an I/O thread of this server. Where there is a
  // `health`, the paths /v2/health of that service too: on a thread that no request for it keeps
  // busy.
  HttpServer(HttpOptions options, std::function<std::string()> text,
             const InferenceService* health = nullptr);
  ~HttpServer();  // Stop(0), if it was not stopped

  // Listens and starts the threads. Unavailable when the port is taken, with address and port.
  Expected<std::uint16_t> Start();

  // Accepts no more, closes idle connections, refuses new requests with 503; calls under way have
  // `grace` to end and are cancelled then. Returns when every call has had its reply from the
  // service, which therefore must still run. Idempotent.
  void Stop(std::chrono::milliseconds grace);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
