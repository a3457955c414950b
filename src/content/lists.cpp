#include "content/lists.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"

namespace playfs::content {

namespace {

constexpr int kPageSize = 100;
// Bounds on what a service can make us read: pages that never end cost it more than us.
constexpr std::size_t kMostRecords = 500'000;
constexpr std::size_t kLongestName = 1'000;  // bytes; no path component is as long, and a hundred thousand are kept
constexpr int kMostEmptyPages = 3;
// How far into the known list a new page is held against it. Records are never deleted by the service's rules, so the
// newest one would do; a steward who removes some thousands in one go costs one full reading.
constexpr std::size_t kAnchors = 2'000;

std::string text_of(const Record& record, std::string_view name) {
  const Json* value = record.fields.find(name);
  return value && value->string() ? *value->string() : std::string();
}

Listed listed(const std::string& collection, const Record& record) {
  Listed item{record.id,
              parse_iso8601(record.created_at).value_or(WallTime{}),
              {},
              text_of(record, collection == "messages" ? "thread" : "project")};
  if (collection == "agents") item.name = text_of(record, "handle");
  if (item.name.empty()) item.name = text_of(record, "name");
  if (item.name.empty()) item.name = text_of(record, "title");
  if (item.name.size() > kLongestName) item.name.clear();
  if (item.project.size() > kMaxIdLength) item.project.clear();
  return item;
}

}  // namespace

/// One bringing up to date. Only ever touched by the page that has just arrived.
struct Lists::Reading {
  std::string collection;
  ListPtr known;                                              ///< never nullptr
  std::unordered_map<std::string_view, std::size_t> anchors;  ///< ids of the newest known records, into `known`
  std::vector<Listed> fresh;
  std::vector<Listed> renamed;
  std::unordered_set<std::string> fresh_ids;
  std::unordered_set<std::string> cursors;
  std::string cursor;  ///< of the next page
  int empty_pages = 0;
  bool met_known = false;
};

ListPtr Lists::known(const std::string& collection) {
  {
    MutexLock lock(mutex_);
    if (auto found = lists_.find(collection); found != lists_.end()) return found->second;
  }
  auto stored = context_.records.list(context_.site, collection);
  if (stored.empty()) return nullptr;
  MutexLock lock(mutex_);
  return lists_.try_emplace(collection, std::make_shared<const std::vector<Listed>>(std::move(stored))).first->second;
}

void Lists::get(const std::string& collection, const CancelToken& cancel, Callback<ListPtr> done) {
  if (!flights_.join(collection, cancel, std::move(done))) return;
  // A long list takes a while to load from the disk.
  context_.executor.post(context_.guarded([this, collection] {
    auto reading = std::make_shared<Reading>();
    reading->collection = collection;
    reading->known = known(collection);
    if (!reading->known) reading->known = std::make_shared<const std::vector<Listed>>();
    for (std::size_t i = 0; i < std::min(kAnchors, reading->known->size()); ++i)
      reading->anchors.emplace((*reading->known)[i].id, i);
    read_page(reading, "");
  }));
}

void Lists::read_page(const ReadingPtr& reading, std::string cursor) {
  context_.client.list_records(reading->collection, kPageSize, std::move(cursor), context_.stop.token(),
                               context_.answered<wire::RecordPage>([this, reading](Result<wire::RecordPage> page) {
                                 page_arrived(reading, std::move(page));
                               }));
}

void Lists::page_arrived(const ReadingPtr& reading, Result<wire::RecordPage> page) {
  auto complete = page ? take_in(*reading, *page) : Result<bool>(fail(page.error()));
  if (complete) return *complete ? finish(reading) : read_page(reading, reading->cursor);

  if (!page && is_away(complete.error())) {
    if (auto old = known(reading->collection)) return flights_.land(reading->collection, old);
  } else {
    context_.events.error(reading->collection, complete.error());
  }
  flights_.land(reading->collection, fail(std::move(complete).error()));
}

Result<bool> Lists::take_in(Reading& reading, const wire::RecordPage& page) {
  const std::size_t before = reading.fresh.size();
  for (const Record& record : page.records) {
    Listed item = listed(reading.collection, record);
    if (auto anchor = reading.anchors.find(record.id); anchor != reading.anchors.end()) {
      reading.met_known = true;
      if ((*reading.known)[anchor->second] != item) reading.renamed.push_back(std::move(item));
      continue;
    }
    // Behind the first known record: added late by a clock that lags, unless it is one known from further back.
    const bool older_than_anchors = reading.anchors.size() < reading.known->size() &&
                                    item.created_at <= (*reading.known)[reading.anchors.size() - 1].created_at;
    if (reading.met_known && older_than_anchors) continue;
    if (reading.fresh_ids.insert(item.id).second) reading.fresh.push_back(std::move(item));
  }
  if (reading.met_known || page.next_cursor.empty()) return true;

  if (reading.fresh.size() > kMostRecords)
    return fail(ErrorCode::refused_input,
                "the list of " + reading.collection + " has more than " + std::to_string(kMostRecords) + " records");
  reading.empty_pages = reading.fresh.size() > before ? 0 : reading.empty_pages + 1;
  if (reading.empty_pages >= kMostEmptyPages || !reading.cursors.insert(page.next_cursor).second)
    return fail(ErrorCode::protocol, "the list of " + reading.collection + " does not end: its cursors lead nowhere");
  reading.cursor = page.next_cursor;
  return false;
}

void Lists::finish(const ReadingPtr& reading) {
  // All was read without meeting a known record: what was known is no longer listed.
  const bool replaced = !reading->met_known;
  ListPtr result = reading->known;
  if (replaced || !reading->fresh.empty() || !reading->renamed.empty()) {
    std::vector<Listed> list = reading->fresh;
    if (!replaced) list.insert(list.end(), reading->known->begin(), reading->known->end());
    for (const Listed& item : reading->renamed) list[reading->fresh.size() + reading->anchors.at(item.id)] = item;
    result = std::make_shared<const std::vector<Listed>>(std::move(list));
    reading->fresh.insert(reading->fresh.end(), reading->renamed.begin(), reading->renamed.end());
    // What is stored may have been cleared since it was read here, or have gone to make room.
    const bool extended = !replaced && context_.records.extend_list(context_.site, reading->collection,
                                                                    reading->known->front().id, reading->fresh);
    if (!extended) context_.records.replace_list(context_.site, reading->collection, *result);
  }
  {
    MutexLock lock(mutex_);
    lists_[reading->collection] = result;
  }
  flights_.land(reading->collection, result);
}

}  // namespace playfs::content
