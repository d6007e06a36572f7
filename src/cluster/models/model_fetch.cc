#include "cluster/models/model_fetch.h"

#include <algorithm>

#include "platform/durable_file.h"
#include "platform/repeated_task.h"

namespace tactus {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstWait{200};
constexpr milliseconds kLongestWait{2000};
constexpr int kDeepestNeed = 8;  // of models that need models

}  // namespace

ModelFetch::ModelFetch(ModelStore& store, BlobSource& source, ModelFetchOptions options)
    : store_(store), source_(source), options_(std::move(options)) {
  if (options_.wait) return;
  options_.wait = [](const std::stop_token& stop, milliseconds time) {
    SleepUnlessStopped(time, stop);
  };
}

std::unexpected<Error> ModelFetch::About(const Item& item, Error error) const {
  error.message = "node '" + options_.node + "', model '" + item.model + "', " + item.what + ": " +
                  error.message;
  return std::unexpected(std::move(error));
}

std::unexpected<Error> ModelFetch::Wrong(const Item& item, const Digest& is,
                                         const Digest& should) const {
  return About(item,
               {ErrorCode::kInvalidArgument,
                "what came is " + is.name() + ", and should be " + should.name() +
                    "; it was thrown away. Where the controller's repository has changed, start "
                    "the controller again"});
}

Status ModelFetch::ReadAll(const Digest& digest, std::uint64_t from, const BlobSource::Take& take) {
  std::uint64_t at = from;
  milliseconds pause = kFirstWait;
  for (;;) {
    if (stop_.stop_requested()) return Fail(ErrorCode::kCancelled, "nobody wants it any more");
    Status taken;  // an error of the disk must not look like one of the source
    const Status read = source_.Read(
        digest, at,
        [&](std::string_view bytes) {
          taken = take(bytes);
          if (!taken) return taken;
          at += bytes.size();
          bytes_ += bytes.size();
          pause = kFirstWait;
          said_.clear();
          if (options_.came) options_.came(bytes.size());
          return taken;
        },
        stop_);
    if (!taken || read) return taken;
    if (read.error().code != ErrorCode::kUnavailable) return read;
    if (stop_.stop_requested()) continue;
    if (std::exchange(said_, read.error().message) != read.error().message && options_.log) {
      options_.log("models wait for the controller: " + said_);
    }
    if (options_.busy && options_.busy()) return read;
    options_.wait(stop_, pause);
    pause = std::min(pause * 2, kLongestWait);
  }
}

Expected<Manifest> ModelFetch::BringManifest(const std::string& name, const Digest& digest) {
  if (auto known = store_.FindManifest(digest)) return *std::move(known);
  const Item item{name, "its manifest"};
  std::string text;
  const Status read = ReadAll(digest, 0, [&](std::string_view bytes) -> Status {
    if (text.size() + bytes.size() > kMostManifest) {
      return InvalidArgument("there are more bytes of it than any manifest has");
    }
    text += bytes;
    return {};
  });
  if (!read) return About(item, read.error());
  if (const Digest is = DigestOf(text); is != digest) return Wrong(item, is, digest);
  auto manifest = ParseManifest(text);
  if (!manifest) return About(item, manifest.error());
  if (Status kept = store_.KeepManifest(digest, text); !kept) return About(item, kept.error());
  return manifest;
}

Status ModelFetch::BringBlob(const Item& item, const Digest& digest, std::uint64_t size) {
  auto file = DurableFile::Open(store_.BlobPath(digest));
  if (!file) return About(item, file.error());
  Sha256 sum;
  bool own = file->size() == 0;  // all of it came in this call
  if (!own) {
    const auto had = AddFile(PartOf(store_.BlobPath(digest)), sum);
    if (!had) return About(item, had.error());
    own = *had != file->size() || file->size() > size;
    if (own) {
      (void)sum.Take();
      if (Status empty = file->Empty(); !empty) return About(item, empty.error());
    }
  }
  for (;;) {
    const auto take = [&](std::string_view bytes) -> Status {
      if (file->size() + bytes.size() > size) {
        return InvalidArgument("more came than its " + std::to_string(size) + " bytes; " +
                               "it was thrown away");
      }
      sum.Add(bytes);
      return file->Append(bytes);
    };
    const Status read = file->size() == size ? Status() : ReadAll(digest, file->size(), take);
    const bool gone_wrong = !read && read.error().code == ErrorCode::kInvalidArgument;
    // What fills the disk is not left there.
    if (!read && read.error().code == ErrorCode::kResourceExhausted) (void)file->Empty();
    if (!read && !gone_wrong) return About(item, read.error());
    const Digest is = sum.Take();
    if (read && is == digest) break;
    if (Status empty = file->Empty(); !empty) return About(item, empty.error());
    if (own) return read ? Wrong(item, is, digest) : Status(About(item, read.error()));
    own = true;  // what lay here may be at fault: all of it again
  }
  if (Status kept = file->Keep(); !kept) return About(item, kept.error());
  store_.NoteBlob(digest);
  ++files_;
  return {};
}

Status ModelFetch::Add(const std::string& name, const Digest& digest, int depth,
                       ModelLinks& links) {
  const Item item{name, "its folder"};
  if (!done_.insert({name, digest}).second) return {};
  const auto manifest = BringManifest(name, digest);
  if (!manifest) return std::unexpected(manifest.error());
  wanted_.insert(digest);
  if (depth > kDeepestNeed) {
    return About(item, {ErrorCode::kInvalidArgument, "models need each other too deep"});
  }
  for (const Manifest::Need& each : manifest->needs) {
    if (Status added = Add(each.name, each.manifest, depth + 1, links); !added) return added;
  }
  if (auto own = store_.OwnFolder(name, *manifest)) {
    links.emplace_back(name, *std::move(own));
    return {};
  }
  const auto lacking =
      Lacking(*manifest, [this](const Digest& blob) { return store_.HasBlob(blob); });
  if (Status room = store_.MakeRoomFor(lacking, wanted_); !room) return About(item, room.error());
  for (const Manifest::File& each : lacking) {
    const Item blob{name, "file '" + each.path + "'"};
    if (Status brought = BringBlob(blob, each.digest, each.size); !brought) return brought;
  }
  auto folder = store_.Tree(digest, *manifest);
  if (!folder) return About(item, folder.error());
  links.emplace_back(name, *std::move(folder));
  return {};
}

Expected<ModelLinks> ModelFetch::Fetch(const std::string& name, const Digest& digest,
                                       const std::set<Digest>& wanted,
                                       const std::stop_token& stop) {
  stop_ = stop;
  wanted_ = wanted;
  done_.clear();
  bytes_ = 0;
  files_ = 0;
  ModelLinks links;
  if (Status added = Add(name, digest, 0, links); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (options_.log && files_ > 0) {
    options_.log("model " + name + ": " + std::to_string(files_) + " files, " +
                 std::to_string(bytes_) + " bytes came from the controller");
  }
  return links;
}

}  // namespace tactus
