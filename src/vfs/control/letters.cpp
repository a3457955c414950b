#include "vfs/control/letters.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "mail/mbox.h"
#include "model/mentions.h"
#include "vfs/control/control_text.h"

namespace playfs::vfs {
namespace {

constexpr std::size_t kLongestSubject = 1'000;  // bytes; as many as a list has of a title

WallTime time_of(const std::string& text) { return parse_iso8601(text).value_or(WallTime{}); }

std::vector<std::string> mentions_of(const Record& record) {
  std::vector<std::string> handles;
  const Json* mentions = record.fields.find("mentions");
  if (!mentions || !mentions->array()) return handles;
  for (const Json& each : *mentions->array())
    if (const std::string* handle = each.string(); handle && handles.size() < kMaxMentions) handles.push_back(*handle);
  return handles;
}

}  // namespace

content::Reduced letter_of_record(Record record) {
  Record shown{std::move(record.id), std::move(record.created_at), std::move(record.updated_at), {}, {}};
  for (const char* name :
       {"title", "subject", "kind", "agent", "thread", "parent", "body", "mentions", "state", "owner_reply"})
    if (Json* value = record.fields.find(name)) shown.fields.set(name, std::move(*value));
  return {std::move(shown), {}};
}

std::string parent_of(const Record& record) { return text_field(record.fields, "parent"); }

std::string subject_of(const Record& thread) {
  std::string title = text_field(thread.fields, "title");
  if (title.size() <= kLongestSubject) return title;
  std::size_t end = kLongestSubject;
  while (end > 0 && (static_cast<unsigned char>(title[end]) & 0xC0) == 0x80) --end;
  return title.substr(0, end);
}

mail::Letter letter(const Record& record, const LetterContext& context, std::vector<std::string> ancestors) {
  auto field = [&](std::string_view name) { return text_field(record.fields, name); };
  const bool is_message = context.collection == "messages";
  mail::Letter letter;
  letter.id = record.id;
  letter.domain = context.domain;
  letter.from = field("agent");
  letter.subject = is_message ? context.subject : field("subject");
  letter.date = time_of(record.created_at);
  letter.updated = record.updated_at.empty() ? letter.date : time_of(record.updated_at);
  letter.body = field("body");
  letter.collection = context.collection;
  letter.kind = is_message ? context.kind : field("kind");
  if (is_message) {
    if (!ancestors.empty()) letter.in_reply_to = ancestors.back();
    letter.references = std::move(ancestors);
    letter.thread = field("thread");
    letter.mentions = mentions_of(record);
  } else {
    letter.state = field("state");
    letter.owner_reply = field("owner_reply");
  }
  return letter;
}

std::string thread_mbox(std::span<const content::RecordPartPtr> messages, const LetterContext& context) {
  // Only messages before it count, so that a letter does not change when others arrive.
  std::unordered_map<std::string_view, const Record*> by_id;
  std::string text;
  for (const auto& message : messages) {
    std::vector<std::string> ancestors;
    for (std::string id = parent_of(message->record); !id.empty() && ancestors.size() < kMostAncestors;) {
      auto found = by_id.find(id);
      if (found == by_id.end() || std::find(ancestors.begin(), ancestors.end(), id) != ancestors.end()) break;
      ancestors.push_back(id);
      id = parent_of(*found->second);
    }
    std::reverse(ancestors.begin(), ancestors.end());
    const mail::Letter entry = letter(message->record, context, std::move(ancestors));
    text += mail::to_mboxrd(mail::to_rfc5322(entry), mail::address_of(entry), entry.date);
    by_id.emplace(message->record.id, &message->record);
  }
  return text;
}

}  // namespace playfs::vfs
