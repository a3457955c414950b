// What a reading changes in a list. The change is made beside the list, stored, and put in its place, unless another
// has come meanwhile: then it is made again.
#include <algorithm>
#include <chrono>
#include <span>
#include <unordered_map>

#include "content/list_changes.h"
#include "content/names.h"

namespace playfs::content {

namespace {

// A lagging replica's pages may lack a record that we know. The service has lost one that is still missing after this
// time, or hides it from lists.
constexpr std::chrono::minutes kLag{1};
/// An attempt fails only if the list is lost or completed meanwhile, so a second one is usually enough.
constexpr int kMostAttempts = 8;

}  // namespace

/// What became of a reading.
struct Lists::Ending {
  enum class Outcome {
    taken_over,
    lost,    ///< the list that it updates is gone
    no_rest  ///< the same, and what is on disk is of no use
  } outcome = Outcome::lost;
  ListChange change;
  std::vector<std::string> others;  ///< to be looked at by themselves
  bool is_another = false, is_news = false, is_overtaken = false;
  bool went_back = false;  ///< the service has lost known records
  std::size_t count = 0;
};

Lists::Base Lists::base(const std::string& collection) {
  MutexLock lock(mutex_);
  const List& list = lists_[collection];
  Base base{list.read, list.shown, {}, list.loaded, list.is_part, list.is_stored, list.is_cut, !list.newer.empty()};
  for (const Created& each : list.created) base.own.push_back(each.item);
  return base;
}

void Lists::finish(const ReadingPtr& reading) {
  Ending end;
  {
    MutexLock storing(storing_);
    catch_up(*reading);
    end = take_over(*reading);
  }
  if (end.outcome == Ending::Outcome::lost) return read_again(reading);
  if (end.outcome == Ending::Outcome::no_rest) return read_anew(reading);
  if (end.went_back) return read_anew(reading);
  reading->question.reset();
  if (end.is_news) tell_cut(reading->collection, end.count);
  if (end.is_another) tell(reading->collection, end.change);
  look_at(reading->collection, end.others);
  // A caller that has just written must wait for a reading that can include what it wrote.
  if (end.is_overtaken && reading->again < kMostAgain) return start_reading(reading->collection, reading->again + 1);
  flights_.land(reading->collection, {});
}

bool Lists::is_lacking(const Reading& reading) {
  std::size_t reached = 0;  // how far down the known list
  for (const std::string_view id : reading.met) reached = std::max(reached, reading.anchors.at(id) + 1);
  return reading.met.size() < reached;
}

void Lists::catch_up(Reading& reading) {
  if (is_fixed_once_made(reading.collection)) return;
  auto catch_up = [&](Reading::Taken& taken) {
    if (!context_.has_newer(reading.collection, taken.item.id, taken.item.updated_at, taken.at)) return;
    if (const auto newer = context_.stored(reading.collection, taken.item.id))
      taken.item = listed(reading.collection, *newer);
  };
  std::for_each(reading.fresh.begin(), reading.fresh.end(), catch_up);
  std::for_each(reading.renamed.begin(), reading.renamed.end(), catch_up);
}

Lists::Ending Lists::take_over(const Reading& reading) {
  using Outcome = Ending::Outcome;
  Ending end;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Base base = this->base(reading.collection);
    if (reading.met_known && (!base.read || base.loaded != reading.loaded)) return end;
    const bool is_new = !reading.met_known || !reading.fresh.empty() || !reading.renamed.empty();
    Next next;
    if (is_new) {
      next = next_of(reading, base);
      const bool lacks_rest = !store(reading, base, next);
      // The cache is optional: goes on in memory.
      if (lacks_rest && complete(reading.collection)) continue;
      if (lacks_rest) end.outcome = Outcome::no_rest;
      if (lacks_rest) return end;
      next.is_cut = !next.is_part && cut(next.items);
      next.list = std::make_shared<const std::vector<Listed>>(std::move(next.items));
    }
    if (!commit(reading, base, is_new ? &next : nullptr, end)) continue;
    end.outcome = Outcome::taken_over;
    return end;
  }
  return end;
}

std::vector<Listed> Lists::put_together(const Reading& reading, const std::vector<Listed>* known) const {
  std::vector<Listed> list;
  list.reserve(reading.fresh.size() + (known ? known->size() : 0));
  for (const Reading::Taken& taken : reading.fresh) list.push_back(taken.item);
  if (!known) return list;
  std::size_t bytes = reading.bytes;
  for (auto item = known->begin(); item != known->end() && bytes <= context_.options.list_bytes; ++item) {
    bytes += item->bytes();
    list.push_back(*item);
  }
  return list;
}

Lists::Next Lists::next_of(const Reading& reading, const Base& base) {
  Next next;
  next.items = put_together(reading, reading.met_known ? base.read.get() : nullptr);
  for (const Reading::Taken& taken : reading.renamed) next.renamed.push_back(taken.item);
  std::vector<Listed*> read;
  for (Listed& item : std::span(next.items).first(reading.fresh.size())) read.push_back(&item);
  for (Listed& item : next.renamed) read.push_back(&item);
  next.dated = date(reading.collection, base, read);
  for (const Listed& item : next.renamed)
    if (const std::size_t at = reading.fresh.size() + reading.anchors.at(item.id); at < next.items.size())
      next.items[at] = item;
  next.is_part = reading.met_known && base.is_part;
  return next;
}

