// Whether a list that is read page by page goes round: a service may give a cursor that it gave before, and would be
// asked for ever. One cursor is kept, however many and long they are (Brent's algorithm), so a round is noticed once it
// was gone through at most three times. For one thread.
#pragma once

#include <cstdint>
#include <string>

namespace playfs::wire {

class Cursors {
 public:
  /// Whether `cursor`, of the next page, is one that was there before. The last page has none: do not ask for it.
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
