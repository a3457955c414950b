#include "vfs/directories/maildir_index.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "mail/maildir.h"
#include "vfs/directories/virtual_directory.h"

namespace playfs::vfs {
namespace {

using content::Listed;

bool is_before(const FolderLetterPtr& one, const FolderLetterPtr& other) { return one->unique < other->unique; }

bool is_same_letter(const Listed& one, const Listed& other) {
  return one.updated_at == other.updated_at && one.created_at == other.created_at && one.project == other.project;
}

/// Calls `gone` for what `before` had, and `fresh` for what `now` has, where they differ.
template <class Gone, class Fresh>
void compare(std::span<const Listed> before, std::span<const Listed> now, const Gone& gone, const Fresh& fresh) {
  // From the oldest: lists grow at the other end.
  std::size_t was = before.size(), is = now.size();
  for (; was > 0 && is > 0 && before[was - 1].id == now[is - 1].id; --was, --is) {
    if (is_same_letter(before[was - 1], now[is - 1])) continue;
    gone(before[was - 1]);
    fresh(now[is - 1]);
  }
  std::unordered_map<std::string_view, const Listed*> others;
  for (const Listed& each : before.first(was)) others.emplace(each.id, &each);
  for (; is > 0; --is) {
    const Listed& each = now[is - 1];
    auto found = others.find(each.id);
    const Listed* former = found == others.end() ? nullptr : found->second;
    if (former) others.erase(found);
    if (former && is_same_letter(*former, each)) continue;
    if (former) gone(*former);
    fresh(each);
  }
  for (const auto& [id, each] : others) gone(*each);
}

}  // namespace

FolderLetterPtr FolderLetters::find(std::string_view unique) const {
  auto found =
      std::lower_bound(all.begin(), all.end(), unique,
                       [](const FolderLetterPtr& each, std::string_view wanted) { return each->unique < wanted; });
  return found == all.end() || (*found)->unique != unique ? nullptr : *found;
}

bool ThreadsOfMessages::is_of(const std::string& message, const std::string& thread) const {
  MutexLock lock(mutex_);
  auto found = threads_.find(message);
  return found != threads_.end() && found->second == thread;
}

void ThreadsOfMessages::set(const std::string& message, const std::string& thread) {
  MutexLock lock(mutex_);
  threads_.insert_or_assign(message, thread);
}

void ThreadsOfMessages::erase(const std::string& message) {
  MutexLock lock(mutex_);
  threads_.erase(message);
}

FolderIndex::FolderIndex(std::string folder, std::string domain, std::shared_ptr<ThreadsOfMessages> threads)
    : folder_(std::move(folder)),
      domain_(std::move(domain)),
      threads_of_messages_(std::move(threads)),
      letters_(std::make_shared<const FolderLetters>()),
      next_(kFirstPosition) {}

FolderIndex::Change FolderIndex::bring_up(const Lists& lists, const std::vector<content::Inbox::Entry>& entries) {
  Work work;
  take_threads(lists.threads, work);
  take_records(lists_.messages, lists.messages, true, work);
  take_records(lists_.mail, lists.mail, false, work);
  if (is_inbox()) take_entries(lists, entries, work);
  else add_fresh(work);
  if (!is_inbox() && lists_.messages && !work.changed_threads.empty()) add_of_changed_threads(lists.messages, work);
  lists_ = lists;
  Change change;
  change.is_left_out = by_id_.size() > kMost;
  if (by_id_.size() > kMost + kSpare) drop_oldest(work);
  change.made = work.added.size();
  settle(work);
  for (auto& [id, letter] : work.dropped) change.gone.push_back(std::move(letter));
  return change;
}

void FolderIndex::take_threads(const content::ListPtr& now, Work& work) {
  if (!now || now == lists_.threads) return;
  std::size_t known = 0;
  auto changed = [&](const Listed& thread) {
    auto found = threads_.find(thread.id);
    const bool is_here = is_inbox() || thread.kind == folder_;
    if (found != threads_.end()) ++known;
    if (found != threads_.end() && is_here && found->second->title == thread.name && found->second->kind == thread.kind)
      return;
    if (found == threads_.end() && !is_here) return;
    work.changed_threads.insert(thread.id);
    if (is_here)
      threads_.insert_or_assign(thread.id, std::make_shared<const FolderLetter::Thread>(
                                               FolderLetter::Thread{thread.id, thread.name, thread.kind}));
    else threads_.erase(found);
  };
  const std::size_t before = threads_.size();
  for (const Listed& thread : *now) changed(thread);
  if (known == before) return;
  // Some are gone.
  std::unordered_set<std::string_view> listed;
  for (const Listed& thread : *now) listed.insert(thread.id);
  std::erase_if(threads_, [&](const auto& each) { return !listed.contains(each.first); });
  if (lists_.threads)
    for (const Listed& thread : *lists_.threads)
      if (!listed.contains(thread.id)) work.changed_threads.insert(thread.id);
}

void FolderIndex::take_records(const content::ListPtr& before, const content::ListPtr& now, bool are_messages,
                               Work& work) {
  if (!now || now == before) return;
  static const std::vector<Listed> kNone;
  auto gone = [&](const Listed& each) {
    // The parent of a message for the agent need not be for the agent itself.
    if (are_messages && is_inbox()) threads_of_messages_->erase(each.id);
    drop(each.id, work);
  };
  auto fresh = [&](const Listed& each) {
    if (are_messages && is_inbox()) threads_of_messages_->set(each.id, each.project);
    work.fresh.push_back(&each);
  };
  compare(before ? *before : kNone, *now, gone, fresh);
}

void FolderIndex::add_fresh(Work& work) {
  for (const Listed* each : work.fresh) add_in_place(*each, work);
}

void FolderIndex::add_of_changed_threads(const content::ListPtr& messages, Work& work) {
  std::unordered_set<const Listed*> fresh(work.fresh.begin(), work.fresh.end());
  for (auto each = messages->rbegin(); each != messages->rend(); ++each) {
    if (!work.changed_threads.contains(each->project) || fresh.contains(&*each)) continue;
    drop(each->id, work);
    add_in_place(*each, work);
  }
}

void FolderIndex::add_in_place(const Listed& of, Work& work) {
  const auto former = work.dropped.find(of.id);
  add(of, is_of_threads(), former == work.dropped.end() ? next_++ : former->second->position, work);
}

void FolderIndex::take_entries(const Lists& lists, const std::vector<content::Inbox::Entry>& entries, Work& work) {
  std::unordered_map<std::string_view, const Listed*> fresh;
  for (const Listed* each : work.fresh) fresh.emplace(each->id, each);
  auto listed = [&](const content::Inbox::Entry& entry) -> const Listed* {
    if (auto found = fresh.find(entry.id); found != fresh.end()) return found->second;
    const content::ListPtr& list = entry.collection == "messages" ? lists.messages : lists.mail;
    auto found = std::find_if(list->begin(), list->end(), [&](const Listed& each) { return each.id == entry.id; });
    return found == list->end() ? nullptr : &*found;
  };
  std::unordered_set<std::string_view> wanted;
  for (const content::Inbox::Entry& entry : entries) {
    wanted.insert(entry.id);
    if (auto known = by_id_.find(entry.id); known != by_id_.end()) {
      const auto& thread = known->second->thread;
      if (!thread || !work.changed_threads.contains(thread->id)) continue;
      drop(entry.id, work);
    }
    if (const Listed* of = listed(entry))
      add(*of, entry.collection == "messages", kFirstPosition + entry.position, work);
  }
  std::vector<std::string> others;
  for (const auto& [id, letter] : by_id_)
    if (!wanted.contains(id)) others.push_back(id);
  for (const std::string& id : others) drop(id, work);
}

void FolderIndex::add(const Listed& of, bool is_message, std::uint64_t position, Work& work) {
  std::shared_ptr<const FolderLetter::Thread> thread;
  if (is_message) {
    auto found = threads_.find(of.project);
    if (found == threads_.end()) return;
    thread = found->second;
    if (!is_inbox()) threads_of_messages_->set(of.id, of.project);
  }
  const auto name = mail::maildir_name(of.id, of.created_at, of.updated_at, domain_);
  const std::string prefix = is_inbox() ? "i" : "";
  auto letter = std::make_shared<const FolderLetter>(
      FolderLetter{name.unique(), prefix + (is_message ? "m:" : "d:") + name.id, of.id,
                   of.updated_at.nanoseconds / 1000, position, std::move(thread)});
  by_id_.insert_or_assign(of.id, letter);
  work.added.push_back(std::move(letter));
}

void FolderIndex::drop(std::string_view id, Work& work) {
  auto found = by_id_.find(std::string(id));
  if (found == by_id_.end()) return;
  if (!is_inbox()) threads_of_messages_->erase(found->first);
  work.dropped.emplace(found->first, found->second);
  by_id_.erase(found);
}

void FolderIndex::drop_oldest(Work& work) {
  std::vector<FolderLetterPtr> all;
  for (const auto& [id, letter] : by_id_) all.push_back(letter);
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(all.size() - kMost);
  std::nth_element(all.begin(), end, all.end(),
                   [](const auto& one, const auto& other) { return one->position < other->position; });
  std::unordered_set<std::string_view> added;
  for (const FolderLetterPtr& letter : work.added) added.insert(letter->id);
  for (auto each = all.begin(); each != end; ++each) {
    if (!added.contains((*each)->id)) work.dropped.emplace((*each)->id, *each);
    by_id_.erase((*each)->id);
  }
  std::erase_if(work.added, [&](const FolderLetterPtr& letter) { return !by_id_.contains(letter->id); });
}

void FolderIndex::settle(Work& work) {
  if (work.added.empty() && work.dropped.empty()) return;
  std::sort(work.added.begin(), work.added.end(), is_before);
  auto now = std::make_shared<FolderLetters>();
  now->all.reserve(by_id_.size());
  std::set<const FolderLetter*> dropped;
  for (const auto& [id, letter] : work.dropped) dropped.insert(letter.get());
  auto kept = letters_->all;
  if (!dropped.empty())
    std::erase_if(kept, [&](const FolderLetterPtr& letter) { return dropped.contains(letter.get()); });
  std::merge(kept.begin(), kept.end(), work.added.begin(), work.added.end(), std::back_inserter(now->all), is_before);
  letters_ = std::move(now);
}

}  // namespace playfs::vfs
