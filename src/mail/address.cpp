#include "mail/address.h"

#include "base/text.h"
#include "model/content_hash.h"
#include "model/kinds.h"

namespace playfs::mail {

namespace {

/// Room for every id that playfs accepts, all of it encoded, in a line that RFC 5322 allows.
constexpr std::size_t kLongestPart = 600;
constexpr std::size_t kLongestDomain = 200;
/// A longer text is cut after this many bytes, and continues with its hash after a mark that no encoding has.
constexpr std::size_t kKept = 60;
constexpr std::string_view kCut = "=~";

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

void append_encoded(std::string& out, char c) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out += '=';
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

std::string encode(std::string_view text) {
  if (text.empty()) return "=";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_inner_dot = c == '.' && i > 0 && i + 1 < text.size() && text[i - 1] != '.';
    if (is_alphanumeric(c) || c == '-' || c == '_' || is_inner_dot) out += c;
    else append_encoded(out, c);
  }
  return out;
}

std::string bounded(std::string_view text) {
  if (text.size() <= kLongestPart) {
    std::string whole = encode(text);
    if (whole.size() <= kLongestPart) return whole;
  }
  return encode(text.substr(0, kKept)) + std::string(kCut) + ContentHash::of(text).hex().substr(0, 32);
}

}  // namespace

std::string domain_of(std::string_view site) {
  std::string_view rest = site;
  bool is_local = false;
  for (std::string_view scheme : {"https://", "http://"})
    if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
  if (rest.starts_with("local:")) {
    rest.remove_prefix(6);
    is_local = true;
  }
  // Each label begins and ends with a letter or digit.
  std::string domain;
  for (char c : rest.substr(0, kLongestDomain)) {
    if (is_alphanumeric(c)) domain += c;
    else if (!domain.empty() && is_alphanumeric(domain.back())) domain += c == '.' ? '.' : '-';
  }
  while (!domain.empty() && !is_alphanumeric(domain.back())) domain.pop_back();
  if (is_local || domain.empty()) domain += domain.empty() ? "local" : ".local";
  return to_lower(domain);
}

std::string id_part(std::string_view id) { return bounded(id); }

std::string handle_part(std::string_view handle) {
  const std::string lower = to_lower(handle);
  if (lower != kSteward && !is_thread_kind(lower)) return bounded(handle);
  std::string part;
  append_encoded(part, handle[0]);
  return part.append(handle.substr(1));
}

std::optional<std::string> decode_part(std::string_view part) {
  if (part.empty()) return std::nullopt;
  if (part == "=") return std::string();
  std::string out;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] != '=') {
      out += part[i];
      continue;
    }
    auto byte = from_hex(part.substr(i + 1, 2));
    if (!byte || byte->size() != 1) return std::nullopt;
    out += *byte;
    i += 2;
  }
  return out;
}

std::optional<std::string_view> local_part_at(std::string_view domain, std::string_view address) {
  const auto at = address.rfind('@');
  if (at == address.npos || !equals_ignoring_case(address.substr(at + 1), domain)) return std::nullopt;
  return address.substr(0, at);
}

}  // namespace playfs::mail
