#include "server/http/kserve_handler.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/append.h"
#include "platform/task_queue.h"
#include "server/access/paced_refusals.h"
#include "server/http/route.h"
#include "server/http/streams_handler.h"
#include "server/http/ui_files.h"
#include "server/http/watched_body.h"
#include "server/kserve/classification.h"
#include "server/kserve/compression.h"
#include "server/kserve/error_mapping.h"
#include "server/kserve/json_codec.h"
#include "server/kserve/log_settings.h"
#include "server/kserve/model_config.h"
#include "server/kserve/model_control.h"
#include "server/kserve/objectives.h"
#include "server/kserve/rest_bodies.h"
#include "server/kserve/server_timing.h"
#include "server/kserve/trace_settings.h"

namespace tactus {
namespace {

// Loads and unloads that may wait for their turn.
constexpr std::size_t kWaitingCalls = 64;
constexpr std::size_t kMostQuestion = std::size_t{16} << 10;
// Bytes of tensors that take a millisecond or so to become text.
constexpr std::size_t kHeavyAnswer = std::size_t{64} << 10;

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

HttpResponse JsonResponse(std::string body, int status = 200) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

HttpResponse Health(std::string_view what, bool good, bool strict) {
  // Triton says 400, which sounds like the client's fault.
  const int bad = strict ? 400 : 503;
  return JsonResponse(fmt::format(R"({{"{}":{}}})", what, good), good ? 200 : bad);
}

HttpResponse MethodNotAllowed(std::string_view allowed) {
  HttpResponse response = ErrorResponse(405, "Method Not Allowed");
  response.fields = fmt::format("Allow: {}\r\n", allowed);
  return response;
}

Expected<std::optional<std::size_t>> ReadHeaderLength(std::optional<std::string_view> field) {
  if (!field) return std::nullopt;
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(field->data(), field->data() + field->size(), length);
  if (error != std::errc{} || end != field->data() + field->size()) {
    return InvalidArgument("Inference-Header-Content-Length: not a whole number of bytes");
  }
  return length;
}

class KServeHandler final : public HttpHandler {
 public:
  KServeHandler(const HttpOptions& options, InferenceService& service, StreamSet* streams)
      : service_(service),
        max_body_(options.max_body),
        objectives_(options.objectives),
        log_settings_(options.log_settings),
        trace_settings_(options.trace_settings),
        refusals_(options.refusals),
        refused_(options.refused),
        bodies_(options.bodies),
        folders_(options.folders),
        watch_live_(options.watch_live),
        what_if_(options.what_if),
        strict_(options.strict_triton),
        waiting_("slow calls", kWaitingCalls) {
    const int decoders = std::max(options.threads, 1) + std::max(options.decode_threads, 1);
    for (int i = 0; i < decoders; ++i) decoders_.emplace_back(strict_);
    if (streams != nullptr) streams_.emplace(*streams, options.strict_triton);
  }

  Scope Needs(Verb verb, std::string_view target) const override {
    return ScopeOf(RouteOf(target).endpoint, verb);
  }

  Expected<std::shared_ptr<BodyAdmission::Place>> EnterBody(
      std::string_view target, std::size_t bytes, std::optional<Duration> limit) override {
    if (bodies_ == nullptr || bytes < BodyGate::kLeastBytes) return nullptr;
    const Route route = RouteOf(target);
    const auto version = ParseVersion(route.version);
    if (route.endpoint != Endpoint::kInfer || !version) return nullptr;
    return bodies_->Enter(service_, route.model, *version, bytes, limit);
  }

  std::optional<CallId> Handle(const HttpRequest& request, std::size_t thread,
                               std::shared_ptr<Exchange> exchange) override {
    Route route = RouteOf(request.target);
    if (route.endpoint == Endpoint::kInfer && request.verb == Verb::kPost) {
      return Infer(request, route, thread, std::move(exchange));
    }
    if (IsOfStreams(route.endpoint) && streams_) {
      streams_->Handle(request, route, std::move(exchange));
      return std::nullopt;
    }
    const bool page = route.endpoint == Endpoint::kUi || route.endpoint == Endpoint::kLive;
    if (page && !watch_live_) route.endpoint = Endpoint::kUnknown;
    if (route.endpoint == Endpoint::kWhatIf && !watch_live_) route.endpoint = Endpoint::kUnknown;
    if (auto response = Answer(request, route, exchange)) {
      exchange->Answer([response = std::move(*response)]() mutable { return std::move(response); });
    }
    return std::nullopt;
  }

