// Reads the log of revisions as far back as necessary: from the newest record backwards, each record once.
//
// All projects share the log, so tens of thousands of foreign records may lie between two looks at a project. The scan
// keeps what it has read: the ids of this project's revisions, the newest record, below which nothing is missing, and
// the cursor of a pass in progress. It journals them every few pages, when a call is interrupted or fails, and with the
// watermark. So a pass resumes where it stopped, also after a restart, and the next one reads only new records.
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
    /// A pass re-reads this far behind what is known, because a node of the service whose clock lags may insert a
    /// revision there. Limited to this many pages.
    std::chrono::nanoseconds overlap = std::chrono::minutes(10);
    int overlap_pages = 2;
    /// How long reads may lag. Pages of one pass may come from different nodes of the service, and what lies between
    /// the last record of one page and the first of the next may be missing for as long. So a pass with new records on
    /// several pages is followed by one that reads those of this time again, once that has passed.
    std::chrono::nanoseconds late_arrival = std::chrono::minutes(2);
    int unsaved_pages = 8;     ///< re-read after a crash, at most
    int most_pages = 100'000;  ///< per pass; a longer list counts as endless
    int most_idle_pages = 16;  ///< in a row that bring nothing new
    /// Size of the revisions found; each is counted once, though up to four containers hold it.
    std::size_t most_found_bytes = 8 << 20;
    int passes_at_once = 3;  ///< to catch up with records added during a long pass
  };
  struct Parts {
    ProjectId project;
    Upstream& upstream;
    Journal& journal;
    content::EventLog& events;
    const Clock& clock;
    /// Called while a pass takes more than a page, then with nullopt.
    std::function<void(std::optional<LogReading>)> progress;
  };
  explicit LogScan(Parts parts) : LogScan(std::move(parts), Limits()) {}
  LogScan(Parts parts, Limits limits) : parts_(std::move(parts)), limits_(limits) {}

  /// Reads what is new, back to `from` if the log was never read; nullopt: back to the project's creation. If that took
  /// long, reads what was added meanwhile too. Returns the project as it was when the newest page was read.
  Result<Project> look(std::optional<WallTime> from);
  /// Like look(), but does not request the project, which may be gone.
  Status search(WallTime from);

  /// The project's revisions that were found, from the watermark on.
  [[nodiscard]] const std::map<RevisionId, WallTime>& found() const { return found_; }

  /// Whether the last completed pass found it on a page, so that it was there then.
  [[nodiscard]] bool has_just_seen(const RevisionId& revision) const { return seen_.contains(revision); }

  /// Head was verified and was created at `head`; older revisions need not be known any more.
  Status verified(WallTime head);
  /// Journals what was found and is not verified.
  Status save();

 private:
  struct Mark {
    std::string id;
    WallTime time;
  };
  /// A pass from the newest record backwards, and how far it got.
  struct Pass {
    Mark top;
    std::string cursor;  ///< of the next page
    WallTime back_to;
    std::int64_t pages = 0;
    std::int64_t records = 0;
    std::int64_t met_at = 0;  ///< the page from which on everything was known; 0: not reached yet
    /// Reads again at least back to there.
    std::optional<WallTime> again;
    /// Found before the pass began, and on none of its pages so far. Journalled with the pass: it may be interrupted,
    /// and the service may have gone back before it began.
    std::set<RevisionId> unseen;
  };
  struct State {
    WallTime from;             ///< nothing is missing from here on
    std::optional<Mark> read;  ///< up to here; nullopt: nothing was read yet
    /// Pages from then on may have gaps between them, and are to be read again.
    std::optional<WallTime> again;
    /// The same for pages read after those. They are read again later, once reads have caught up with them.
    std::optional<WallTime> again_later;
    std::optional<Pass> pass;
  };

  Status load();
  static std::string print(const State& state);
  static std::optional<State> parse(const std::string& text);

  /// Makes passes, each starting with `first_page`, until one finds nothing new behind its first page.
  Status catch_up(std::optional<WallTime> from, const std::function<Result<wire::RecordPage>()>& first_page);
  /// Completes the current pass. False if the service does not know its cursor any more.
  Result<bool> finish(std::optional<wire::RecordPage> page);
  /// Returns whether the pass is complete.
  bool take_in(const wire::RecordPage& page);
  /// Whether the page returns to records that the pass is past: the service changed the cursor's meaning.
  [[nodiscard]] bool goes_round(const wire::RecordPage& page) const;
  void begin_pass();
  /// Drops the position of the pass, but none of the revisions found.
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
  std::set<RevisionId> saved_;   ///< those of `found_` that are journalled, and some that have to be removed
  wire::Cursors cursors_;        ///< of this pass
  std::set<RevisionId> seen_;    ///< the project's revisions in this pass, since it last resumed
  std::string last_id_;          ///< of the previous page
  int idle_pages_ = 0;
  int unsaved_pages_ = 0;
  SteadyTime has_gaps_since_;  ///< when `State::again` was set, or read from the journal
  SteadyTime last_gaps_;       ///< when a pass last read several new pages, likewise
  bool was_short_ = false;     ///< the last pass found nothing new behind its first page
  bool is_told_ = false;
};

}  // namespace playfs::publish
