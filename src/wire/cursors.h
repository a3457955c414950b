// Detects a cycle in a paged list: a service that repeats a cursor would otherwise be queried forever. Keeps one
// cursor, however many and long they are (Brent's algorithm), and so notices a cycle within three rounds. For one
// thread.
#pragma once

#include <cstdint>
#include <string>

namespace playfs::wire {

class Cursors {
 public:
  /// Whether `cursor`, of the next page, occurred before. Do not call for the last page, which has none.
  bool comes_again(const std::string& cursor) {
    if (cursor == kept_) return true;
    if (++since_kept_ == lap_) {
      kept_ = cursor;
      since_kept_ = 0;
      lap_ *= 2;
    }
    return false;
  }

 private:
  std::string kept_;
  std::uint64_t since_kept_ = 0;
  std::uint64_t lap_ = 1;
};

}  // namespace playfs::wire
