#include "app/record_reading.h"

#include <algorithm>

#include "app/json_fields.h"
#include "base/await.h"
#include "wire/cursors.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::app {

Result<LookedAt> read_newest(runtime::ClientStack& stack, const std::string& collection, std::size_t pages,
                             const std::function<bool(const Record&)>& take, const CancelToken& cancel) {
  LookedAt looked;
  wire::Cursors cursors;
  std::string cursor;
  for (std::size_t page = 0; page < pages; ++page) {
    PLAYFS_TRY(wire::RecordPage read, await<wire::RecordPage>([&](auto done) {
                 stack.client().list_records(collection, remote::kMostInPage, cursor, cancel, std::move(done));
               }));
    looked.unreadable += read.unreadable;
    for (const Record& record : read.records) {
      ++looked.records;
      looked.since = record.created_at;
      if (!take(record)) return looked;
    }
    cursor = std::move(read.next_cursor);
    if (cursor.empty()) {
      looked.everything = true;
      return looked;
    }
    if (cursors.comes_again(cursor))
      return fail(ErrorCode::protocol, "the list of " + collection + " does not end: a cursor was repeated");
  }
  return looked;
}

std::string text_of_field(const Record& record, const std::string& name) { return text_of(record.fields, name); }

Result<ExitCode> print_listing(CommandContext& context, const Listing& listing) {
  PLAYFS_TRY(auto stack, context.open_to_look());
  Json::Array items;
  // One more than shown tells that there are more.
  bool more = false;
  PLAYFS_TRY(LookedAt looked, read_newest(*stack, listing.collection, kMostPages, [&](const Record& record) {
               if (!listing.wanted(record)) return true;
               if (items.size() == listing.limit) {
                 more = true;
                 return false;
               }
               std::string line = safe(record.id) + "  " + safe(record.created_at);
               for (const std::string& column : listing.columns) line += "  " + safe(listing.cell(record, column));
               context.out.line(line);
               items.push_back(wire::encode_record(record));
               return true;
             }));
  if (!more && !looked.everything)
    context.out.note("Looked at the newest " + std::to_string(looked.records) + " records, back to " +
                     safe(looked.since) + "; there are older ones.");
  else if (more) context.out.note("There are more: --limit N shows more of them.");
  else if (items.empty()) context.out.note(listing.none + ". Try: " + safe(context.next_command(listing.next)));
  JsonObject document{{"site", stack->source().text}, {listing.key, std::move(items)}};
  document.append("more", more || !looked.everything);
  if (!looked.everything) document.append("since", looked.since);
  context.out.document(std::move(document));
  return ExitCode::done;
}

void print_text(Output& out, std::string_view text, const std::string& margin) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.line(margin + (line.empty() ? "|" : "| " + safe(line)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void print_fields(Output& out, const Record& record) {
  auto print = [&](const std::string& name, std::string_view value) {
    if (value.find('\n') == std::string_view::npos) return out.line(safe(name) + ": " + safe(value));
    out.line(safe(name) + ":");
    print_text(out, value);
  };
  print("id", record.id);
  print("created", record.created_at);
  if (record.updated_at != record.created_at) print("updated", record.updated_at);
  for (const auto& [name, value] : record.fields) print(name, value.string() ? *value.string() : wire::to_text(value));
}

std::vector<std::string> words_of(const JsonObject& fields, std::string_view name) {
  std::vector<std::string> words;
  if (const Json::Array* list = array_of(fields, name)) {
    for (const Json& each : *list)
      if (each.string()) words.push_back(*each.string());
  } else if (std::string word = text_of(fields, name); !word.empty()) {
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace playfs::app
