#include "stage/wildmatch.h"

#include <cctype>

namespace playfs::stage {

namespace {

using Predicate = int (*)(int);
std::optional<Predicate> character_class(std::string_view name) {
  if (name == "alnum") return std::isalnum;
  if (name == "alpha") return std::isalpha;
  if (name == "blank") return std::isblank;
  if (name == "cntrl") return std::iscntrl;
  if (name == "digit") return std::isdigit;
  if (name == "graph") return std::isgraph;
  if (name == "lower") return std::islower;
  if (name == "print") return std::isprint;
  if (name == "punct") return std::ispunct;
  if (name == "space") return std::isspace;
  if (name == "upper") return std::isupper;
  if (name == "xdigit") return std::isxdigit;
  return std::nullopt;
}

}  // namespace

/// Parses the set after a '[' and takes it off `rest`; nullopt if it is invalid or never closed.
std::optional<Pattern::Set> Pattern::take_set(std::string_view& rest) {
  Set set;
  bool negated = rest.starts_with('!') || rest.starts_with('^');
  if (negated) rest.remove_prefix(1);
  auto take = [&]() -> std::optional<unsigned char> {
    if (rest.starts_with('\\')) rest.remove_prefix(1);
    if (rest.empty()) return std::nullopt;
    auto byte = static_cast<unsigned char>(rest[0]);
    rest.remove_prefix(1);
    return byte;
  };
  bool may_name_classes = true;  // false once no ":]" is left, so that it is searched for only once
  for (bool first = true; first || !rest.starts_with(']'); first = false) {
    if (may_name_classes && rest.starts_with("[:")) {
      auto end = rest.find(":]", 2);
      may_name_classes = end != std::string_view::npos;
      if (may_name_classes) {
        auto is_member = character_class(rest.substr(2, end - 2));
        if (!is_member) return std::nullopt;
        for (int byte = 0; byte < 128; ++byte) {
          if ((*is_member)(byte) != 0) set.set(static_cast<std::size_t>(byte));
        }
        rest.remove_prefix(end + 2);
        continue;
      }
    }
    auto low = take();
    if (!low) return std::nullopt;
    auto high = low;
    if (rest.size() >= 2 && rest[0] == '-' && rest[1] != ']') {
      rest.remove_prefix(1);
      high = take();
      if (!high) return std::nullopt;
    }
    set.set(*low);  // also for a backwards range, as in git
    for (unsigned byte = *low; byte <= *high; ++byte) set.set(byte);
  }
  rest.remove_prefix(1);
  if (negated) set.flip();
  set.reset('/');
  return set;
}

Pattern::Pattern(std::string_view text) {
  makes_sense_ = compile(text);
  for (const Place& place : places_) {
    bool takes_one = place.kind == Kind::byte || place.kind == Kind::any || place.kind == Kind::set;
    if (takes_one) ++shortest_;
    tail_ = place.kind == Kind::byte ? tail_ + 1 : 0;
  }
  places_.shrink_to_fit();
}

bool Pattern::compile(std::string_view text) {
  bool after_slash = true;  // or at the beginning
  for (std::string_view rest = text; !rest.empty();) {
    char byte = rest[0];
    rest.remove_prefix(1);
    if (byte == '*') {
      bool two = rest.starts_with('*');
      while (rest.starts_with('*')) rest.remove_prefix(1);
      if (two && after_slash && rest.starts_with('/')) {
        rest.remove_prefix(1);
        places_.push_back({Kind::directories});
        continue;  // still after a slash
      }
      places_.push_back({two && after_slash && rest.empty() ? Kind::everything : Kind::star});
    } else if (byte == '?') {
      places_.push_back({Kind::any});
    } else if (byte == '[') {
      auto set = take_set(rest);
      if (!set) return false;
      places_.push_back({Kind::set, 0, static_cast<std::uint32_t>(sets_.size())});
      sets_.push_back(*set);
    } else {
      if (byte == '\\') {
        if (rest.empty()) return false;
        byte = rest[0];
        rest.remove_prefix(1);
      }
      places_.push_back({Kind::byte, byte});
    }
    after_slash = byte == '/';
  }
  return true;
}

bool Pattern::takes(const Place& place, char byte) const {
  switch (place.kind) {
    case Kind::byte: return byte == place.byte;
    case Kind::any: return byte != '/';
    case Kind::set: return sets_[place.set].test(static_cast<unsigned char>(byte));
    case Kind::star:
    case Kind::everything:
    case Kind::directories: break;
  }
  return false;
}

/// Each `*` and `**/` takes as little as it can. Within a component only the last `*` is ever extended: what precedes
/// it was matched as early as possible, so extending that leaves no more room. The same holds for the last `**/`, which
/// takes whole components; what follows it up to the next `**/` has a fixed number of them. So each pattern element is
/// compared with each byte at most once per start of its component.
std::optional<bool> Pattern::matches(std::string_view text, Effort& effort) const {
  if (!makes_sense_ || text.size() < shortest_) return false;
  for (std::size_t i = 1; i <= tail_; ++i) {
    if (!effort.spend()) return std::nullopt;
    if (places_[places_.size() - i].byte != text[text.size() - i]) return false;
  }
  struct Resumption {
    bool is_possible = false;
    std::size_t place = 0, at = 0;
  };
  Resumption star, directories;  // what follows them, and where it was last tried
  std::size_t place = 0, at = 0;
  while (place < places_.size() || at < text.size()) {
    if (!effort.spend()) return std::nullopt;
    if (place < places_.size()) {
      const Place& next = places_[place];
      if (next.kind == Kind::everything) return true;
      if (next.kind == Kind::star) {
        star = {true, ++place, at};
        continue;
      }
      if (next.kind == Kind::directories) {
        directories = {true, ++place, at};
        star = {};
        continue;
      }
      if (at < text.size() && takes(next, text[at])) {
        if (text[at] == '/') star = {};  // next component
        ++place;
        ++at;
        continue;
      }
    }
    if (star.is_possible && star.at < text.size() && text[star.at] != '/') {
      place = star.place;
      at = ++star.at;
      continue;
    }
    if (!directories.is_possible) return false;
    auto slash = text.find('/', directories.at);
    if (slash == std::string_view::npos) return false;
    star = {};
    directories.at = slash + 1;
    place = directories.place;
    at = directories.at;
  }
  return true;
}

}  // namespace playfs::stage
