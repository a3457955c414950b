#include "vfs/control/request_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "vfs/attempt_driver.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/draft.h"
#include "vfs/control/request_journal.h"
#include "vfs/mount.h"
#include "vfs/once.h"

namespace playfs::vfs {
namespace {

/// Without a watcher, a pause this long ends the text.
constexpr std::chrono::milliseconds kPause{500};
/// How long a write waits for its watch: the watcher walks this mount and may be stuck behind a lock there.
constexpr std::chrono::seconds kWatchPatience{5};
/// How long an unmount waits for complete requests; by then the publisher has long journalled a commit.
constexpr std::chrono::seconds kLastRequests{3};
/// The size shown for a text that is still to come. Reads return no more than there is.
constexpr std::uint64_t kSizeToCome = 1 << 20;

constexpr const char *kTaken = "taken", *kGivenAway = "given away", *kDrafted = "drafted";

Error another_writes() {
  return {ErrorCode::busy, "a text is being written to this open file, from beginning to end", "open the file again"};
}

Fetch until_done(const RequestTextPtr& text) {
  return [text](const CancelToken& cancel, Callback<void> done) { text->wait(cancel, std::move(done)); };
}

/// The same for the writer, who may be interrupted: then nobody has told him the outcome.
Fetch until_told(Mount& mount, const RequestTextPtr& text) {
  return [&mount, text](const CancelToken& cancel, Callback<void> done) {
    text->wait(cancel, [&mount, text, done = std::move(done)](Status ended) mutable {
      if (!ended) {
        text->leave();
        mount.journal().set_left(text->draft()->name(), true);
      }
      done(std::move(ended));
    });
  };
}

}  // namespace

RequestFile::RequestFile(Mount& mount, NodePtr parent, std::string name, NodeId id, ShownText text, WallTime time,
                         RequestTextPtr awaited, Request request)
    : Node(mount, std::move(parent), std::move(name), id),
      text_(std::move(text)),
      time_(time),
      awaited_(std::move(awaited)),
      request_(std::move(request)) {}

std::shared_ptr<RequestFile> RequestFile::self() { return std::static_pointer_cast<RequestFile>(shared_from_this()); }

NodeAttributes RequestFile::shown(std::uint64_t size) {
  kernel_size_ = size;
  return mount().attributes(ino(), S_IFREG | 0644, size, time_);
}

RequestFile::Own RequestFile::own() const {
  MutexLock lock(mutex_);
  return {own_, truncated_};
}

void RequestFile::set_reached_by(const Operation& op) {
  NamedRecordPtr name = op.named ? op.named : mount().names_used().of_family(op.caller.pid);
  if (!name) return;
  MutexLock lock(mutex_);
  reached_by_ = std::move(name);
}

bool RequestFile::shows(const ShownText& text) const {
  MutexLock lock(mutex_);
  return !own_ && !truncated_ && text_ == text;
}

void RequestFile::give_name_away() {
  if (request_.is_for_record) mount().notifications().entry_changed(parent()->id(), name());
}

Attempt<AttributesReply> RequestFile::attributes(const OperationPtr&) {
  const auto [text, truncated] = own();
  if (text) return AttributesReply{shown(text->empty() ? kernel_size_.load() : text->end()), 0};
  if (truncated) return AttributesReply{shown(0), 0};
  if (!awaited_) return AttributesReply{shown(text_.size()), kEndless};
  return AttributesReply{shown(awaited_->outcome() ? awaited_->document().size() : kSizeToCome), 0};
}

Attempt<AttributesReply> RequestFile::set_attributes(const OperationPtr& op, const SetAttributes& change) {
  if (change.mode || change.uid || change.gid) return refused(op);
  if (!change.size) return attributes(op);
  // The node of a record is made before anybody writes to it: this comes with the open(2) of who will.
  if (request_.is_for_record) set_reached_by(*op);
  const RequestTextPtr written = own().text;
  if (request_.is_for_record && written && written->phase() == RequestText::Phase::collecting && !written->empty() &&
      written->writer().pid != op->caller.pid)
    return fail(another_writes());
  {
    MutexLock lock(mutex_);
    truncated_ = true;
  }
  give_name_away();
  if (auto text = own().text) text->resize(*change.size);
  return AttributesReply{shown(*change.size), 0};
}

Attempt<std::string> RequestFile::read(const OperationPtr& op, std::uint64_t offset, std::size_t size) {
  const auto [text, truncated] = own();
  if (text) return text->bytes(offset, size);
  if (truncated) return std::string();
  if (!awaited_) return text_.read(mount(), op, offset, size);
  if (awaited_->outcome()) return awaited_->document().read(mount(), op, offset, size);
  return missing(until_done(awaited_));
}

RequestTextPtr RequestFile::text_for(const OperationPtr& op, std::uint64_t offset, const std::string& data) {
  RequestTextPtr before = own().text;
  // Libraries write what failed once more when they close the file, and the change may have been made.
  const bool is_unknown = before && request_.is_for_record && before->is_unanswered(data);
  const bool again = before && offset == 0 && before->phase() == RequestText::Phase::done && !is_unknown;
  if (before && !again) return before;
  auto fresh = std::make_shared<RequestText>(op->caller, std::make_shared<Draft>(mount().journal(), path()));
  MutexLock lock(mutex_);
  if (own_ == before) own_ = fresh;  // otherwise a concurrent write to this open file was first
  return own_;
}

Attempt<std::size_t> RequestFile::write(const OperationPtr& op, std::uint64_t offset, const std::string& data) {
  if (mount().options().read_only) return fail(ErrorCode::read_only, "the mount is read-only");
  if (RequestTextPtr before = own().text; before && !op->noted(kTaken) && before->rejoin(offset, data)) {
    mount().journal().set_left(before->draft()->name(), false);
    op->note(kTaken);
    op->set_outcome(before);
  }
  // Without O_TRUNC this is the first that comes from who writes.
  if (request_.is_for_record && !own().text && !own().truncated) set_reached_by(*op);
  auto taken = op->outcome<RequestTextPtr>();
  RequestTextPtr text = taken ? *taken : text_for(op, offset, data);
  if (!op->noted(kTaken)) {
    const bool is_open = text->phase() == RequestText::Phase::collecting;
    // First of all a record's name gets a new node, so that the watcher's lookup of the name, like all others, comes to
    // the directory.
    if (request_.is_for_record && is_open && text->empty() && !op->noted(kGivenAway)) {
      give_name_away();
      return missing(until_kernel_knows(mount(), op, parent()->id(), kGivenAway));
    }
    // Another open of the same node, which would write its piece over this text.
    if (request_.is_for_record && is_open && !text->empty() && offset != text->end()) return fail(another_writes());
    if (Status may = text->may_take(offset, data); !may) {
      if (is_open) refuse(text, may.error());
      return fail(std::move(may).error());
    }
    if (!is_open) return data.size();
    const bool completes = text->completes(offset, data);
    if (request_.is_for_record && text->empty() && !text->begins_object(offset, data)) {
      Error error{ErrorCode::invalid_argument, "a record is changed by a JSON object with the fields to change"};
      refuse(text, error);
      return fail(std::move(error));
    }
    if (request_.check && text->empty() && !text->begins_object(offset, data)) {
      auto checked = request_.check(op);
      if (!checked && !checked.error().fetch) refuse(text, checked.error().error);
      if (!checked) return tl::unexpected<NoValue>(std::move(checked).error());
    }
    if (!completes && !text->watched().tried) return missing(arm(text));
    text->take(offset, data);
    kernel_size_ = std::max(kernel_size_.load(), text->end());
    op->note(kTaken);
    op->set_outcome(text);
    mount().requests().add(path(), self(), text);
    if (!completes && !text->watched().armed) begin_after_a_pause(text);
    if (!completes) return missing(keep_draft(op, text));
    mount().requests().settle(path());
    begin(text);
  }
  if (op->noted(kDrafted)) return data.size();
  // A complete JSON object: nothing can follow, so the write's errno can report the outcome.
  auto outcome = text->outcome();
  if (!outcome) return missing(until_told(mount(), text));
  if (*outcome) return data.size();
  op->note(kRecorded);  // by conclude()
  return fail(outcome->error());
}

Attempt<void> RequestFile::sync(const OperationPtr& op) {
  const RequestTextPtr text = own().text;
  if (!text) return {};
  if (text->phase() == RequestText::Phase::collecting) {
    auto whole = text->whole();
    if (whole) return {};
    mount().site().events().error(path(), whole.error());
    return fail(std::move(whole).error());
  }
  auto outcome = text->outcome();
  if (!outcome) return missing(until_done(text));
  if (*outcome) return {};
  op->note(kRecorded);
  return fail(outcome->error());
}

Fetch RequestFile::arm(const RequestTextPtr& text) {
  return [self = self(), text](const CancelToken& cancel, Callback<void> done) {
    auto watcher = self->mount().requests().watcher();
    if (!watcher) {
      text->set_watched({.tried = true});
      return done({});
    }
    Once<void> once(std::move(done));
    auto interrupted = std::make_shared<CancelToken::Registration>(
        cancel.on_cancel([once] { once(fail(ErrorCode::interrupted, "interrupted")); }));
    const auto watch = self->mount().requests().expect(self);
    // Called when the watch is in place, when it failed, and when it takes too long; the first call counts.
    auto settle = std::make_shared<std::function<void(bool)>>(
        [self, text, watch, watcher, once, interrupted, settled = std::make_shared<std::atomic<bool>>(false)](bool is) {
          if (settled->exchange(true)) return;
          const bool is_it = self->mount().requests().was_found(watch) && is;
          if (!is_it) watcher->end(watch);
          text->set_watched({.tried = true, .armed = is_it, .watch = watch});
          once({});
        });
    auto armed = [settle](const Status& status) { (*settle)(status.has_value()); };
    self->mount().later(kWatchPatience, [weak = std::weak_ptr(settle)] {
      if (auto waiting = weak.lock()) (*waiting)(false);
    });
    // May run at any time, so it must enter the gate.
    auto closed = [weak = std::weak_ptr(self), text, gate = self->mount().gate()] {
      auto ticket = gate->enter();
      auto file = ticket ? weak.lock() : nullptr;
      if (file) file->begin(text);
    };
    watcher->watch(watch, self->path(), std::move(armed), std::move(closed));
  };
}

Fetch RequestFile::keep_draft(const OperationPtr& op, const RequestTextPtr& text) {
  return on_disk(mount(), [self = self(), op, text]() -> Status {
    Status kept = text->draft()->keep(*text);
    op->note(kDrafted);
    if (!kept) self->refuse(text, kept.error());
    return kept;
  });
}

void RequestFile::begin_after_a_pause(const RequestTextPtr& text) {
  mount().later(kPause, [self = self(), text, seen = text->changes()] {
    if (text->changes() == seen) self->begin(text);
  });
}

void RequestFile::begin(const RequestTextPtr& text) {
  if (!mount().requests().start(text, mount().clock().wall())) return;
  mount().soon([self = self(), text] { self->run(text); });
}

void RequestFile::run(const RequestTextPtr& text) {
  auto whole = text->whole();
  if (!whole) return finish(text, fail(std::move(whole).error()));
  auto op = std::make_shared<Operation>(text->writer());
  op->note(kRecorded);  // by conclude()
  op->hold(kRequestText, std::make_shared<const RequestTextPtr>(text));
  {
    MutexLock lock(mutex_);
    op->named = reached_by_;
  }
  auto attempt = as_attempt([self = self(), bytes = std::move(*whole)](const OperationPtr& op) mutable {
    return self->request_.run(op, std::move(bytes));
  });
  auto reply = [self = self(), text](Result<RequestAnswer> result) { self->finish(text, std::move(result)); };
  drive<RequestAnswer>(
      mount(), Counted::write, std::move(op), std::move(attempt), [self = self()] { return self->path(); },
      Reply<RequestAnswer>(std::move(reply)));
}

void RequestFile::finish(const RequestTextPtr& text, Result<RequestAnswer> result) {
  const bool is_cut_short = !result && result.error().code == ErrorCode::interrupted;
  // A blank text has nothing to save.
  if (result || is_cut_short || !text->is_accepted() || text->is_blank()) {
    // Of an object that was cut short, its writer knows, and the draft has a half.
    if (!is_cut_short || !text->is_accepted()) mount().disk().post([draft = text->draft()] { draft->end(); });
    return conclude(text, std::move(result));
  }
  auto give_up = [self = self(), text, why = std::move(result).error()] {
    self->conclude(text, fail(text->draft()->give_up(*text, why)));
  };
  mount().disk().post(Gate::guard(mount().gate(), std::move(give_up)));
}

void RequestFile::conclude(const RequestTextPtr& text, Result<RequestAnswer> result) {
  if (!result && traits_of(result.error().code).recorded) mount().site().events().error(path(), result.error());
  else if (!result) mount().site().events().refusal(path(), result.error());
  end(text, std::move(result));
}

void RequestFile::end(const RequestTextPtr& text, Result<RequestAnswer> result) {
  ShownText document = result ? result->text : error_document(result.error());
  if (result && !request_.is_for_record)
    mount().set_last_result(path(), text->order(), result->lasting ? document : std::string());
  if (!result && !request_.is_for_record) mount().set_last_error(path(), text->order(), result.error());
  text->finish(result ? Status() : Status(fail(result.error())), std::move(document));
  mount().requests().remove(text);
  auto watcher = mount().requests().watcher();
  if (watcher && text->watched().armed) watcher->end(text->watched().watch);
}

void RequestFile::refuse(const RequestTextPtr& text, const Error& error) {
  // Marked as started, which gives it an order number and keeps others from running it.
  if (!mount().requests().start(text, mount().clock().wall())) return;
  // The driver of the write has recorded the others.
  if (!traits_of(error.code).recorded) mount().site().events().refusal(path(), error);
  const bool is_cut_short = error.code == ErrorCode::interrupted;
  if (!is_cut_short) mount().disk().post([draft = text->draft()] { draft->end(); });
  end(text, fail(error));
}

void RequestsUnderWay::set_watcher(std::shared_ptr<CloseWatcher> watcher) {
  if (!watcher) settled(nullptr);
  MutexLock lock(mutex_);
  watcher_.swap(watcher);
}

std::shared_ptr<CloseWatcher> RequestsUnderWay::watcher() const {
  MutexLock lock(mutex_);
  return watcher_;
}

void RequestsUnderWay::add(const std::string& path, const std::shared_ptr<RequestFile>& file,
                           const RequestTextPtr& text) {
  MutexLock lock(mutex_);
  if (std::any_of(items_.begin(), items_.end(), [&](const Item& item) { return item.text == text; })) return;
  items_.push_back({path, file, text});
}

void RequestsUnderWay::remove(const RequestTextPtr& text) {
  Item last;  // may hold the last reference to a node; destroyed after the lock is released
  MutexLock lock(mutex_);
  auto found = std::find_if(items_.begin(), items_.end(), [&](const Item& item) { return item.text == text; });
  if (found == items_.end()) return;
  last = std::move(*found);
  items_.erase(found);
  ++removals_;
  changed_.notify_all();
}

std::int64_t RequestsUnderWay::next(WallTime now) { return last_order_ = std::max(last_order_ + 1, now.nanoseconds); }

bool RequestsUnderWay::start(const RequestTextPtr& text, WallTime now) {
  MutexLock lock(mutex_);
  return text->start(next(now));
}

std::int64_t RequestsUnderWay::next_order(WallTime now) {
  MutexLock lock(mutex_);
  return next(now);
}

RequestTextPtr RequestsUnderWay::running_before(const std::string& path, const RequestTextPtr& text) {
  RequestTextPtr before;
  MutexLock lock(mutex_);
  for (const Item& item : items_) {
    if (item.path != path || item.text->phase() != RequestText::Phase::running) continue;
    const std::int64_t order = item.text->order();
    if (order < text->order() && (!before || order > before->order())) before = item.text;
  }
  return before;
}

CloseWatcher::Watch RequestsUnderWay::expect(const std::shared_ptr<RequestFile>& file) {
  MutexLock lock(mutex_);
  expected_[next_watch_] = {file, false};
  return next_watch_++;
}

bool RequestsUnderWay::was_found(CloseWatcher::Watch watch) {
  MutexLock lock(mutex_);
  auto found = expected_.find(watch);
  if (found == expected_.end()) return false;
  const bool was = found->second.found;
  expected_.erase(found);
  return was;
}

std::shared_ptr<RequestFile> RequestsUnderWay::looked_for_by(pid_t thread) {
  auto watching = watcher();
  auto watch = watching ? watching->looked_up_by(thread) : std::nullopt;
  if (!watch) return nullptr;
  MutexLock lock(mutex_);
  auto expected = expected_.find(*watch);
  if (expected == expected_.end()) return nullptr;
  expected->second.found = true;
  return expected->second.file.lock();
}

std::vector<RequestsUnderWay::Item> RequestsUnderWay::settled(const std::string* path) {
  std::vector<Item> items;
  {
    MutexLock lock(mutex_);
    std::copy_if(items_.begin(), items_.end(), std::back_inserter(items),
                 [&](const Item& item) { return !path || item.path == *path; });
  }
  auto watching = watcher();
  for (const Item& item : items) {
    auto watched = item.text->watched();
    if (watching && watched.armed && item.text->phase() == RequestText::Phase::collecting &&
        watching->was_closed(watched.watch))
      item.file->begin(item.text);
  }
  return items;
}

RequestTextPtr RequestsUnderWay::awaited(const std::string& path, pid_t reader) {
  RequestTextPtr complete, written;
  for (const Item& item : settled(&path)) {
    const RequestText::Phase phase = item.text->phase();
    // A finished request is the last result by now, possibly already replaced by a later one.
    if (phase == RequestText::Phase::running) {
      if (!complete || item.text->order() > complete->order()) complete = item.text;
    } else if (phase == RequestText::Phase::collecting &&
               (item.text->writer().pid != reader || !item.text->watched().armed)) {
      written = item.text;
    }
  }
  return complete ? complete : written;
}

RequestTextPtr RequestsUnderWay::creating(const std::string& collection, const std::string* owner) {
  RequestTextPtr last;
  for (const Item& item : settled(nullptr)) {
    const bool is_under_way = item.text->phase() == RequestText::Phase::running && !item.text->is_answered();
    if (!is_under_way || !item.file->creates(collection, owner)) continue;
    if (!last || item.text->order() > last->order()) last = item.text;
  }
  return last;
}

bool RequestsUnderWay::is_written_by(const std::string& path, pid_t process) const {
  MutexLock lock(mutex_);
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    return item.path == path && item.text->writer().pid == process &&
           item.text->phase() == RequestText::Phase::collecting;
  });
}

void RequestsUnderWay::end() {
  const auto limit = std::chrono::steady_clock::now() + kLastRequests;
  std::vector<Item> left;
  for (;;) {
    std::uint64_t seen = 0;
    {
      MutexLock lock(mutex_);
      seen = removals_;
    }
    left = settled(nullptr);
    bool is_running = std::any_of(left.begin(), left.end(),
                                  [](const Item& item) { return item.text->phase() == RequestText::Phase::running; });
    auto rest = limit - std::chrono::steady_clock::now();
    if (!is_running || rest <= rest.zero()) break;
    MutexLock lock(mutex_);
    if (removals_ == seen) changed_.wait_for(mutex_, rest);
  }
  for (const Item& item : left) {
    if (item.text->phase() != RequestText::Phase::collecting) continue;
    log_warning(item.path + " was still being written when the mount ended: it was not sent");
    item.file->refuse(item.text,
                      {ErrorCode::interrupted, "the mount ended while the request was being written: it was not sent",
                       "nothing need be done: the next mount saves it, and says where"});
  }
  std::vector<Item> items;
  MutexLock lock(mutex_);
  items.swap(items_);
}

}  // namespace playfs::vfs
