// Converts messages and mail records to the letters that mail programs read (mail/letter.h). Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "content/site.h"
#include "mail/letter.h"

namespace playfs::vfs {

/// The fields of a message or mail record that a letter needs.
content::Reduced letter_of_record(Record record);

/// The surroundings of a record that its letter depends on.
struct LetterContext {
  std::string collection;  ///< "messages" or "domain_mail"
  std::string domain;      ///< of the site
  std::string subject;     ///< of a message: its thread's title
  std::string kind;        ///< of a message: its thread's
};
/// A thread's title as the subject of its letters: one line of bounded length. `thread`: from letter_of_record().
std::string subject_of(const Record& thread);
/// `record`: from letter_of_record(). `ancestors`: messages of its own thread, oldest first; it answers the last one.
/// Messages of other threads must not be among them, whatever a record says: mail readers would join the two threads.
mail::Letter letter(const Record& record, const LetterContext& context, std::vector<std::string> ancestors);
/// The message that the record says it answers; empty: none.
std::string parent_of(const Record& record);

/// The most ancestors that a letter names: a conversation may be ten thousand deep.
inline constexpr std::size_t kMostAncestors = 20;

/// The `messages` of one thread, from letter_of_record(), as an mbox. It only grows: a new message appends to the text,
/// as long as no earlier message changed.
std::string thread_mbox(std::span<const content::RecordPartPtr> messages, const LetterContext& context);

}  // namespace playfs::vfs
