#include "cluster/control/blob_reactor.h"

#include <algorithm>
#include <utility>

#include "cluster/models/digest.h"

namespace tactus {
namespace {

constexpr int kMostAtOnce = 256;  // of all nodes; a node asks for one at a time
constexpr std::uint64_t kPieceBytes = 256 << 10;

}  // namespace

BlobReactor::BlobReactor(std::shared_ptr<const Catalogue> catalogue,
                         const control::BlobRequest& request, std::atomic<int>& under_way)
    : catalogue_(std::move(catalogue)), under_way_(under_way) {
  ++under_way_;
  if (const grpc::Status begun = Begin(request); !begun.ok()) {
    Finish(begun);
  } else {
    Next();
  }
}

BlobReactor::BlobReactor(const grpc::Status& refusal, std::atomic<int>& under_way)
    : under_way_(under_way) {
  ++under_way_;
  Finish(refusal);
}

grpc::Status BlobReactor::Begin(const control::BlobRequest& request) {
  if (under_way_ > kMostAtOnce) {
    return {grpc::StatusCode::UNAVAILABLE, "the controller sends to as many nodes as it may"};
  }
  const auto digest = Digest::Parse(request.digest());
  if (!digest) return {grpc::StatusCode::INVALID_ARGUMENT, "that is not a SHA-256 digest"};
  blob_ = catalogue_ == nullptr ? nullptr : catalogue_->Find(*digest);
  if (blob_ == nullptr) {
    return {grpc::StatusCode::NOT_FOUND,
            "the controller's repository has nothing that is " + digest->name()};
  }
  if (request.offset() > blob_->size) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "the offset is beyond its end"};
  }
  at_ = request.offset();
  if (blob_->file.empty()) return grpc::Status::OK;
  file_.open(blob_->file, std::ios::binary);
  file_.seekg(static_cast<std::streamoff>(at_));
  if (file_) return grpc::Status::OK;
  return {grpc::StatusCode::NOT_FOUND, "the controller cannot read " + blob_->file.string()};
}

// A file that has become shorter ends early: the node sees by the digest that it is another.
void BlobReactor::Next() {
  const std::uint64_t left = std::min(kPieceBytes, blob_->size - at_);
  std::string& data = *piece_.mutable_data();
  if (blob_->file.empty()) {
    data.assign(blob_->text, at_, left);
  } else {
    data.resize(left);
    file_.read(data.data(), static_cast<std::streamsize>(left));
    data.resize(static_cast<std::size_t>(file_.gcount()));
  }
  if (data.empty()) return Finish(grpc::Status::OK);
  at_ += data.size();
  StartWrite(&piece_);
}

void BlobReactor::OnWriteDone(bool ok) {
  if (!ok) return Finish(grpc::Status::CANCELLED);
  Next();
}

void BlobReactor::OnDone() {
  --under_way_;
  delete this;
}

}  // namespace tactus