  void Cancel(CallId call) override { service_.Cancel(call); }
  void Stop() override {
    waiting_.Stop();
    if (streams_) streams_->Stop();
  }
  void Refuse() override {
    waiting_.Close();
    if (streams_) streams_->Refuse();
  }

 private:
  HttpResponse Refusal(const Error& error) const { return RefusalOf(error, strict_); }

  static HttpResponse RefusalOf(const Error& error, bool strict) {
    const WireError wire = ToWire(error, strict);
    HttpResponse response = ErrorResponse(wire.http, wire.text);
    if (wire.retry_after) response.fields = "Retry-After: 1\r\n";
    return response;
  }

  // Nothing where the answer comes later.
  std::optional<HttpResponse> Answer(const HttpRequest& request, Route& route,
                                     std::shared_ptr<Exchange>& exchange) {
    const bool unknown = route.endpoint == Endpoint::kUnknown || IsOfStreams(route.endpoint);
    if (unknown) return ErrorResponse(404, "Not Found");
    const bool logging = route.endpoint == Endpoint::kLogging;
    const bool trace = route.endpoint == Endpoint::kTrace;
    if (route.endpoint == Endpoint::kUnsupported || (logging && log_settings_ == nullptr) ||
        (trace && trace_settings_ == nullptr)) {
      return Unsupported(request.target);
    }
    const std::string_view allowed = AllowedVerbs(route.endpoint);
    const bool post = request.verb == Verb::kPost;
    const bool reads = request.verb == Verb::kGet || request.verb == Verb::kHead;
    if (post ? !allowed.ends_with("POST") : !reads || allowed == "POST") {
      return MethodNotAllowed(allowed);
    }
    if (route.endpoint == Endpoint::kRegister) return Unsupported(request.target);
    if (route.endpoint == Endpoint::kUnregister) return JsonResponse("");  // none is there after it
    if (route.endpoint == Endpoint::kRegions) return Regions(request, route);
    if (logging) return Logging(request, post);
    if (trace) return Trace(request, route, post);
    if (post) return AnswerPost(request, route, exchange);
    if (route.endpoint == Endpoint::kLive) return Live(request.client);
    return AnswerGet(route);
  }

  static HttpResponse Unsupported(std::string_view target) {
    return ErrorResponse(501,
                         fmt::format("the {} extension is not supported", ExtensionOf(target)));
  }

  // Clients ask for regions of shared memory before they begin. No region can be registered here.
  HttpResponse Regions(const HttpRequest& request, const Route& route) const {
    if (route.model.empty()) return JsonResponse("[]");
    return Refusal(NoRegion(ExtensionOf(request.target), route.model).error());
  }

  HttpResponse Logging(const HttpRequest& request, bool change) {
    if (change) {
      auto body = Inflated(request);
      if (!body) return std::move(body.error());
      const auto values = ParseLogSettings(Text(body->bytes));
      if (!values) return Refusal(values.error());
      if (Status set = log_settings_->Set(*values); !set) return Refusal(set.error());
    }
    return JsonResponse(LogSettingsJson(log_settings_->Get()));
  }

  HttpResponse Trace(const HttpRequest& request, const Route& route, bool change) {
    if (!route.model.empty()) {
      if (const auto model = Find(route); !model) return Refusal(model.error());
    }
    if (change) {
      auto body = Inflated(request);
      if (!body) return std::move(body.error());
      const auto values = ParseTraceSettings(Text(body->bytes));
      if (!values) return Refusal(values.error());
      if (Status set = trace_settings_->Set(route.model, *values); !set) {
        return Refusal(set.error());
      }
    }
    return JsonResponse(TraceSettingsJson(trace_settings_->Get(route.model)));
  }

  HttpResponse AnswerGet(const Route& route) {
    switch (route.endpoint) {
      case Endpoint::kHealthLive:
        return Health("live", service_.Live(), strict_);
      case Endpoint::kHealthReady:
        return Health("ready", service_.Ready(), strict_);
      case Endpoint::kServer:
        return JsonResponse(ServerMetadataJson(
            strict_, {.logging = log_settings_ != nullptr, .trace = trace_settings_ != nullptr}));
      case Endpoint::kStatistics:
        return Statistics(route);
      case Endpoint::kUi:
        return UiResponse(route.model);
      default:
        return AnswerModel(route);
    }
  }

