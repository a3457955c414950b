#include "app/bug_report/shown_words.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/result.h"

namespace playfs::app {

namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789_";
constexpr std::string_view kLettersAndDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

enum class Form { word, code, time, version, commit, variable };

struct KnownField {
  std::string_view name;
  Form form;
};

/// Only fields whose texts are never chosen by a user, a service or a file. Not ids: at a public site they are names.
constexpr std::array kKnownFields{
    KnownField{"check", Form::word},
    KnownField{"finding", Form::word},
    KnownField{"events", Form::word},
    KnownField{"instructions", Form::word},
    KnownField{"metric", Form::word},
    KnownField{"operation", Form::word},
    KnownField{"source_kind", Form::word},
    KnownField{"kernel_option", Form::word},
    KnownField{"distribution", Form::word},
    KnownField{"machine", Form::word},
    KnownField{"code", Form::code},
    KnownField{"unread", Form::code},
    KnownField{"time", Form::time},
    KnownField{"started", Form::time},
    KnownField{"last_success", Form::time},
    KnownField{"last_failure", Form::time},
    KnownField{"last_refused", Form::time},
    KnownField{"paused_until", Form::time},
    KnownField{"version", Form::version},
    KnownField{"release", Form::version},
    KnownField{"kernel", Form::version},
    KnownField{"libfuse", Form::version},
    KnownField{"libcurl", Form::version},
    KnownField{"sqlite", Form::version},
    KnownField{"glibc", Form::version},
    KnownField{"commit", Form::commit},
    KnownField{"environment", Form::variable},
};

bool consists_of(std::string_view text, std::string_view characters, std::size_t most) {
  return !text.empty() && text.size() <= most && text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_member_name(std::string_view name) { return consists_of(name, kPlain, 40); }

/// "3.14.0", "12~rc1", or several with names: "libcurl/7.88.1 OpenSSL/3.0.19".
bool is_version(std::string_view text) {
  while (!text.empty()) {
    std::string_view each = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(each.size() + 1, text.size()));
    if (const auto slash = each.find('/'); slash != std::string_view::npos) {
      if (!consists_of(each.substr(0, slash), kLettersAndDigits, 20)) return false;
      each.remove_prefix(slash + 1);
    }
    if (each.empty() || kDigits.find(each.front()) == std::string_view::npos) return false;
    if (!consists_of(each, "abcdefghijklmnopqrstuvwxyz0123456789.+~-", 30)) return false;
  }
  return true;
}

/// As git describe prints it: "v1.2.0-5-g0123456789ab", "0123456789ab-dirty".
bool is_commit(std::string_view text) { return consists_of(text, "abcdefghijklmnopqrstuvwxyz0123456789.-", 60); }

bool has_form(Form form, const std::string& text) {
  switch (form) {
    case Form::word: return consists_of(text, kPlain, 40);
    case Form::code: return name_of(code_named(text)) == text;
    case Form::time:
      return text.size() >= std::string_view("2000-01-01T00:00:00Z").size() &&
             consists_of(text, "0123456789-:.TZ", 30) && parse_iso8601(text).has_value();
    case Form::version: return is_version(text);
    case Form::commit: return is_commit(text);
    case Form::variable: return consists_of(text, kCapitals, 40);
  }
  return false;
}

bool is_shown(std::string_view field, const std::string& text) {
  const auto known = std::find_if(kKnownFields.begin(), kKnownFields.end(),
                                  [&](const KnownField& each) { return each.name == field; });
  return text.empty() || (known != kKnownFields.end() && has_form(known->form, text));
}

}  // namespace

std::string ShownWords::stand_in(const std::string& text) {
  return stand_ins_.emplace(text, "TEXT-" + std::to_string(stand_ins_.size() + 1)).first->second;
}

Json ShownWords::of(const Json& value, std::string_view field) {
  if (const std::string* text = value.string()) return is_shown(field, *text) ? *text : stand_in(*text);
  if (const Json::Array* array = value.array()) {
    Json::Array out;
    for (const Json& each : *array) out.push_back(of(each, field));
    return out;
  }
  const JsonObject* object = value.object();
  if (object == nullptr) return value;
  JsonObject out;
  for (const auto& [name, each] : *object) out.append(is_member_name(name) ? name : stand_in(name), of(each, name));
  return out;
}

}  // namespace playfs::app
