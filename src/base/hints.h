// What to do next about an error: its own hint, or else what helps against errors of its kind. Pure functions.
#pragma once

#include <string_view>

#include "base/result.h"

namespace playfs {

/// What helps against errors of this kind: one line, no trailing full stop; a command to type, where there is one.
std::string_view usual_hint(ErrorCode code);

/// The error's own hint, or else the usual one. Never empty.
inline std::string_view hint_of(const Error& error) {
  return error.hint.empty() ? usual_hint(error.code) : std::string_view(error.hint);
}

}  // namespace playfs
