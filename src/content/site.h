// The client side of one service: its records and file contents, from the cache or fetched.
//
// Every operation has two forms. `try_…` answers immediately from memory or local disk and never uses the network. A
// record may have megabytes, which take long to parse; `…_at_once` reports that instead of parsing them, for threads
// that others wait for. The asynchronous form fetches what is missing (once for all concurrent callers:
// single-flight), stores it and then answers. Callers that must not wait try first.
//
// Thread-safe. Callbacks may run on any thread, without a lock held, possibly before the call returns. A cancelled
// waiter is answered `interrupted` at once; the fetch continues for others and for the cache.
//
// Constructor arguments must outlive the Site. The destructor answers all waiters with `interrupted` and waits for
// running callbacks: do not destroy a Site from one of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "cache/object_store.h"
#include "cache/record_index.h"
#include "content/blob.h"
#include "content/event_log.h"
#include "content/patience.h"
#include "content/types.h"
#include "model/tree.h"
#include "remote/client.h"
#include "remote/event_stream.h"

namespace playfs::content {

class Site {
 public:
  Site(remote::Client& client, cache::ObjectStore& objects, cache::RecordIndex& records, Executor& executor,
       const Clock& clock, EventLog& events, SiteOptions options);
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  // Events. Where the service offers them, one connection is held from the first use on, and known data stays fresh and
  // current until an event names it; otherwise, and while the connection is lost, its age decides.
  /// Without this call, events are not used. REQUIRES: called before any other; `random` outlives the Site.
  void use_events(Random& random);
  /// `changed` runs for each record that an event reports as changed, by us too, in order. `belongs_to` is a message's
  /// thread, or a revision's project. All arguments are empty if events were missed, so that any record may have
  /// changed.
  void on_record_changed(
      std::function<void(const std::string& collection, const std::string& id, const std::string& belongs_to)> changed);
  [[nodiscard]] remote::EventStream::State events_state() const;

  // Revisions are immutable: one seen once is never fetched again.
  [[nodiscard]] RevisionTreePtr try_revision(const RevisionId& id);
  [[nodiscard]] RevisionAtOnce revision_at_once(const RevisionId& id);
  /// `of`: the project, for callers that request many.
  void revision(const RevisionId& id, CancelToken cancel, Callback<RevisionTreePtr> done, const ProjectId& of = {});

  /// Whether the service recently said that it has no such revision, so that a history may skip it without asking
  /// again. No publishing decision uses it: revision() always asks.
  [[nodiscard]] bool was_absent(const RevisionId& id);
  /// The same for a parent, which matters less: for longer, and also if another process was told. Does local I/O.
  [[nodiscard]] bool was_absent_lately(const RevisionId& id);

  // Heads. A head is fresh for `refresh`; afterwards `head` asks again (conditionally), while `try_head` still returns
  // the old one and `is_fresh` returns false.
  [[nodiscard]] std::optional<Head> try_head(const ProjectId& id);
  [[nodiscard]] bool is_fresh(const Head& head) const;
  /// From the newest record that this process has read, in any order, or found in the cache: a replica of the service
  /// may lag behind the one that answered before.
  [[nodiscard]] std::optional<SeenHead> newest_seen_head(const ProjectId& id);
  void head(const ProjectId& id, CancelToken cancel, Callback<Head> done);
  /// Asks the service whatever the head's age, for publications.
  void refresh_head(const ProjectId& id, CancelToken cancel, Callback<Head> done);
  /// Polls the heads of projects in use (followed within the last minutes) every `refresh`. Cheap: call it on each use.
  /// `changed` runs when latest_revision differs from what was known (even to an earlier process), after that revision
  /// has been fetched; with nullptr if the project no longer has one.
  void follow(const ProjectId& id);
  void on_head_changed(std::function<void(const ProjectId&, const RevisionTreePtr&)> changed);
  /// `seen` runs whenever the service has reported a project's head, moved or not, once the revision to show is here,
  /// so that views can compare.
  void on_head_seen(std::function<void(const ProjectId&)> seen);
  /// Like head(), with `shown` brought up to date. Fails if the project shows nothing.
  void shown_head(const ProjectId& id, CancelToken cancel, Callback<Head> done);
  /// Whether a known head needs no request: it is fresh, or kept current by follow().
  [[nodiscard]] bool is_current(const ProjectId& id);
  /// Whether events would have reported a change of the known head, so that it is as of now, however old.
  [[nodiscard]] bool is_told(const ProjectId& id);
  /// How long to wait for news of known data.
  [[nodiscard]] Patience& patience();

