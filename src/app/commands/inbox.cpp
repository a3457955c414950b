// playfs inbox: what is new for this agent, and waiting for it.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "app/commands/conversation.h"
#include "app/conversation.h"
#include "app/deferred_signals.h"
#include "app/inbox_source.h"
#include "app/json_fields.h"
#include "app/record_reading.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

using std::chrono::milliseconds;

/// How often to look up names again, which may cost requests.
constexpr std::chrono::seconds kLookAgain{10};

ShellCommand next_of(const InboxItem& shown) {
  if (shown.is_mail) return {{"mail", "show"}, {shown.record.id}};
  return {{"post"}, {text_of(shown.record.fields, "thread")}, {"--reply-to", shown.record.id, "-m", "…"}};
}

void print(CommandContext& context, const InboxItem& shown) {
  Output& out = context.out;
  const JsonObject& fields = shown.record.fields;
  if (shown.is_mail) {
    print_answer(out, shown.record);
    out.line("  to your mail: " + safe(text_of(fields, "subject")));
  } else {
    print_message(out, shown.record, {});
    out.line("  in: " + safe(shown.title.empty() ? text_of(fields, "thread") : shown.title));
  }
  out.line("  " + safe(context.next_command(next_of(shown))));
}

JsonObject document_of(const CommandContext& context, const InboxItem& shown) {
  return JsonObject{{"collection", shown.is_mail ? "domain_mail" : "messages"},
                    {"new", !shown.entry.is_seen},
                    {"title", shown.title},
                    {"next", context.next_command(next_of(shown))},
                    {"record", wire::encode_record(shown.record)}};
}

using Clock = std::chrono::steady_clock;

/// Waits until there may be something new.
void wait(InboxSource& source, Clock::time_point end) {
  const auto left = std::clamp<Clock::duration>(end - Clock::now(), milliseconds(0), kLookAgain - milliseconds(1));
  source.wait(std::chrono::duration_cast<milliseconds>(left) + milliseconds(1));
}

/// The entries, once there is a new one or `end` has come. While the service is unreachable, waits for it.
Result<std::vector<InboxSource::Entry>> entries_of(InboxSource& source, const InboxArguments& arguments,
                                                   Clock::time_point end) {
  for (;;) {
    auto entries = source.entries(arguments.all, end);
    const bool is_away = !entries && is_transient(entries.error().code);
    if (!arguments.wait || (!entries && !is_away)) return entries;
    auto is_new = [](const InboxSource::Entry& entry) { return !entry.is_seen; };
    if (entries && std::any_of(entries->begin(), entries->end(), is_new)) return entries;
    if (Clock::now() >= end) return entries;
    wait(source, end);
  }
}

/// Shows the entries once. With --mark-seen, claims each new entry right before it is shown, so that other readers that
/// wait get other entries. A claimed entry is either shown or given back.
class Look {
 public:
  Look(CommandContext& context, InboxSource& source, const InboxArguments& arguments)
      : context_(context), source_(source), arguments_(arguments) {}

