// HTTP messages as plain values, without I/O or parsing.
//
// Client and service share them, so that the embedded playground can pass a request straight to the service.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace playfs {

/// Ordered header fields; names are case-insensitive.
class HttpHeaders {
 public:
  HttpHeaders() = default;
  HttpHeaders(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}

  /// The first field with that name.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  /// Replaces all fields with that name by one.
  void set(std::string_view name, std::string value);

  [[nodiscard]] auto begin() const { return fields_.begin(); }
  [[nodiscard]] auto end() const { return fields_.end(); }
  [[nodiscard]] std::size_t size() const { return fields_.size(); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct HttpRequest {
  std::string method;  ///< "GET", "POST", "PATCH" …
  std::string target;  ///< path and query, percent-encoded, starting with '/'
  HttpHeaders headers;
  std::string body;
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;
};

}  // namespace playfs