bool Lists::store(const Reading& reading, const Base& base, Next& next) {
  // The stored list may have been cleared or evicted since it was read.
  auto extends = [&](std::span<const Listed> by) {
    return context_.records.extend_list(context_.site, reading.collection, base.read->front().id, by);
  };
  const auto fresh = std::span<const Listed>(next.items).first(reading.fresh.size());
  next.is_stored = reading.met_known && base.is_stored && extends(next.renamed) && extends(fresh);
  if (next.is_stored) return true;
  if (next.is_part) return false;
  const bool was_cut = reading.met_known && base.is_cut;
  next.is_stored = context_.records.replace_list(context_.site, reading.collection, next.items,
                                                 was_cut || bytes_of(next.items) > context_.options.list_bytes);
  return true;
}

ListChange Lists::change_of(const Reading& reading) {
  ListChange change;
  // Everything was read without meeting a known record, so the known ones are no longer listed.
  change.is_any = !reading.met_known;
  for (const Reading::Taken& taken : reading.fresh) change.owners.insert(taken.item.project);
  for (const Reading::Taken& taken : reading.renamed) {
    change.owners.insert(taken.item.project);
    change.owners.insert((*reading.known)[reading.anchors.at(taken.item.id)].project);
  }
  return change;
}

bool Lists::commit(const Reading& reading, const Base& base, Next* next, Ending& end) {
  AllGiven outdated;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  List& list = lists_[reading.collection];
  if (next && !base.is_still(list)) return false;
  ListChange& change = end.change = change_of(reading);
  const ListPtr before = list.shown, before_read = list.read;
  const std::size_t fewer = std::erase_if(list.created, [&](const Created& own) {
    if (!reading.fresh_ids.contains(own.item.id) && reading.asked_at - own.at <= kLag) return false;
    change.owners.insert(own.item.project);
    return true;
  });
  list.asked_at = reading.asked_at;
  const bool is_lacking = Lists::is_lacking(reading);
  if (!is_lacking) list.lacking_since.reset();
  else if (!list.lacking_since) list.lacking_since = reading.asked_at;
  end.went_back = is_lacking && reading.asked_at - *list.lacking_since > kLag;
  list.period = is_lacking ? 0 : reading.period;  // no event tells what is gone: ask again
  ++list.readings;
  end.others = end_waiting(list, reading);
  list.behind = reading.behind;
  if (next) {
    list.read = next->list;
    list.is_part = next->is_part;
    list.is_stored = next->is_stored;
    list.take(next->dated);
  }
  if (next || fewer > 0) list.show();
  const bool is_cut = next && next->is_cut, is_back = std::exchange(list.is_forgotten, false);
  end.is_news = is_cut && !list.is_cut;
  list.is_cut = is_cut || (list.is_cut && reading.met_known);
  // What does not fit is lost, unless it is on disk.
  change.is_any = change.is_any || end.is_news || (is_cut && !next->is_stored) || is_back;
  if (!reading.met_known) list.is_outdated = list.is_locked = false;
  if (!reading.renamed.empty()) list.tell_let_go(change);
  if (next) outdated = list.changed(change);
  // What we created was shown before, but not in its place.
  end.is_another = is_back || (before && ((before != list.shown && *before != *list.shown) ||
                                          (is_talk(reading.collection) && before_read != list.read)));
  end.is_overtaken = is_talk(reading.collection) && is_overtaken(list, reading);
  end.count = list.shown ? list.shown->size() : 0;
  return true;
}

Lists::Dated Lists::date(const std::string& collection, const Base& base, std::span<Listed* const> read) {
  Dated dated;
  if (is_nameless(collection)) return dated;
  const auto known = base.read ? std::span(*base.read) : std::span<const Listed>();
  std::unordered_map<std::string_view, const Listed*> now;
  for (const Listed* item : read) now.emplace(item->id, item);
  for (const Listed& was : known) {
    auto found = now.find(was.id);
    if (found == now.end() || found->second->name == was.name || found->second->updated_at >= was.updated_at) continue;
    dated.overtaken.push_back(was);
  }
  std::unordered_map<std::string, WallTime> seen;
  {
    MutexLock lock(mutex_);
    const auto& newer = lists_[collection].newer;
    for (const Listed* item : read) {
      auto found = newer.find(item->id);
      if (found == newer.end() || item->updated_at < found->second.updated_at) continue;
      if (item->name == found->second.name) seen.emplace(item->id, found->second.named_at);
      dated.caught_up.push_back(item->id);
    }
  }
  // This process may have seen the name before a lagging response, and another process may have seen it earlier still.
  date_names(read, known, base.own, [&](const Listed& item) {
    if (auto found = seen.find(item.id); found != seen.end()) return std::optional(found->second);
    return known.empty() ? std::nullopt : context_.records.named_at(context_.site, collection, item.id, item.name);
  });
  return dated;
}

}  // namespace playfs::content
