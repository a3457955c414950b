#include "content/inbox.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "cache/checksum.h"
#include "content/inbox_marks.h"
#include "content/record_line.h"
#include "model/mentions.h"

namespace playfs::content {
namespace {

constexpr const char* kLine = "line";
/// Records that are read, and then taken in, together.
constexpr std::size_t kAtOnce = 256;
/// A message whose thread or parent is in no list waits for it, since it may be mine. At most so many do.
constexpr std::size_t kMostStrays = 100;
/// Records that left the lists are forgotten once there are more than this.
constexpr std::size_t kSpare = 10'000;
/// How soon to ask again for a record that the service did not have. Each time it is doubled, at most so often.
constexpr std::chrono::seconds kAskAgain{1};
constexpr std::uint8_t kMostDoubled = 12;

/// What the inbox needs of a record: the fields that decide whom it is for, and its line.
Reduced seen_by_inbox(Record record) {
  std::string line = record_line(record, "new/ and seen/");
  Record kept{
      std::move(record.id), std::move(record.created_at), std::move(record.updated_at), std::move(record.status), {}};
  for (const char* name : {"agent", "thread", "parent", "mentions", "state", "owner_reply"})
    if (const Json* value = record.fields.find(name)) kept.fields.set(name, *value);
  const Json* body = record.fields.find("body");
  if (body && body->string() && !kept.fields.find("mentions")) {
    Json::Array mentions;
    for (std::string& handle : mentions_in(*body->string())) mentions.emplace_back(std::move(handle));
    kept.fields.set("mentions", std::move(mentions));
  }
  kept.fields.set(kLine, std::move(line));
  return {std::move(kept), {}};
}

std::string text_in(const Record& record, std::string_view name) {
  const Json* value = record.fields.find(name);
  const std::string* text = value ? value->string() : nullptr;
  return text ? *text : std::string();
}

}  // namespace

Inbox::Inbox(Site& site, const Clock& clock, std::string me, const std::string& directory)
    : site_(site),
      clock_(clock),
      me_(std::move(me)),
      directory_(directory),
      path_(directory + "/" + InboxMarks::file_name(me_) + ".index") {}

const char* Inbox::name_of(Collection collection) {
  static constexpr std::array<const char*, 3> kNames = {"messages", "threads", "domain_mail"};
  return kNames.at(collection);
}

std::optional<Inbox::Collection> Inbox::collection_named(std::string_view name) {
  for (const Collection collection : {messages, threads, mail})
    if (name == name_of(collection)) return collection;
  return std::nullopt;
}

bool Inbox::has_taken(const Lists& lists) const {
  if (me_.empty()) return true;
  MutexLock lock(mutex_);
  return is_loaded_ && taken_ == lists && clock_.steady() < ask_again_;
}

Inbox::Looked Inbox::looked_at(Collection collection, const std::string& id) const {
  auto found = looked_[collection].find(id);
  return found != looked_[collection].end() ? found->second : Looked();
}

bool Inbox::is_known(const RecordName& record) const {
  const auto& [collection, id] = record;
  return looked_at(collection, id).has_author || (collection == messages && waits_.contains(id));
}

void Inbox::has_looked(Collection collection, const std::string& id, Looked looked) {
  looked_[collection][id] = looked;
  if (collection == messages) waits_.erase(id);
  if (looked.is_hidden || looked.is_gone) lines_.replace(line_of(collection, id), "");
}

bool Inbox::is_shown(const Entry& entry) const {
  const auto& looked = looked_[collection_of(entry)];
  auto found = looked.find(entry.id);
  return entry.is_listed && (found == looked.end() || !(found->second.is_hidden || found->second.is_gone));
}

std::vector<Inbox::Missing> Inbox::take(const Lists& lists, const CancelToken& cancel) {
  if (has_taken(lists)) return {};
  load();
  {
    MutexLock lock(mutex_);
    ask_again_ = SteadyTime::max();  // work_of() finds it
  }
  Round round{cancel};
  std::vector<Work> of_threads = work_of(threads, lists.threads), work = work_of(messages, lists.messages),
                    of_mail = work_of(mail, lists.mail);
  work.insert(work.end(), of_mail.begin(), of_mail.end());
  std::stable_sort(work.begin(), work.end(), [](const Work& a, const Work& b) { return a.at < b.at; });
  for (const auto* some : {&of_threads, &work})
    for (const Work& each : *some) round.to_look_at[each.in].insert(each.item->id);
  // Threads first: whether a message is for me depends on whose thread it is in, and on whose message it answers.
  bool is_done = look_at(of_threads, round) && look_at(work, round);
  while (is_done) {
    const std::vector<Work> ready = ready_of(work);
    if (ready.empty()) break;
    is_done = look_at(ready, round);
  }
  forget_others(lists);
  for (const Collection collection : {messages, mail}) look_for_lost(collection);
  MutexLock lock(mutex_);
  ++version_;
  if (is_done && round.missing.empty()) taken_ = lists;
  else ask_again_ = SteadyTime();
  return std::move(round.missing);
}

std::vector<Inbox::Work> Inbox::ready_of(const std::vector<Work>& work) const {
  std::vector<Work> ready;
  MutexLock lock(mutex_);
  for (const Work& each : work) {
    if (each.in != messages) continue;
    auto wait = waits_.find(each.item->id);
    if (wait != waits_.end() && is_known(wait->second.for_record)) ready.push_back(each);
  }
  return ready;
}

bool Inbox::is_awaited(const RecordName& record, Round& round) const {
  const auto& [collection, id] = record;
  if (round.to_look_at[collection].contains(id) || looked_[collection].contains(id)) return true;
  if (round.strays == kMostStrays) return false;
  ++round.strays;
  return true;
}

bool Inbox::is_waiting(const Work& work, Round& round) const {
  if (work.in != messages) return false;
  MutexLock lock(mutex_);
  auto wait = waits_.find(work.item->id);
  if (wait == waits_.end() || wait->second.updated != work.item->updated_at.nanoseconds) return false;
  return !is_known(wait->second.for_record) && is_awaited(wait->second.for_record, round);
}

std::vector<Inbox::Work> Inbox::work_of(Collection collection, const ListPtr& list) {
  std::vector<Work> work;
  if (!list) return work;
  const SteadyTime now = clock_.steady();
  MutexLock lock(mutex_);
  const auto& looked = looked_[collection];
  for (auto item = list->rbegin(); item != list->rend(); ++item) {
    auto found = looked.find(item->id);
    if (found != looked.end() && found->second.updated == item->updated_at.nanoseconds) {
      if (!found->second.is_gone) continue;
      if (found->second.ask_again > now) {
        ask_again_ = std::min(ask_again_, found->second.ask_again);
        continue;
      }
    }
    const bool is_change = found != looked.end() || collection == mail;
    const std::int64_t created = item->created_at.nanoseconds;
    work.push_back({collection, &*item, is_change ? std::max(created, item->updated_at.nanoseconds) : created});
  }
  return work;
}

bool Inbox::look_at(const std::vector<Work>& work, Round& round) {
  for (std::size_t begin = 0; begin < work.size(); begin += kAtOnce) {
    std::vector<std::pair<const Work*, RecordPartPtr>> parts;
    for (std::size_t at = begin; at < std::min(begin + kAtOnce, work.size()); ++at) {
      if (round.cancel.cancelled() || round.missing.size() == kMostMissing) return false;
      if (is_waiting(work[at], round)) continue;
      const std::string collection = name_of(work[at].in);
      const PartAtOnce part = site_.known_part(collection, work[at].item->id, seen_by_inbox, Reads::ordinary);
      // A record of megabytes cannot be an honest message: services do not accept such records.
      if (part.part || part.takes_long) parts.emplace_back(&work[at], part.part);
      else round.missing.push_back({collection, work[at].item->id, work[at].item->updated_at});
    }
    MutexLock lock(mutex_);
    for (const auto& [which, part] : parts) {
      if (part) apply(*which, part->record, round);
      else
        has_looked(which->in, which->item->id,
                   {.updated = which->item->updated_at.nanoseconds, .has_author = true, .is_gone = true});
    }
    unsaved_ += parts.size();
  }
  return true;
}

void Inbox::apply(const Work& work, const Record& record, Round& round) {
  const std::string& id = work.item->id;
  const std::int64_t updated = work.item->updated_at.nanoseconds;
  if (is_hidden(record)) {
    Looked looked = looked_at(work.in, id);
    looked.updated = updated;
    looked.is_hidden = true;
    looked.is_gone = false;
    return has_looked(work.in, id, looked);
  }
  lines_.replace(line_of(work.in, id), text_in(record, kLine));
  if (work.in == messages) return apply_message(work, record, round);
  if (work.in == mail) return apply_mail(work, record);
  has_looked(work.in, id, {.updated = updated, .has_author = true, .is_mine = is_by(record, me_)});
}

void Inbox::apply_mail(const Work& work, const Record& record) {
  const std::string& id = work.item->id;
  const std::int64_t answer = cache::checksum_of_row({text_in(record, "state"), text_in(record, "owner_reply")});
  const bool is_other = looked_at(mail, id).answer != answer;
  has_looked(mail, id,
             {.updated = work.item->updated_at.nanoseconds,
              .has_author = true,
              .is_mine = is_by(record, me_),
              .answer = answer});
  add(work, mail_for(record, me_), record, is_other);
}

void Inbox::apply_message(const Work& work, const Record& message, Round& round) {
  const std::string& id = work.item->id;
  const RecordName thread{threads, text_in(message, "thread")}, parent{messages, text_in(message, "parent")};
  const bool answers_mine = looked_at(messages, parent.second).is_mine;
  const ForMe why = message_for(message, me_, answers_mine, looked_at(threads, thread.second).is_mine);
  const bool by_me = is_by(message, me_);
  if (why == ForMe::no && !by_me) {
    for (const RecordName* each : {&parent, &thread}) {
      if (each == &parent && (parent.second.empty() || parent.second == id)) continue;
      if (is_known(*each) || !is_awaited(*each, round)) continue;
      waits_[id] = {work.item->updated_at.nanoseconds, *each};
      return;
    }
  }
  const bool mentioned_me = looked_at(messages, id).mentions_me;
  has_looked(messages, id,
             {.updated = work.item->updated_at.nanoseconds,
              .has_author = true,
              .is_mine = by_me,
              .mentions_me = why == ForMe::mention});
  add(work, why, message, why == ForMe::mention && !mentioned_me);
}

void Inbox::add(const Work& work, ForMe why, const Record& record, bool is_anew) {
  if (why == ForMe::no) return;
  const std::string& id = work.item->id;
  auto place = places_.find(id);
  if (place == places_.end()) {
    // Without what earlier processes had found, an edit may have brought it here again after it was marked.
    const std::int64_t last = why == ForMe::mention ? std::max(work.at, work.item->updated_at.nanoseconds) : work.at;
    add_entry({name_of(work.in), id, {last}, why, 0});
  } else {
    Entry& entry = entries_.at(place->second);
    // A mail and a message of one id, which only a hostile service has: files show the first.
    if (entry.collection == name_of(work.in)) {
      if (!is_anew || entry.at.nanoseconds >= work.at) return;
      entry.at = {work.at};
      entry.why = why;
    }
  }
  lines_.append(line_of(work.in, id), text_in(record, kLine));
}

void Inbox::add_entry(Entry entry) {
  entry.position = next_++;
  places_.emplace(entry.id, entry.position);
  entries_.emplace(entry.position, std::move(entry));
  if (entries_.size() <= kMost) return;
  places_.erase(entries_.begin()->second.id);
  entries_.erase(entries_.begin());
  is_cut_ = true;
}

void Inbox::is_gone(const Missing& record) {
  const auto collection = collection_named(record.collection);
  if (!collection) return;
  const SteadyTime now = clock_.steady();
  MutexLock lock(mutex_);
  ++version_;
  Looked looked = looked_at(*collection, record.id);
  looked.updated = record.updated.nanoseconds;
  looked.is_gone = true;
  looked.ask_again = now + kAskAgain * (1 << looked.times_gone);
  if (looked.times_gone < kMostDoubled) ++looked.times_gone;
  ask_again_ = std::min(ask_again_, looked.ask_again);
  has_looked(*collection, record.id, looked);
}

void Inbox::forget_others(const Lists& lists) {
  for (const auto& [collection, list] :
       {std::pair(messages, lists.messages), std::pair(threads, lists.threads), std::pair(mail, lists.mail)}) {
    if (!list) continue;
    MutexLock lock(mutex_);
    auto& looked = looked_[collection];
    if (looked.size() + (collection == messages ? waits_.size() : 0) <= list->size() + kSpare) continue;
    std::unordered_set<std::string_view> listed;
    for (const Listed& item : *list) listed.insert(item.id);
    auto is_unlisted = [&](const auto& each) { return !listed.contains(each.first); };
    std::erase_if(looked, is_unlisted);
    if (collection == messages) std::erase_if(waits_, is_unlisted);
  }
}

void Inbox::look_for_lost(Collection collection) {
  // Not the list that take() was given: another thread may have been given a later one.
  const ListPtr list = site_.try_list(name_of(collection));
  if (!list || !site_.is_list_whole(name_of(collection))) return;
  std::unordered_set<std::uint64_t> listed;  // positions
  MutexLock lock(mutex_);
  for (const Listed& item : *list)
    if (auto place = places_.find(item.id); place != places_.end()) listed.insert(place->second);
  for (auto& [position, entry] : entries_) {
    if (collection_of(entry) != collection) continue;
    entry.is_listed = listed.contains(position);
    lines_.show(line_of(collection, entry.id), entry.is_listed);
  }
}

void Inbox::load() {
  {
    MutexLock lock(mutex_);
    if (is_loaded_) return;
  }
  Saved saved = read_saved().value_or(Saved());
  std::stable_sort(saved.entries.begin(), saved.entries.end(),
                   [](const Entry& a, const Entry& b) { return a.at < b.at; });
  // The newest lines; records that the cache has lost since are looked at again.
  std::vector<std::pair<std::string, std::string>> lines;
  std::size_t bytes = 0;
  auto entry = saved.entries.end();
  while (entry != saved.entries.begin() && bytes <= kMostBytes / 2) {
    --entry;
    const PartAtOnce part = site_.known_part(entry->collection, entry->id, seen_by_inbox, Reads::ordinary);
    if (part.part) {
      lines.emplace_back(line_of(collection_of(*entry), entry->id), text_in(part.part->record, kLine));
      bytes += lines.back().second.size();
      continue;
    }
    saved.looked[collection_of(*entry)].erase(entry->id);
    entry = saved.entries.erase(entry);
  }
  MutexLock lock(mutex_);
  is_loaded_ = true;
  is_cut_ = entry != saved.entries.begin();
  looked_ = std::move(saved.looked);
  waits_ = std::move(saved.waits);
  for (Entry& each : saved.entries)
    if (!places_.contains(each.id)) add_entry(std::move(each));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) lines_.append(line->first, std::move(line->second));
  for (const auto& [position, entry] : entries_)
    if (!is_shown(entry)) lines_.replace(line_of(collection_of(entry), entry.id), "");
}

std::uint64_t Inbox::version() const {
  MutexLock lock(mutex_);
  return version_;
}

std::vector<Inbox::Entry> Inbox::entries() const {
  MutexLock lock(mutex_);
  std::vector<Entry> all;
  all.reserve(entries_.size());
  for (const auto& [position, entry] : entries_)
    if (is_shown(entry)) all.push_back(entry);
  return all;
}

std::optional<Inbox::Entry> Inbox::find(const std::string& id) const {
  MutexLock lock(mutex_);
  auto found = places_.find(id);
  if (found == places_.end()) return std::nullopt;
  const Entry& entry = entries_.at(found->second);
  return is_shown(entry) ? std::optional(entry) : std::nullopt;
}

Inbox::Lines Inbox::lines() const {
  MutexLock lock(mutex_);
  return {lines_.text(), lines_.end()};
}

std::optional<Inbox::Lines> Inbox::lines_from(std::uint64_t place) const {
  MutexLock lock(mutex_);
  auto text = lines_.text_from(place);
  return text ? std::optional(Lines{std::move(*text), lines_.end()}) : std::nullopt;
}

bool Inbox::is_cut() const {
  MutexLock lock(mutex_);
  return is_cut_ || lines_.is_cut();
}

}  // namespace playfs::content
