#include "content/lists.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <span>
#include <unordered_set>

#include <fmt/format.h>

#include "base/text.h"
#include "wire/cursors.h"

namespace playfs::content {

namespace {

constexpr int kMostEmptyPages = 3;
// How many of the newest known records a page is compared with. The service's rules never delete records, so one would
// do; if a steward removes thousands at once, the list is reread once.
constexpr std::size_t kAnchors = 2'000;
// A lagging replica's pages may lack a record that we created. One still missing after this time was hidden from lists
// by the service.
constexpr std::chrono::minutes kLag{1};
/// How many times in a row a list is reread because we created records meanwhile.
constexpr int kMostAgain = 8;
/// How often, and how long, a reading waits while another process has the database.
constexpr int kMostWaits = 20;
constexpr std::chrono::milliseconds kWait{50};

/// Changed records that are on none of the pages read are read one by one for their names. At most so many.
constexpr std::size_t kMostLookedAt = 16;

}  // namespace

/// One update of a list. Only accessed by the page that has just arrived.
struct Lists::Reading {
  std::string collection;
  ListPtr known;  ///< never nullptr
  bool is_known_whole = true;
  std::unordered_map<std::string_view, std::size_t> anchors;  ///< ids of the newest known records to index in `known`
  std::deque<Listed> fresh;                                   ///< including the first that is too many
  std::size_t bytes = 0;                                      ///< of `fresh`
  std::vector<Listed> renamed;
  std::unordered_set<std::string_view> fresh_ids;  ///< into `fresh`
  wire::Cursors cursors;
  std::size_t cursor_bytes = 0;  ///< of all those read
  std::string cursor;            ///< of the next page
  std::string behind;            ///< of the page after the last one read
  SteadyTime asked_at;
  int again = 0;  ///< readings before this one for the same flight
  Patience::Question question;
  int empty_pages = 0;
  bool met_known = false;
  std::unordered_set<std::string_view> met;  ///< known records on the pages; into `known`
  std::uint64_t loaded = 0;                  ///< List::loaded of `known`
  std::uint64_t period = 0;                  ///< of Live
  std::uint64_t event = 0;                   ///< number of the last event before it
};

bool Lists::cut(std::vector<Listed>& items) const {
  std::size_t bytes = 0;
  auto too_many = std::find_if(items.begin(), items.end(), [&](const Listed& item) {
    return (bytes += item.bytes()) > context_.options.list_bytes;
  });
  const bool is_cut = too_many != items.end();
  items.erase(too_many, items.end());
  return is_cut;
}

void Lists::tell_cut(const std::string& collection, std::size_t shown) {
  context_.events.error(
      collection, {ErrorCode::refused_input,
                   fmt::format("the list of {} is too long: its newest {} records are shown", collection, shown),
                   "open other records by id; names are not resolved, since an older record may have the same one"});
}

bool Lists::is_whole(const std::string& collection) {
  MutexLock lock(mutex_);
  auto found = lists_.find(collection);
  return found == lists_.end() || !found->second.is_cut;
}

bool Lists::is_fresh(const std::string& collection) {
  MutexLock lock(mutex_);
  auto found = lists_.find(collection);
  return found != lists_.end() &&
         (is_told(collection, found->second) ||
          (found->second.asked_at && context_.clock.steady() - *found->second.asked_at < context_.options.refresh));
}

bool Lists::is_overtaken(const List& list, const Reading& reading) {
  return std::any_of(list.created.begin(), list.created.end(),
                     [&](const Created& own) { return own.event > reading.event; });
}

std::vector<std::string> Lists::end_waiting(List& list, const Reading& reading) {
  std::vector<std::string> others;
  std::erase_if(list.awaited, [&](const auto& awaited) {
    const auto& [id, event] = awaited;
    if (reading.fresh_ids.contains(id) || (event <= reading.event && reading.met.contains(id))) return true;
    if (event > reading.event) return false;
    if (!is_fixed_once_made(reading.collection) && others.size() < kMostLookedAt) others.push_back(id);
    return true;
  });
  return others;
}

void Lists::on_changed(Changed changed) {
  MutexLock lock(mutex_);
  changed_.push_back(std::make_shared<const Changed>(std::move(changed)));
}

void Lists::tell(const std::string& collection, const ListChange& change) {
  std::vector<std::shared_ptr<const Changed>> listeners;
  {
    MutexLock lock(mutex_);
    listeners = changed_;
  }
  for (const auto& listener : listeners) (*listener)(collection, change);
}

void Lists::update(const std::string& collection, const CancelToken& cancel, Callback<void> done) {
  if (flights_.join(collection, cancel, std::move(done))) start_reading(collection, 0);
}

void Lists::start_reading(const std::string& collection, int again, int waits) {
  auto start = context_.guarded([this, collection, again, waits] {
    bool is_outdated = false;
    {
      MutexLock lock(mutex_);
      is_outdated = lists_[collection].is_outdated;
    }
    const Status loaded = is_outdated ? Status() : load(collection);
    // Reading all of it would take far longer.
    if (!loaded && loaded.error().code == ErrorCode::busy && waits < kMostWaits)
      return start_reading(collection, again, waits + 1);
    auto reading = std::make_shared<Reading>();
    reading->collection = collection;
    reading->asked_at = context_.clock.steady();
    reading->again = again;
    reading->question = context_.patience.ask(collection);
    {
      MutexLock lock(mutex_);
      const List& list = lists_[collection];
      if (!is_outdated) reading->known = list.read;
      reading->loaded = list.loaded;
      reading->is_known_whole = !list.is_cut && !list.is_part;
      reading->period = context_.live.period();
      reading->event = events_;
    }
    if (!reading->known) reading->known = std::make_shared<const std::vector<Listed>>();
    for (std::size_t i = 0; i < std::min(kAnchors, reading->known->size()); ++i)
      reading->anchors.emplace((*reading->known)[i].id, i);
    read_page(reading, "");
  });
  if (waits > 0) context_.executor.post_after(kWait, std::move(start));
  else context_.executor.post(std::move(start));
}

void Lists::read_page(const ReadingPtr& reading, std::string cursor) {
  context_.client.list_records(reading->collection, kPageSize, std::move(cursor), context_.gate->closing(),
                               context_.answered<wire::RecordPage>([this, reading](Result<wire::RecordPage> page) {
                                 page_arrived(reading, std::move(page));
                               }));
}

void Lists::page_arrived(const ReadingPtr& reading, Result<wire::RecordPage> page) {
  auto complete = page ? take_in(*reading, *page) : Result<bool>(fail(page.error()));
  if (complete) return *complete ? finish(reading) : read_page(reading, reading->cursor);

  if (!page && is_outage(complete.error().code)) {
    if (is_known(reading->collection)) return flights_.land(reading->collection, {});
  } else {
    context_.events.error(reading->collection, complete.error());
  }
  flights_.land(reading->collection, fail(std::move(complete).error()));
}

Result<bool> Lists::take_in(Reading& reading, const wire::RecordPage& page) {
  const std::size_t before = reading.fresh.size();
  for (const Record& record : page.records) {
    Listed item = listed(reading.collection, record);
    // This version or a later one arrived while the page was in flight, perhaps by a request that updates no list.
    const bool is_old = is_talk(reading.collection) && context_.has_newer(reading.collection, record, reading.asked_at);
    const auto newer = is_old ? context_.stored(reading.collection, record.id) : std::nullopt;
    if (newer) item = listed(reading.collection, *newer);
    if (auto anchor = reading.anchors.find(record.id); anchor != reading.anchors.end()) {
      reading.met_known = true;
      reading.met.insert(anchor->first);
      if (is_same(reading.collection, (*reading.known)[anchor->second], item)) continue;
      if (is_old && !newer) continue;
      if (is_talk(reading.collection) && !is_old) context_.store(reading.collection, record);
      reading.renamed.push_back(std::move(item));
      continue;
    }
    // After the first known record: inserted late by a slow clock, unless it is known but beyond the anchors.
    const bool goes_on = reading.anchors.size() < reading.known->size() || !reading.is_known_whole;
    const bool older_than_anchors = goes_on && !reading.anchors.empty() &&
                                    item.created_at <= (*reading.known)[reading.anchors.size() - 1].created_at;
    if (reading.met_known && older_than_anchors) continue;
    if (reading.fresh_ids.contains(item.id)) continue;
    reading.bytes += item.bytes();
    if (is_talk(reading.collection) && !is_old) context_.store(reading.collection, record);
    reading.fresh.push_back(std::move(item));
    reading.fresh_ids.insert(reading.fresh.back().id);
    if (reading.bytes > context_.options.list_bytes) {
      reading.behind.clear();
      return true;
    }
  }
  reading.behind = page.next_cursor;
  if (reading.met_known || page.next_cursor.empty()) return true;

  reading.empty_pages = reading.fresh.size() > before ? 0 : reading.empty_pages + 1;
  reading.cursor_bytes += sizeof(std::string) + page.next_cursor.size();
  if (reading.empty_pages >= kMostEmptyPages || reading.cursor_bytes > context_.options.list_bytes ||
      reading.cursors.comes_again(page.next_cursor))
    return fail(ErrorCode::protocol,
                "the list of " + reading.collection + " does not end: its cursors make no progress");
  reading.cursor = page.next_cursor;
  return false;
}

std::vector<Listed> Lists::put_together(Reading& reading, const std::vector<Listed>* known) const {
  std::vector<Listed> list;
  list.reserve(reading.fresh.size() + (known ? known->size() : 0));
  // Copies the ids, because `fresh_ids` refers to them.
  for (Listed& item : reading.fresh)
    list.push_back({item.id, item.created_at, std::move(item.name), std::move(item.project), std::move(item.kind),
                    item.updated_at, item.named_at});
  if (!known) return list;
  std::size_t bytes = reading.bytes;
  for (auto item = known->begin(); item != known->end() && bytes <= context_.options.list_bytes; ++item) {
    bytes += item->bytes();
    list.push_back(*item);
  }
  return list;
}

ListChange Lists::change_of(const Reading& reading) {
  ListChange change;
  // Everything was read without meeting a known record, so the known ones are no longer listed.
  change.is_any = !reading.met_known;
  for (const Listed& item : reading.fresh) change.owners.insert(item.project);
  for (const Listed& item : reading.renamed) {
    change.owners.insert(item.project);
    change.owners.insert((*reading.known)[reading.anchors.at(item.id)].project);
  }
  return change;
}

void Lists::finish(const ReadingPtr& reading) {
  const std::string& collection = reading->collection;
  const bool replaced = !reading->met_known;
  ListChange change = change_of(*reading);
  ListPtr known = reading->known;
  bool is_part = false, is_stored = false, was_cut = false;
  if (!replaced) {  // some may have been renamed since
    MutexLock lock(mutex_);
    const List& list = lists_[collection];
    known = list.loaded == reading->loaded ? list.read : nullptr;
    is_part = list.is_part;
    is_stored = list.is_stored;
    was_cut = list.is_cut;
  }
  if (!known) return read_again(reading);
  ListPtr result;
  bool is_cut = false;
  if (replaced || !reading->fresh.empty() || !reading->renamed.empty()) {
    std::vector<Listed> list = put_together(*reading, replaced ? nullptr : known.get());
    const auto newer = std::span<Listed>(list).first(reading->fresh.size());
    std::vector<Listed*> read;
    for (Listed& item : newer) read.push_back(&item);
    for (Listed& item : reading->renamed) read.push_back(&item);
    date(collection, read);
    for (const Listed& item : reading->renamed)
      if (const std::size_t at = newer.size() + reading->anchors.at(item.id); at < list.size()) list[at] = item;
    // The stored list may have been cleared or evicted since it was read.
    auto extends = [&](std::span<const Listed> by) {
      return context_.records.extend_list(context_.site, collection, known->front().id, by);
    };
    is_stored = is_stored && extends(reading->renamed) && extends(newer);
    if (!is_stored && is_part) {  // the cache is optional: goes on in memory
      const ListPtr all = complete(collection);
      if (!all) return read_anew(reading);
      if (all->size() > known->size()) list.insert(list.end(), all->begin() + std::ssize(*known), all->end());
      is_part = false;
      was_cut = !is_whole(collection);
    }
    if (!is_stored)
      is_stored = context_.records.replace_list(context_.site, collection, list,
                                                was_cut || bytes_of(list) > context_.options.list_bytes);
    is_cut = !is_part && cut(list);
    result = std::make_shared<const std::vector<Listed>>(std::move(list));
  }
  bool is_another = false, is_news = false, is_overtaken = false;
  std::size_t count = 0;
  std::vector<std::string> others;
  std::vector<ListPtr> outdated;  // destroyed after the lock is released
  {
    MutexLock lock(mutex_);
    List& list = lists_[collection];
    const ListPtr before = list.shown, before_read = list.read;
    const std::size_t fewer = std::erase_if(list.created, [&](const Created& own) {
      if (!reading->fresh_ids.contains(own.item.id) && reading->asked_at - own.at <= kLag) return false;
      change.owners.insert(own.item.project);
      return true;
    });
    list.asked_at = reading->asked_at;
    list.period = reading->period;
    ++list.readings;
    others = end_waiting(list, *reading);
    list.behind = std::move(reading->behind);
    if (result) {
      list.read = result;
      list.is_part = is_part;
      list.is_stored = is_stored;
    }
    if (result || fewer > 0) list.show();
    is_news = is_cut && !list.is_cut;
    list.is_cut = is_cut || (list.is_cut && !replaced);
    // What does not fit is lost, unless it is on disk.
    const bool is_back = std::exchange(list.is_forgotten, false);
    change.is_any = change.is_any || is_news || (is_cut && !is_stored) || is_back;
    if (replaced) list.is_outdated = false;
    if (result) outdated = list.changed(change);
    // What we created was shown before, but not in its place.
    is_another = is_back || (before && ((before != list.shown && *before != *list.shown) ||
                                        (is_talk(collection) && before_read != list.read)));
    is_overtaken = is_talk(collection) && this->is_overtaken(list, *reading);
    count = list.shown ? list.shown->size() : 0;
  }
  reading->question.reset();
  if (is_news) tell_cut(collection, count);
  if (is_another) tell(collection, change);
  look_at(collection, others);
  // A caller that has just written must wait for a reading that can include what it wrote.
  if (is_overtaken && reading->again < kMostAgain) return start_reading(collection, reading->again + 1);
  flights_.land(collection, {});
}

void Lists::read_anew(const ReadingPtr& reading) {
  {
    MutexLock lock(mutex_);
    List& list = lists_[reading->collection];
    list.is_outdated = true;
    list.forget();
  }
  read_again(reading);
}

void Lists::read_again(const ReadingPtr& reading) {
  reading->question.reset();
  if (reading->again < kMostAgain) return start_reading(reading->collection, reading->again + 1);
  flights_.land(
      reading->collection,
      fail(ErrorCode::busy, "the stored list of " + reading->collection + " is lost again and again", "try again"));
}

}  // namespace playfs::content