  HttpResponse Live(std::string_view client) {
    auto watcher = watch_live_(client);
    if (!watcher) return Refusal(watcher.error());
    HttpResponse response;
    response.content_type = "text/event-stream";
    response.fields = "Cache-Control: no-store\r\n";
    response.rest = std::make_shared<WatchedBody>(*std::move(watcher));
    return response;
  }

  HttpResponse AnswerModel(const Route& route) {
    if (route.endpoint == Endpoint::kModelReady) return ModelReady(route);
    const auto model = Find(route);
    if (!model) return Refusal(model.error());
    if (route.endpoint == Endpoint::kModel) {
      return JsonResponse(ModelMetadataJson(**model, ReadyVersions((*model)->name)));
    }
    auto config = ModelConfigJson(**model);
    return config ? JsonResponse(std::move(*config)) : Refusal(config.error());
  }

  HttpResponse ModelReady(const Route& route) const {
    const auto version = ParseVersion(route.version);
    if (!version) return Refusal(version.error());
    const Status ready = service_.ModelReady(route.model, *version);
    if (ready) return JsonResponse(ModelReadyJson(route.model, true));
    if (ready.error().code != ErrorCode::kUnavailable) return Refusal(ready.error());
    return JsonResponse(ModelReadyJson(route.model, false), strict_ ? 400 : 503);
  }

  HttpResponse Statistics(const Route& route) const {
    const auto version = ParseVersion(route.version);
    if (!version) return Refusal(version.error());
    const auto statistics = service_.Statistics(route.model, *version);
    return statistics ? JsonResponse(StatisticsJson(*statistics)) : Refusal(statistics.error());
  }

  Expected<std::shared_ptr<const ModelSpec>> Find(const Route& route) const {
    const auto version = ParseVersion(route.version);
    if (!version) return std::unexpected(version.error());
    return service_.Find(route.model, *version);
  }

  std::vector<std::int64_t> ReadyVersions(const std::string& model) const {
    std::vector<std::int64_t> versions;
    for (const ModelState& state : service_.Index()) {
      if (state.name == model && state.state == "READY") versions.push_back(state.version);
    }
    return versions;
  }

  std::optional<HttpResponse> AnswerPost(const HttpRequest& request, Route& route,
                                         std::shared_ptr<Exchange>& exchange) {
    auto body = Inflated(request);
    if (!body) return std::move(body.error());
    const std::string_view text = Text(body->bytes);
    if (route.endpoint == Endpoint::kWhatIf) {
      if (!what_if_) {
        return ErrorResponse(404,
                             "no what-if here: this server does not decide alone which batches "
                             "run (it is a front end, of a site, or splits its device by plans)");
      }
      if (text.size() > kMostQuestion) return ErrorResponse(413, "the question is too long");
      what_if_(std::string(text), [exchange, strict = strict_](Expected<std::string> answer) {
        exchange->Answer([answer = std::move(answer), strict]() mutable -> HttpResponse {
          if (!answer) return RefusalOf(answer.error(), strict);
          return JsonResponse(*std::move(answer));
        });
      });
      return std::nullopt;
    }
    if (route.endpoint == Endpoint::kIndex) {
      const auto ready_only = ParseIndexRequest(text);
      if (!ready_only) return Refusal(ready_only.error());
      return JsonResponse(IndexJson(service_.Index(), *ready_only));
    }
    LoadOverride given;
    bool with_steps = false;
    if (route.endpoint == Endpoint::kLoad) {
      auto parsed = ParseLoadRequest(text);
      if (!parsed) return Refusal(parsed.error());
      given = *std::move(parsed);
    } else {
      const auto parsed = ParseUnloadRequest(text);
      if (!parsed) return Refusal(parsed.error());
      with_steps = *parsed;
    }
    return Control(route, std::move(given), with_steps, body->owner, exchange);
  }

