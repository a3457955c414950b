#include "publish/absences.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"

namespace playfs::publish {

namespace {
/// More than can be in doubt at once along the line of one base.
constexpr std::size_t kMostDoubts = 4096;
}  // namespace

Result<Absences::Presence> Absences::look(const RevisionId& revision) {
  auto record = upstream_.get("revisions", revision.text());
  const bool is_missing = !record && record.error().code == ErrorCode::not_found;
  if (!record && is_transient(record.error().code))
    return fail(record.error().while_doing("look for revision " + revision.text()));
  MutexLock lock(mutex_);
  if (!is_missing) {
    doubts_.erase(revision);
    if (lost_head_ == revision) lost_head_.reset();
    return Presence::there;
  }
  const bool is_gone = doubts_[revision].missed(clock_.steady(), late_arrival_);
  if (doubts_.size() > kMostDoubts) forget_oldest();
  if (is_gone && revision == head_) lost_head_ = revision;
  return is_gone || lost_head_ == revision ? Presence::gone : Presence::not_shown;
}

Status Absences::check_head(const Project& project) {
  auto seen = upstream_.newest_seen_head();
  const bool is_older = seen && seen->is_newer_than(project);
  MutexLock lock(mutex_);
  head_ = project.latest_revision;
  if (lost_head_ != head_) lost_head_.reset();
  if (!is_older || (lost_records_ && seen->changed_at <= *lost_records_)) {
    head_doubt_.reset();
    return {};
  }
  if (!head_doubt_) head_doubt_ = Doubt();
  if (!head_doubt_->missed(clock_.steady(), late_arrival_))
    return fail(ErrorCode::busy,
                "the service shows an older head than before: its reads lag, or it went back to an older state",
                "wait: playfs keeps checking, and accepts it after two minutes");
  lost_records_ = seen->changed_at;
  head_doubt_.reset();
  return {};
}

Status Absences::check_choice(const Project& project) {
  MutexLock lock(mutex_);
  if (chosen_from_ != project.latest_revision) choice_ = {};
  chosen_from_ = project.latest_revision;
  if (choice_.missed(clock_.steady(), late_arrival_)) return {};
  return fail(ErrorCode::busy,
              "the branches do not merge, and head may already be at one of them: the service shows an older head, and "
              "its reads may lag",
              "wait: playfs keeps checking, and accepts it after two minutes");
}

Result<bool> Absences::is_gone(const RevisionId& revision) {
  PLAYFS_TRY(Presence presence, look(revision));
  if (presence == Presence::not_shown) return not_shown(revision);
  return presence == Presence::gone;
}

tl::unexpected<Error> Absences::not_shown(const RevisionId& revision) {
  return fail(ErrorCode::busy,
              "the service does not show revision " + escape_for_terminal(revision.text()) +
                  ": its reads lag, or it went back to an older state",
              "wait: playfs keeps looking for it, and treats it as lost after two minutes");
}

void Absences::saw(const std::function<bool(const RevisionId&)>& is_seen) {
  MutexLock lock(mutex_);
  std::erase_if(doubts_, [&](const auto& item) { return is_seen(item.first); });
  if (lost_head_ && is_seen(*lost_head_)) lost_head_.reset();
}

void Absences::forget_oldest() {
  doubts_.erase(std::min_element(doubts_.begin(), doubts_.end(),
                                 [](const auto& a, const auto& b) { return a.second.looked < b.second.looked; }));
}

}  // namespace playfs::publish
