#include "app/bug_report/redaction.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/result.h"
#include "base/text.h"
#include "model/path.h"

namespace playfs::app {

namespace {

enum class Label { none, handle, key, key_to_the_end };

std::string_view name_of(Hidden kind) {
  switch (kind) {
    case Hidden::key: return "KEY";
    case Hidden::email: return "EMAIL";
    case Hidden::handle: return "HANDLE";
    case Hidden::path: return "PATH";
    case Hidden::value: return "VALUE";
    case Hidden::home: return "HOME";
    case Hidden::host: return "HOST";
    case Hidden::user: return "USER";
  }
  return "";
}

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return is_alnum(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
/// What stands between the words of a text. A word may be an address, a path, or "name=value".
bool is_between(char c) { return std::string_view(" \t\n\r\"'`<>()[]{},;|").find(c) != std::string_view::npos; }

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Whether a name says that its value is secret: "api_key", "Authorization", "smtp-password".
bool names_secret(std::string_view name) {
  constexpr std::array<std::string_view, 10> kSecret{"key",    "token",      "password", "passwd", "passphrase",
                                                     "secret", "credential", "auth",     "cookie", "bearer"};
  const std::string lower = to_lower(name);
  return std::any_of(kSecret.begin(), kSecret.end(),
                     [&](std::string_view each) { return lower.find(each) != std::string::npos; });
}
bool names_handle(std::string_view name) {
  constexpr std::array<std::string_view, 8> kHandle{"agent", "handle", "author", "from", "to", "by", "user", "owner"};
  return is_one_of(kHandle, to_lower(name));
}
bool names_email(std::string_view name) { return to_lower(name).find("email") != std::string::npos; }
bool names_path(std::string_view name) {
  constexpr std::array<std::string_view, 5> kPath{"subject", "path", "place", "store", "directory"};
  return is_one_of(kPath, name);
}
/// What people wrote.
bool names_prose(std::string_view name) {
  constexpr std::array<std::string_view, 5> kProse{"title", "body", "text", "content", "description"};
  return is_one_of(kProse, name);
}

/// The directories at the top of a mount.
constexpr std::array<std::string_view, 9> kTops{"projects", "threads", "agents",  "mail",   "spaces",
                                                "inbox",    "maildir", "records", ".playfs"};

bool is_id(std::string_view name) {
  constexpr std::size_t kIdSize = 20;
  return name.size() == kIdSize && std::all_of(name.begin(), name.end(), is_alnum);
}

bool is_email(std::string_view word) {
  const auto at = word.find('@');
  return at != std::string_view::npos && at > 0 && at + 1 < word.size() && word.find('/') == std::string_view::npos;
}

/// Whether it looks like a file's name, and not like a number, an address or one of our own files.
bool is_file_name(std::string_view word) {
  constexpr std::array<std::string_view, 12> kOwn{"config.toml",   "credentials.toml", "mount.log",   "stage.db",
                                                  "publish.db",    "records.db",       "status.json", "limits.json",
                                                  "errors.ndjson", "playground.db",    "README.md",   "messages.md"};
  const auto dot = word.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == word.size() || is_one_of(kOwn, word)) return false;
  const std::string_view end = word.substr(dot + 1);
  return end.size() <= 8 && std::all_of(end.begin(), end.end(), is_alnum) &&
         !std::all_of(end.begin(), end.end(), is_digit) &&
         !std::all_of(word.begin(), word.end(), [](char c) { return is_digit(c) || c == '.' || c == 's' || c == 'm'; });
}

/// The Data API's collections, whose paths hold ids alone.
bool is_api_path(std::string_view path) {
  constexpr std::array<std::string_view, 9> kApi{"/.site",    "/projects", "/revisions",   "/file_chunks", "/threads",
                                                 "/messages", "/spaces",   "/domain_mail", "/api"};
  return std::any_of(kApi.begin(), kApi.end(), [&](std::string_view each) {
    return is_at_or_below(path, each) || path.starts_with(std::string(each) + "?");
  });
}

/// What the word before says about `word`: "password: hunter 2", "token abc123", "Bearer abc".
Label label_of(std::string_view before, std::string_view word) {
  if (before.empty() || word.empty()) return Label::none;
  const bool is_label = before.back() == ':' || before.back() == '=';
  const std::string name = to_lower(is_label ? before.substr(0, before.size() - 1) : before);
  if (!std::all_of(name.begin(), name.end(), [](char c) { return is_name(c) || c == '-' || c == '.'; }))
    return Label::none;
  const auto digits = std::count_if(word.begin(), word.end(), is_digit);
  if (names_secret(name) && is_label) return Label::key_to_the_end;
  if (name == "bearer" || name == "basic" || (names_secret(name) && digits > 0 && word.size() >= 4)) return Label::key;
  if (name == "code" && digits >= 4) return Label::key;
  return is_label && names_handle(name) ? Label::handle : Label::none;
}

}  // namespace

std::string Redaction::stand_in(Hidden kind, std::string_view text) {
  if (made_.contains(text)) return std::string(text);
  auto [found, is_new] = stand_ins_.try_emplace({kind, std::string(text)});
  if (is_new) {
    found->second = std::string(name_of(kind)) + "-" + std::to_string(++counts_[kind]);
    made_.insert(found->second);
  }
  return found->second;
}

void Redaction::hide(Hidden kind, std::string_view text) {
  const bool is_known = std::any_of(known_.begin(), known_.end(), [&](const auto& each) { return each.first == text; });
  if (text.size() < 2 || is_known) return;  // a single letter would be found everywhere
  auto is_longer = [&](const auto& each) { return each.first.size() <= text.size(); };
  const auto at = std::find_if(known_.begin(), known_.end(), is_longer);
  known_.insert(at, {std::string(text), kind});
}

std::string Redaction::handle(std::string_view name) {
  std::string instead = stand_in(Hidden::handle, name);
  if (instead != name) hide(Hidden::handle, name);
  return instead;
}

void Redaction::show_below(std::string_view place) { shown_.insert(without_known(place)); }
void Redaction::mount_at(std::string_view place) { mounts_.insert(without_known(place)); }

std::string Redaction::without_known(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto here = std::find_if(known_.begin(), known_.end(), [&](const auto& each) {
      const auto& [known, kind] = each;
      if (!text.substr(at).starts_with(known)) return false;
      const std::size_t end = at + known.size();
      // A home's neighbour may be called as it is, with more behind.
      if (kind == Hidden::home && end < text.size() && (text[end] == '-' || text[end] == '.')) return false;
      return kind == Hidden::key ||
             ((at == 0 || !is_name(text[at - 1])) && (end == text.size() || !is_name(text[end])));
    });
    if (here == known_.end()) {
      out += text[at++];
      continue;
    }
    out += stand_in(here->second, here->first);
    at += here->first.size();
  }
  return out;
}

