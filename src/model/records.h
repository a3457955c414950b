// The records that playfs understands, as values. `raw` is the whole record as it arrived, for what is not modelled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/ids.h"
#include "model/json.h"
#include "model/manifest.h"

namespace playfs {

/// A record of any collection: the system fields, and the declared fields whether they came flat or under `data`.
struct Record {
  std::string id;
  std::string created_at;  ///< as sent
  std::string updated_at;  ///< as sent
  std::string status;
  JsonObject fields;  ///< the declared fields, unknown ones included
};

struct Project {
  ProjectId id;
  std::string name;            ///< empty where the record has none
  RevisionId latest_revision;  ///< empty for a project without a revision
  WallTime created_at;
  Record raw;
};

struct Revision {
  RevisionId id;
  ProjectId project;
  std::vector<RevisionId> parents;
  std::string agent;
  std::string message;
  Manifest manifest;
  Json state;           ///< null where absent
  WallTime created_at;  ///< the epoch where the record has none
  JsonObject extra;     ///< declared fields that are not modelled here
};

struct FileChunk {
  ChunkId id;
  std::string hash_claim;  ///< `hash` as published
  std::string content;     ///< text, before any decoding
};

/// What is sent to create a revision. The service adds the id and the times.
struct RevisionDraft {
  ProjectId project;
  std::vector<RevisionId> parents;
  std::string agent;
  std::string message;
  Manifest manifest;
  Json state;
  JsonObject extra;
};

/// What is sent to create a file_chunks record.
struct ChunkDraft {
  RevisionId revision;  ///< `rev`: the base the change was made on; may be empty
  std::string path;
  std::uint64_t sequence = 0;
  ContentHash hash;  ///< SHA-256 of `content`
  std::string content;
};

/// The largest record the service keeps, in bytes of its JSON.
inline constexpr std::size_t kMaxRecordSize = 16 * 1024;

}  // namespace playfs
