// Projects' records as last seen: fresh for a while, asked for again conditionally, followed while in use, kept on
// disk so that a mount without the service knows where it was. Also which revision each project shows: here alone is
// decided whether its latest one may be. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/lru.h"
#include "content/context.h"
#include "content/lists.h"
#include "content/revisions.h"
#include "content/single_flight.h"

namespace playfs::content {

class Heads {
 public:
  using Changed = std::function<void(const ProjectId&, const RevisionTreePtr&)>;
  using Seen = std::function<void(const ProjectId&)>;

  Heads(Context& context, Revisions& revisions, Lists& lists)
      : context_(context), revisions_(revisions), lists_(lists) {}

  /// From memory or the disk, however old.
  [[nodiscard]] std::optional<Head> known(const ProjectId& id);
  [[nodiscard]] bool is_fresh(const Head& head) const;
  [[nodiscard]] std::optional<SeenHead> newest_seen(const ProjectId& id);
  /// A fresh one; an old one where the service is away.
  void get(const ProjectId& id, const CancelToken& cancel, Callback<Head> done);
  /// Sends a request of its own: the answer is no older than this call.
  void refresh(const ProjectId& id, const CancelToken& cancel, Callback<Head> done);
  /// As get(), and what it shows is what it says: its latest revision is here, or it is refused and another one is
  /// shown. Fails where nothing is.
  void show(const ProjectId& id, const CancelToken& cancel, Callback<Head> done);
  /// Whether what is known needs no question: it is fresh, or followed and so as new as that keeps it.
  [[nodiscard]] bool is_current(const ProjectId& id);
  void follow(const ProjectId& id);
  void on_changed(Changed changed);
  void on_seen(Seen seen);
  void close() {
    flights_.close();
    refreshes_.close();
    settling_.close();
  }

 private:
  struct Request {
    ProjectId id;
    std::uint64_t ticket = 0;  ///< grows with the time of asking
    SteadyTime asked_at;
  };
  struct Project {
    std::optional<Head> head;
    void saw(const playfs::Project& project);
    std::optional<SeenHead> newest_seen;
    std::string text;  ///< the record as it is on disk
    std::string etag;
    std::uint64_t applied = 0;  ///< ticket of the newest request whose answer `head` is; older answers come too late
    /// The latest revision that listeners know of, or that was there from the beginning.
    std::optional<RevisionId> announced;
    std::optional<RevisionId> failed;  ///< could not be fetched, for a reason that was told
    // Looks at the latest revision, by their number: an earlier one may come last, or not at all.
    std::optional<RevisionId> looked_at;  ///< by the last one, which has not come yet
    std::uint64_t looks = 0;
    std::uint64_t shown_by = 0;
    SteadyTime touched;
    SteadyTime polled_since;
    bool polled = false;
  };
  using ProjectPtr = std::shared_ptr<Project>;

  ProjectPtr& state_of(const ProjectId& id) PLAYFS_REQUIRES(mutex_);
  void load(const ProjectId& id);
  void ask(const ProjectId& id, Callback<Head> answered);
  Result<Head> arrived(const Request& request, Result<remote::Fetched<playfs::Project>> answer);
  Result<Head> apply(const Request& request, Result<remote::Fetched<playfs::Project>> answer,
                     std::optional<cache::StoredRecord>& to_store);
  /// After an answer: brings up what listeners show.
  void follow_up(const ProjectId& id);
  void settle(const ProjectId& id, const CancelToken& cancel, Callback<Head> done);
  void look_at_latest(const ProjectId& id);
  void latest_came(const ProjectId& id, const RevisionId& revision, std::uint64_t look, Result<RevisionTreePtr> tree);
  void took_over(const ProjectId& id, const RevisionId& previous, const RevisionTreePtr& tree);
  void poll(const ProjectId& id);
  void poll_after(const ProjectId& id, std::chrono::nanoseconds delay);

  static constexpr std::size_t kKept = 4096;

  Context& context_;
  Revisions& revisions_;
  Lists& lists_;
  SingleFlight<ProjectId, Head> flights_;
  SingleFlight<std::uint64_t, Head> refreshes_;  ///< each its own flight: for cancellation and close() alone
  std::atomic<std::uint64_t> next_refresh_ = 0;
  Mutex mutex_;
  cache::Lru<ProjectId, ProjectPtr> projects_ PLAYFS_GUARDED_BY(mutex_){kKept};
  std::uint64_t last_ticket_ PLAYFS_GUARDED_BY(mutex_) = 0;
  SingleFlight<ProjectId, Head> settling_;
  std::vector<std::shared_ptr<const Changed>> changed_ PLAYFS_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const Seen>> seen_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
