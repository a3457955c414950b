// Verified contents of published files: inline, from the object store, or assembled from chunks. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "cache/lru.h"
#include "content/blob.h"
#include "content/chunks.h"
#include "content/single_flight.h"
#include "content/site_context.h"
#include "model/tree.h"

namespace playfs::content {

class Blobs {
 public:
  Blobs(SiteContext& context, Chunks& chunks) : context_(context), chunks_(chunks) {}

  /// Nothing if the content is missing or wrong. Does local I/O.
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
  /// The object previously assembled for that origin, if its own hash and size do not name it.
  [[nodiscard]] std::optional<ContentHash> content_of(const std::string& key);
  void start(const AssemblyPtr& assembly);
  void chunk_arrived(const AssemblyPtr& assembly, const ChunkId& id, Result<ChunkPtr> chunk);
  Result<Blob> finish(Assembly& assembly);
  void end(const AssemblyPtr& assembly, Result<Blob> result);
  Callback<Blob> with_check_of_name(const FileRef& file, Callback<Blob> done);
  /// Logs the reason and, for a while, answers repeated requests with it at once.
  Error refuse(const FileRef& file, const std::string& key, const Error& why);
  [[nodiscard]] std::optional<Error> refused_before(const std::string& key);

  struct Refusal {
    Error error;
    SteadyTime at;
  };
  static constexpr std::size_t kKeptRefusals = 256;
  static constexpr std::size_t kKeptOrigins = 4096;

  SiteContext& context_;
  Chunks& chunks_;
  SingleFlight<std::string, Blob> flights_;  // by origin_key
  Mutex mutex_;
  std::unordered_map<std::string, AssemblyPtr> assemblies_ PLAYFS_GUARDED_BY(mutex_);
  cache::Lru<std::string, Refusal> refusals_ PLAYFS_GUARDED_BY(mutex_){kKeptRefusals};
  /// Also in the record index, if that is writable. With neither, content found only by origin would be refetched for
  /// every read and never be found.
  cache::Lru<std::string, ContentHash> origins_ PLAYFS_GUARDED_BY(mutex_){kKeptOrigins};
};

}  // namespace playfs::content
