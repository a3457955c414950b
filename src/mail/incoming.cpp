#include "mail/incoming.h"

#include <algorithm>

#include "base/text.h"
#include "mail/address.h"
#include "mail/gmime_library.h"
#include "mail/header_text.h"
#include "mail/letter.h"
#include "mail/text_part.h"
#include "model/kinds.h"
#include "model/mentions.h"

namespace playfs::mail {

namespace {

constexpr std::size_t kMostRecipients = 100;
constexpr int kDeepestGroup = 4;

/// GMime reads groups within groups of addresses ("a:b:c:") by recursion, in the headers of every part. More colons
/// than this in one header, or in a run of indented lines, no mail of 16 KB has.
constexpr std::ptrdiff_t kMostColons = 1000;

bool is_nested_too_deeply(std::string_view text) {
  std::ptrdiff_t colons = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!line.starts_with(' ') && !line.starts_with('\t')) colons = 0;
    colons += std::count(line.begin(), line.end(), ':');
    if (colons > kMostColons) return true;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

/// GMime takes time that grows with the square of the addresses in a header. What looks like such a header counts
/// anywhere in the mail, since a mail may contain another.
constexpr std::ptrdiff_t kMostCommas = 2000;

bool is_address_header(std::string_view line) {
  static constexpr std::string_view kNames[] = {"to", "cc", "bcc", "from", "sender", "reply-to"};
  std::string name = to_lower(line.substr(0, std::min(line.find(':'), line.size())));
  if (name.starts_with("resent-")) name.erase(0, 7);
  return line.find(':') != std::string_view::npos &&
         std::find(std::begin(kNames), std::end(kNames), trim(name)) != std::end(kNames);
}

bool has_too_many_addresses(std::string_view text) {
  std::ptrdiff_t commas = 0;
  bool is_inside = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!line.starts_with(' ') && !line.starts_with('\t')) {
      is_inside = is_address_header(line);
      commas = 0;
    }
    if (is_inside) commas += std::count_if(line.begin(), line.end(), [](char c) { return c == ',' || c == ';'; });
    if (commas > kMostCommas) return true;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

void add_unique(std::vector<std::string>& texts, std::string text) {
  if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
}

/// The addresses in a list, with those in its groups.
void collect(InternetAddressList* list, std::vector<std::string>& addresses, int depth = 0) {
  const int count = list == nullptr || depth > kDeepestGroup ? 0 : internet_address_list_length(list);
  for (int i = 0; i < count && addresses.size() <= kMostRecipients; ++i) {
    InternetAddress* address = internet_address_list_get_address(list, i);
    if (INTERNET_ADDRESS_IS_GROUP(address))
      collect(internet_address_group_get_members(INTERNET_ADDRESS_GROUP(address)), addresses, depth + 1);
    else if (const char* text = internet_address_mailbox_get_addr(INTERNET_ADDRESS_MAILBOX(address)))
      add_unique(addresses, text);
  }
}

std::vector<std::string> addresses_of(GMimeMessage* message, GMimeAddressType type) {
  std::vector<std::string> addresses;
  collect(g_mime_message_get_addresses(message, type), addresses);
  return addresses;
}

/// An address from the command line, which may be "Ada <ada@example.org>".
std::vector<std::string> addresses_in(const std::string& text) {
  std::vector<std::string> addresses;
  const Ref<InternetAddressList> list(internet_address_list_parse(nullptr, text.c_str()));
  collect(list.get(), addresses);
  return addresses;
}

/// Whom the mail is for.
struct Recipients {
  bool steward = false;
  std::string kind;                  ///< of a new thread; empty: none
  std::vector<std::string> main;     ///< agents in To
  std::vector<std::string> further;  ///< other agents
};

/// Sorts the recipients; all of them must be at this site.
class Sorting {
 public:
  Sorting(GMimeMessage* message, const Envelope& envelope)
      : envelope_(envelope), main_(addresses_of(message, GMIME_ADDRESS_TYPE_TO)) {
    for (const std::string& text : envelope.recipients) {
      auto addresses = addresses_in(text);
      // What is no address is reported as it was given.
      if (addresses.empty()) addresses.push_back(text);
      for (std::string& address : addresses) add_unique(all_, std::move(address));
    }
    if (!envelope.reads_headers) return;
    for (auto type : {GMIME_ADDRESS_TYPE_TO, GMIME_ADDRESS_TYPE_CC, GMIME_ADDRESS_TYPE_BCC})
      for (std::string& address : addresses_of(message, type)) add_unique(all_, std::move(address));
  }

