#include "vfs/control/request_text.h"

#include <algorithm>

#include "base/text.h"
#include "vfs/once.h"

namespace playfs::vfs {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool has_only_blanks(std::string_view text) { return text.find_first_not_of(kBlanks) == text.npos; }

bool is_object(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  return first != text.npos && text[first] == '{';
}

/// Where the JSON object at the start of the text ends; nullopt if it is incomplete or there is none.
std::optional<std::size_t> end_of_object(std::string_view text) {
  if (!is_object(text)) return std::nullopt;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return std::nullopt;
}

/// Whether the text is valid UTF-8, apart from a last character that the next write may complete.
bool may_become_utf8(std::string_view text) {
  if (is_valid_utf8(text)) return true;
  for (std::size_t cut = 1; cut <= std::min<std::size_t>(3, text.size()); ++cut) {
    const auto lead = static_cast<unsigned char>(text[text.size() - cut]);
    if ((lead & 0xC0) == 0x80) continue;
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    return lead >= 0xC2 && lead <= 0xF4 && cut < length && is_valid_utf8(text.substr(0, text.size() - cut));
  }
  return false;
}

}  // namespace

RequestText::Phase RequestText::phase() const {
  MutexLock lock(mutex_);
  return phase_;
}

std::string RequestText::with(std::uint64_t offset, std::string_view data) const {
  const std::uint64_t at = offset - begin_.value_or(offset);
  std::string text = bytes_;
  if (text.size() < at + data.size()) text.resize(at + data.size());
  return text.replace(at, data.size(), data);
}

Status RequestText::may_take(std::uint64_t offset, std::string_view data) const {
  MutexLock lock(mutex_);
  if (phase_ != Phase::collecting) {
    if (has_only_blanks(data)) return {};  // a trailing newline
    if (outcome_ && !*outcome_) return *outcome_;
    if (phase_ == Phase::running)
      return fail(ErrorCode::busy, "the request written through this open is in progress", "open the file again");
    return fail(ErrorCode::invalid_argument, "one open takes one request, which has been sent",
                "open the file again for another");
  }
  const std::uint64_t begin = begin_.value_or(offset);
  if (offset < begin || offset - begin > bytes_.size())
    return fail(ErrorCode::invalid_argument, "a request must be written from beginning to end");
  if (offset - begin + data.size() > kLongestText)
    return fail(ErrorCode::file_too_big, "a request must not exceed 64 KiB");
  const std::string text = with(offset, data);
  if (!may_become_utf8(text)) return fail(ErrorCode::invalid_argument, "a request must be UTF-8 text");
  auto end = end_of_object(text);
  if (end && !has_only_blanks(std::string_view(text).substr(*end)))
    return fail(ErrorCode::invalid_argument, "text after the JSON object: one open takes one request");
  return {};
}

bool RequestText::completes(std::uint64_t offset, std::string_view data) const {
  MutexLock lock(mutex_);
  return end_of_object(with(offset, data)).has_value();
}

bool RequestText::begins_object(std::uint64_t offset, std::string_view data) const {
  MutexLock lock(mutex_);
  return is_object(with(offset, data));
}

void RequestText::take(std::uint64_t offset, std::string_view data) {
  MutexLock lock(mutex_);
  bytes_ = with(offset, data);
  if (!begin_) begin_ = offset;
  ++changes_;
}

void RequestText::resize(std::uint64_t size) {
  MutexLock lock(mutex_);
  if (phase_ != Phase::collecting) return;
  const std::uint64_t wanted = size - std::min(size, begin_.value_or(0));
  if (wanted < bytes_.size()) bytes_.resize(wanted);
  if (bytes_.empty()) begin_.reset();
  ++changes_;
}

std::uint64_t RequestText::end() const {
  MutexLock lock(mutex_);
  return begin_.value_or(0) + bytes_.size();
}

std::string RequestText::bytes(std::uint64_t offset, std::size_t size) const {
  MutexLock lock(mutex_);
  const std::uint64_t begin = begin_.value_or(0);
  if (offset < begin || offset - begin >= bytes_.size()) return {};
  return bytes_.substr(offset - begin, size);
}

bool RequestText::empty() const {
  MutexLock lock(mutex_);
  return bytes_.empty();
}

bool RequestText::is_blank() const {
  MutexLock lock(mutex_);
  return has_only_blanks(bytes_);
}

std::string RequestText::written() const {
  MutexLock lock(mutex_);
  return bytes_;
}

