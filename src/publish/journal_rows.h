// The rows of the journal's database, each with a digest of its content: a page that was altered on disk can look like
// any other, so digests are checked whenever a row is read. Free functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sqlite.h"
#include "publish/journal.h"

namespace playfs::publish {

/// What read_publication() and read_upload() take.
inline constexpr const char* kColumns =
    "number, tx, agent, message, step, base, files_changed, key, body, revision, chunks, writes, ending, error_code, "
    "error_message, error_hint, merged, conflicts, may_merge, digest";
inline constexpr const char* kUploadColumns =
    "number, key, body, text_hash, text_size, chunk, path, revision, sequence, is_base64, text_offset, body_hash, "
    "digest, publication";

/// As a column holds them.
std::string joined(const std::vector<std::string>& paths);

std::string digest_of(const Publication& row);
/// Without the chunk, which is added later and is believed only through the row of `known_chunks`.
std::string digest_of(std::int64_t publication, const Upload& upload);
std::string digest_of_known(std::string_view text_hash, std::int64_t text_size, std::string_view chunk);
std::string digest_of_fact(std::string_view name, std::string_view value);

/// These fail with `corrupt` if the row does not match its digest.
Result<Publication> read_publication(const Statement& row);
Result<Upload> read_upload(const Statement& row);
Status check_fact(std::string_view name, std::string_view value, std::string_view digest);
/// Checks all rows except the known chunks, of which there may be a million: a damaged one counts as unknown when it is
/// looked up.
Status check_rows(Database& database);
/// For rows of versions that had no digests.
Status write_digests(Database& database);

}  // namespace playfs::publish
