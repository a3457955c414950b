// Records between the API's JSON and the store's text. Pure functions.
//
// The declared fields are stored once, as the compact text they are printed in, so that reading a record or a page
// is copying. They are accepted flat or under `data`, and printed flat.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/json.h"
#include "service/collections.h"
#include "service/store.h"

namespace playfs::service {

/// The declared fields in a request's body: its members and those of its `data` in one object (where both name a
/// field, the flat one counts). Members named as a system field are left out, so that a client may send back a
/// whole record that it read. Fails with invalid_argument where the body, or `data`, is no object.
Result<JsonObject> declared_fields(const Json& body);

/// `base` with the members of `changes` in place of its own, new ones at the end.
JsonObject merge(const JsonObject& base, const JsonObject& changes);

/// The record that one with these fields belongs to, as the store is told; empty for none. Whether there is such a
/// record does not matter; only what is far too long for an id is left out.
std::string belonging(const Collection& collection, const JsonObject& fields);

/// The record as the API shows it.
void print_record(const StoredRecord& record, std::string& out);

/// The length of a record as print_record prints it, known before it has an id.
std::size_t printed_size(std::string_view fields);

std::string print_cursor(Position position);
/// nullopt for anything that print_cursor did not print.
std::optional<Position> parse_cursor(std::string_view text);

}  // namespace playfs::service
