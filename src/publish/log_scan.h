// The log of revisions as far as it has to be known: read from the newest record back, each record once.
//
// The log is everybody's, so between two looks at a project there may be tens of thousands of records of others. What
// was read is kept: the ids of this project's revisions, the newest record down from which nothing is missing, and,
// while a pass is under way, the cursor where it stands. All of it is journalled every few pages, when a call is
// interrupted or fails, and with the watermark; so a pass goes on where it stopped, also after a restart, and the next
// one reads only what came in front since.
//
// Blocking. For one thread: the publisher's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "content/event_log.h"
#include "publish/journal.h"
#include "publish/outcome.h"
#include "publish/upstream.h"
#include "wire/cursors.h"

namespace playfs::publish {

class LogScan {
 public:
  struct Limits {
    /// How far behind what was read already a pass reads once more: a node of the service whose clock lags may slip a
    /// revision in below. At most so many pages of it.
    std::chrono::nanoseconds overlap = std::chrono::minutes(10);
    int overlap_pages = 2;
    int unsaved_pages = 8;     ///< read again after a crash, at the most
    int most_pages = 100'000;  ///< of one pass: a list that is longer does not end
    int most_idle_pages = 16;  ///< in a row, which bring nothing
    /// Of the revisions that were found, each counted once: up to four lists name it.
    std::size_t most_found_bytes = 8 << 20;
    int passes_at_once = 3;  ///< for what comes in front while a long pass is read
  };
  struct Parts {
    ProjectId project;
    Upstream& upstream;
    Journal& journal;
    content::EventLog& events;
    std::function<void(std::optional<LogReading>)> progress;  ///< while a pass takes more than a page; then nullopt
  };
  explicit LogScan(Parts parts) : LogScan(std::move(parts), Limits()) {}
  LogScan(Parts parts, Limits limits) : parts_(std::move(parts)), limits_(limits) {}

  /// Reads what is new, down to `from` where the log was never read; nullopt: to where the project begins. Where that
  /// took long, what came in front meanwhile is read too. Returns the project as it was when the newest page was.
  Result<Project> look(std::optional<WallTime> from);
  /// The same without asking for the project, which may be gone.
  Status search(WallTime from);

  /// The project's revisions that were found, from the watermark on.
  [[nodiscard]] const std::map<RevisionId, WallTime>& found() const { return found_; }

  /// Whether a page had it in the pass that came to its end last: it was there then.
  [[nodiscard]] bool has_just_seen(const RevisionId& revision) const { return seen_.contains(revision); }

  /// Head was verified, and was created then: what is older need not be known any more.
  Status verified(WallTime head);
  /// Journals what was found and is not verified.
  Status save();

 private:
  struct Mark {
    std::string id;
    WallTime time;
  };
  /// From the newest record back, as far as it came.
  struct Pass {
    Mark top;
    std::string cursor;  ///< of the page that comes next
    WallTime back_to;
    std::int64_t pages = 0;
    std::int64_t records = 0;
    std::int64_t met_at = 0;  ///< the page with the record down from which all was known; 0: not met yet
    /// Found before it began, and on no page of it so far. Kept with it: it may be interrupted, and the service may
    /// have gone back before it began.
    std::set<RevisionId> unseen;
  };
  struct State {
    WallTime from;             ///< nothing is missing from here
    std::optional<Mark> read;  ///< up to here; nullopt: nothing was read yet
    std::optional<Pass> pass;
  };

  Status load();
  static std::string print(const State& state);
  static std::optional<State> parse(const std::string& text);

  /// Passes from what `first_page` gives, until one of them finds nothing new behind its first page.
  Status catch_up(std::optional<WallTime> from, const std::function<Result<wire::RecordPage>()>& first_page);
  /// Brings the pass that is under way to its end. False: the service does not know its cursor any more.
  Result<bool> finish(std::optional<wire::RecordPage> page);
  /// Whether that was all that the pass has to read.
  bool take_in(const wire::RecordPage& page);
  /// Whether a page goes back to what the pass has passed: a cursor that the service has made something else of.
  [[nodiscard]] bool goes_round(const wire::RecordPage& page) const;
  /// Forgets where the pass stood, and no revision that was found.
  void begin_anew(const std::string& why);
  tl::unexpected<Error> stopped(const std::string& why);
  [[nodiscard]] ScanChange unsaved() const;
  void is_saved();
  void tell(std::optional<LogReading> reading);

  const Parts parts_;
  const Limits limits_;
  bool is_loaded_ = false;
  std::optional<State> state_;
  std::map<RevisionId, WallTime> found_;
  std::size_t found_bytes_ = 0;  ///< of `found_`
  std::set<RevisionId> saved_;   ///< those of `found_` that are journalled, and some that are to be forgotten
  wire::Cursors cursors_;        ///< of this pass
  std::set<RevisionId> seen_;    ///< of the project, in this pass since it last went on
  std::string last_id_;          ///< of the page before
  int idle_pages_ = 0;
  int unsaved_pages_ = 0;
  bool was_short_ = false;  ///< the last pass: it found nothing new behind its first page
  bool is_told_ = false;
};

}  // namespace playfs::publish
