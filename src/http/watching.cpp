// Session: answers without an end.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>

#include "http/server_core.h"

namespace playfs::http {

namespace {
/// Texts sent in one go: a text for thousands of watchers takes tens of milliseconds, and others' requests do not wait
/// for all of them.
constexpr std::size_t kSentAtOnce = 32;
}  // namespace

/// One handler for all of them: thousands of handlers would be in the queue ahead of everybody else.
void Server::Core::arrive(Arrived arrived) {
  {
    MutexLock lock(arriving_);
    arrived_.push_back(std::move(arrived));
    if (std::exchange(giving_out_, true)) return;
  }
  asio::post(io_, [this] { give_out(); });
}

void Server::Core::give_out() {
  std::array<Arrived, kSentAtOnce> some;
  std::size_t count = 0;
  {
    MutexLock lock(arriving_);
    for (; count < some.size() && !arrived_.empty(); arrived_.pop_front()) some[count++] = std::move(arrived_.front());
    giving_out_ = count > 0;
  }
  if (count == 0) return;
  asio::post(io_, [this] { give_out(); });  // first: whatever fails here, the others get theirs
  for (const Arrived& each : some)
    if (auto watcher = each.watcher.lock()) watcher->send_live(each.text);
}

bool Server::Core::Session::begin_to_watch(std::unique_ptr<LiveBody> live) {
  if (core_->stopping_ || !core_->watchers_.enter(asker_)) return false;
  live_ = std::move(live);
  buffer_ = beast::flat_buffer(kMostBuffered);  // nothing that follows the request is answered
  // A peer that vanished acknowledges no heartbeat; the kernel then ends the connection.
  const auto limit = static_cast<unsigned>(core_->options_.write_time.count());
  setsockopt(descriptor_, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  return true;
}

void Server::Core::Session::go_on_watching() {
  core_->held_.release(this);
  std::string().swap(head_);
  std::string().swap(body_);
  if (std::exchange(is_watching_, true)) return live_->more();

  error_code ignored;
  stream_.socket().non_blocking(true, ignored);
  // Reads only to notice the end: a watcher sends nothing more.
  stream_.expires_never();
  stream_.async_read_some(buffer_.prepare(1),
                          [self = shared_from_this()](error_code, std::size_t) { self->hang_up(); });
  live_->start([core = core_, watcher = weak_from_this()](const LiveBody::Text& text) {
    core->arrive({watcher, text});
  });
}

/// Spreads reconnections over a few seconds, since all watchers at once would overload the next server as it starts.
void Server::Core::Session::say_goodbye() {
  constexpr int first = 200;
  constexpr int spread = 3'000;
  if (is_watching_ && body_.empty()) {  // otherwise a text is only half sent
    error_code ignored;
    const std::string hint = "retry: " + std::to_string(first + descriptor_ * 61 % spread) + "\n\n";
    stream_.socket().write_some(asio::buffer(hint), ignored);
  }
  hang_up();
}

/// Nearly always the kernel takes the whole text at once. What it does not take is kept here, counted and given a time
/// limit; nothing else is read for this client meanwhile.
void Server::Core::Session::send_live(const LiveBody::Text& text) {
  if (!stream_.socket().is_open()) return;
  error_code error;
  const std::size_t sent = stream_.socket().write_some(asio::buffer(*text), error);
  if (error && error != asio::error::would_block) return hang_up();
  if (sent == text->size()) return live_->more();
  std::string rest = text->substr(sent);
  if (!hold(rest.capacity())) return hang_up();
  send_body(std::move(rest));
}

}  // namespace playfs::http
