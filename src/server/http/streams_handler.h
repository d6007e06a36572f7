// /v2/streams: video streams, listed, added, removed and watched.
#pragma once

#include <memory>

#include "platform/task_queue.h"
#include "server/http/http_message.h"
#include "server/http/route.h"

namespace tactus {

class StreamSet;

class StreamsHandler {
 public:
  // `streams` outlives the handler.
  StreamsHandler(StreamSet& streams, bool strict_triton)
      : streams_(streams), strict_(strict_triton), waiting_("streams", kWaitingCalls) {}

  // As HttpHandler::Handle, for a route of streams.
  void Handle(const HttpRequest& request, const Route& route, std::shared_ptr<Exchange> exchange);
  void Refuse() { waiting_.Close(); }
  void Stop() { waiting_.Stop(); }

 private:
  static constexpr std::size_t kWaitingCalls = 16;

  HttpResponse Read(const Route& route) const;
  HttpResponse Watch(const Route& route, bool pictures) const;
  void Change(const HttpRequest& request, const Route& route, std::shared_ptr<Exchange> exchange);

  StreamSet& streams_;
  const bool strict_;
  TaskQueue waiting_;  // a stream's end waits for its last frame
};

}  // namespace tactus
