// Names in lists, and records that we created.
#include <algorithm>
#include <span>

#include "content/lists.h"
#include "content/names.h"

namespace playfs::content {

namespace {

constexpr std::size_t kLongestKind = 64;     // bytes; longer ones are dropped
constexpr std::size_t kLongestName = 1'000;  // bytes; longer than any path component, and up to 100,000 names are kept
/// Records that we created, kept until a page has shown them.
constexpr std::size_t kMostCreated = 1'000;
/// Records that a lagging response showed in an older version, remembered until a response shows the latest.
constexpr std::size_t kMostOvertaken = 1'000;

/// Empty if longer than `most`. Not truncated: a string that once held it would keep its memory.
std::string text_of(const Record& record, std::string_view name, std::size_t most) {
  const Json* value = record.fields.find(name);
  const std::string* text = value ? value->string() : nullptr;
  return text && text->size() <= most ? *text : std::string();
}

std::optional<WallTime> never_named(const Listed&) { return std::nullopt; }

}  // namespace

Listed Lists::listed(const std::string& collection, const Record& record) {
  Listed item{record.id,
              parse_iso8601(record.created_at).value_or(WallTime{}),
              {},
              text_of(record, collection == "messages" ? "thread" : "project", kMaxIdLength)};
  item.named_at = parse_iso8601(record.updated_at).value_or(WallTime{});
  if (is_talk(collection)) item.kind = text_of(record, "kind", kLongestKind);
  if (is_talk(collection) || !is_nameless(collection)) item.updated_at = item.named_at;
  item.name = name_carried(collection, record, kLongestName);
  return item;
}

bool Lists::is_nameless(const std::string& collection) { return collection == "messages" || collection == "revisions"; }

bool Lists::is_fixed_once_made(const std::string& collection) {
  return collection == "revisions" || collection == "file_chunks";
}

bool Lists::is_talk(const std::string& collection) {
  return collection == "messages" || collection == "threads" || collection == "domain_mail";
}

void Lists::created(const std::string& collection, const Record& record) {
  bool is_wanted = false;
  {
    MutexLock lock(mutex_);
    auto found = lists_.find(collection);
    if (found == lists_.end()) return;  // nothing has used the list
    List& list = found->second;
    auto is_it = [&](const Listed& item) { return item.id == record.id; };
    if (list.read &&
        std::any_of(list.read->begin(),
                    list.read->begin() + std::min<std::ptrdiff_t>(kPageSize, std::ssize(*list.read)), is_it))
      return;
    Listed item = listed(collection, record);
    Listed* const read = &item;
    date_names({&read, 1}, list.read ? std::span(*list.read) : std::span<const Listed>(), {}, never_named);
    list.created.insert(list.created.begin(), {std::move(item), context_.clock.steady(), ++events_});
    if (list.created.size() > kMostCreated) list.created.pop_back();
    list.show();
    if (is_talk(collection) && list.read && list.awaited.size() < kMostCreated)
      list.awaited[record.id] = list.created.front().event;
    is_wanted = is_talk(collection) && is_followed(list);
  }
  tell(collection, {false, {listed(collection, record).project}});
  if (is_wanted) bring_up(collection);
}

void Lists::List::take(const Dated& dated) {
  for (const std::string& id : dated.caught_up) newer.erase(id);
  for (const Listed& was : dated.overtaken)
    if (newer.size() < kMostOvertaken) newer.try_emplace(was.id, was);
}

void Lists::seen(const std::string& collection, const Record& record) {
  rename(collection, {listed(collection, record)});
}

void Lists::names_were_shown(const std::string& collection) {
  if (is_fixed_once_made(collection)) return;
  std::string cursor;
  {
    MutexLock lock(mutex_);
    List& list = lists_[collection];
    cursor = list.further.empty() ? list.behind : list.further;
    if (cursor.empty()) return;
    const SteadyTime now = context_.clock.steady();
    if (!list.looked_further) list.looked_further = now;
    if (list.is_looking_further || now - *list.looked_further < context_.options.refresh) return;
    list.is_looking_further = true;
    list.looked_further = now;
  }
  context_.client.list_records(
      collection, kPageSize, std::move(cursor), context_.gate->closing(),
      context_.answered<wire::RecordPage>([this, collection,
                                           asked_at = context_.clock.steady()](Result<wire::RecordPage> page) {
        {
          MutexLock lock(mutex_);
          List& list = lists_[collection];
          list.is_looking_further = false;
          // Beyond the oldest retained record there is nothing to update.
          const bool is_past_end = page && !page->records.empty() && list.read && !list.is_part &&
                                   !list.read->empty() &&
                                   listed(collection, page->records.front()).created_at < list.read->back().created_at;
          list.further = page && !is_past_end ? page->next_cursor : "";
        }
        if (!page) return;
        std::erase_if(page->records,
                      [&](const Record& record) { return context_.has_newer(collection, record, asked_at); });
        std::vector<Listed> now;
        for (const Record& record : page->records) now.push_back(listed(collection, record));
        rename(collection, std::move(now), page->records);
      }));
}

void Lists::look_at(const std::string& collection, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    auto looked = [this, collection, id, asked_at = context_.clock.steady()](const Result<Record>& record) {
      if (!record && record.error().code != ErrorCode::not_found) return await_again(collection, std::span(&id, 1));
      if (!record) return;
      if (context_.has_newer(collection, *record, asked_at)) {
        if (const auto newer = context_.stored(collection, id)) seen(collection, *newer);
        return;
      }
      if (is_talk(collection)) context_.store(collection, *record);
      seen(collection, *record);
    };
    context_.client.get_record(collection, id, context_.gate->closing(), context_.answered<Record>(std::move(looked)));
  }
}

}  // namespace playfs::content