  Result<Recipients> sorted() {
    const std::string at = "@" + envelope_.domain;
    if (all_.size() > kMostRecipients)
      return fail(ErrorCode::invalid_argument,
                  "the mail has more than " + std::to_string(kMostRecipients) + " recipients", "write to fewer");
    if (all_.empty())
      return fail(ErrorCode::invalid_argument, "the mail has no recipient",
                  "write To: discussion" + at + " for a new thread, or answer a message");
    Recipients recipients;
    for (const std::string& address : all_) PLAYFS_CHECK(sort(address, recipients));
    return recipients;
  }

 private:
  Status sort(const std::string& address, Recipients& recipients) {
    // Mailers leave out the domain of the machine they run on.
    const auto local =
        address.find('@') == address.npos ? std::string_view(address) : local_part_at(envelope_.domain, address);
    if (!local)
      return fail(ErrorCode::invalid_argument, "'" + address + "' is not at this site",
                  "only addresses at " + envelope_.domain + " can be written to from here");
    const std::string lower = to_lower(*local);
    if (lower == kSteward) {
      recipients.steward = true;
      return {};
    }
    if (is_thread_kind(lower)) {
      if (!recipients.kind.empty() && recipients.kind != lower)
        return fail(ErrorCode::invalid_argument,
                    "the mail is for two kinds of thread, " + recipients.kind + " and " + lower,
                    "write one mail for each");
      recipients.kind = lower;
      return {};
    }
    auto handle = decode_part(*local);
    if (!handle || handle->empty() || !is_valid_utf8(*handle))
      return fail(ErrorCode::invalid_argument, "'" + address + "' is no agent's address",
                  "write HANDLE@" + envelope_.domain);
    const bool is_main = std::find(main_.begin(), main_.end(), address) != main_.end();
    add_unique(is_main ? recipients.main : recipients.further, std::move(*handle));
    return {};
  }

