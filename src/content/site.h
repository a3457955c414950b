// One service as seen from here: its records and file contents, from the cache where they are, fetched where not.
//
// Everything has two forms. `try_…` answers at once from memory or the local disk and never touches the network;
// the asynchronous form fetches what is missing (once, however many ask at the same time: single-flight), stores it
// and then answers. A caller that must not wait tries first. Thread-safe. Callbacks may run on any thread, with no
// lock held. A cancelled waiter is answered `interrupted` at once; the fetch goes on while others wait for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/executor.h"
#include "cache/object_store.h"
#include "cache/record_index.h"
#include "content/event_log.h"
#include "model/tree.h"
#include "remote/client.h"

namespace playfs::content {

/// The bytes of one published file, complete and verified. Cheap to copy, thread-safe.
class Blob {
 public:
  /// `owner` keeps the text alive: content that stands inline in a manifest.
  Blob(std::shared_ptr<const void> owner, std::string_view text);
  explicit Blob(cache::ObjectPtr object);
  [[nodiscard]] std::uint64_t size() const;
  /// Fewer bytes only at the end; `corrupt` where the disk gave back other bytes than were stored.
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const;

 private:
  std::shared_ptr<const void> owner_;
  std::string_view text_;
  cache::ObjectPtr object_;
};

/// A project's record as last seen.
struct Head {
  Project project;
  SteadyTime fetched_at;
};

/// A record of a list without its body.
struct Listed {
  std::string id;
  WallTime created_at;
  std::string name;     ///< projects: name
  std::string project;  ///< revisions: project
};

struct SiteOptions {
  std::chrono::milliseconds refresh{10'000};  ///< how old a head may be before it is asked for again
  bool prefetch = true;
  std::uint64_t file_ceiling = 64 << 20;      ///< bytes; larger files are refused
};

class Site {
 public:
  Site(remote::Client& client, cache::ObjectStore& objects, cache::RecordIndex& records, Executor& executor,
       const Clock& clock, EventLog& events, SiteOptions options);
  ~Site();

  // Revisions are immutable: what was seen once is never fetched again.
  [[nodiscard]] RevisionTreePtr try_revision(const RevisionId& id);
  void revision(const RevisionId& id, CancelToken cancel, Callback<RevisionTreePtr> done);

  // Heads. A head is fresh for `refresh`; then `head` asks again (conditionally), and `try_head` still gives the
  // old one while `is_fresh` says no.
  [[nodiscard]] std::optional<Head> try_head(const ProjectId& id);
  [[nodiscard]] bool is_fresh(const Head& head) const;
  void head(const ProjectId& id, CancelToken cancel, Callback<Head> done);
  /// Asks the service whatever the age; for a publication that has to know.
  void refresh_head(const ProjectId& id, CancelToken cancel, Callback<Head> done);
  /// Keeps asking for the heads of projects in use (touched within the last minutes) every `refresh`; `changed` runs
  /// when a latest_revision differs from what was known, after that revision has been fetched.
  void follow(const ProjectId& id);
  void on_head_changed(std::function<void(const ProjectId&, const RevisionTreePtr&)> changed);

  // Contents.
  [[nodiscard]] std::optional<Blob> try_blob(const FileRef& file);
  void blob(const FileRef& file, CancelToken cancel, Callback<Blob> done);
  /// The size that stat may show without fetching: of content that is here, or claimed by a manifest of a playfs
  /// client (which counts bytes). nullopt: only the content tells; ask for the blob first.
  [[nodiscard]] std::optional<std::uint64_t> size_of(const FileRef& file);
  /// Starts fetching all contents of a revision that are not here, behind whatever is asked for directly.
  void prefetch(const RevisionTreePtr& revision);

  // Lists, newest first, brought up to date by reading pages until something known appears.
  void list(const std::string& collection, CancelToken cancel, Callback<std::shared_ptr<const std::vector<Listed>>> done);
  [[nodiscard]] std::shared_ptr<const std::vector<Listed>> try_list(const std::string& collection);
  /// Any record as pretty JSON, for `records/`, `threads/` and their like; immutable ones come from the cache.
  void record(const std::string& collection, const std::string& id, CancelToken cancel, Callback<Record> done);

  [[nodiscard]] remote::Client& client();
  [[nodiscard]] EventLog& events();

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace playfs::content
