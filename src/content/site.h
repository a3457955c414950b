// One service as seen from here: its records and file contents, from the cache where they are, fetched where not.
//
// Everything has two forms. `try_…` answers at once from memory or the local disk and never touches the network;
// the asynchronous form fetches what is missing (once, however many ask at the same time: single-flight), stores it
// and then answers. A caller that must not wait tries first. Thread-safe. Callbacks may run on any thread, with no
// lock held, also before the call returns. A cancelled waiter is answered `interrupted` at once; the fetch goes on for
// others, and into the cache.
//
// What the constructor takes must outlive the Site. The destructor answers all who wait with `interrupted` and waits
// for callbacks that are running: do not destroy a Site from one of them.
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
#include "content/blob.h"
#include "content/event_log.h"
#include "content/patience.h"
#include "content/types.h"
#include "model/tree.h"
#include "remote/client.h"

namespace playfs::content {

class Site {
 public:
  Site(remote::Client& client, cache::ObjectStore& objects, cache::RecordIndex& records, Executor& executor,
       const Clock& clock, EventLog& events, SiteOptions options);
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  // Revisions are immutable: what was seen once is never fetched again.
  [[nodiscard]] RevisionTreePtr try_revision(const RevisionId& id);
  /// `of`: the project, for whoever asks for many.
  void revision(const RevisionId& id, CancelToken cancel, Callback<RevisionTreePtr> done, const ProjectId& of = {});

  /// Whether the service said a while ago that it has no such revision, so that a history may leave it out without
  /// asking again. Nothing that decides what is published goes by it: revision() always asks.
  [[nodiscard]] bool was_absent(const RevisionId& id);

  // Heads. A head is fresh for `refresh`; then `head` asks again (conditionally), and `try_head` still gives the
  // old one while `is_fresh` says no.
  [[nodiscard]] std::optional<Head> try_head(const ProjectId& id);
  [[nodiscard]] bool is_fresh(const Head& head) const;
  /// By the newest of the records that this process has read, in whatever order, or found in the cache: a replica of
  /// the service may be behind the one that answered before.
  [[nodiscard]] std::optional<SeenHead> newest_seen_head(const ProjectId& id);
  void head(const ProjectId& id, CancelToken cancel, Callback<Head> done);
  /// Asks the service whatever the age; for a publication that has to know.
  void refresh_head(const ProjectId& id, CancelToken cancel, Callback<Head> done);
  /// Keeps asking for the heads of projects in use (followed anew within the last minutes) every `refresh`. Cheap:
  /// call it whenever the project is used. `changed` runs when a latest_revision differs from what was known (also
  /// to an earlier process), after that revision has been fetched; with nullptr where the project has none any more.
  void follow(const ProjectId& id);
  void on_head_changed(std::function<void(const ProjectId&, const RevisionTreePtr&)> changed);
  /// `seen` runs whenever the service has said where a project's head is, moved or not, once what that shows is here:
  /// for whoever shows something, to compare.
  void on_head_seen(std::function<void(const ProjectId&)> seen);
  /// As head(), and `shown` is up to date with it. Fails where the project shows nothing.
  void shown_head(const ProjectId& id, CancelToken cancel, Callback<Head> done);
  /// Whether a head that is known needs no question: it is fresh, or it is being followed.
  [[nodiscard]] bool is_current(const ProjectId& id);
  /// For how long to wait for news of what is known.
  [[nodiscard]] Patience& patience();

  // Contents. What does not match its claims fails with `corrupt`, what is too large with `refused_input`; the reason
  // goes to the event log once, and the same answer is given for `refresh` before the service is asked again.
  [[nodiscard]] std::optional<Blob> try_blob(const FileRef& file);
  void blob(const FileRef& file, CancelToken cancel, Callback<Blob> done);
  /// The size that stat may show without fetching: of content that is here, or claimed by a manifest that seems to be a
  /// playfs client's (which counts bytes) and was not found to be wrong. nullopt: only the content tells; ask for the
  /// blob first. Whoever has shown a size compares it with the blob's before giving out bytes by it: readers stop where
  /// they were told that the file ends.
  [[nodiscard]] std::optional<std::uint64_t> size_of(const FileRef& file);
  /// Starts fetching all contents of a revision that are not here, behind whatever is asked for directly.
  void prefetch(const RevisionTreePtr& revision);

  // Lists, newest first, brought up to date by reading pages until something known appears.
  // Each call asks; where the service is away, the list is answered as it was. Names longer than any path component
  // are left out.
  void list(const std::string& collection, CancelToken cancel, Callback<ListPtr> done);
  [[nodiscard]] ListPtr try_list(const std::string& collection);
  /// Whether it has all records; otherwise its oldest ones did not fit `list_bytes`.
  [[nodiscard]] bool is_list_whole(const std::string& collection);
  [[nodiscard]] bool is_list_fresh(const std::string& collection);
  /// Somebody was shown names of the list: now and then one of its pages further back is read for the names on it.
  void names_were_shown(const std::string& collection);
  /// `changed` runs when a list that was known has become another one.
  void on_list_changed(std::function<void(const std::string& collection)> changed);
  /// Any record, for `records/`, `threads/` and their like; immutable ones come from the cache, others are asked for
  /// each time and answered as last seen where the service is away.
  void record(const std::string& collection, const std::string& id, CancelToken cancel, Callback<Record> done);
  [[nodiscard]] std::optional<Record> try_record(const std::string& collection, const std::string& id);
  /// Keeps a record that the service has just given in answer to a POST, so that it need not be asked for, and lists it
  /// from now on. REQUIRES: the whole record, as the service sent it.
  void learn(const std::string& collection, const Record& record);

  /// From now on this revision's record stays in the cache, however full that gets, and no longer the one kept for
  /// `owner` before: the base of a work tree, without which nothing that is staged on it can be shown. An empty id is
  /// none.
  void keep(const std::string& owner, const RevisionId& id);

  /// What is wrong with the cache on disk, while that lasts: everything goes on without it, and is fetched more often.
  [[nodiscard]] std::optional<Error> cache_trouble() const;

  [[nodiscard]] remote::Client& client();
  [[nodiscard]] EventLog& events();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace playfs::content
