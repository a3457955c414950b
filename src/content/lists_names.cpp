// Names in lists, and records that we created.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

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
  if (collection == "agents") item.name = text_of(record, "handle", kLongestName);
  if (item.name.empty()) item.name = text_of(record, "name", kLongestName);
  if (item.name.empty()) item.name = text_of(record, "title", kLongestName);
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

void Lists::seen(const std::string& collection, const Record& record) {
  rename(collection, {listed(collection, record)});
}

void Lists::date(const std::string& collection, std::span<Listed* const> read) {
  if (is_nameless(collection)) return;
  ListPtr known;
  std::vector<Listed> own;
  {
    MutexLock lock(mutex_);
    const List& list = lists_[collection];
    known = list.read;
    for (const Created& each : list.created) own.push_back(each.item);
  }
  if (!known) known = std::make_shared<const std::vector<Listed>>();
  std::unordered_map<std::string_view, const Listed*> now;
  for (const Listed* item : read) now.emplace(item->id, item);
  std::unordered_map<std::string, WallTime> seen;
  {
    MutexLock lock(mutex_);
    auto& newer = lists_[collection].newer;
    for (const Listed& was : *known) {
      auto found = now.find(was.id);
      if (found == now.end() || found->second->name == was.name || found->second->updated_at >= was.updated_at)
        continue;
      if (newer.size() < kMostOvertaken) newer.try_emplace(was.id, was);
    }
    for (const Listed* item : read) {
      auto found = newer.find(item->id);
      if (found == newer.end() || item->updated_at < found->second.updated_at) continue;
      if (item->name == found->second.name) seen.emplace(item->id, found->second.named_at);
      newer.erase(found);
    }
  }
  // This process may have seen the name before a lagging response, and another process may have seen it earlier still.
  date_names(read, *known, own, [&](const Listed& item) {
    if (auto found = seen.find(item.id); found != seen.end()) return std::optional(found->second);
    return known->empty() ? std::nullopt : context_.records.named_at(context_.site, collection, item.id, item.name);
  });
}

Lists::Renamed Lists::renamed(const std::string& collection, const std::vector<Listed>& now) {
  Renamed renamed;
  std::unordered_map<std::string_view, const Listed*> by_id;
  for (const Listed& item : now) by_id.emplace(item.id, &item);
  auto look = [&](const Listed& known) {
    auto found = by_id.find(known.id);
    if (found == by_id.end()) return;
    const Listed& item = *found->second;
    by_id.erase(found);
    if (is_same(collection, known, item)) return;
    renamed.records.push_back(item);
    renamed.change.owners.insert({item.project, known.project});
  };
  ListPtr all;
  bool is_part = false;
  std::unordered_map<std::string, ListPtr> given;
  {
    MutexLock lock(mutex_);
    auto found = lists_.find(collection);
    if (found == lists_.end() || !found->second.read) return renamed;
    all = found->second.read;
    is_part = found->second.is_part;
    if (is_part)
      found->second.by_owner.for_each([&](const std::string& owner, const ListPtr& of) { given.emplace(owner, of); });
  }
  for (auto known = all->begin(); known != all->end() && !by_id.empty(); ++known) look(*known);
  if (!is_part || by_id.empty()) return renamed;
  // The disk cannot tell what changed for this process: another one may have updated it first. So compare with what was
  // given out, all versions of each record.
  std::unordered_map<std::string_view, bool> met;  // ids to whether one is outdated
  for (const auto& [owner, of] : given)
    for (const Listed& known : *of) {
      auto found = by_id.find(known.id);
      if (found == by_id.end()) continue;
      const bool is_outdated = !is_same(collection, known, *found->second);
      met[found->first] |= is_outdated;
      if (is_outdated) renamed.change.owners.insert({found->second->project, known.project});
    }
  for (const auto& [id, is_outdated] : met) {
    auto found = by_id.find(id);
    if (is_outdated) renamed.records.push_back(*found->second);
    by_id.erase(found);
  }
  std::vector<std::string> ids;
  for (const auto& [id, item] : by_id) ids.emplace_back(id);
  if (auto known = context_.records.listed(context_.site, collection, all->front().id, ids))
    for (const Listed& each : *known) {
      if (given.contains(each.project))
        renamed.change.owners.insert(each.project);  // it was given out without this one
      look(each);
    }
  return renamed;
}

