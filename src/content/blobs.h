// Contents of published files: inline, in the object store, or put together from chunks; verified. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "cache/lru.h"
#include "content/blob.h"
#include "content/chunks.h"
#include "content/context.h"
#include "content/single_flight.h"
#include "model/tree.h"

namespace playfs::content {

class Blobs {
 public:
  Blobs(Context& context, Chunks& chunks) : context_(context), chunks_(chunks) {}

  /// Nothing where the content is not here, or not right. Does local I/O.
  [[nodiscard]] std::optional<Blob> known(const FileRef& file);
  /// REQUIRES for `ahead`: called on the executor.
  void get(const FileRef& file, Urgency urgency, const CancelToken& cancel, Callback<Blob> done);
  /// See Site::size_of.
  [[nodiscard]] std::optional<std::uint64_t> size_of(const FileRef& file);
  void close() { flights_.close(); }

 private:
  struct Assembly;
  using AssemblyPtr = std::shared_ptr<Assembly>;

  [[nodiscard]] std::optional<Blob> stored(const FileRef& file);
  /// The content of that origin, where it was put together once: what its own hash and size do not name.
  [[nodiscard]] std::optional<ContentHash> content_of(const std::string& key);
  void start(const AssemblyPtr& assembly);
  void chunk_arrived(const AssemblyPtr& assembly, const ChunkId& id, Result<ChunkPtr> chunk);
  Result<Blob> finish(Assembly& assembly);
  void end(const AssemblyPtr& assembly, Result<Blob> result);
  Callback<Blob> with_check_of_name(const FileRef& file, Callback<Blob> done);
  /// Tells the reason, and answers whoever asks again at once, for a while.
  Error refuse(const FileRef& file, const std::string& key, const Error& why);
  [[nodiscard]] std::optional<Error> refused_before(const std::string& key);

  struct Refusal {
    Error error;
    SteadyTime at;
  };
  static constexpr std::size_t kKeptRefusals = 256;
  static constexpr std::size_t kKeptOrigins = 4096;

  Context& context_;
  Chunks& chunks_;
  SingleFlight<std::string, Blob> flights_;  // by origin_key
  Mutex mutex_;
  std::unordered_map<std::string, AssemblyPtr> assemblies_ PLAYFS_GUARDED_BY(mutex_);
  cache::Lru<std::string, Refusal> refusals_ PLAYFS_GUARDED_BY(mutex_){kKeptRefusals};
  /// What the index of records holds of them too, where that can be written: without one or the other, content that is
  /// found by its origin alone would be fetched for each read, and never be found.
  cache::Lru<std::string, ContentHash> origins_ PLAYFS_GUARDED_BY(mutex_){kKeptOrigins};
};

}  // namespace playfs::content
