// Names of files in a Maildir: SECONDS.ID_UPDATED.SITE:2,FLAGS. Plain values and pure functions.
//
// An edited message has another UPDATED and so another name, as mail readers expect of another content. Ids are
// encoded, all but ASCII letters, digits and "-" as "=XX"; one that leaves a name too long is cut and hashed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace playfs::mail {

struct MaildirName {
  std::int64_t seconds = 0;  ///< when it was created
  std::string id;            ///< as in the name, encoded: maildir_id()
  std::int64_t updated = 0;  ///< microseconds
  std::string domain;
  std::optional<std::string> flags;  ///< in ASCII order, each once; absent: a new mail

  /// The part that stays when flags change.
  [[nodiscard]] std::string unique() const;
  [[nodiscard]] std::string text() const;
  bool operator==(const MaildirName&) const = default;
};

/// REQUIRES: `domain` is domain_of() a site.
MaildirName maildir_name(std::string_view id, WallTime created, WallTime updated, std::string_view domain);

/// An id as names have it.
std::string maildir_id(std::string_view id);
/// The id that maildir_id() encoded; nullopt if it was cut.
std::optional<std::string> record_id(std::string_view maildir_id);

/// Parses a name, in which a mail reader may have changed the flags, in any order. nullopt if it is not one of ours.
std::optional<MaildirName> parse_maildir_name(std::string_view name);

}  // namespace playfs::mail
