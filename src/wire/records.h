// Records between JSON and values: lenient in what is read, strict in what is sent. Pure functions.
//
// Reading tolerates all that the service's document leaves open: declared fields flat or under `data`, a record
// bare or wrapped as {"record": …}, system fields in snake_case or camelCase, and unknown fields anywhere, which
// are kept. Where a field comes both flat and under `data`, the flat one wins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/json.h"
#include "model/records.h"

namespace playfs::wire {

/// A record, bare or wrapped. Fails with `protocol` where there is no usable id.
Result<Record> decode_record(const Json& json);
/// As the service prints it: system fields and declared fields flat. decode_record reads it back; declared fields
/// that bear the name of a system field go under `data` for that.
Json encode_record(const Record& record);

struct RecordPage {
  std::vector<Record> records;  ///< newest first
  std::string next_cursor;      ///< empty on the last page
  std::size_t unreadable = 0;   ///< entries that were no record, left out
};
/// Fails with `protocol` where it is no list of records; a single bad record is only counted.
Result<RecordPage> decode_page(const Json& json);

/// Anyone may PATCH a project: a `latest_revision` that is no id counts as none.
Result<Project> decode_project(Record record);
/// Fails with `refused_input` without a manifest that can be read; parents that are no ids are left out.
Result<Revision> decode_revision(Record record);
/// Fails with `refused_input` without content.
Result<FileChunk> decode_chunk(Record record);

/// The bodies of POST requests.
Json encode_revision_draft(const RevisionDraft& draft);
Json encode_chunk_draft(const ChunkDraft& draft);

/// One entry of `manifest.files`; nullopt where it is nothing that playfs can read, with the reason in `why`.
/// A field written in another way than playfs writes it is kept in `extra` too, so that encode_file_entry gives back
/// what came for as long as the field keeps its value.
std::optional<FileEntry> decode_file_entry(const Json& json, std::string* why = nullptr);
Json encode_file_entry(const FileEntry& entry);
/// What cannot be read is refused entry by entry. The whole fails, with `refused_input`, where it is no object, where
/// `files` is none, or where either names a member twice.
Result<Manifest> decode_manifest(const Json& json);
/// With the refused entries as they came: encode_manifest(decode_manifest(x)) equals x (where x has `files`).
Json encode_manifest(const Manifest& manifest);

/// The service's error object, whatever of it is there, for a response with this status. `retry_after_header` is a
/// number of seconds. Waits are at most a day. 5xx are `unreachable` (504 `timed_out`): the same request may succeed
/// later.
Error decode_error(int http_status, std::string_view body, std::optional<std::string_view> retry_after_header);

}  // namespace playfs::wire
