#include "mail/letter.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "mail/address.h"
#include "mail/gmime_library.h"
#include "mail/header_text.h"
#include "model/kinds.h"
#include "model/mentions.h"

namespace playfs::mail {

namespace {

constexpr std::size_t kLongestLine = 998;  // RFC 5322
constexpr std::size_t kLongestName = 100;  // bytes of a display name; the address has all of the handle
/// References name the oldest ancestor and the latest ones: a conversation may be ten thousand deep.
constexpr std::size_t kLatestReferences = 20;

/// The value as it is written. It has no line breaks but those before folded lines.
void add_raw_header(GMimeObject* object, const char* name, const std::string& value) {
  g_mime_object_append_header(object, name, "", nullptr);
  GMimeHeaderList* headers = g_mime_object_get_header_list(object);
  GMimeHeader* header = g_mime_header_list_get_header_at(headers, g_mime_header_list_get_count(headers) - 1);
  g_mime_header_set_raw_value(header, (" " + value + "\n").c_str());
}

/// Breaks lines where words end. Encoded words get a line each.
std::string folded(std::string_view words, std::size_t used) {
  constexpr std::size_t kWidth = 76;
  std::string out;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (!out.empty() && used + 1 + word.size() > kWidth) {
      out += "\n ";
      used = 1;
    } else if (!out.empty()) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return out;
}

void add_text_header(GMimeObject* object, const char* name, const std::string& text) {
  add_raw_header(object, name, folded(header_words(shown(one_line(text))), std::string_view(name).size() + 2));
}

std::string message_id(const std::string& id, const Letter& letter) {
  return "<" + id_part(id) + "@" + letter.domain + ">";
}

/// Each ancestor in a line.
std::string references_of(const Letter& letter) {
  std::vector<std::string> ids = letter.references;
  if (!letter.in_reply_to.empty() && (ids.empty() || ids.back() != letter.in_reply_to))
    ids.push_back(letter.in_reply_to);
  if (ids.size() > kLatestReferences + 1) ids.erase(ids.begin() + 1, ids.end() - kLatestReferences);
  std::string out;
  for (const std::string& id : ids) out += (out.empty() ? "" : "\n ") + message_id(id, letter);
  return out;
}

std::string mentions_of(const Letter& letter) {
  std::string out;
  for (std::size_t i = 0; i < std::min(letter.mentions.size(), kMaxMentions); ++i)
    out += (out.empty() ? "" : ",\n ") + handle_part(letter.mentions[i]);
  return out;
}

std::string name_of(const std::string& handle) {
  std::string name = shown(one_line(handle));
  // `notmuch show` decodes names twice: a handle could bring an encoded word of its own.
  for (auto at = name.find("=?"); at != name.npos; at = name.find("=?", at)) name.replace(at, 1, "\\x3d");
  if (name.size() > kLongestName) {
    std::size_t end = kLongestName;
    while ((static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
    name = std::string(trim(std::string_view(name).substr(0, end))) + "\u2026";
  }
  return name.empty() ? "(no name)" : name;
}

/// A display name: quoted if needed, or as encoded words.
std::string phrase_of(const std::string& name) {
  const std::string words = header_words(name);
  if (words != name) return words;
  const bool is_atoms = std::all_of(name.begin(), name.end(), [](char c) {
    return c == ' ' || c == '-' || c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  });
  if (is_atoms) return name;
  std::string quoted = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

void add_addresses(GMimeObject* object, const Letter& letter) {
  const std::string from = phrase_of(name_of(letter.from)) + " <" + address_of(letter) + ">";
  add_raw_header(object, "From", folded(from, std::string_view("From: ").size()));
  const bool is_mail = letter.collection == "domain_mail";
  if (is_mail || is_thread_kind(letter.kind))
    add_raw_header(object, "To", (is_mail ? std::string(kSteward) : letter.kind) + "@" + letter.domain);
}

std::string text_of(const Letter& letter) {
  std::string text = shown(readable(letter.body));
  if (!letter.owner_reply.empty())
    text += "\n\n" + std::string(kAnswerMark) + "\n\n" + shown(readable(letter.owner_reply));
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

/// Whether the text can stand in a mail as it is: short lines, and nothing that a terminal would interpret.
bool is_plain_text(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t line = std::min(rest.find('\n'), rest.size());
    if (line > kLongestLine) return false;
    rest.remove_prefix(std::min(line + 1, rest.size()));
  }
  return escape_for_terminal(text, true) == text;
}

GMimeContentEncoding encoding_of(std::string_view text) {
  if (is_plain_text(text)) return GMIME_CONTENT_ENCODING_8BIT;
  // GMime's quoted-printable takes "\r\n" for the end of a line: a patch would lose the "\r".
  return text.find('\r') == text.npos ? GMIME_CONTENT_ENCODING_QUOTEDPRINTABLE : GMIME_CONTENT_ENCODING_BASE64;
}

void add_text(GMimeMessage* message, const std::string& text) {
  const Ref<GMimePart> part(g_mime_part_new_with_type("text", "plain"));
  g_mime_object_set_content_type_parameter(GMIME_OBJECT(part.get()), "charset", "utf-8");
  const Ref<GMimeStream> stream(g_mime_stream_mem_new_with_buffer(text.data(), text.size()));
  const Ref<GMimeDataWrapper> content(
      g_mime_data_wrapper_new_with_stream(stream.get(), GMIME_CONTENT_ENCODING_DEFAULT));
  g_mime_part_set_content(part.get(), content.get());
  g_mime_part_set_content_encoding(part.get(), encoding_of(text));
  g_mime_message_set_mime_part(message, GMIME_OBJECT(part.get()));
}

}  // namespace

std::string address_of(const Letter& letter) { return handle_part(letter.from) + "@" + letter.domain; }

std::string to_rfc5322(const Letter& letter) {
  set_up_gmime();
  const Ref<GMimeMessage> message(g_mime_message_new(FALSE));
  GMimeObject* object = GMIME_OBJECT(message.get());
  add_addresses(object, letter);
  add_text_header(object, "Subject", letter.subject);
  if (GDateTime* date = g_date_time_new_from_unix_utc(letter.date.seconds())) {
    g_mime_message_set_date(message.get(), date);
    g_date_time_unref(date);
  }
  add_raw_header(object, "Message-ID", message_id(letter.id, letter));
  if (!letter.in_reply_to.empty()) add_raw_header(object, "In-Reply-To", message_id(letter.in_reply_to, letter));
  if (const std::string references = references_of(letter); !references.empty())
    add_raw_header(object, "References", references);
  add_text_header(object, "X-Playfs-Collection", letter.collection);
  if (!letter.thread.empty()) add_raw_header(object, "X-Playfs-Thread", id_part(letter.thread));
  if (!letter.kind.empty()) add_text_header(object, "X-Playfs-Kind", letter.kind);
  if (!letter.mentions.empty()) add_raw_header(object, "X-Playfs-Mentions", mentions_of(letter));
  if (!letter.state.empty()) add_text_header(object, "X-Playfs-State", letter.state);
  if (letter.updated != letter.date) add_raw_header(object, "X-Playfs-Updated", format_iso8601(letter.updated));
  if (!letter.owner_reply.empty()) add_raw_header(object, "X-Playfs-Answered", "yes");
  add_text(message.get(), text_of(letter));

  const Ref<GMimeStream> out(g_mime_stream_mem_new());
  g_mime_object_write_to_stream(object, nullptr, out.get());
  const GByteArray* bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(out.get()));
  return std::string(reinterpret_cast<const char*>(bytes->data), bytes->len);
}

}  // namespace playfs::mail
