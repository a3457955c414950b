#include "content/lists.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/text.h"
#include "content/list_changes.h"

namespace playfs::content {

namespace {

constexpr int kMostEmptyPages = 3;
// How many of the newest known records a page is compared with. The service's rules never delete records, so one would
// do; if a steward removes thousands at once, the list is reread once.
constexpr std::size_t kAnchors = 2'000;
/// How often, and how long, a reading waits while another process has the database.
constexpr int kMostWaits = 20;
constexpr std::chrono::milliseconds kWait{50};

/// Changed records that are on none of the pages read are read one by one for their names. At most so many.
constexpr std::size_t kMostLookedAt = 16;

}  // namespace

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
    outdate_disk();
    bool is_outdated = false, is_locked = false;
    {
      MutexLock lock(mutex_);
      const List& list = lists_[collection];
      is_outdated = list.is_outdated;
      is_locked = list.is_locked;
    }
    Status loaded = is_outdated ? Status() : load(collection);
    if (loaded && is_locked && !is_outdated) loaded = probe(collection);
    const bool is_busy = !loaded && loaded.error().code == ErrorCode::busy;
    // Reading all of it takes far longer, but does not need the disk.
    if (is_busy && waits < kMostWaits) return start_reading(collection, again, waits + 1);
    is_outdated = is_outdated || is_busy;
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
      reading.renamed.push_back({std::move(item), context_.clock.steady()});
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
    reading.fresh.push_back({std::move(item), context_.clock.steady()});
    reading.fresh_ids.insert(reading.fresh.back().item.id);
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