/// Long runs of letters and digits: keys, hashes and the like.
std::string Redaction::without_keys(std::string_view word) {
  constexpr std::size_t kLongest = 24;  // ids have 20
  std::string out;
  for (std::size_t at = 0; at < word.size();) {
    std::size_t end = at;
    while (end < word.size() && (is_alnum(word[end]) || word[end] == '_' || word[end] == '-')) ++end;
    const std::string_view run = word.substr(at, end - at);
    const bool is_key = run.size() >= kLongest && std::any_of(run.begin(), run.end(), is_digit) &&
                        std::any_of(run.begin(), run.end(), [](char c) { return is_alnum(c) && !is_digit(c); });
    out += is_key ? stand_in(Hidden::key, run) : std::string(run);
    if (end < word.size()) out += word[end++];
    at = end;
  }
  return out;
}

std::string Redaction::url(std::string_view url) {
  const std::size_t begin = url.find("://") + 3;
  std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  std::string out(url.substr(0, begin));
  std::string_view host = url.substr(begin, end - begin);
  if (const auto at = host.rfind('@'); at != std::string_view::npos) {
    out += stand_in(Hidden::key, host.substr(0, at)) + "@";
    host.remove_prefix(at + 1);
  }
  out += host;
  const std::size_t query = std::min(url.find_first_of("?#", end), url.size());
  out += without_keys(url.substr(end, query - end));
  // Values of a query may be anything: what was searched for, a handle, a code.
  bool is_value = false;
  for (std::size_t at = query; at < url.size();) {
    if (std::string_view("?&=#").find(url[at]) != std::string_view::npos) {
      is_value = url[at] == '=' || url[at] == '#';
      out += url[at++];
      continue;
    }
    const std::size_t next = std::min(url.find_first_of("?&=#", at), url.size());
    out += is_value ? stand_in(Hidden::value, url.substr(at, next - at)) : std::string(url.substr(at, next - at));
    at = next;
  }
  return out;
}

/// "projects/ID/work/src/a.c": what is below the root of a tree, and every name that somebody chose, is hidden.
std::string Redaction::path_in_mount(std::string_view path) {
  constexpr std::size_t kMost = 4;  // projects/ID/revisions/ID
  std::size_t kept = 0;
  for (std::size_t depth = 0; depth < kMost && kept < path.size(); ++depth) {
    const std::size_t end = std::min(path.find('/', kept), path.size());
    const std::string_view name = path.substr(kept, end - kept);
    if (depth == 0 && !is_one_of(kTops, name)) break;
    if (depth == 1 && !is_id(name) && name != "new" && !name.starts_with("by-") && !path.starts_with(".playfs/")) break;
    kept = std::min(end + 1, path.size());
    if (name.starts_with("by-") || (depth == 2 && (name == "work" || name == "head"))) break;
  }
  std::string out = without_keys(path.substr(0, kept));
  if (kept < path.size()) out += stand_in(Hidden::path, path.substr(kept));
  return out;
}

