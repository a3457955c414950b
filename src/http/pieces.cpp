// Session: bodies that are made while they are sent.
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <fmt/format.h>

#include "base/log.h"
#include "http/server_core.h"

namespace playfs::http {

void Server::Core::Session::read_piece() {
  stream_.expires_never();
  auto work = asio::make_work_guard(core_->io_);
  core_->pieces_.go_on(asker_, [self = shared_from_this(), work](bool) mutable {
    auto piece = self->source_->next();
    auto& io = self->core_->io_;
    asio::post(io,
               [self = std::move(self), piece = std::move(piece)]() mutable { self->after_piece(std::move(piece)); });
  });
}

/// A body that falls short of its promised length ends with the connection, so that it does not pass for complete.
void Server::Core::Session::after_piece(Result<std::string> piece) {
  if (!piece) log_warning("a response was cut short: " + piece.error().message);
  if (piece && left_ == kUnknown && stream_.socket().is_open()) return after_piece_of_unknown(*std::move(piece));
  if (!piece || piece->empty() || piece->size() > left_ || !stream_.socket().is_open()) return hang_up();
  left_ -= piece->size();
  send_body(*std::move(piece));
}

void Server::Core::Session::after_piece_of_unknown(std::string piece) {
  if (core_->stopping_) return hang_up();  // it can be resumed
  const bool is_last = piece.empty();
  if (is_last) left_ = 0;
  if (chunked_) piece = fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
  else if (is_last) return hang_up();
  send_body(std::move(piece));
}

}  // namespace playfs::http
