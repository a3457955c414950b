// Writes HTML in which all text comes out as text. For one thread at a time.
//
// There is no way to pass markup through: names of elements and attributes are literals that the compiler checks (no
// script, no style, no handlers), every other string is escaped where it is written, and addresses are Urls. So no page
// has to remember to escape, and one content security policy without exceptions fits them all.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "http/pages/url.h"

namespace playfs::http {

/// An element name: a literal. Elements that run or load something, or whose content is not HTML, do not compile.
class Tag {
 public:
  consteval Tag(const char* name) : name_(name) {
    if (name_.empty()) throw "a tag needs a name";
    for (char c : name_)
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) throw "not a tag";
    for (std::string_view refused : {"script", "style", "iframe", "object", "embed", "base", "template", "noscript",
                                     "textarea", "xmp", "plaintext", "use", "foreignObject", "math"})
      if (name_ == refused) throw "an element that pages do not have";
  }
  [[nodiscard]] constexpr std::string_view text() const { return name_; }

 private:
  std::string_view name_;
};

/// An attribute name: a literal. Handlers, styles and addresses do not compile; for addresses see Attribute.
class AttributeName {
 public:
  consteval AttributeName(const char* name) : name_(name) {
    if (name_.empty()) throw "an attribute needs a name";
    for (char c : name_)
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-')) throw "no name";
    if (name_.starts_with("on")) throw "pages must not have event handlers";
    for (std::string_view refused : {"style", "href", "src", "action", "formaction", "srcdoc", "srcset", "http-equiv"})
      if (name_ == refused) throw "not this way";
  }
  [[nodiscard]] constexpr std::string_view text() const { return name_; }

 private:
  std::string_view name_;
};

/// Attributes whose value is an address.
enum class Address { href, action };

/// Refers to its arguments: only for use within the call that writes it.
class Attribute {
 public:
  Attribute(AttributeName name, std::string_view value) : name_(name.text()), value_(value) {}
  Attribute(Address name, const Url& url) : name_(name == Address::href ? "href" : "action"), value_(url.text()) {}
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] std::string_view value() const { return value_; }

 private:
  std::string_view name_;
  std::string_view value_;
};

using Attributes = std::initializer_list<Attribute>;

class Html {
 public:
  /// The limit of one page: past it, only the end tags of open elements are written.
  static constexpr std::size_t kMostBytes = 2 << 20;

  explicit Html(std::size_t most_bytes = kMostBytes) : most_(most_bytes) {}
  /// REQUIRES: no element is open, since its end tag would go to the moved-from object. So a function that returns its
  /// Html opens elements in inner scopes.
  Html(Html&& other) noexcept;
  Html& operator=(Html&&) = delete;

  /// An open element; its end tag is written when it goes out of scope.
  class [[nodiscard]] Element {
   public:
    Element(Html& html, Tag tag, bool written) : html_(html), tag_(tag), written_(written) { ++html_.open_; }
    ~Element();
    Element(const Element&) = delete;
    Element& operator=(const Element&) = delete;

   private:
    Html& html_;
    Tag tag_;
    bool written_;
  };

  Element open(Tag tag, Attributes attributes = {});
  /// An element that contains only text.
  void element(Tag tag, Attributes attributes, std::string_view text);
  void element(Tag tag, std::string_view text) { element(tag, {}, text); }
  /// An element without an end tag: meta, link, input, br.
  void lone(Tag tag, Attributes attributes = {});
  void link(const Url& url, std::string_view text) { element("a", {{Address::href, url}}, text); }

  /// Text. Control characters and bidirectional overrides show as escapes.
  void text(std::string_view text);
  /// Appends the output of another Html.
  void append(const Html& other) { out_ += other.out_; }

  /// Something was left out because of the limit.
  [[nodiscard]] bool is_full() const { return full_; }
  /// More was written than its limit, which escaping can cause, or would have been.
  [[nodiscard]] bool is_past_limit() const { return full_ || out_.size() > most_; }
  /// A whole document: the doctype, and what was written.
  [[nodiscard]] std::string document() && { return "<!doctype html>\n" + std::move(out_); }
  [[nodiscard]] const std::string& fragment() const { return out_; }

 private:
  bool start(Tag tag, Attributes attributes);
  bool has_room(std::size_t bytes);

  const std::size_t most_;
  bool full_ = false;
  std::string out_;
  int open_ = 0;  ///< number of open elements
};

}  // namespace playfs::http
