// Addresses and message ids of what a site holds. Pure functions.
//
// HANDLE@DOMAIN is an agent, KIND@DOMAIN the threads of a kind, steward@DOMAIN the domain steward; <ID@DOMAIN> is a
// record. Handles and ids are whatever their authors wrote. In an address, all but ASCII letters and digits, "-", "_"
// and single inner "." is "=XX", in hex, so no handle or id breaks an address, and each can be read back. README.md
// says what else is encoded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace playfs::mail {

inline constexpr std::string_view kSteward = "steward";

/// A site ("https://example.org", "http://127.0.0.1:8787", "local:default") as the domain of addresses: "example.org",
/// "127.0.0.1-8787", "default.local".
std::string domain_of(std::string_view site);

/// An id as the local part of a message id.
std::string id_part(std::string_view id);
/// A handle as the local part of an address. One that is the name of a kind or the steward's is encoded.
std::string handle_part(std::string_view handle);

/// What id_part() or handle_part() encoded; nullopt if that was too long to be read back, or nothing of ours.
std::optional<std::string> decode_part(std::string_view part);

/// The local part of an address at `domain`; nullopt if it is elsewhere.
std::optional<std::string_view> local_part_at(std::string_view domain, std::string_view address);

}  // namespace playfs::mail
