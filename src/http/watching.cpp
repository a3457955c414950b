// Session: answers without an end.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include <boost/asio/post.hpp>

#include "http/server_core.h"

namespace playfs::http {

bool Server::Core::Session::begin_to_watch(std::unique_ptr<LiveBody> live) {
  if (core_->stopping_ || !core_->watchers_.enter(asker_)) return false;
  live_ = std::move(live);
  buffer_ = beast::flat_buffer(kMostBuffered);  // nothing that follows the request is answered
  // A peer that is gone without a word acknowledges no heartbeat.
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
  // Only to notice the end: who listens has nothing more to say.
  stream_.expires_never();
  stream_.async_read_some(buffer_.prepare(1),
                          [self = shared_from_this()](error_code, std::size_t) { self->hang_up(); });
  live_->start([core = core_, watcher = weak_from_this()](const LiveBody::Text& text) {
    asio::post(core->io_, [watcher, text] {
      if (auto self = watcher.lock()) self->send_live(text);
    });
  });
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
