// Records between JSON and values: lenient in what is read, strict in what is sent. Pure functions.
//
// Reading tolerates all that the service's document leaves open: declared fields flat or under `data`, a record
// bare or wrapped as {"record": …}, system fields in snake_case or camelCase, and unknown fields anywhere, which
// are kept.
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
/// As the service prints it: system fields and declared fields flat. decode_record reads it back.
Json encode_record(const Record& record);

struct RecordPage {
  std::vector<Record> records;  ///< newest first
  std::string next_cursor;      ///< empty on the last page
  std::size_t unreadable = 0;   ///< entries that were no record, left out
};
Result<RecordPage> decode_page(const Json& json);

Result<Project> decode_project(Record record);
Result<Revision> decode_revision(Record record);
Result<FileChunk> decode_chunk(Record record);

/// The bodies of POST requests.
Json encode_revision_draft(const RevisionDraft& draft);
Json encode_chunk_draft(const ChunkDraft& draft);

/// One entry of `manifest.files`; nullopt where it is nothing that playfs can read.
std::optional<FileEntry> decode_file_entry(const Json& json);
Json encode_file_entry(const FileEntry& entry);
/// What cannot be read is refused entry by entry; only a name given twice in `files` fails, with `refused_input`.
Result<Manifest> decode_manifest(const Json& json);
/// With the refused entries as they came.
Json encode_manifest(const Manifest& manifest);

/// The service's error object, whatever of it is there, for a response with this status.
Error decode_error(int http_status, std::string_view body, std::optional<std::string_view> retry_after_header);

}  // namespace playfs::wire
