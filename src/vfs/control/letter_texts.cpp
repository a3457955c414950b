#include "vfs/control/letter_texts.h"

#include <algorithm>
#include <vector>

#include "model/content_hash.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/thread_text.h"
#include "vfs/mount.h"
#include "vfs/published/record_fetches.h"

namespace playfs::vfs {
namespace {

constexpr std::size_t kMostAncestorsKnown = 20'000, kMostTold = 100'000, kMostRecent = 32;
/// Longer texts are rendered for each read.
constexpr std::size_t kLongestRecent = 64 << 10;

WallTime time_of(const Record& record) { return parse_iso8601(record.created_at).value_or(WallTime{}); }

std::uint64_t digest_of(std::string_view text) { return std::hash<ContentHash>{}(ContentHash::of(text)); }

std::uint64_t key_of(const LetterTexts::Wanted& wanted) {
  std::string key = wanted.context.collection + '\0' + wanted.id + '\0' + std::to_string(wanted.updated);
  return digest_of(key + '\0' + wanted.context.kind + '\0' + wanted.context.subject);
}

}  // namespace

LetterTexts::Told LetterTexts::told_of(const std::string& text) { return {text.size(), digest_of(text)}; }

void LetterTexts::forget() {
  MutexLock lock(mutex_);
  ancestors_.clear();
  told_.clear();
  recent_.clear();
}

std::optional<LetterTexts::Ancestor> LetterTexts::ancestor(const std::string& id) {
  {
    MutexLock lock(mutex_);
    if (auto found = ancestors_.find(id); found != ancestors_.end()) return found->second;
  }
  const auto part = mount_.site().known_part("messages", id, letter_of_record, content::Reads::ordinary).part;
  if (!part) return std::nullopt;
  MutexLock lock(mutex_);
  if (ancestors_.size() >= kMostAncestorsKnown) ancestors_.clear();
  return ancestors_.insert_or_assign(id, Ancestor{time_of(part->record), parent_of(part->record)}).first->second;
}

mail::Letter LetterTexts::letter_of(const Record& record, const LetterContext& context,
                                    const IsOfThread& is_of_thread) {
  const std::string thread = text_field(record.fields, "thread");
  std::vector<std::string> ids;
  std::string id = parent_of(record);
  // Only older messages: edited ones may answer each other in a circle, which no mail program should have to break.
  std::pair below(time_of(record), record.id);
  while (!id.empty() && ids.size() < kMostAncestors && is_of_thread(id, thread)) {
    const std::optional<Ancestor> known = ancestor(id);
    const std::pair at(known ? known->created_at : WallTime{}, id);
    if (at >= below) break;
    ids.push_back(id);
    below = at;
    id = known ? known->parent : std::string();
  }
  std::reverse(ids.begin(), ids.end());
  return letter(record, context, std::move(ids));
}

Attempt<LetterTexts::TextPtr> LetterTexts::text(const OperationPtr& op, const Wanted& wanted,
                                                const IsOfThread& is_of_thread) {
  const std::uint64_t key = key_of(wanted);
  {
    MutexLock lock(mutex_);
    auto found = std::find_if(recent_.begin(), recent_.end(), [&](const auto& each) { return each.first == key; });
    if (found != recent_.end()) return found->second;
  }
  PLAYFS_ATTEMPT_CHECK(mail::load_library());
  const LetterContext& context = wanted.context;
  PLAYFS_ATTEMPT(RecordPartPtr part, known_part(mount_, op, context.collection, wanted.id, letter_of_record));
  const Record& record = part->record;
  const auto updated = parse_iso8601(record.updated_at);
  if (!updated || updated->nanoseconds / 1000 != wanted.updated)
    return fail(ErrorCode::not_found, "it has changed, and has another name now", "list the directory again");
  PLAYFS_ATTEMPT(std::string made,
                 rendered(mount_, op, "letter", size_of_message(record), [this, part, context, is_of_thread] {
                   return mail::to_rfc5322(letter_of(part->record, context, is_of_thread));
                 }));
  auto text = std::make_shared<const std::string>(std::move(made));
  MutexLock lock(mutex_);
  if (told_.size() >= kMostTold) told_.clear();
  told_.insert_or_assign(key, told_of(*text));
  if (text->size() > kLongestRecent) return text;
  recent_.emplace_front(key, text);
  if (recent_.size() > kMostRecent) recent_.pop_back();
  return text;
}

Attempt<LetterTexts::Told> LetterTexts::told(const OperationPtr& op, const Wanted& wanted,
                                             const IsOfThread& is_of_thread) {
  {
    MutexLock lock(mutex_);
    if (auto known = told_.find(key_of(wanted)); known != told_.end()) return known->second;
  }
  PLAYFS_ATTEMPT(TextPtr made, text(op, wanted, is_of_thread));
  return told_of(*made);
}

}  // namespace playfs::vfs
