// The mboxrd format. A pure function.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace playfs::mail {

/// A mail as an entry of an mbox: a "From " line, the text with its lines ">…>From " quoted by one more ">", an empty
/// line. Entries one after the other are a mailbox. `from` is an address.
std::string to_mboxrd(std::string_view text, std::string_view from, WallTime date);

}  // namespace playfs::mail
