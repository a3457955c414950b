// Messages and mails as what mail programs read. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "content/site.h"
#include "mail/letter.h"

namespace playfs::vfs {

/// What a letter shows of a record, of a message or a mail.
content::Reduced letter_of_record(Record record);

/// Where a record stands.
struct LetterContext {
  std::string collection;  ///< "messages" or "domain_mail"
  std::string domain;      ///< of the site
  std::string subject;     ///< of a message: its thread's title
  std::string kind;        ///< of a message: its thread's
};
/// The title of a thread, of letter_of_record(), as its letters' subject: one line of bounded length.
std::string subject_of(const Record& thread);
/// `record` is of letter_of_record(). `ancestors`: messages of its thread, oldest first; it answers the last one.
/// Others are no ancestors, whatever a record says: mail readers would join the threads that name them.
mail::Letter letter(const Record& record, const LetterContext& context, std::vector<std::string> ancestors);
/// The message that the record says it answers; empty: none.
std::string parent_of(const Record& record);

/// The most ancestors that a letter names: a conversation may be ten thousand deep.
inline constexpr std::size_t kMostAncestors = 20;

/// `messages` of one thread, of letter_of_record(), as an mbox. It grows: of a longer thread the text is that of the
/// shorter one and more, as long as no message changed.
std::string thread_mbox(std::span<const content::RecordPartPtr> messages, const LetterContext& context);

}  // namespace playfs::vfs