bool RequestText::start(std::int64_t order) {
  MutexLock lock(mutex_);
  if (phase_ != Phase::collecting) return false;
  phase_ = Phase::running;
  order_ = order;
  started_ = std::chrono::steady_clock::now();
  return true;
}

std::int64_t RequestText::order() const {
  MutexLock lock(mutex_);
  return order_;
}

std::chrono::steady_clock::time_point RequestText::started() const {
  MutexLock lock(mutex_);
  return started_;
}

std::list<RequestText::Waiter> RequestText::take_waiters(Until until) {
  std::list<Waiter> taken;
  for (auto each = waiters_.begin(); each != waiters_.end();) {
    const auto waiter = each++;
    if (until == Until::done || waiter->until == Until::answered) taken.splice(taken.end(), waiters_, waiter);
  }
  return taken;
}

void RequestText::set_answered() {
  std::list<Waiter> waiters;
  {
    MutexLock lock(mutex_);
    is_answered_ = true;
    waiters = take_waiters(Until::answered);
  }
  for (auto& waiter : waiters) waiter.answer({});
}

bool RequestText::is_answered() const {
  MutexLock lock(mutex_);
  return is_answered_;
}

bool RequestText::is_accepted() const {
  MutexLock lock(mutex_);
  return !end_of_object(bytes_).has_value();
}

Result<std::string> RequestText::whole() const {
  MutexLock lock(mutex_);
  if (!is_valid_utf8(bytes_)) return fail(ErrorCode::invalid_argument, "a request must be UTF-8 text");
  if (is_object(bytes_) && !end_of_object(bytes_))
    return fail(ErrorCode::invalid_argument, "the JSON object is incomplete: nothing was sent", "write all of it");
  return bytes_;
}

void RequestText::finish(Status outcome, ShownText document) {
  std::list<Waiter> waiters;
  {
    MutexLock lock(mutex_);
    if (phase_ == Phase::done) return;
    phase_ = Phase::done;
    outcome_ = std::move(outcome);
    document_ = std::move(document);
    is_answered_ = true;
    waiters = take_waiters(Until::done);
  }
  for (auto& waiter : waiters) waiter.answer({});
}

std::optional<Status> RequestText::outcome() const {
  MutexLock lock(mutex_);
  return outcome_;
}

bool RequestText::is_unanswered(std::string_view text) const {
  MutexLock lock(mutex_);
  return bytes_ == text && outcome_ && !*outcome_ && traits_of(outcome_->error().code).reached == Reached::silence;
}

ShownText RequestText::document() const {
  MutexLock lock(mutex_);
  return document_;
}

void RequestText::wait(Until until, const CancelToken& cancel, Callback<void> done) {
  Once<void> once(std::move(done));
  // Register before locking: if the token is already cancelled, its hook runs at once.
  auto registration = cancel.on_cancel([once] { once(fail(ErrorCode::interrupted, "interrupted while waiting")); });
  {
    MutexLock lock(mutex_);
    if (phase_ != Phase::done && (until == Until::done || !is_answered_)) {
      waiters_.push_back({until, [once](Status) { once({}); }, std::move(registration)});
      return;
    }
  }
  once({});
}

void RequestText::leave() {
  MutexLock lock(mutex_);
  is_left_ = true;
}

bool RequestText::is_left() const {
  MutexLock lock(mutex_);
  return is_left_;
}

bool RequestText::rejoin(std::uint64_t offset, std::string_view data) {
  MutexLock lock(mutex_);
  const bool is_open = phase_ == Phase::running || (phase_ == Phase::done && is_left_);
  if (!is_open || !end_of_object(bytes_)) return false;
  const std::uint64_t begin = begin_.value_or(0), end = begin + bytes_.size();
  const bool is_same_piece =
      offset >= begin && offset + data.size() == end && std::string_view(bytes_).substr(offset - begin) == data;
  if (!is_same_piece && (offset != end || data != bytes_)) return false;  // the latter with O_APPEND
  is_left_ = false;
  return true;
}

RequestText::Watched RequestText::watched() const {
  MutexLock lock(mutex_);
  return watched_;
}

void RequestText::set_watched(Watched watched) {
  MutexLock lock(mutex_);
  watched_ = watched;
}

std::uint64_t RequestText::changes() const {
  MutexLock lock(mutex_);
  return changes_;
}

}  // namespace playfs::vfs
