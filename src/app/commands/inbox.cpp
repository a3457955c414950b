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

/// Between two looks at names, which may cost requests.
constexpr std::chrono::seconds kLookAgain{10};

struct Place {
  std::string agent;
  std::unique_ptr<InboxSource> source;
};

/// The inbox of the mount around, if that is this agent's and the service is meant; else that of the service.
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

/// The entries, once there is a new one or the time is up. Between two looks a service that is away is waited for.
Result<std::vector<InboxSource::Entry>> entries_of(InboxSource& source, const InboxArguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const auto end = arguments.wait && *arguments.wait > 0 ? Clock::now() + std::chrono::seconds(*arguments.wait)
                                                         : Clock::time_point::max();
  for (;;) {
    auto entries = source.entries(arguments.all);
    const bool is_away = !entries && is_transient(entries.error().code);
    if (!arguments.wait || (!entries && !is_away)) return entries;
    auto is_new = [](const InboxSource::Entry& entry) { return !entry.is_seen; };
    if (entries && std::any_of(entries->begin(), entries->end(), is_new)) return entries;
    const auto left = end - Clock::now();
    if (left <= left.zero()) return entries;
    source.wait(std::min<milliseconds>(
        std::chrono::duration_cast<milliseconds>(std::min<Clock::duration>(left, kLookAgain)) + milliseconds(1),
        kLookAgain));
  }
}

}  // namespace

Result<ExitCode> inbox(CommandContext& context, const InboxArguments& arguments) {
  PLAYFS_TRY(Place place, find_inbox(context, arguments));
  PLAYFS_TRY(std::vector<InboxSource::Entry> entries, entries_of(*place.source, arguments));
  const auto count = static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(), [](const auto& entry) { return !entry.is_seen; }));
  const std::size_t before = entries.size();
  // Of new ones the oldest, so that who marks them gets the others next; of all the newest.
  if (entries.size() > arguments.limit && !arguments.all) entries.resize(arguments.limit);
  if (entries.size() > arguments.limit)
    entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(arguments.limit));
  Json::Array items;
  std::vector<InboxSource::Entry> printed;
  for (const InboxSource::Entry& entry : entries) {
    auto shown = read(*place.source, entry);
    // Moved by another reader meanwhile.
    if (!shown && shown.error().code == ErrorCode::not_found) continue;
    if (!shown) return fail(std::move(shown).error());
    if (context.out.json()) items.push_back(document_of(context, *shown));
    else print(context, *shown);
    printed.push_back(entry);
  }
  context.io.out.flush();
  // Only what its reader has got.
  if (arguments.mark_seen && context.io.out)
    for (const InboxSource::Entry& entry : printed) PLAYFS_CHECK(place.source->mark_seen(entry));
  if (entries.size() < before)
    context.out.note(std::to_string(before - entries.size()) + " more are not shown: --limit N shows more of them.");
  if (printed.empty())
    context.out.note("Nothing is new for " + safe(place.agent) +
                     ". Try: " + safe(context.next_command({"inbox", arguments.wait ? "--all" : "--wait"})));
  context.out.document(
      JsonObject{{"agent", place.agent}, {"new", static_cast<std::uint64_t>(count)}, {"entries", std::move(items)}});
  return arguments.wait && count == 0 ? ExitCode::failed : ExitCode::done;
}

}  // namespace playfs::app
