// The project as its service has it: every request that a publication makes, as calls that wait. What the engine is
// given, so that a simulator can stand in the service's place.
//
// For one thread. An error that time may heal (rest.h) says nothing about whether the request was carried out.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "content/site.h"
#include "model/bytes.h"
#include "publish/journal.h"
#include "wire/records.h"

namespace playfs::publish {

/// Told of chunks that were stored, `chunk` set, as they come in, perhaps without their bodies. An error ends the
/// sending.
using Acknowledged = std::function<Status(const std::vector<Upload>&)>;

using ChunkLookedFor = std::function<void(const ChunkId& id, bool is_there)>;

/// Where head stands and the newest revisions of all projects, asked for at the same time.
struct Look {
  Project project;
  wire::RecordPage newest;
};

class Upstream {
 public:
  virtual ~Upstream() = default;

  /// By a request of its own, whatever is known. Fails with `not_found` where the project is gone.
  virtual Result<Project> project() = 0;
  /// By the newest of its records that this process has read.
  virtual std::optional<content::SeenHead> newest_seen_head() { return std::nullopt; }
  virtual Result<Look> look() = 0;
  /// A page of a collection, newest first.
  virtual Result<wire::RecordPage> page(const std::string& collection, const std::string& cursor) = 0;
  virtual Result<Record> get(const std::string& collection, const std::string& id) = 0;
  /// With all of its files, also those that stand in a continuation.
  virtual Result<RevisionTreePtr> revision(const RevisionId& id) = 0;
  /// The bytes of an entry, checked. `near`: a revision that has it, or one of the same project. They stand on the
  /// local disk, and may hold a descriptor for as long as they are kept.
  virtual Result<Bytes> content(const RevisionTreePtr& near, const std::string& path, const FileEntry& entry) = 0;
  virtual Result<std::vector<FileChunk>> chunks(const std::vector<ChunkId>& ids) = 0;
  /// Asks the service for each, whatever is in the cache. What is answered is told also where others fail, and so the
  /// call.
  virtual Status look_for_chunks(const std::vector<ChunkId>& ids, const ChunkLookedFor& answered);

  /// Sent again with the same key and the same bytes until it is answered, or fails.
  virtual Result<Record> create(const std::string& collection, const Json& body, const std::string& key) = 0;
  /// Sends every upload that has no chunk yet, each under its own key. Returns when none is outstanding. After an error
  /// nothing new is sent, what is outstanding is still taken in, and the error is returned; of several errors one that
  /// will not heal.
  virtual Status upload(const std::vector<Upload>& uploads, const Acknowledged& acknowledged) = 0;
  /// Sent at once and once, or not at all.
  virtual Status move_head(const RevisionId& to) = 0;

  /// A record that the service has just given: it need not be asked for.
  virtual void learn(const std::string& collection, const Record& record) = 0;
};

/// The service behind a Site, which must outlive it.
class SiteUpstream final : public Upstream {
 public:
  SiteUpstream(content::Site& site, ProjectId project, std::size_t parallel)
      : site_(site), project_(std::move(project)), parallel_(parallel) {}

  /// What ends the waiting of the calls from now on.
  void until(CancelToken cancel) { cancel_ = std::move(cancel); }

  Result<Project> project() override;
  std::optional<content::SeenHead> newest_seen_head() override { return site_.newest_seen_head(project_); }
  Result<Look> look() override;
  Result<wire::RecordPage> page(const std::string& collection, const std::string& cursor) override;
  Result<Record> get(const std::string& collection, const std::string& id) override;
  Result<RevisionTreePtr> revision(const RevisionId& id) override;
  Result<Bytes> content(const RevisionTreePtr& near, const std::string& path, const FileEntry& entry) override;
  Result<std::vector<FileChunk>> chunks(const std::vector<ChunkId>& ids) override;
  Status look_for_chunks(const std::vector<ChunkId>& ids, const ChunkLookedFor& answered) override;
  Result<Record> create(const std::string& collection, const Json& body, const std::string& key) override;
  Status upload(const std::vector<Upload>& uploads, const Acknowledged& acknowledged) override;
  Status move_head(const RevisionId& to) override;
  void learn(const std::string& collection, const Record& record) override { site_.learn(collection, record); }

 private:
  content::Site& site_;
  const ProjectId project_;
  const std::size_t parallel_;
  CancelToken cancel_;
};

}  // namespace playfs::publish