std::string Redaction::path(std::string_view path) {
  if (path.find("://") != std::string_view::npos) return url(path);
  const std::string known = without_known(path);
  if (is_api_path(known)) return url("x://" + known).substr(4);
  if (shows_paths_) return without_keys(known);
  if (is_one_of(kTops, std::string_view(known).substr(0, known.find('/')))) return path_in_mount(known);
  for (const std::string& mount : mounts_)
    if (known == mount || known.starts_with(mount + "/"))
      return mount + (known == mount ? "" : "/" + path_in_mount(known.substr(mount.size() + 1)));
  // Components of our own that stand for a name have a hash of it, and how it begins ("h+HASH+readable").
  for (const std::string& place : shown_)
    if (known == place || known.starts_with(place + "/")) {
      std::string out = without_keys(known);
      for (std::size_t at = 0; (at = out.find("/h+", at)) != std::string::npos; ++at) {
        const std::size_t end = std::min(out.find('/', at + 1), out.size());
        const std::size_t readable = std::min(out.find('+', at + 3), end);
        out.erase(readable, end - readable);
      }
      return out;
    }
  return stand_in(Hidden::path, known);
}

std::string Redaction::word(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const bool is_named = name.size() < word.size() && std::all_of(name.begin(), name.end(), [](char c) {
                          return is_name(c) || c == '-' || c == '.';
                        });
  if (is_named) {
    const std::string_view value = word.substr(name.size() + 1);
    std::string out = std::string(name) + "=";
    if (value.empty()) return out;
    if (names_secret(name) || name == "code") return out + stand_in(Hidden::key, value);
    if (names_handle(name)) return out + handle(value);
    return out + this->word(value);
  }
  const std::string_view bare = word.substr(0, word.find_last_not_of(".:?!") + 1);
  const std::string end(word.substr(bare.size()));
  if (bare.find("://") != std::string_view::npos) return url(bare) + end;
  if (is_email(bare)) return stand_in(Hidden::email, bare) + end;
  if (bare.size() > 1 && bare.front() == '@') return "@" + handle(bare.substr(1)) + end;
  if (bare.find('/') != std::string_view::npos) return path(bare) + end;
  if (!shows_paths_ && is_file_name(bare)) return stand_in(Hidden::path, bare) + end;
  return without_keys(word);
}

std::string Redaction::text(std::string_view whole) {
  const std::string text = without_known(whole);
  std::string out, before;
  for (std::size_t at = 0; at < text.size();) {
    // What is quoted is a name that somebody chose.
    if (text[at] == '\'' && !shows_paths_ && (at == 0 || is_between(text[at - 1]))) {
      if (const auto close = text.find('\'', at + 1); close != std::string::npos && close > at + 1) {
        out += "'" + stand_in(Hidden::path, text.substr(at + 1, close - at - 1)) + "'";
        at = close + 1;
        continue;
      }
    }
    std::size_t end = at;
    while (end < text.size() && !is_between(text[end])) ++end;
    // The name of a file in a mount may have blanks: it ends with the line, or where an error's text goes on.
    if (!shows_paths_ && std::string_view(text).substr(at).starts_with("projects/"))
      end = std::min({text.find(": ", at), text.find_first_of("\n\"", at), text.size()});
    if (end == at) {
      out += text[at++];
      continue;
    }
    std::string_view next = std::string_view(text).substr(at, end - at);
    const Label label = label_of(before, next);
    if (label == Label::key_to_the_end && next != "=") {
      end = std::min(text.find_first_of("\n\"", at), text.size());
      next = std::string_view(text).substr(at, end - at);
    }
    if (next == "=" || next == ":" || label == Label::none) out += word(next);
    else out += label == Label::handle ? handle(next) : stand_in(Hidden::key, next);
    // "api_key = …": the sign is a word of its own.
    before = next == "=" || next == ":" ? before + "=" : std::string(next);
    at = end;
  }
  return out;
}

Json Redaction::lines(std::string_view text) {
  Json::Array array;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    array.emplace_back(this->text(line));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return array;
}

Json Redaction::field(std::string_view name, const Json& value) {
  const std::string* text = value.string();
  if (text == nullptr || text->empty()) return json(value);
  if (name == "code") return playfs::name_of(code_named(*text)) == *text ? *text : stand_in(Hidden::key, *text);
  if (names_handle(name)) return handle(*text);
  if (names_email(name)) return stand_in(Hidden::email, *text);
  if (names_secret(name)) return stand_in(Hidden::key, *text);
  if (names_path(name)) return path(*text);
  if (names_prose(name)) return stand_in(Hidden::value, *text);
  return this->text(*text);
}

Json Redaction::json(const Json& value) {
  if (const std::string* text = value.string()) return this->text(*text);
  if (const Json::Array* array = value.array()) {
    Json::Array out;
    for (const Json& each : *array) out.push_back(json(each));
    return out;
  }
  const JsonObject* object = value.object();
  if (object == nullptr) return value;
  // The message of an error names what it is about.
  if (const Json* subject = object->find("subject");
      subject != nullptr && subject->string() != nullptr && !shows_paths_) {
    const std::string& whole = *subject->string();
    if (path(whole) != whole) hide(Hidden::path, whole.substr(whole.rfind('/') + 1));
  }
  JsonObject out;
  for (const auto& [name, each] : *object) out.append(text(name), field(name, each));
  return out;
}

JsonObject Redaction::removed() const {
  JsonObject out;
  for (const auto& [kind, count] : counts_) out.append(to_lower(name_of(kind)), count);
  return out;
}

}  // namespace playfs::app
