// playfs search: finds a text in the records of a service. The service cannot search, so this reads the newest records
// of each collection, and of older ones what is stored here; it says how far back that is.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "app/commands/conversation.h"
#include "app/json_fields.h"
#include "app/lookup.h"
#include "app/record_reading.h"
#include "base/shell.h"
#include "base/text.h"

namespace playfs::app {

namespace {

/// Requests for each collection.
constexpr std::size_t kPagesSearched = 10;
/// Records of a stored list that are looked at beyond those.
constexpr std::size_t kMostStored = 20'000;
/// Bytes of the line shown on each side of the match.
constexpr std::size_t kAround = 60;

struct Place {
  std::string_view word;  ///< after --in
  const char* collection;
  const char* one;
};
constexpr std::array<Place, 7> kPlaces = {{{"threads", "threads", "thread"},
                                           {"messages", "messages", "message"},
                                           {"mail", "domain_mail", "mail"},
                                           {"projects", "projects", "project"},
                                           {"revisions", "revisions", "revision"},
                                           {"agents", "agents", "agent"},
                                           {"spaces", "spaces", "space"}}};

struct Match {
  const Place* place = nullptr;
  std::string id, created_at, agent, field, line;
  ShellCommand next;
};

struct Searched {
  LookedAt looked;
  std::size_t stored = 0;     ///< older ones that are stored here in full
  std::size_t name_only = 0;  ///< older ones of which only the name is known
  std::optional<Error> away;  ///< why the service could not be asked
};

/// Fields that refer to other records, or to who wrote it.
bool is_reference(std::string_view field) {
  static constexpr std::array<std::string_view, 6> kReferences = {"thread", "parent",          "project",
                                                                  "agent",  "latest_revision", "kind"};
  return std::find(kReferences.begin(), kReferences.end(), field) != kReferences.end();
}

/// The line around a match, cut to what a terminal shows.
std::string line_around(std::string_view text, std::size_t at, std::size_t size) {
  std::size_t begin = text.rfind('\n', at) + 1;  // npos + 1 is 0
  std::size_t end = std::min(text.find('\n', at), text.size());
  auto is_inside_character = [&](std::size_t i) { return i < text.size() && (text[i] & 0xC0) == 0x80; };
  std::string before, after;
  if (at > begin + kAround) {
    begin = at - kAround;
    while (is_inside_character(begin)) ++begin;
    before = "…";
  }
  if (end > at + size + kAround) {
    end = at + size + kAround;
    while (is_inside_character(end)) --end;
    after = "…";
  }
  return before + std::string(trim(text.substr(begin, end - begin), " \t\r")) + after;
}

class Search {
 public:
  Search(runtime::ClientStack& stack, const Place& place, const SearchArguments& arguments)
      : stack_(stack), place_(place), wanted_(to_lower(arguments.text)), limit_(arguments.limit) {}

  /// `away`: why the service did not answer for another collection; it is not asked again, which may take a minute.
  Result<Searched> run(const std::optional<Error>& away) {
    Searched searched;
    auto read = away ? Result<LookedAt>(fail(*away)) : read_service();
    if (!read && !is_outage(read.error().code)) return fail(std::move(read).error());
    if (read) searched.looked = std::move(*read);
    else searched.away = std::move(read).error();
    if (!searched.looked.everything) look_at_stored(searched);
    return searched;
  }
  std::vector<Match> take_matches() { return std::move(matches_); }

 private:
  Result<LookedAt> read_service() {
    return read_newest(stack_, place_.collection, kPagesSearched, [&](const Record& record) {
      seen_.insert(record.id);
      look_at(record);
      return matches_.size() < limit_;
    });
  }

  /// Searches the stored list beyond the pages read: records that are stored in full, and the names of others.
  void look_at_stored(Searched& searched) {
    const content::ListPtr list = stack_.site().try_list(place_.collection);
    if (!list) return;
    std::size_t looked = 0;
    for (const content::Listed& listed : *list) {
      if (matches_.size() >= limit_ || ++looked > kMostStored) return;
      if (seen_.contains(listed.id)) continue;
      if (auto record = stack_.site().try_record(place_.collection, listed.id)) {
        ++searched.stored;
        look_at(*record);
        continue;
      }
      if (listed.name.empty()) continue;
      ++searched.name_only;
      Record known{listed.id, format_iso8601(listed.created_at), {}, {}, JsonObject{{"name", listed.name}}};
      look_at(known);
    }
  }

  void look_at(const Record& record) {
    for (const auto& [name, value] : record.fields) {
      if (value.string() == nullptr || is_reference(name)) continue;
      const std::size_t at = to_lower(*value.string()).find(wanted_);
      if (at == std::string::npos) continue;
      matches_.push_back({&place_, record.id, record.created_at, author_of(record), name,
                          line_around(*value.string(), at, wanted_.size()), next_of(record)});
      return;
    }
  }