  Status show(std::vector<InboxSource::Entry> entries) {
    // With a limit: the oldest new entries, so that a reader that marks them gets the others next; with --all the
    // newest.
    if (arguments_.all && entries.size() > arguments_.limit) {
      const auto left_out = entries.end() - static_cast<std::ptrdiff_t>(arguments_.limit);
      leave_out(entries.begin(), left_out);
      entries.erase(entries.begin(), left_out);
    }
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
      const bool is_over = shown_ == arguments_.limit || !context_.io.out || (signals_ && signals_->came());
      Status shown = is_over ? Status() : show(*entry);
      if (!is_over && shown) continue;
      leave_out(entry, entries.end());
      // With --mark-seen, the entries marked so far must be output, or their reader never sees them; the next run meets
      // the error again.
      if (!shown && !(arguments_.mark_seen && shown_ > 0)) return shown;
      if (!shown) context_.out.note("playfs: " + safe(shown.error().message));
      break;
    }
    return {};
  }
  /// Ends the output. Errors: an entry could be neither shown nor given back.
  Status finish(const std::string& agent) {
    context_.out.document(
        JsonObject{{"agent", agent}, {"new", static_cast<std::uint64_t>(fresh_)}, {"entries", std::move(items_)}});
    return flush();
  }
  [[nodiscard]] bool is_empty() const { return shown_ == 0; }
  /// How many entries are new, with those that are not shown.
  [[nodiscard]] std::size_t fresh() const { return fresh_; }
  /// How many are not shown.
  [[nodiscard]] std::size_t rest() const { return rest_; }

 private:
  using Place = std::vector<InboxSource::Entry>::iterator;

  void leave_out(Place begin, Place end) {
    rest_ += static_cast<std::size_t>(end - begin);
    fresh_ += static_cast<std::size_t>(std::count_if(begin, end, [](const auto& entry) { return !entry.is_seen; }));
  }

  Status show(const InboxSource::Entry& entry) {
    // Read before claiming, so that an entry that cannot be read stays new.
    auto shown = read_item(source_, entry);
    if (!shown && shown.error().code == ErrorCode::not_found) return {};  // it was moved
    if (!shown) return fail(std::move(shown).error());
    const bool is_to_claim = arguments_.mark_seen && !entry.is_seen;
    if (is_to_claim) {
      if (!signals_) signals_.emplace();
      PLAYFS_TRY(const bool is_ours, source_.claim(entry));
      if (!is_ours) return {};
      unshown_.push_back(entry);
    }
    ++shown_;
    if (!entry.is_seen) ++fresh_;
    if (context_.out.json()) items_.push_back(document_of(context_, *shown));
    else print(context_, *shown);
    return is_to_claim && !context_.out.json() ? flush() : Status();
  }

  /// Gives back what could not be written.
  Status flush() {
    context_.io.out.flush();
    const std::vector<InboxSource::Entry> claimed = std::exchange(unshown_, {});
    Status result;
    if (context_.io.out) return result;
    for (const InboxSource::Entry& entry : claimed)
      if (Status given = source_.give_back(entry); !given && result) result = std::move(given);
    return result;
  }

  CommandContext& context_;
  InboxSource& source_;
  const InboxArguments& arguments_;
  Json::Array items_;
  std::vector<InboxSource::Entry> unshown_;  ///< claimed, and perhaps not written yet
  std::size_t shown_ = 0, fresh_ = 0, rest_ = 0;
  std::optional<DeferredSignals> signals_;  ///< since the first claim
};

}  // namespace

Result<ExitCode> inbox(CommandContext& context, const InboxArguments& arguments) {
  PLAYFS_TRY(InboxFound place, find_inbox(context, arguments.agent, arguments.wait.has_value()));
  const auto end = arguments.wait && *arguments.wait > 0 ? Clock::now() + std::chrono::seconds(*arguments.wait)
                                                         : Clock::time_point::max();
  std::optional<Look> look;
  for (;;) {
    PLAYFS_TRY(std::vector<InboxSource::Entry> entries, entries_of(*place.source, arguments, end));
    look.emplace(context, *place.source, arguments);
    PLAYFS_CHECK(look->show(std::move(entries)));
    if (!arguments.wait || look->fresh() > 0 || Clock::now() >= end) break;
    look.reset();
    wait(*place.source, end);  // others were faster
  }
  PLAYFS_CHECK(look->finish(place.agent));
  if (look->rest() > 0)
    context.out.note(std::to_string(look->rest()) + " more are not shown: --limit N shows more of them.");
  if (place.source->is_silent()) context.out.note("The service does not answer: this is what was known of it before.");
  if (look->is_empty())
    context.out.note("Nothing is new for " + safe(place.agent) +
                     ". Try: " + safe(context.next_command({{"inbox", arguments.wait ? "--all" : "--wait"}})));
  return arguments.wait && look->fresh() == 0 ? ExitCode::failed : ExitCode::done;
}

}  // namespace playfs::app
