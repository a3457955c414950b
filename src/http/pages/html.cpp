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

Html::Html(Html&& other) noexcept : most_(other.most_), full_(other.full_), out_(std::move(other.out_)) {
  assert(other.open_ == 0);
}

Html::Element::~Element() {
  --html_.open_;
  if (!written_) return;
  html_.out_ += "</";
  html_.out_ += tag_.text();
  html_.out_ += '>';
}

bool Html::has_room(std::size_t bytes) {
  full_ = full_ || bytes > most_ || out_.size() > most_ - bytes;
  return !full_;
}

bool Html::start(Tag tag, Attributes attributes) {
  if (!has_room(tag.text().size())) return false;
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
  return true;
}

Html::Element Html::open(Tag tag, Attributes attributes) { return Element(*this, tag, start(tag, attributes)); }

void Html::element(Tag tag, Attributes attributes, std::string_view content) {
  Element element = open(tag, attributes);
  text(content);
}

void Html::lone(Tag tag, Attributes attributes) { start(tag, attributes); }

void Html::text(std::string_view text) {
  if (has_room(text.size())) append_text(out_, text);
}

}  // namespace playfs::http
