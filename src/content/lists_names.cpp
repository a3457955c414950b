// Names in lists, and records that we created.
#include <algorithm>
#include <unordered_map>

#include "content/lists.h"
#include "content/names.h"

namespace playfs::content {

namespace {

constexpr std::size_t kLongestKind = 64;     // bytes; longer ones are dropped
constexpr std::size_t kLongestName = 1'000;  // bytes; longer than any path component, and up to 100,000 names are kept
/// Records that we created, kept until a page has shown them.
constexpr std::size_t kMostCreated = 1'000;

/// Empty if longer than `most`. Not truncated: a string that once held it would keep its memory.
std::string text_of(const Record& record, std::string_view name, std::size_t most) {
  const Json* value = record.fields.find(name);
  const std::string* text = value ? value->string() : nullptr;
  return text && text->size() <= most ? *text : std::string();
}

std::optional<WallTime> never_named(const Listed&) { return std::nullopt; }

/// Those of `now` that are listed otherwise.
std::vector<Listed> changed(const std::vector<Listed>& list, std::vector<Listed> now) {
  std::unordered_map<std::string_view, const Listed*> known;
  for (const Listed& item : now) known.emplace(item.id, nullptr);
  for (const Listed& item : list)
    if (auto found = known.find(item.id); found != known.end()) found->second = &item;
  std::vector<Listed> others;
  for (const Listed& item : now)
    if (const Listed* was = known.at(item.id); was && *was != item) others.push_back(item);
  return others;
}

}  // namespace

Listed Lists::listed(const std::string& collection, const Record& record) {
  Listed item{record.id,
              parse_iso8601(record.created_at).value_or(WallTime{}),
              {},
              text_of(record, collection == "messages" ? "thread" : "project", kMaxIdLength)};
  item.named_at = parse_iso8601(record.updated_at).value_or(WallTime{});
  if (is_talk(collection)) {
    item.kind = text_of(record, "kind", kLongestKind);
    item.updated_at = item.named_at;
  }
  if (collection == "agents") item.name = text_of(record, "handle", kLongestName);
  if (item.name.empty()) item.name = text_of(record, "name", kLongestName);
  if (item.name.empty()) item.name = text_of(record, "title", kLongestName);
  return item;
}

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
    date_names({&item, 1}, list.read ? std::span(*list.read) : std::span<const Listed>(), {}, never_named);
    list.created.insert(list.created.begin(), {std::move(item), context_.clock.steady(), ++events_});
    if (list.created.size() > kMostCreated) list.created.pop_back();
    list.show();
    if (is_talk(collection) && list.read && list.awaited.size() < kMostCreated)
      list.awaited[record.id] = list.created.front().event;
    is_wanted = is_talk(collection) && is_followed(list);
  }
  tell(collection);
  if (is_wanted) bring_up(collection);
}

void Lists::seen(const std::string& collection, const Record& record) {
  rename(collection, {listed(collection, record)});
}

void Lists::date(const std::string& collection, std::span<Listed> read) {
  ListPtr known;
  std::vector<Listed> own;
  {
    MutexLock lock(mutex_);
    const List& list = lists_[collection];
    known = list.read;
    for (const Created& each : list.created) own.push_back(each.item);
  }
  if (!known) known = std::make_shared<const std::vector<Listed>>();
  // Another process may have seen more than this one.
  date_names(read, *known, own, [&](const Listed& item) {
    return known->empty() ? std::nullopt : context_.records.named_at(context_.site, collection, item.id, item.name);
  });
}

void Lists::rename(const std::string& collection, std::vector<Listed> now) {
  {
    ListPtr shown;
    {
      MutexLock lock(mutex_);
      if (auto found = lists_.find(collection); found != lists_.end()) shown = found->second.shown;
    }
    now = shown ? changed(*shown, std::move(now)) : std::vector<Listed>();
  }
  if (now.empty()) return;
  date(collection, now);
  std::unordered_map<std::string_view, const Listed*> by_id;
  for (const Listed& item : now) by_id.emplace(item.id, &item);
  auto other = [&](const Listed& known) -> std::optional<Listed> {
    auto found = by_id.find(known.id);
    if (found == by_id.end() || *found->second == known) return std::nullopt;
    Listed item = *found->second;
    if (item.name == known.name) item.named_at = known.named_at;
    return item;
  };
  std::vector<Listed> renamed;
  ListPtr all;
  bool is_cut = false;
  {
    MutexLock lock(mutex_);
    auto found = lists_.find(collection);
    if (found == lists_.end() || !found->second.read) return;
    List& list = found->second;
    for (Created& own : list.created)
      if (auto item = other(own.item)) own.item = *std::move(item);
    for (const Listed& known : *list.read)
      if (auto item = other(known)) renamed.push_back(*std::move(item));
    if (renamed.empty()) return;
    auto items = *list.read;
    for (Listed& known : items)
      if (auto item = other(known)) known = *std::move(item);
    is_cut = cut(items) && !std::exchange(list.is_cut, true);
    list.read = all = std::make_shared<const std::vector<Listed>>(std::move(items));
    list.show();
  }
  if (!context_.records.extend_list(context_.site, collection, all->front().id, renamed))
    context_.records.replace_list(context_.site, collection, *all);
  if (is_cut) tell_cut(collection, all->size());
  tell(collection);
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
          const bool is_past_end = page && !page->records.empty() && list.read && !list.read->empty() &&
                                   listed(collection, page->records.front()).created_at < list.read->back().created_at;
          list.further = page && !is_past_end ? page->next_cursor : "";
        }
        if (!page) return;
        std::erase_if(page->records,
                      [&](const Record& record) { return context_.has_newer(collection, record, asked_at); });
        std::vector<Listed> now;
        for (const Record& record : page->records) now.push_back(listed(collection, record));
        if (is_talk(collection)) store_changed(collection, *page, now);
        rename(collection, now);
      }));
}

void Lists::store_changed(const std::string& collection, const wire::RecordPage& page, const std::vector<Listed>& now) {
  ListPtr known;
  {
    MutexLock lock(mutex_);
    known = lists_[collection].read;
  }
  if (!known) return;
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t at = 0; at < now.size(); ++at) places.emplace(now[at].id, at);
  for (const Listed& item : *known) {
    auto found = places.find(item.id);
    if (found != places.end() && now[found->second] != item) context_.store(collection, page.records[found->second]);
  }
}

void Lists::look_at(const std::string& collection, const std::vector<std::string>& ids) {
  for (const std::string& id : ids)
    context_.client.get_record(
        collection, id, context_.gate->closing(),
        context_.answered<Record>([this, collection, asked_at = context_.clock.steady()](const Result<Record>& record) {
          if (!record || context_.has_newer(collection, *record, asked_at)) return;
          if (is_talk(collection)) context_.store(collection, *record);
          seen(collection, *record);
        }));
}

}  // namespace playfs::content
