#include "mail/maildir.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "mail/address.h"
#include "model/content_hash.h"

namespace playfs::mail {

namespace {

/// Leaves room for the times, for the longest domain cut to kLongestNameDomain, and for all flags, in 255 bytes.
constexpr std::size_t kLongestId = 80;
constexpr std::size_t kLongestNameDomain = 64;
constexpr std::size_t kKeptId = 30;
constexpr std::size_t kMostFlags = 52;  // letters
constexpr std::string_view kCutId = "=~";

std::string encode_id(std::string_view id) {
  std::string out;
  // "_" and "." separate the parts of a name. What an address keeps of other characters, a file name can hold.
  for (char c : id_part(id)) {
    if (c == '_') out += "=5F";
    else if (c == '.') out += "=2E";
    else out += c;
  }
  return out;
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // One text per number.
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || std::to_string(value) != text)
    return std::nullopt;
  return value;
}

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/// Of ASCII letters, digits and `others`.
bool consists_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || others.find(c) != others.npos; });
}

std::optional<std::string> flags_of(std::string_view text) {
  if (text.size() > kMostFlags || !std::all_of(text.begin(), text.end(), is_letter)) return std::nullopt;
  std::string flags(text);
  std::sort(flags.begin(), flags.end());
  flags.erase(std::unique(flags.begin(), flags.end()), flags.end());
  return flags;
}

}  // namespace

std::string MaildirName::unique() const {
  return std::to_string(seconds) + "." + id + "_" + std::to_string(updated) + "." + domain;
}

std::string MaildirName::text() const { return flags ? unique() + ":2," + *flags : unique(); }

std::string maildir_id(std::string_view id) {
  std::string whole = encode_id(id);
  if (whole.size() <= kLongestId) return whole;
  std::string kept = encode_id(id.substr(0, kKeptId)).substr(0, kKeptId);
  return kept + std::string(kCutId) + ContentHash::of(id).hex().substr(0, 32);
}

std::optional<std::string> record_id(std::string_view maildir_id) { return decode_part(maildir_id); }

MaildirName maildir_name(std::string_view id, WallTime created, WallTime updated, std::string_view domain) {
  return {std::max<std::int64_t>(created.seconds(), 0),
          maildir_id(id),
          std::max<std::int64_t>(updated.nanoseconds / 1000, 0),
          std::string(domain.substr(0, kLongestNameDomain)),
          {}};
}

std::optional<MaildirName> parse_maildir_name(std::string_view name) {
  MaildirName parsed;
  if (const auto colon = name.find(':'); colon != name.npos) {
    const std::string_view info = name.substr(colon + 1);
    if (!info.starts_with("2,")) return std::nullopt;
    parsed.flags = flags_of(info.substr(2));
    if (!parsed.flags) return std::nullopt;
    name = name.substr(0, colon);
  }
  const auto first = name.find('.');
  const auto middle = name.find('_', std::min(first, name.size()));
  const auto last = name.find('.', std::min(middle, name.size()));
  if (last == name.npos) return std::nullopt;
  const auto seconds = number(name.substr(0, first));
  const auto updated = number(name.substr(middle + 1, last - middle - 1));
  parsed.id = name.substr(first + 1, middle - first - 1);
  parsed.domain = name.substr(last + 1);
  const bool is_ours = seconds && updated && !parsed.id.empty() && !parsed.domain.empty() &&
                       parsed.domain.size() <= kLongestNameDomain && consists_of(parsed.id, "-=~") &&
                       consists_of(parsed.domain, "-.");
  if (!is_ours) return std::nullopt;
  parsed.seconds = *seconds;
  parsed.updated = *updated;
  return parsed;
}

}  // namespace playfs::mail