  // Loading and unloading take seconds: on a thread of their own. `body`: held until then, so that
  // what waits counts among the bytes of bodies.
  std::optional<HttpResponse> Control(const Route& route, LoadOverride given, bool with_steps,
                                      std::shared_ptr<const void> body,
                                      const std::shared_ptr<Exchange>& exchange) {
    const bool load = route.endpoint == Endpoint::kLoad;
    const bool taken = waiting_.Post([this, load, model = route.model, given = std::move(given),
                                      with_steps, body = std::move(body), exchange](bool refused) {
      const Status status = refused
                                ? Status(Fail(ErrorCode::kUnavailable, "the server is stopping"))
                            : load ? LoadOf(service_, folders_.get(), model, given)
                                   : UnloadOf(service_, folders_.get(), model, with_steps, strict_);
      exchange->Answer([status, strict = strict_]() -> HttpResponse {
        if (!status) return RefusalOf(status.error(), strict);
        return JsonResponse("");
      });
    });
    if (taken) return std::nullopt;
    return RefusalOf({ErrorCode::kUnavailable, "too many loads and unloads wait: try again later"},
                     strict_);
  }

  struct PlainBody {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };

  // The body without its coding, or the response that refuses it.
  std::expected<PlainBody, HttpResponse> Inflated(const HttpRequest& request) const {
    PlainBody plain{request.body, request.body_owner};
    if (request.content_encoding.empty()) return plain;
    const auto coding = ParseContentEncoding(request.content_encoding);
    if (!coding) return std::unexpected(Refusal(coding.error()));
    if (*coding == Coding::kIdentity) return plain;
    auto inflated = Inflate(*coding, request.body, max_body_);
    if (!inflated && inflated.error().code == ErrorCode::kResourceExhausted) {
      return std::unexpected(ErrorResponse(
          413, fmt::format("the inflated body is larger than the limit of {} bytes", max_body_)));
    }
    if (!inflated) return std::unexpected(Refusal(inflated.error()));
    auto lease = ByteLease::Of(request.budget, inflated->size);
    if (!lease) return std::unexpected(OverBudgetResponse(lease.error()));
    plain.bytes = {inflated->data.get(), inflated->size};
    plain.owner = std::make_shared<std::pair<InflatedBody, ByteLease>>(*std::move(inflated),
                                                                       *std::move(lease));
    return plain;
  }

  // What the answer needs to know of its request.
  struct Pending {
    std::shared_ptr<Exchange> exchange;
    ResponseForm form;
    Coding coding = Coding::kIdentity;
    bool strict = false;
    std::vector<std::uint32_t> classes;
    std::shared_ptr<const void> lease;   // of LeaseOf, until there is an answer
    std::shared_ptr<ByteBudget> budget;  // of the request
    std::string client;
    std::size_t bytes = 0;  // of the request's body
    std::chrono::steady_clock::time_point received;
    TimeLimit limit;  // the client's, and the model's
    std::shared_ptr<BodyAdmission::Place> place;
    Duration way{};
  };

  // Says `response` when this client is to hear of a refusal.
  void Refuse(std::string_view client, std::size_t bytes, const TimeLimit& limit,
              std::chrono::steady_clock::time_point received, std::shared_ptr<Exchange> to,
              std::move_only_function<HttpResponse()> response) {
    if (refusals_ == nullptr) return to->Answer(std::move(response));
    std::optional<Duration> patience = limit.shortest();
    if (patience) *patience -= std::chrono::steady_clock::now() - received;
    auto shared = std::make_shared<std::move_only_function<HttpResponse()>>(std::move(response));
    refusals_->Tell(std::string(client), bytes, patience,
                    [to = std::move(to), shared] { to->Answer([shared] { return (*shared)(); }); });
  }

  // A lease on the bytes of tensors that came as text, and on as many again for the answer, until
  // its own are known. They outlive the text, which the body counts. Null where they are few.
  static std::expected<std::shared_ptr<const void>, HttpResponse> LeaseOf(
      const HttpRequest& request, const InferCall& call) {
    const std::size_t bytes = InputBytes(call);
    if (request.inference_header_length || bytes < kHeavyAnswer) return nullptr;
    auto lease = ByteLease::Of(request.budget, 2 * bytes);
    if (!lease) return std::unexpected(OverBudgetResponse(lease.error()));
    return std::make_shared<ByteLease>(*std::move(lease));
  }

