// The text of a mail: its one part that people wrote. A pure function, internal to this module.
#pragma once

#include <string>

#include "base/result.h"
#include "mail/gmime_library.h"

namespace playfs::mail {

/// As UTF-8, with lines that end with "\n" and without empty lines at the end. A record holds one text, so there must
/// be exactly one plain text. It is chosen among alternatives; any further part is an error that names the part. `part`
/// may be null.
Result<std::string> text_of_mail(GMimeObject* part);

}  // namespace playfs::mail
