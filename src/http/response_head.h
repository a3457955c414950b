// Prints the head of a response: status line, header fields, empty line. No I/O.
#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "base/http.h"

namespace playfs::http {

/// What the connection adds to an answer.
struct Framing {
  bool old_client = false;                    ///< HTTP/1.0, which closes the connection by default
  bool keep_alive = true;                     ///< another request may follow
  std::optional<std::size_t> content_length;  ///< absent for an answer that never has a body
  bool chunked = false;                       ///< the body says itself where it ends
  std::string_view date;                      ///< the Date header's value
};

/// Line breaks within a field become spaces, so that no value can inject another field.
std::string print_head(const HttpResponse& response, const Framing& framing);

/// The Date header's value, formatted once a second. For one thread.
class DateHeader {
 public:
  std::string_view now();

 private:
  std::time_t second_ = -1;
  std::string text_;
};

}  // namespace playfs::http
