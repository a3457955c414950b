// Reads fields of JSON documents that playfs itself wrote, where a missing field is not an error. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/json.h"

namespace playfs::app {

/// The object in a file of at most 16 MiB.
Result<JsonObject> read_json_object(const std::string& path);

/// "" if there is no such text.
std::string text_of(const JsonObject& fields, std::string_view name);
/// 0 if there is no such number.
std::uint64_t number_of(const JsonObject& fields, std::string_view name);
/// nullptr if there is none.
const Json::Array* array_of(const JsonObject& fields, std::string_view name);
const JsonObject* object_of(const JsonObject& fields, std::string_view name);

}  // namespace playfs::app
