// Addresses that may stand in a page. Plain values.
//
// A Url can only be made of segments, which are percent-encoded, or of a stranger's address that was checked. So a
// `javascript:` address, or one that leaves the attribute it stands in, cannot come to be.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace playfs::http {

class Url {
 public:
  /// "/".
  Url() : text_("/") {}

  /// This address with one more segment; '/' inside is encoded. REQUIRES: no query or fragment yet.
  [[nodiscard]] Url operator/(std::string_view segment) const;
  /// This address with a path below it: the '/' of `path` stay. REQUIRES: as above.
  [[nodiscard]] Url below(std::string_view path) const;
  [[nodiscard]] Url with(std::string_view parameter, std::string_view value) const;
  [[nodiscard]] Url at(std::string_view fragment) const;

  /// This same page, to be followed by at().
  static Url here() { return Url(std::string()); }
  /// Somebody else's page; nullopt for anything but a plain http or https address.
  static std::optional<Url> external(std::string_view address);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  explicit Url(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace playfs::http
