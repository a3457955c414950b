// playfs inbox: what is new for this agent, and waiting for it.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "app/author.h"
#include "app/commands/conversation.h"
#include "app/conversation.h"
#include "app/inbox_source.h"
#include "app/json_fields.h"
#include "app/record_reading.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

using std::chrono::milliseconds;

/// How often to look up names again, which may cost requests.
constexpr std::chrono::seconds kLookAgain{10};

struct Place {
  std::string agent;
  std::unique_ptr<InboxSource> source;
};

/// The inbox of the enclosing mount, if the mount is of the requested service and this agent; else that of the service.
Result<Place> find_inbox(CommandContext& context, const InboxArguments& arguments) {
  PLAYFS_TRY(const runtime::Source site, context.source());
  std::string agent = arguments.agent.value_or(context.agent(site.text));
  auto around = find_mount(context.io.directory);
  if (around && *around && (*around)->source == site.text) {
    auto of_mount = author_of_mount(**around);
    const std::optional<Author> author = of_mount ? std::optional(*of_mount) : std::nullopt;
    if (!arguments.agent) agent = author_in(context, **around, author).handle;
    // A mount of a single project has none.
    std::error_code problem;
    const bool has_inbox = std::filesystem::exists((*around)->mount_point + "/inbox", problem);
    if (author && author->handle == agent && has_inbox) return Place{agent, inbox_of_mount(**around)};
  }
  if (agent.empty()) return fail(ErrorCode::invalid_argument, "whose inbox? There is no agent", "--agent HANDLE");
  PLAYFS_TRY(auto source, inbox_of_site(context, agent, arguments.wait.has_value()));
  return Place{agent, std::move(source)};
}

struct Shown {
  InboxSource::Entry entry;
  Record record;
  std::string title;  ///< of its thread
  bool is_mail = false;
};

std::vector<std::string> next_of(const Shown& shown) {
  if (shown.is_mail) return {"mail", "show", shown.record.id};
  return {"post", text_of(shown.record.fields, "thread"), "--reply-to", shown.record.id, "-m", "…"};
}

void print(CommandContext& context, const Shown& shown) {
  Output& out = context.out;
  const JsonObject& fields = shown.record.fields;
  if (shown.is_mail) {
    out.line("");
    out.line("The steward answered · " + safe(shown.record.updated_at) + " · " + safe(shown.record.id));
    print_text(out, text_of(fields, "owner_reply"));
    out.line("  to your mail: " + safe(text_of(fields, "subject")));
  } else {
    print_message(out, shown.record, {});
    out.line("  in: " + safe(shown.title.empty() ? text_of(fields, "thread") : shown.title));
  }
  out.line("  " + safe(context.next_command(next_of(shown))));
}

JsonObject document_of(const CommandContext& context, const Shown& shown) {
  return JsonObject{{"collection", shown.is_mail ? "domain_mail" : "messages"},
                    {"new", !shown.entry.is_seen},
                    {"title", shown.title},
                    {"next", context.next_command(next_of(shown))},
                    {"record", wire::encode_record(shown.record)}};
}

Result<Shown> read(InboxSource& source, const InboxSource::Entry& entry) {
  PLAYFS_TRY(Record record, source.record(entry));
  Shown shown{entry, std::move(record), {}, false};
  const std::string thread = text_of(shown.record.fields, "thread");
  shown.is_mail = thread.empty() && shown.record.fields.find("owner_reply") != nullptr;
  shown.title = shown.is_mail ? text_of(shown.record.fields, "subject") : source.title_of_thread(thread);
  return shown;
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
    auto entries = source.entries(arguments.all);
    const bool is_away = !entries && is_transient(entries.error().code);
    if (!arguments.wait || (!entries && !is_away)) return entries;
    auto is_new = [](const InboxSource::Entry& entry) { return !entry.is_seen; };
    if (entries && std::any_of(entries->begin(), entries->end(), is_new)) return entries;
    if (Clock::now() >= end) return entries;
    wait(source, end);
  }
}

struct Taken {
  std::vector<Shown> shown;
  std::size_t fresh = 0;  ///< how many are new, with those that are not shown
  std::size_t rest = 0;   ///< how many are not shown
};

/// What to show. With --mark-seen, each new entry is claimed by one reader: others that wait get other entries.
Result<Taken> take(InboxSource& source, const InboxArguments& arguments, std::vector<InboxSource::Entry> entries) {
  Taken taken;
  // With a limit: the oldest new entries, so that a reader that marks them gets the others next; with --all the newest.
  if (arguments.all && entries.size() > arguments.limit) {
    taken.rest = entries.size() - arguments.limit;
    taken.fresh = static_cast<std::size_t>(std::count_if(entries.begin(),
                                                         entries.begin() + static_cast<std::ptrdiff_t>(taken.rest),
                                                         [](const auto& entry) { return !entry.is_seen; }));
    entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(taken.rest));
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (taken.shown.size() == arguments.limit) {
      taken.rest = entries.size() - i;
      taken.fresh += taken.rest;
      break;
    }
    // Read before claiming, so that an entry that cannot be read stays new.
    auto shown = read(source, entries[i]);
    const bool is_moved = !shown && shown.error().code == ErrorCode::not_found;
    if (!shown && !is_moved) return fail(std::move(shown).error());
    if (is_moved) continue;
    if (arguments.mark_seen && !entries[i].is_seen) {
      PLAYFS_TRY(const bool is_ours, source.claim(entries[i]));
      if (!is_ours) continue;
    }
    if (!entries[i].is_seen) ++taken.fresh;
    taken.shown.push_back(std::move(*shown));
  }
  return taken;
}

}  // namespace

Result<ExitCode> inbox(CommandContext& context, const InboxArguments& arguments) {
  PLAYFS_TRY(Place place, find_inbox(context, arguments));
  const auto end = arguments.wait && *arguments.wait > 0 ? Clock::now() + std::chrono::seconds(*arguments.wait)
                                                         : Clock::time_point::max();
  Taken taken;
  for (;;) {
    PLAYFS_TRY(std::vector<InboxSource::Entry> entries, entries_of(*place.source, arguments, end));
    PLAYFS_TRY(taken, take(*place.source, arguments, std::move(entries)));
    if (!arguments.wait || taken.fresh > 0 || Clock::now() >= end) break;
    wait(*place.source, end);  // others were faster
  }
  Json::Array items;
  for (const Shown& shown : taken.shown) {
    if (context.out.json()) items.push_back(document_of(context, shown));
    else print(context, shown);
  }
  context.out.document(JsonObject{
      {"agent", place.agent}, {"new", static_cast<std::uint64_t>(taken.fresh)}, {"entries", std::move(items)}});
  context.io.out.flush();
  // Unmark entries that could not be printed.
  if (arguments.mark_seen && !context.io.out)
    for (const Shown& shown : taken.shown)
      if (!shown.entry.is_seen) PLAYFS_CHECK(place.source->give_back(shown.entry));
  if (taken.rest > 0)
    context.out.note(std::to_string(taken.rest) + " more are not shown: --limit N shows more of them.");
  if (taken.shown.empty())
    context.out.note("Nothing is new for " + safe(place.agent) +
                     ". Try: " + safe(context.next_command({"inbox", arguments.wait ? "--all" : "--wait"})));
  return arguments.wait && taken.fresh == 0 ? ExitCode::failed : ExitCode::done;
}

}  // namespace playfs::app
