// Converts records between the API's JSON and the store's text. Pure functions.
//
// The declared fields are stored once, as the compact text they are printed in, so that reading a record or a page is
// copying. They are accepted flat or under `data`, and printed flat.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/json.h"
#include "service/collections.h"
#include "service/store.h"
#include "service/target.h"

namespace playfs::service {

/// The declared fields in a request body: its members merged with those of its `data` (flat ones win). Members named
/// like a system field are dropped, so that a client can send back a whole record that it read.
/// Errors: invalid_argument if the body, or `data`, is not an object.
Result<JsonObject> declared_fields(const Json& body);

/// `base` with the members of `changes` replacing its own; new ones at the end.
JsonObject merge(const JsonObject& base, const JsonObject& changes);

/// The id of the parent that `fields` name, for the store's index; empty for none. The parent need not exist; only a
/// reference far too long for an id is dropped.
std::string belonging(const Collection& collection, const JsonObject& fields);

/// Appends the record as the API shows it. Of a hidden one, only what the service itself says.
void print_record(const StoredRecord& record, std::string& out);

/// The length that print_record will print, known before the record has an id.
std::size_t printed_size(std::string_view fields);

std::string print_cursor(Position position);
/// nullopt for anything that print_cursor did not print.
std::optional<Position> parse_cursor(std::string_view text);

/// Where a list begins: after the cursor in the request, otherwise with the newest record. Errors: invalid_argument.
Result<Position> page_start(const Target& target);

}  // namespace playfs::service