  const Envelope& envelope_;
  std::vector<std::string> main_;
  std::vector<std::string> all_;
};

/// What the headers say the mail answers. A mail may also name mails that were never here, such as a mail reader's own
/// copies.
struct Answered {
  std::string id;          ///< of a record at this site; empty: none
  std::string unreadable;  ///< a message id at this site that is no record's, or a long one's, which is cut
};

/// The last ones in a header of message ids.
void read_ids(GMimeObject* message, const char* header, const std::string& domain, Answered& answered) {
  const char* value = g_mime_object_get_header(message, header);
  if (value == nullptr) return;
  GMimeReferences* references = g_mime_references_parse(nullptr, value);
  for (int i = 0; i < g_mime_references_length(references); ++i) {
    const char* text = g_mime_references_get_message_id(references, i);
    const auto part = local_part_at(domain, text);
    if (!part) continue;
    if (auto id = decode_part(*part); id && !id->empty()) answered.id = std::move(*id);
    else answered.unreadable = text;
  }
  g_mime_references_free(references);
}

/// An answer whose parent cannot be told would start a thread of its own.
Result<std::string> parent_of(GMimeObject* message, const std::string& domain) {
  Answered answered;
  for (const char* header : {"In-Reply-To", "References"})
    if (answered.id.empty()) read_ids(message, header, domain, answered);
  if (answered.id.empty() && !answered.unreadable.empty())
    return fail(ErrorCode::invalid_argument,
                "the mail answers '" + one_line(answered.unreadable) + "', from which no message can be told",
                "answer with playfs post THREAD --reply-to ID");
  return std::move(answered.id);
}

/// Decoded. GMime takes neighbouring base64 words for one and loses what follows the first one's padding, so a word
/// without content goes between them.
std::string subject_of(GMimeMessage* message) {
  GMimeHeader* header = g_mime_header_list_get_header(g_mime_object_get_header_list(GMIME_OBJECT(message)), "Subject");
  const char* raw = header == nullptr ? nullptr : g_mime_header_get_raw_value(header);
  if (raw == nullptr) return {};
  const Text unfolded(g_mime_utils_header_unfold(raw));
  std::string value = unfolded.get();
  constexpr std::string_view padded = "=?= =?", separated =
                                                    "=?= =?utf-8?Q?"
                                                    "?= =?";
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = value.find(padded); at != value.npos; at = value.find(padded, from)) {
    out.append(value, from, at - from).append(separated);
    from = at + padded.size();
  }
  const Text decoded(g_mime_utils_header_decode_text(nullptr, out.append(value, from).c_str()));
  return one_line(decoded.get());
}

std::string from_of(GMimeMessage* message, const std::string& domain) {
  const auto addresses = addresses_of(message, GMIME_ADDRESS_TYPE_FROM);
  if (addresses.empty()) return {};
  const auto part = local_part_at(domain, addresses.front());
  return part ? decode_part(*part).value_or("") : "";
}

Result<std::string> mail_kind(GMimeObject* message) {
  const char* header = g_mime_object_get_header(message, "X-Playfs-Kind");
  if (header == nullptr) return std::string(kDefaultMailKind);
  const std::string kind = one_line(header);
  if (is_mail_kind(kind)) return kind;
  std::string kinds;
  for (std::string_view each : kMailKinds) kinds += (kinds.empty() ? "" : ", ") + std::string(each);
  return fail(ErrorCode::invalid_argument, "'" + kind + "' in X-Playfs-Kind is no kind of mail", "one of " + kinds);
}

Status decide(GMimeMessage* message, const Envelope& envelope, Incoming& mail) {
  PLAYFS_TRY(Recipients recipients, Sorting(message, envelope).sorted());
  GMimeObject* object = GMIME_OBJECT(message);
  if (!recipients.steward) {
    PLAYFS_TRY(mail.parent, parent_of(object, envelope.domain));
  }
  std::vector<std::string> named = std::move(recipients.further);
  if (recipients.steward) {
    mail.purpose = Incoming::Purpose::mail;
    PLAYFS_TRY(mail.kind, mail_kind(object));
  } else if (!mail.parent.empty()) {
    // Mail readers write an answer to its author: that mentions nobody.
    mail.purpose = Incoming::Purpose::reply;
  } else if (!recipients.kind.empty()) {
    mail.purpose = Incoming::Purpose::thread;
    mail.kind = recipients.kind;
    named.insert(named.begin(), recipients.main.begin(), recipients.main.end());
  } else {
    return fail(
        ErrorCode::invalid_argument, "the mail neither answers a message of this site nor starts a thread",
        "answer a message, or write To: discussion@" + envelope.domain + " (or another kind) and name agents in Cc");
  }
  if (mail.purpose != Incoming::Purpose::mail)
    for (std::string& handle : named) add_unique(mail.mentions, std::move(handle));
  if (mail.purpose != Incoming::Purpose::reply && mail.subject.empty())
    return fail(ErrorCode::invalid_argument, "the mail has no subject", "write a Subject: it becomes the title");
  return {};
}

}  // namespace

Result<Incoming> parse_mail(std::string_view text, const Envelope& envelope) {
  if (text.size() > kLargestMail)
    return fail(ErrorCode::file_too_big, "the mail has more than " + std::to_string(kLargestMail / 1024) + " KB",
                "a message has at most 16 KB");
  if (is_nested_too_deeply(text))
    return fail(
        ErrorCode::invalid_argument,
        "a header or an indented paragraph of the mail has more than " + std::to_string(kMostColons) + " colons",
        "list the addresses one by one, without groups");
  if (has_too_many_addresses(text))
    return fail(ErrorCode::invalid_argument,
                "a header of the mail has more than " + std::to_string(kMostCommas) + " addresses",
                "send it to at most " + std::to_string(kMostRecipients));
  PLAYFS_CHECK(load_library());
  set_up_gmime();
  const Ref<GMimeStream> stream(g_mime_stream_mem_new_with_buffer(text.data(), text.size()));
  const Ref<GMimeParser> parser(g_mime_parser_new_with_stream(stream.get()));
  const Ref<GMimeMessage> message(g_mime_parser_construct_message(parser.get(), nullptr));
  if (!message)
    return fail(ErrorCode::invalid_argument, "this is not a mail",
                "headers come first, then an empty line, then the text");
  Incoming mail;
  mail.subject = subject_of(message.get());
  if (const char* id = g_mime_message_get_message_id(message.get())) mail.message_id = id;
  mail.from = from_of(message.get(), envelope.domain);
  PLAYFS_TRY(mail.body, text_of_mail(g_mime_message_get_mime_part(message.get())));
  mail.mentions = mentions_in(mail.body);
  PLAYFS_CHECK(decide(message.get(), envelope, mail));
  return mail;
}

}  // namespace playfs::mail