  std::optional<CallId> Infer(const HttpRequest& request, const Route& route, std::size_t thread,
                              std::shared_ptr<Exchange> exchange) {
    const auto say = [&](RefusalReason why, HttpResponse response) -> std::optional<CallId> {
      if (refused_) refused_(why);
      exchange->Answer([response = std::move(response)]() mutable { return std::move(response); });
      return std::nullopt;
    };
    const auto say_of_body = [&](HttpResponse response) {
      const RefusalReason why = ReasonOf(response);
      return say(why, std::move(response));
    };
    const auto refuse = [&](const Error& why) { return say(ReasonOf(why.code), Refusal(why)); };
    // The model first: whoever asks for one that is not there hears that, whatever else is wrong.
    auto model = Find(route);
    if (!model) return refuse(model.error());
    if (request.unread) {
      TimeLimit limit = request.limit.value_or(TimeLimit{});
      limit.Tighten((*model)->slo > Duration{} ? std::optional((*model)->slo) : std::nullopt);
      Refuse(request.client, 0, limit, request.received, std::move(exchange),
             [response = Refusal(*request.unread)]() mutable { return std::move(response); });
      return std::nullopt;
    }
    auto body = Inflated(request);
    if (!body) return say_of_body(std::move(body.error()));

    auto decoded = Decode(request, *body, **model, thread);
    if (!decoded) return refuse(decoded.error());
    auto call = MakeCall(std::move(*model), decoded->message, request.received);
    if (!call) return refuse(call.error());
    call->way = request.way;
    if (Status form = CheckForm(*call, decoded->form); !form) return refuse(form.error());
    if (!request.limit) return refuse(request.limit.error());
    auto lease = LeaseOf(request, *call);
    if (!lease) return say_of_body(std::move(lease.error()));
    call->limit.Tighten(request.limit->shortest());
    call->trace_parent = ReadTraceParent(request.trace_parent);
    if (objectives_ != nullptr && call->priority == 0) {
      call->priority = objectives_->PriorityOf(request.objective);
    }
    call->keepalive = std::move(decoded->keepalive);
    auto pending = std::make_shared<Pending>(
        Pending{std::move(exchange), std::move(decoded->form),
                ChooseCoding(request.accept_encoding), strict_, std::move(call->classes),
                *std::move(lease), request.budget, std::string(request.client), request.body.size(),
                request.received, call->limit, request.place, request.way});
    if (call->model->slo > Duration{}) pending->limit.Tighten(call->model->slo);
    call->id = pending->form.id;
    call->reply = [this, pending = std::move(pending)](InferReply&& reply) {
      Exchange& to = *pending->exchange;
      if (pending->place) pending->place->Answered(reply, pending->way);
      if (IsRefusal(reply.status)) {
        return Refuse(pending->client, pending->bytes, pending->limit, pending->received,
                      pending->exchange, [pending, reply = std::move(reply)]() mutable {
                        return ResponseTo(std::move(reply), *pending);
                      });
      }
      const bool heavy = IsHeavy(reply, *pending);
      auto make = [this, pending, reply = std::move(reply)]() mutable {
        if (bodies_) bodies_->OnLeaving(reply, pending->received, pending->limit.shortest());
        return ResponseTo(std::move(reply), *pending);
      };
      heavy ? to.AnswerHeavy(std::move(make)) : to.Answer(std::move(make));
    };
    return service_.Infer(std::move(*call));
  }

  Expected<InferRequest> Decode(const HttpRequest& request, PlainBody& body, const ModelSpec& model,
                                std::size_t thread) {
    const auto header_length = ReadHeaderLength(request.inference_header_length);
    if (!header_length) return std::unexpected(header_length.error());
    if (*header_length && **header_length == 0) {
      return RawInferRequest(model, body.bytes, std::move(body.owner));
    }
    return decoders_[thread].Decode(body.bytes, *header_length, std::move(body.owner));
  }

  // Whether it takes long to write: much that is packed or becomes text.
  static bool IsHeavy(const InferReply& reply, const Pending& pending) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < reply.outputs.size(); ++i) {
      if (pending.coding == Coding::kIdentity && pending.form.Binary(i)) continue;
      for (const auto part : reply.outputs[i].parts) bytes += part.size();
    }
    return bytes > kHeavyAnswer;
  }

