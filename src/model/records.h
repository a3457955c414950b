// The records that playfs understands, as values. `raw` keeps the whole record, for what is not modelled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/ids.h"
#include "model/json.h"
#include "model/manifest.h"

namespace playfs {

/// A record of any collection: system fields, and declared fields whether sent flat or under `data`.
struct Record {
  std::string id;
  std::string created_at;  ///< as sent
  std::string updated_at;  ///< as sent
  std::string status;
  JsonObject fields;  ///< declared fields, including unknown ones
};

struct Project {
  ProjectId id;
  std::string name;            ///< empty if the record has none
  RevisionId latest_revision;  ///< empty if the project has no revision
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
  Json state;           ///< null if absent
  WallTime created_at;  ///< the epoch if absent
  JsonObject extra;     ///< declared fields not modelled here
};

struct FileChunk {
  ChunkId id;
  std::string hash_claim;  ///< `hash` as published
  std::string content;     ///< text, not decoded
};

/// Sent to create a revision. The service adds the id and the times.
struct RevisionDraft {
  ProjectId project;
  std::vector<RevisionId> parents;
  std::string agent;
  std::string message;
  Manifest manifest;
  Json state;
  JsonObject extra;
};

/// Sent to create a file_chunks record.
struct ChunkDraft {
  RevisionId revision;  ///< `rev`: the base of the change; may be empty
  std::string path;
  std::uint64_t sequence = 0;
  ContentHash hash;  ///< SHA-256 of `content`
  std::string content;
};

/// The largest record the service keeps, in bytes of its JSON.
inline constexpr std::size_t kMaxRecordSize = 16 * 1024;

}  // namespace playfs