void Lists::rename(const std::string& collection, std::vector<Listed> now, Renamed renamed) {
  std::vector<Listed*> read;
  for (Listed& item : now) read.push_back(&item);
  date(collection, read);
  std::unordered_map<std::string_view, const Listed*> by_id;
  for (const Listed& item : now) by_id.emplace(item.id, &item);
  for (Listed& each : renamed.records) each = *by_id.at(each.id);  // now with their times
  auto other = [&](const Listed& known) -> std::optional<Listed> {
    auto found = by_id.find(known.id);
    if (found == by_id.end() || is_same(collection, known, *found->second)) return std::nullopt;
    Listed item = *found->second;
    if (item.name == known.name) item.named_at = known.named_at;
    return item;
  };
  ListChange& change = renamed.change;
  ListPtr all;
  bool is_cut = false, is_part = false, is_stored = false, goes_on = false;
  {
    MutexLock lock(mutex_);
    auto found = lists_.find(collection);
    if (found == lists_.end() || !found->second.read) return;
    List& list = found->second;
    for (Created& own : list.created) {
      auto item = other(own.item);
      if (!item) continue;
      change.owners.insert({item->project, own.item.project});
      own.item = *std::move(item);
    }
    if (renamed.records.empty() && change.owners.empty()) return;
    all = list.read;
    is_part = list.is_part;
    is_stored = list.is_stored;
    if (std::any_of(all->begin(), all->end(), other)) {
      auto items = *all;
      for (Listed& known : items)
        if (auto item = other(known)) known = *std::move(item);
      is_cut = !is_part && cut(items) && !std::exchange(list.is_cut, true);
      list.read = all = std::make_shared<const std::vector<Listed>>(std::move(items));
    }
    list.show();
    goes_on = list.is_cut;
  }
  if (!renamed.records.empty()) {
    is_stored = is_stored && context_.records.extend_list(context_.site, collection, all->front().id, renamed.records);
    // The cache is optional: goes on in memory.
    if (!is_stored && is_part && complete(collection)) return rename(collection, std::move(now), std::move(renamed));
    if (!is_stored && !is_part) is_stored = context_.records.replace_list(context_.site, collection, *all, goes_on);
  }
  change.is_any = is_cut || (is_part && !is_stored);
  std::vector<ListPtr> outdated;  // destroyed after the lock is released
  {
    MutexLock lock(mutex_);
    List& list = lists_[collection];
    list.is_stored = is_stored && (list.is_stored || list.read == all);
    if (is_part && !is_stored) {
      list.is_outdated = true;
      list.forget();
    }
    outdated = list.changed(change);
  }
  if (is_cut) tell_cut(collection, all->size());
  tell(collection, change);
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
        Renamed others = renamed(collection, now);
        if (is_talk(collection)) {
          std::unordered_set<std::string_view> ids;
          for (const Listed& item : others.records) ids.insert(item.id);
          for (const Record& record : page->records)
            if (ids.contains(record.id)) context_.store(collection, record);
        }
        rename(collection, std::move(now), std::move(others));
      }));
}

void Lists::look_at(const std::string& collection, const std::vector<std::string>& ids) {
  for (const std::string& id : ids)
    context_.client.get_record(collection, id, context_.gate->closing(),
                               context_.answered<Record>([this, collection, id, asked_at = context_.clock.steady()](
                                                             const Result<Record>& record) {
                                 if (!record) return;
                                 if (context_.has_newer(collection, *record, asked_at)) {
                                   if (const auto newer = context_.stored(collection, id)) seen(collection, *newer);
                                   return;
                                 }
                                 if (is_talk(collection)) context_.store(collection, *record);
                                 seen(collection, *record);
                               }));
}

}  // namespace playfs::content
