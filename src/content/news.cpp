#include "content/news.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace playfs::content {

namespace {

/// The kind of line in the event log; empty: none. Revisions are reported as moved heads instead.
std::string_view kind_of(std::string_view collection) {
  static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"messages", "message"}, {"threads", "thread"}, {"domain_mail", "mail"},
      {"projects", "project"}, {"agents", "agent"},   {"spaces", "space"}};
  const auto found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& each) { return each.first == collection; });
  return found == std::end(kKinds) ? std::string_view() : found->second;
}

}  // namespace

void News::use(Random& random) {
  remote::EventListener listener;
  listener.changed = [this](std::vector<wire::Change> changes) { heard(std::move(changes)); };
  listener.reset = [this](remote::Reset why) { reset(why); };
  listener.up = [this](bool is_up) { up(is_up); };
  listener.gave_up = [this](const Error& error) { context_.events.error(context_.site, error); };
  stream_ = std::make_unique<remote::EventStream>(context_.client, context_.executor, context_.clock, random,
                                                  std::move(listener));
  context_.recovered = [this] { stream_->recovered(); };
}

remote::EventStream::State News::state() const {
  return stream_ ? stream_->state() : remote::EventStream::State{false, "not used here"};
}

void News::on_record_changed(RecordChanged changed) {
  MutexLock lock(mutex_);
  listeners_.push_back(std::make_shared<const RecordChanged>(std::move(changed)));
}

void News::heard(std::vector<wire::Change> changes) {
  {
    MutexLock lock(mutex_);
    if (waiting_.size() + changes.size() > kMostWaiting) {
      waiting_.clear();
      changes.clear();
      is_reset_ = true;
      context_.live.begin_anew();
    }
    std::move(changes.begin(), changes.end(), std::back_inserter(waiting_));
  }
  handle_soon();
}

void News::reset(remote::Reset why) {
  context_.live.begin_anew();
  {
    MutexLock lock(mutex_);
    waiting_.clear();
    is_reset_ = true;
    is_another_ = is_another_ || why == remote::Reset::another;
  }
  handle_soon();
}

void News::up(bool is_up) {
  context_.live.set_up(is_up);
  if (!is_up) return;
  {
    MutexLock lock(mutex_);
    is_up_ = true;
  }
  handle_soon();
}

void News::handle_soon() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(is_handling_, true)) return;
  }
  context_.executor.post(context_.guarded([this] { handle(); }));
}

void News::handle() {
  for (;;) {
    std::vector<wire::Change> changes;
    bool is_reset = false, is_another = false, is_up = false;
    {
      MutexLock lock(mutex_);
      changes.swap(waiting_);
      is_reset = std::exchange(is_reset_, false);
      is_another = std::exchange(is_another_, false);
      is_up = std::exchange(is_up_, false);
      is_handling_ = is_reset || is_up || !changes.empty();
      if (!is_handling_) return;
    }
    // What was requested while there were no events is requested again, if somebody shows it.
    std::set<ProjectId> projects = is_reset || is_up ? heads_.followed() : std::set<ProjectId>();
    if (is_another) {
      lists_.outdate();
      context_.events.event("reset", {{"site", context_.site}});
    }
    if (is_reset) {
      revisions_.forget_absent();
      lists_.missed();
      tell("", "", "");
    }
    for (const auto& change : changes) handle(change, projects);
    lists_.bring_up();
    for (const ProjectId& project : projects) heads_.bring_up(project);
  }
}

void News::handle(const wire::Change& change, std::set<ProjectId>& projects) {
  records_.heard(change.collection, change.id);
  lists_.heard(change);
  if (change.collection == "revisions") revisions_.forget_absent();
  if (change.collection == "projects") {
    heads_.heard(ProjectId(change.id));
    projects.insert(ProjectId(change.id));
  }
  log(change);
  tell(change.collection, change.id, change.belongs_to);
}

void News::tell(const std::string& collection, const std::string& id, const std::string& belongs_to) {
  std::vector<std::shared_ptr<const RecordChanged>> listeners;
  {
    MutexLock lock(mutex_);
    listeners = listeners_;
  }
  for (const auto& listener : listeners) (*listener)(collection, id, belongs_to);
}

void News::log(const wire::Change& change) {
  const std::string_view kind = kind_of(change.collection);
  if (kind.empty()) return;
  JsonObject fields;
  if (change.collection == "messages") fields.append("thread", change.belongs_to);
  fields.append("id", change.id);
  context_.events.event(std::string(kind), std::move(fields));
}

}  // namespace playfs::content
