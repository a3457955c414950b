// Reads an id of whatever JSON type the service uses. Pure; internal to this module.
#pragma once

#include <optional>
#include <string>

#include "model/ids.h"
#include "model/json.h"

namespace playfs::wire {

/// A non-empty string, or an integer as its text; nullopt for anything else or beyond kMaxIdLength.
inline std::optional<std::string> read_id(const Json& json) {
  std::string text;
  if (auto* string = json.string()) text = *string;
  else if (json.number() && json.integer()) text = json.number()->text;
  if (text.empty() || text.size() > kMaxIdLength) return std::nullopt;
  return text;
}

}  // namespace playfs::wire
