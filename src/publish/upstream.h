// The project at its service: every request that a publication makes, as blocking calls. An interface, so that a
// simulator can replace the service.
//
// For one thread. An error that time may cure (backoff.h) says nothing about whether the request was carried out.
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

/// Called with stored chunks, `chunk` set, as they arrive, perhaps without their bodies. An error stops the upload.
using Acknowledged = std::function<Status(const std::vector<Upload>&)>;

using ChunkLookedFor = std::function<void(const ChunkId& id, const Record* found)>;

/// The project with its head, and the newest revisions of all projects, requested at the same time.
struct Look {
  Project project;
  wire::RecordPage newest;
};

class Upstream {
 public:
  virtual ~Upstream() = default;

  /// Fails with `interrupted` if nobody waits for the result any more: requests fail by themselves then, but content
  /// that is on the local disk is returned.
  [[nodiscard]] virtual Status check_wanted() const { return {}; }

  /// Sends a request of its own, whatever is cached. Fails with `not_found` if the project is gone.
  virtual Result<Project> project() = 0;
  /// According to the newest of its records that this process has read.
  virtual std::optional<content::SeenHead> newest_seen_head() { return std::nullopt; }
  virtual Result<Look> look() = 0;
  /// A page of a collection, newest first.
  virtual Result<wire::RecordPage> page(const std::string& collection, const std::string& cursor) = 0;
  virtual Result<Record> get(const std::string& collection, const std::string& id) = 0;
  /// The id of the record that has a name here, by the one rule for names (content/names.h); "" if none carries it.
  virtual Result<std::string> holder_of(const std::string& collection, const std::string& name) = 0;
  /// Whether the record carries the name, as far as that is known without a request.
  virtual bool may_carry(const std::string& collection, const std::string& id, const std::string& name) = 0;
  /// With all of its files, including those in a continuation.
  virtual Result<RevisionTreePtr> revision(const RevisionId& id) = 0;
  /// The bytes of an entry, verified. `near`: a revision that has it, or one of the same project. The bytes are on the
  /// local disk, and may hold a descriptor as long as they are kept.
  virtual Result<Bytes> content(const RevisionTreePtr& near, const std::string& path, const FileEntry& entry) = 0;
  virtual Result<std::vector<FileChunk>> chunks(const std::vector<ChunkId>& ids) = 0;
  /// Requests each of them from the service, bypassing the cache. Reports those that are answered even if others, and
  /// so the call, fail.
  virtual Status look_for_chunks(const std::vector<ChunkId>& ids, const ChunkLookedFor& answered);

  /// Repeats the request with the same key and bytes until it is answered or fails.
  virtual Result<Record> create(const std::string& collection, const Json& body, const std::string& key) = 0;
  /// Sends every upload that has no chunk yet, each under its own key. Returns when none is outstanding. After an error
  /// it starts no more, still processes those outstanding, and returns the error; of several, one that time does not
  /// cure.
  virtual Status upload(const std::vector<Upload>& uploads, const Acknowledged& acknowledged) = 0;
  /// Sent at once and once, or not at all.
  virtual Status move_head(const RevisionId& to) = 0;

  /// Takes a record that the service has just returned, so that it need not be requested.
  virtual void learn(const std::string& collection, const Record& record) = 0;
};

/// The service behind a Site, which must outlive this object.
class SiteUpstream final : public Upstream {
 public:
  SiteUpstream(content::Site& site, ProjectId project, std::size_t parallel)
      : site_(site), project_(std::move(project)), parallel_(parallel) {}

  /// The token that interrupts all calls from now on.
  void until(CancelToken cancel) { cancel_ = std::move(cancel); }

  [[nodiscard]] Status check_wanted() const override;
  Result<Project> project() override;
  std::optional<content::SeenHead> newest_seen_head() override { return site_.newest_seen_head(project_); }
  Result<Look> look() override;
  Result<wire::RecordPage> page(const std::string& collection, const std::string& cursor) override;
  Result<Record> get(const std::string& collection, const std::string& id) override;
  Result<std::string> holder_of(const std::string& collection, const std::string& name) override;
  bool may_carry(const std::string& collection, const std::string& id, const std::string& name) override;
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
