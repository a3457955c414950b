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
#include "vfs/control/requests_under_way.h"
#include "vfs/mount.h"
#include "vfs/once.h"

namespace playfs::vfs {
namespace {

/// Without a watcher, a pause this long ends the text.
constexpr std::chrono::milliseconds kPause{500};
/// How long a write waits for its watch: the watcher walks this mount and may be stuck behind a lock there.
constexpr std::chrono::seconds kWatchPatience{5};
/// The size shown for a text that is still to come. Reads return no more than there is.
constexpr std::uint64_t kSizeToCome = 1 << 20;

constexpr const char *kTaken = "taken", *kDrafted = "drafted";

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

bool RequestFile::has_mode(mode_t mode) const {
  const mode_t shown = mount().attributes(ino(), S_IFREG | 0644, 0, time_).mode;
  return ((shown ^ mode) & 07777) == 0;
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

Attempt<AttributesReply> RequestFile::attributes(const OperationPtr&) {
  const auto [text, truncated] = own();
  if (text) return AttributesReply{shown(text->empty() ? kernel_size_.load() : text->end()), 0};
  if (truncated) return AttributesReply{shown(0), 0};
  if (!awaited_) return AttributesReply{shown(text_.size()), kEndless};
  return AttributesReply{shown(awaited_->outcome() ? awaited_->document().size() : kSizeToCome), 0};
}

Attempt<AttributesReply> RequestFile::set_attributes(const OperationPtr& op, const SetAttributes& change) {
  // Editors set the mode of what they have written, which a record's file has anyway.
  const bool changes_mode = change.mode && !(request_.is_for_record && has_mode(*change.mode));
  if (changes_mode || change.uid || change.gid) return refused(op);
  if (!change.size) return attributes(op);
  {
    MutexLock lock(mutex_);
    truncated_ = true;
  }
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
  auto taken = op->outcome<RequestTextPtr>();
  RequestTextPtr text = taken ? *taken : text_for(op, offset, data);
  if (!op->noted(kTaken)) {
    const bool is_open = text->phase() == RequestText::Phase::collecting;
    if (Status may = text->may_take(offset, data); !may) {
      if (is_open) refuse(text, may.error());
      else if (request_.is_for_record) op->note(kRefused);
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

}  // namespace playfs::vfs