  // Contents. A mismatch with claims fails with `corrupt`, excessive size with `refused_input`. The reason is logged
  // once, and repeated calls fail the same way for `refresh` before the service is asked again.
  [[nodiscard]] std::optional<Blob> try_blob(const FileRef& file);
  void blob(const FileRef& file, CancelToken cancel, Callback<Blob> done);
  /// The size that stat may show without a fetch: of content that is here, or claimed by a manifest that seems to be
  /// from a playfs client (which counts bytes) and was not found wrong. nullopt: only the content tells, so get the
  /// blob first. Callers that have shown a size must compare it with the blob's before returning bytes, because readers
  /// stop at the reported size.
  [[nodiscard]] std::optional<std::uint64_t> size_of(const FileRef& file);
  /// How much of contents has arrived from the service so far, as it was encoded. For showing progress.
  [[nodiscard]] std::uint64_t bytes_arrived() const;
  /// Starts fetching all missing contents of a revision, with lower priority than direct requests.
  void prefetch(const RevisionTreePtr& revision);

  // Lists, newest first, updated by reading pages until a known record appears. Each call asks; if the service is away,
  // the last known list is returned. Names longer than any path component are dropped.
  void list(const std::string& collection, CancelToken cancel, Callback<ListPtr> done);
  [[nodiscard]] ListPtr try_list(const std::string& collection);
  /// The same for callers that do not need the whole list: its records that belong to `owner` (a thread's messages;
  /// nullptr: the list is not, or no longer, known), and the request. Their cost does not depend on the length of the
  /// list.
  [[nodiscard]] ListPtr try_list_of(const std::string& collection, const std::string& owner);
  void update_list(const std::string& collection, CancelToken cancel, Callback<void> done);
  /// try_list_of() without records that we created and no page has shown yet: in the service's order, which never
  /// changes later.
  [[nodiscard]] ListPtr try_list_of_as_read(const std::string& collection, const std::string& owner);
  /// Whether it has all records; otherwise its oldest ones did not fit `list_bytes`.
  [[nodiscard]] bool is_list_whole(const std::string& collection);
  [[nodiscard]] bool is_list_fresh(const std::string& collection);
  /// Whether the known list is current because an event would have reported any change. Then nobody needs to ask. A
  /// current list of threads or messages also has what we created in its place.
  [[nodiscard]] bool is_list_told(const std::string& collection);
  /// Whether the service did not show all known records when it was last asked for the list. It may have lost them;
  /// they stay listed until it has lacked them for a minute.
  [[nodiscard]] bool is_list_lacking(const std::string& collection);
  /// Call when the list is shown: for the next minutes it is reread, and listeners are notified, as soon as an event
  /// reports a change. Cheap: call it on each use.
  void follow_list(const std::string& collection);
  /// Call when names of the list were shown: from time to time this reads one of its older pages for new names.
  void names_were_shown(const std::string& collection);
  /// `changed` runs when a known list has changed.
  void on_list_changed(std::function<void(const std::string& collection, const ListChange& change)> changed);
  /// Any record, for `records/`, `threads/` and the like. Immutable ones come from the cache; others are requested each
  /// time and returned as last seen if the service is away.
  void record(const std::string& collection, const std::string& id, CancelToken cancel, Callback<Record> done);
  /// The same, unparsed.
  void record_text(const std::string& collection, const std::string& id, CancelToken cancel,
                   Callback<RecordTextPtr> done);
  /// Whether try_record() is current because an event would have reported any change. Then nobody needs to ask.
  [[nodiscard]] bool is_record_told(const std::string& collection, const std::string& id);
  [[nodiscard]] std::optional<Record> try_record(const std::string& collection, const std::string& id);
  /// What `reduce` returns for a record, nothing if it is unreadable. Cached as long as the record does not change.
  [[nodiscard]] PartAtOnce part_of(const RecordText& text, Reduce reduce, Reads reads);
  /// The same of try_record().
  [[nodiscard]] PartAtOnce known_part(const std::string& collection, const std::string& id, Reduce reduce, Reads reads);
  /// nullopt if the text was evicted: make the part again.
  [[nodiscard]] std::optional<std::string> read_text(const Text& text, std::uint64_t offset, std::size_t size);
  /// Stores a record that the service has just returned for a POST, so that it need not be fetched, and lists it from
  /// now on. Returns it unparsed. REQUIRES: the complete record, as the service sent it.
  RecordText learn(const std::string& collection, const Record& record);

  /// The same of the record that the service has returned for a PATCH.
  void relearn(const std::string& collection, const Record& record);

  /// Notes, for all processes with this cache, that `agent` published these contents of files that give instructions to
  /// agents from here (model/instructions.h). Nothing else proves it: a handle is a claim.
  void note_instructions(const std::string& agent, const std::vector<ContentHash>& contents);
  /// Which of the manifest's files that do have such a content; none if there are very many. Does local I/O.
  [[nodiscard]] std::set<std::string> own_instructions(const std::string& agent, const Manifest& manifest);

  /// Exempts this revision's record from cache eviction, in place of the one kept for `owner` before: the base of a
  /// work tree, without which its staged changes cannot be shown. An empty id keeps none.
  void keep(const std::string& owner, const RevisionId& id);

  /// What is wrong with the cache on disk, while that lasts. Everything works without it, with more fetches.
  [[nodiscard]] std::optional<Error> cache_trouble() const;

  [[nodiscard]] remote::Client& client();
  [[nodiscard]] EventLog& events();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace playfs::content