  static HttpResponse ResponseTo(InferReply&& reply, const Pending& pending) {
    std::string timing = "Server-Timing: ";
    AppendAll(timing, ServerTiming(reply), "\r\n");
    if (!reply.status) {
      HttpResponse refusal = RefusalOf(reply.status.error(), pending.strict);
      refusal.fields += timing;
      return refusal;
    }
    if (Status classified = Classify(pending.classes, reply); !classified) {
      return RefusalOf(classified.error(), pending.strict);
    }
    auto encoded = EncodeInferResponse(reply, pending.form);
    if (!encoded) return RefusalOf(encoded.error(), pending.strict);
    HttpResponse response;
    response.fields = std::move(timing);
    if (encoded->has_binary) {
      response.content_type = "application/octet-stream";
      AppendAll(response.fields, "Inference-Header-Content-Length: ", encoded->json.size(), "\r\n");
    }
    response.body = std::move(encoded->json);
    response.parts = std::move(encoded->binary);
    if (!response.parts.empty()) response.storage = std::move(reply.storage);
    Compress(pending.coding, response);
    const std::size_t bytes = SizeOf(response);
    if (bytes >= kLeastCharged) {
      response.lease = std::make_shared<ByteLease>(ByteLease::Charge(pending.budget, bytes));
    }
    return response;
  }

  InferenceService& service_;
  const std::size_t max_body_;
  const std::shared_ptr<const Objectives> objectives_;
  const std::shared_ptr<LogSettings> log_settings_;      // or null
  const std::shared_ptr<TraceSettings> trace_settings_;  // or null
  const std::shared_ptr<PacedRefusals> refusals_;        // or null
  const CountRefusal refused_;                           // or empty
  const std::shared_ptr<BodyAdmission> bodies_;          // or null
  const std::shared_ptr<ModelFolders> folders_;          // or null
  const decltype(HttpOptions::watch_live) watch_live_;   // or empty
  const decltype(HttpOptions::what_if) what_if_;         // or empty
  const bool strict_;
  std::vector<InferRequestDecoder> decoders_;  // by I/O thread, then those that decode
  TaskQueue waiting_;
  std::optional<StreamsHandler> streams_;  // where this server has streams
};

class TextHandler final : public HttpHandler {
 public:
  TextHandler(std::function<std::string()> text, const InferenceService* health, bool strict)
      : text_(std::move(text)), health_(health), strict_(strict) {}

  std::optional<CallId> Handle(const HttpRequest& request, std::size_t,
                               std::shared_ptr<Exchange> exchange) override {
    exchange->Answer([response = Answer(request)]() mutable { return std::move(response); });
    return std::nullopt;
  }
  void Cancel(CallId) override {}
  Scope Needs(Verb verb, std::string_view target) const override {
    return health_ != nullptr ? ScopeOf(RouteOf(target).endpoint, verb) : Scope::kRead;
  }

 private:
  HttpResponse Answer(const HttpRequest& request) const {
    std::string_view path = request.target.substr(0, request.target.find('?'));
    const Endpoint endpoint = health_ ? RouteOf(request.target).endpoint : Endpoint::kUnknown;
    const bool live = endpoint == Endpoint::kHealthLive;
    const bool health = live || endpoint == Endpoint::kHealthReady;
    if (!health && path != "/metrics" && path != "/metrics/")
      return ErrorResponse(404, "Not Found");
    if (request.verb != Verb::kGet && request.verb != Verb::kHead) {
      return MethodNotAllowed("GET, HEAD");
    }
    if (live) return Health("live", health_->Live(), strict_);
    if (health) return Health("ready", health_->Ready(), strict_);
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = text_();
    Compress(ChooseCoding(request.accept_encoding), response);
    return response;
  }

  std::function<std::string()> text_;
  const InferenceService* const health_;
  const bool strict_;
};

}  // namespace

std::unique_ptr<HttpHandler> MakeKServeHandler(const HttpOptions& options,
                                               InferenceService& service, StreamSet* streams) {
  return std::make_unique<KServeHandler>(options, service, streams);
}

std::unique_ptr<HttpHandler> MakeTextHandler(std::function<std::string()> text,
                                             const InferenceService* health, bool strict) {
  return std::make_unique<TextHandler>(std::move(text), health, strict);
}

}  // namespace tactus
