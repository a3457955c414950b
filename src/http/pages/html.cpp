#include "http/pages/html.h"

#include <algorithm>
#include <cassert>

#include "base/text.h"

namespace playfs::http {

namespace {

bool is_plain(char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; }

void append_escaped(std::string& out, std::string_view text) {
  for (char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
}

void append_text(std::string& out, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) append_escaped(out, text);
  else append_escaped(out, escape_for_terminal(text, true));
}

}  // namespace

Html::Html(Html&& other) noexcept : out_(std::move(other.out_)) { assert(other.open_ == 0); }

Html::Element::~Element() {
  --html_.open_;
  html_.out_ += "</";
  html_.out_ += tag_.text();
  html_.out_ += '>';
}

void Html::start(Tag tag, Attributes attributes) {
  out_ += '<';
  out_ += tag.text();
  for (const Attribute& attribute : attributes) {
    out_ += ' ';
    out_ += attribute.name();
    out_ += "=\"";
    append_text(out_, attribute.value());
    out_ += '"';
  }
  out_ += '>';
}

Html::Element Html::open(Tag tag, Attributes attributes) {
  start(tag, attributes);
  return Element(*this, tag);
}

void Html::element(Tag tag, Attributes attributes, std::string_view content) {
  Element element = open(tag, attributes);
  text(content);
}

void Html::lone(Tag tag, Attributes attributes) { start(tag, attributes); }

void Html::text(std::string_view text) { append_text(out_, text); }

}  // namespace playfs::http
