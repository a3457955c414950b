// Converts records between JSON and values: lenient in reading, strict in writing. Pure functions.
//
// Reading accepts every variant that the service's documentation leaves open: declared fields flat or under `data`
// (flat wins), a record bare or wrapped as {"record": …}, system fields in snake_case or camelCase, and unknown fields
// anywhere, which are kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/json.h"
#include "model/records.h"

namespace playfs::wire {

/// A record, bare or wrapped. Fails with `protocol` if there is no usable id.
Result<Record> decode_record(const Json& json);
/// As the service prints it, with system and declared fields flat. Declared fields named like a system field go under
/// `data`, so that decode_record can read them back.
Json encode_record(const Record& record);

struct RecordPage {
  std::vector<Record> records;  ///< newest first
  std::string next_cursor;      ///< empty on the last page
  std::size_t unreadable = 0;   ///< entries that were not records, left out
};
/// Fails with `protocol` if this is not a list of records; single bad records are only counted.
Result<RecordPage> decode_page(const Json& json);

/// A `latest_revision` that is not an id counts as none, since anyone may PATCH a project.
Result<Project> decode_project(Record record);
/// Fails with `refused_input` without a readable manifest; parents that are not ids are left out.
Result<Revision> decode_revision(Record record);
/// Fails with `refused_input` without content.
Result<FileChunk> decode_chunk(Record record);

/// The bodies of POST requests.
Json encode_revision_draft(const RevisionDraft& draft);
Json encode_chunk_draft(const ChunkDraft& draft);

/// One entry of `manifest.files`; nullopt if unreadable, with the reason in `why`. A field spelled differently than
/// playfs would is also kept in `extra`, so that encode_file_entry reproduces it while the field keeps its value.
std::optional<FileEntry> decode_file_entry(const Json& json, std::string* why = nullptr);
Json encode_file_entry(const FileEntry& entry);
/// Refuses unreadable entries individually. Fails with `refused_input` if the manifest or its `files` is not an object,
/// or has a duplicate name.
Result<Manifest> decode_manifest(const Json& json);
/// Includes refused entries verbatim: encode_manifest(decode_manifest(x)) equals x (if x has `files`).
Json encode_manifest(const Manifest& manifest);

/// Decodes whatever the response has of the service's error object. `retry_after_header` is in seconds. Waits are
/// capped at one day. 5xx become `unreachable` (504: `timed_out`), since the same request may succeed later.
Error decode_error(int http_status, std::string_view body, std::optional<std::string_view> retry_after_header);

}  // namespace playfs::wire
