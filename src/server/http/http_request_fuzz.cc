// Bytes of a connection: heads, bodies, pipelining, and each whole request handled as the server
// would. The first byte says in what pieces the rest arrives.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "server/http/fake_service_for_test.h"
#include "server/http/kserve_handler.h"
#include "server/http/request_reader.h"

namespace tactus {
namespace {

// Makes the response at once and checks that there is exactly one.
class OneAnswer final : public Exchange {
 public:
  void Answer(std::move_only_function<HttpResponse()> make) override {
    const HttpResponse response = make();
    CHECK(++answers_ == 1, "a request has one answer");
    CHECK(response.status >= 200 && response.status < 600, "a status is one of HTTP's");
    CHECK(!ResponseHead(response, true).empty(), "a response has a head");
  }
  int answers() const { return answers_; }

 private:
  int answers_ = 0;
};

bool IsControl(std::string_view target) { return target.find("load") != target.npos; }

void Handle(HttpHandler& handler, HttpRequest& request) {
  if (IsControl(request.target)) return;  // answered on another thread
  auto exchange = std::make_shared<OneAnswer>();
  handler.Handle(request, 0, exchange);
  CHECK(exchange->answers() == 1, "a request has an answer");
}

void Run(std::span<const std::uint8_t> bytes, std::size_t piece) {
  static FakeService service;
  static const std::unique_ptr<HttpHandler> handler =
      MakeKServeHandler({.max_body = 1 << 20}, service);
  const auto budget = std::make_shared<ByteBudget>(std::size_t{4} << 20);
  RequestReader reader({.head = 1024, .body = 1 << 20}, [&budget](const RequestHead& head) {
    const bool skips = head.length.value_or(0) % 5 == 4;
    return AdmittedHead{.budget = budget, .skips = skips};
  });
  using State = RequestReader::State;
  while (!bytes.empty()) {
    const std::span<char> space = reader.Space();
    CHECK(!space.empty(), "a reader without a whole request takes bytes");
    const std::size_t n = std::min({space.size(), bytes.size(), piece});
    std::memcpy(space.data(), bytes.data(), n);
    bytes = bytes.subspan(n);
    State state = reader.Commit(n);
    while (state == State::kWhole) {
      Handle(*handler, reader.request());
      reader.request().body_owner = nullptr;
      state = reader.Next();
    }
    reader.TakeContinue();
    if (state == State::kFailed) {
      CHECK(reader.failure().status >= 400, "a failure has a status");
      return;
    }
  }
}

}  // namespace
}  // namespace tactus

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = data[0] == 255 ? SIZE_MAX : data[0] + std::size_t{1};
  tactus::Run(std::span(data + 1, size - 1), piece);
  return 0;
}
