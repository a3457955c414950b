// Project records as last seen: fresh for a while, then requested conditionally, polled while in use, and kept on disk
// so that a mount without the service knows the last state. Also decides, for all views, which revision each project
// shows. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cache/lru.h"
#include "content/lists.h"
#include "content/revisions.h"
#include "content/single_flight.h"
#include "content/site_context.h"

namespace playfs::content {

class Heads {
 public:
  using Changed = std::function<void(const ProjectId&, const RevisionTreePtr&)>;
  using Seen = std::function<void(const ProjectId&)>;

  Heads(SiteContext& context, Revisions& revisions, Lists& lists)
      : context_(context), revisions_(revisions), lists_(lists) {}

  /// From memory or disk, however old.
  [[nodiscard]] std::optional<Head> known(const ProjectId& id);
  [[nodiscard]] bool is_fresh(const Head& head);
  [[nodiscard]] std::optional<SeenHead> newest_seen(const ProjectId& id);
  /// A fresh head, or an old one if the service is away.
  void get(const ProjectId& id, const CancelToken& cancel, Callback<Head> done);
  /// Sends its own request: the answer is no older than this call.
  void refresh(const ProjectId& id, const CancelToken& cancel, Callback<Head> done);
  /// Like get(), with `shown` settled: the latest revision is here, or it is refused and an earlier one is shown. Fails
  /// if nothing is shown.
  void show(const ProjectId& id, const CancelToken& cancel, Callback<Head> done);
  /// Whether the known head needs no request: it is fresh, or kept current by polling.
  [[nodiscard]] bool is_current(const ProjectId& id);
  /// Whether events would have reported a change of the known head, so that it is as of now, however old.
  [[nodiscard]] bool is_told(const ProjectId& id);
  void follow(const ProjectId& id);
  [[nodiscard]] std::set<ProjectId> followed();
  /// An event said that the project's record has changed.
  void heard(const ProjectId& id);
  /// Requests the head if it is followed and not known to be current: one request at a time.
  void bring_up(const ProjectId& id);
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
    std::uint64_t ticket = 0;  ///< increases with the time of the request
    SteadyTime asked_at;
    std::uint64_t period = 0;  ///< of Live
  };
  struct Project {
    std::optional<Head> head;
    void saw(const playfs::Project& project);
    std::optional<SeenHead> newest_seen;
    std::string text;  ///< the record as stored on disk
    std::string etag;
    std::uint64_t applied = 0;    ///< ticket of the request that `head` is from; responses to older ones are outdated
    std::uint64_t period = 0;     ///< of the most recent response's request
    std::uint64_t confirmed = 0;  ///< its ticket
    std::uint64_t heard = 0;      ///< ticket of the last event about it
    bool is_brought_up = false;   ///< a request of bring_up() is in flight
    /// The latest revision that listeners know, or that was known from the start.
    std::optional<RevisionId> announced;
    std::optional<RevisionId> failed;  ///< could not be fetched; already logged
    // Fetches of the latest revision are numbered: an earlier one may finish last, or never.
    std::optional<RevisionId> looked_at;  ///< revision of the last fetch, while pending
    std::uint64_t looks = 0;
    std::uint64_t shown_by = 0;
    SteadyTime touched;
    SteadyTime polled_since;
    bool polled = false;
  };
  using ProjectPtr = std::shared_ptr<Project>;

  /// Whether an event would have reported any change.
  [[nodiscard]] bool is_followed_by_events(const Project& state) const {
    return state.head && state.confirmed >= state.heard && context_.live.is_current(state.period);
  }
  /// Whether the head is current for that reason.
  [[nodiscard]] bool is_told(const Project& state) const {
    return is_followed_by_events(state) && context_.is_told(state.period, state.head->fetched_at);
  }
  static std::string question_of(const ProjectId& id) { return "projects/" + id.text(); }
  ProjectPtr& state_of(const ProjectId& id) PLAYFS_REQUIRES(mutex_);
  /// Call when a project's text or head has another size.
  void count_bytes(const ProjectId& id) PLAYFS_REQUIRES(mutex_);
  void load(const ProjectId& id);
  void ask(const ProjectId& id, Callback<Head> answered);
  Result<Head> arrived(const Request& request, Result<remote::Fetched<playfs::Project>> answer);
  /// `text`: the record in the answer.
  Result<Head> apply(const Request& request, Result<remote::Fetched<playfs::Project>> answer, std::string text,
                     std::optional<cache::StoredRecord>& to_store);
  /// After a response: updates what listeners show.
  void follow_up(const ProjectId& id);
  void settle(const ProjectId& id, const CancelToken& cancel, Callback<Head> done);
  void look_at_latest(const ProjectId& id);
  void latest_came(const ProjectId& id, const RevisionId& revision, std::uint64_t look, Result<RevisionTreePtr> tree);
  void took_over(const ProjectId& id, const RevisionId& previous, const RevisionTreePtr& tree);
  void poll(const ProjectId& id);
  void poll_after(const ProjectId& id, std::chrono::nanoseconds delay);

  static constexpr std::size_t kKept = 4096;      ///< projects with records of ordinary size
  static constexpr std::size_t kOrdinary = 8192;  ///< bytes of one

  SiteContext& context_;
  Revisions& revisions_;
  Lists& lists_;
  SingleFlight<ProjectId, Head> flights_;
  SingleFlight<std::uint64_t, Head> refreshes_;  ///< one flight each, only for cancellation and close()
  std::atomic<std::uint64_t> next_refresh_ = 0;
  Mutex mutex_;
  cache::Lru<ProjectId, ProjectPtr> projects_ PLAYFS_GUARDED_BY(mutex_){kKept * kOrdinary};
  std::uint64_t last_ticket_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::set<ProjectId> followed_ PLAYFS_GUARDED_BY(mutex_);  ///< those that are polled
  SingleFlight<ProjectId, Head> settling_;
  std::vector<std::shared_ptr<const Changed>> changed_ PLAYFS_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const Seen>> seen_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
