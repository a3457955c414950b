#include "http/pages/prose.h"

#include <algorithm>

#include "base/text.h"
#include "http/pages/layout.h"
#include "http/pages/views.h"

namespace playfs::http {

namespace {

constexpr std::size_t kHandleShown = 60;  // characters

constexpr std::size_t kLongestAddress = 1000;

/// A piece of a text that is to be a link.
struct Span {
  std::size_t length = 0;  // 0: none
  Url url;
  bool leaves_site = false;
};

bool is_word(std::string_view text, std::size_t at) {
  if (at >= text.size()) return false;
  const char c = text[at];
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

/// The address that `text` begins with. As people write them: a full stop or bracket behind it is not part of it.
Span address_at(std::string_view text) {
  if (!text.starts_with("http://") && !text.starts_with("https://")) return {};
  auto ends = [](char c) {
    return c <= ' ' || (c & 0x80) || std::string_view("<>\"'`|\\^{}").find(c) != std::string_view::npos;
  };
  // Longer ones are no links, and a text may begin an address at every few bytes.
  text = text.substr(0, kLongestAddress + 1);
  std::string_view address = text.substr(0, std::find_if(text.begin(), text.end(), ends) - text.begin());
  if (address.size() > kLongestAddress) return {};
  while (!address.empty()) {
    const char last = address.back();
    const bool unopened = last == ')' && std::count(address.begin(), address.end(), ')') >
                                             std::count(address.begin(), address.end(), '(');
    if (!unopened && std::string_view(".,;:!?]*_").find(last) == std::string_view::npos) break;
    address.remove_suffix(1);
  }
  auto url = Url::external(address);
  return url ? Span{address.size(), *url, true} : Span{};
}

/// The longest of `handles` that `text` begins with after an "@".
Span mention_at(std::string_view text, const std::vector<std::string>& handles) {
  Span found;
  for (const std::string& handle : handles)
    if (handle.size() + 1 > found.length && may_be_segment(handle) && text.substr(1).starts_with(handle) &&
        !is_word(text, handle.size() + 1))
      found = {handle.size() + 1, url_of_agent(handle), false};
  return found;
}

Span link_at(std::string_view text, std::size_t at, const std::vector<std::string>& handles) {
  const bool inside_word = at > 0 && is_word(text, at - 1);
  if (inside_word) return {};
  if (text[at] == 'h') return address_at(text.substr(at));
  if (text[at] == '@') return mention_at(text.substr(at), handles);
  return {};
}

void show_link(Html& html, const Url& url, bool leaves_site, std::string_view label) {
  if (leaves_site) html.element("a", {{Address::href, url}, {"rel", "noopener noreferrer nofollow ugc"}}, label);
  else html.link(url, label);
}

}  // namespace

void show_prose(Html& html, std::string_view text, const std::vector<std::string>& handles) {
  auto prose = html.open("div", {{"class", "prose"}, {"dir", "auto"}});
  std::size_t shown = 0, links = 0;
  for (std::size_t at = text.find_first_of("h@"); at != std::string_view::npos && links < kMostLinks;) {
    const Span link = link_at(text, at, handles);
    if (link.length > 0) {
      html.text(text.substr(shown, at - shown));
      show_link(html, link.url, link.leaves_site, text.substr(at, link.length));
      shown = at + link.length;
      ++links;
    }
    at = text.find_first_of("h@", at + std::max<std::size_t>(link.length, 1));
  }
  html.text(text.substr(shown));
}

void show_address(Html& html, std::string_view address) {
  if (auto url = Url::external(address)) show_link(html, *url, true, address);
  else if (auto page = Url::internal(address)) show_link(html, *page, false, address);
  else show_name(html, address);
}

void show_agent(Html& html, std::string_view handle) {
  const std::string shown = excerpt(handle, kHandleShown);
  if (!may_be_segment(handle)) {
    auto who = html.open("span", {{"class", "agent"}});
    return show_name(html, shown);
  }
  auto link = html.open("a", {{"class", "agent"}, {Address::href, url_of_agent(handle)}});
  show_name(html, shown);
}

}  // namespace playfs::http
