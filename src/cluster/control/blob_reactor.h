// A node's request for the bytes of a model, as gRPC's callbacks drive its answer: a piece of the
// file in memory at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include <grpcpp/support/server_callback.h>

#include "cluster/models/catalogue.h"
#include "control.pb.h"

namespace tactus {

class BlobReactor final : public grpc::ServerWriteReactor<control::BlobPiece> {
 public:
  // `under_way` counts those that live and outlives them. A null catalogue has no blob.
  BlobReactor(std::shared_ptr<const Catalogue> catalogue, const control::BlobRequest& request,
              std::atomic<int>& under_way);
  // One that refuses.
  BlobReactor(const grpc::Status& refusal, std::atomic<int>& under_way);

 private:
  grpc::Status Begin(const control::BlobRequest& request);
  void Next();
  void OnWriteDone(bool ok) override;
  void OnDone() override;

  const std::shared_ptr<const Catalogue> catalogue_;
  std::atomic<int>& under_way_;
  const Catalogue::Blob* blob_ = nullptr;  // the catalogue's
  std::ifstream file_;
  std::uint64_t at_ = 0;
  control::BlobPiece piece_;
};

}  // namespace tactus
