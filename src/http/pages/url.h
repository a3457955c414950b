// Addresses that are safe in a page. Plain values.
//
// A Url can only be built from segments, which are percent-encoded, or from a stranger's address after a check. So
// there is no `javascript:` address, and none that breaks out of its attribute.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace playfs::http {

/// Whether strangers' text can be a segment of an address: not "." or "..", which browsers resolve even if they are
/// encoded, and not longer than names are.
bool may_be_segment(std::string_view text);

class Url {
 public:
  /// "/".
  Url() : text_("/") {}

  /// This address with one more segment; '/' inside is encoded. REQUIRES: no query or fragment yet.
  [[nodiscard]] Url operator/(std::string_view segment) const;
  /// This address with a path below it: the '/' of `path` stay. REQUIRES: no query or fragment yet.
  [[nodiscard]] Url below(std::string_view path) const;
  [[nodiscard]] Url with(std::string_view parameter, std::string_view value) const;
  [[nodiscard]] Url at(std::string_view fragment) const;

  /// The current page, for use with at().
  static Url here() { return Url(std::string()); }
  /// A page of this site, from its path or its path in a mount ("projects/ID"); nullopt for any other text.
  static std::optional<Url> internal(std::string_view path);
  /// A page of another site; nullopt for anything but a plain http or https address.
  static std::optional<Url> external(std::string_view address);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  explicit Url(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace playfs::http
