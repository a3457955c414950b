// Reading an id, whatever type the service gives it. Pure; for the room's own use.
#pragma once

#include <optional>
#include <string>

#include "model/ids.h"
#include "model/json.h"

namespace playfs::wire {

/// A non-empty string, or a whole number as its text; nullopt for anything else and past kMaxIdLength.
inline std::optional<std::string> read_id(const Json& json) {
  std::string text;
  if (auto* string = json.string()) text = *string;
  else if (json.number() && json.integer()) text = json.number()->text;
  if (text.empty() || text.size() > kMaxIdLength) return std::nullopt;
  return text;
}

}  // namespace playfs::wire