  [[nodiscard]] std::string author_of(const Record& record) const {
    return text_of(record.fields, place_.word == "agents" ? "handle" : "agent");
  }

  [[nodiscard]] ShellCommand next_of(const Record& record) const {
    if (place_.word == "messages") return {{"thread", "show"}, {text_of(record.fields, "thread")}};
    if (place_.word == "projects") return {{"ls"}, {record.id}};
    if (place_.word == "revisions") return {{"show"}, {record.id}};
    return {{place_.one, "show"}, {record.id}};
  }

  runtime::ClientStack& stack_;
  const Place& place_;
  const std::string wanted_;
  const std::size_t limit_;
  std::vector<Match> matches_;
  std::unordered_set<std::string> seen_;
};

/// Says what was not searched.
void tell_extent(Output& out, const Place& place, const Searched& searched) {
  if (searched.looked.everything) return;
  std::string stored;
  if (searched.stored > 0) stored = std::to_string(searched.stored) + " records that are stored here";
  if (searched.name_only > 0)
    stored +=
        (stored.empty() ? "the names of " : " and the names of ") + std::to_string(searched.name_only) + " others";
  const std::string word(place.word);
  if (searched.away)
    out.note(word + ": the service does not answer (" + safe(searched.away->message) + "); " +
             (stored.empty() ? "nothing was searched" : "searched only " + stored) + ".");
  else
    out.note(word + ": what is older than " + safe(searched.looked.since) + " was not searched" +
             (stored.empty() ? "" : ", except " + stored) + ".");
}

JsonObject extent_document(const Searched& searched) {
  return JsonObject{{"records", static_cast<std::uint64_t>(searched.looked.records)},
                    {"everything", searched.looked.everything},
                    {"since", searched.looked.since},
                    {"stored", static_cast<std::uint64_t>(searched.stored)},
                    {"names", static_cast<std::uint64_t>(searched.name_only)},
                    {"service_asked", !searched.away}};
}

void print_match(CommandContext& context, const Match& match) {
  const std::string by = match.agent.empty() ? "" : "  by " + safe(match.agent);
  context.out.line(std::string(match.place->one) + " " + safe(match.id) + "  " + safe(match.created_at) + by);
  context.out.line("  " + safe(match.field) + ": " + safe(match.line));
  context.out.line("  " + safe(context.next_command(match.next)));
}

JsonObject match_document(const CommandContext& context, const Match& match) {
  return JsonObject{{"collection", match.place->collection},
                    {"id", match.id},
                    {"created_at", match.created_at},
                    {"agent", match.agent},
                    {"field", match.field},
                    {"line", match.line},
                    {"next", context.next_command(match.next)}};
}

}  // namespace

Result<ExitCode> search(CommandContext& context, const SearchArguments& arguments) {
  if (trim(arguments.text).empty())
    return fail(ErrorCode::invalid_argument, "there is nothing to search for", "playfs search TEXT");
  PLAYFS_TRY(auto stack, context.open_to_look());
  std::vector<Match> matches;
  JsonObject extents;
  std::optional<Error> away;
  for (const Place& place : kPlaces) {
    if (std::find(arguments.in.begin(), arguments.in.end(), place.word) == arguments.in.end()) continue;
    context.out.progress_line("Searching " + std::string(place.word) + "…");
    Search one(*stack, place, arguments);
    auto searched = one.run(away);
    context.out.progress_line("");
    PLAYFS_TRY(Searched extent, std::move(searched));
    tell_extent(context.out, place, extent);
    if (!away) away = extent.away;
    extents.append(std::string(place.word), extent_document(extent));
    for (Match& match : one.take_matches()) matches.push_back(std::move(match));
  }
  std::stable_sort(matches.begin(), matches.end(),
                   [](const Match& a, const Match& b) { return a.created_at > b.created_at; });
  const bool more = matches.size() >= arguments.limit;
  if (matches.size() > arguments.limit) matches.resize(arguments.limit);
  Json::Array items;
  for (const Match& match : matches) {
    if (!context.out.json()) print_match(context, match);
    items.push_back(match_document(context, match));
  }
  if (matches.empty()) context.out.note("Nothing was found.");
  if (more) context.out.note("There may be more: --limit N shows more of them.");
  context.out.document(JsonObject{{"site", stack->source().text},
                                  {"text", arguments.text},
                                  {"matches", std::move(items)},
                                  {"more", more},
                                  {"searched", std::move(extents)}});
  return matches.empty() ? ExitCode::not_found : ExitCode::done;
}

}  // namespace playfs::app
