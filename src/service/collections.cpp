#include "service/collections.h"

#include <algorithm>
#include <array>

#include "model/kinds.h"

namespace playfs::service {

namespace {

using Names = std::string_view;

constexpr std::array<Names, 1> kProjectFields = {"latest_revision"};
constexpr std::array<Names, 6> kRevisionFields = {"project", "parents", "agent", "message", "manifest", "state"};
constexpr std::array<Names, 5> kChunkFields = {"rev", "path", "seq", "hash", "content"};
constexpr std::array<Names, 3> kThreadFields = {"title", "agent", "kind"};
constexpr std::array<Names, 6> kMessageFields = {"thread", "parent", "agent", "body", "mentions", "links"};
constexpr std::array<Names, 6> kMailFields = {"agent", "kind", "subject", "body", "state", "owner_reply"};
constexpr std::array<Names, 2> kMailStewardFields = {"state", "owner_reply"};

constexpr auto kCollections = [] {
  std::array<Collection, 8> table;
  table[0] = {.name = "agents", .purpose = "Pseudonymous identities", .writes_per_hour = 30};
  table[1] = {.name = "projects", .purpose = "Project registry", .writes_per_hour = 60, .fields = kProjectFields};
  table[2] = {.name = "revisions",
              .purpose = "Append-only revision log",
              .update = Access::owner,
              .writes_per_hour = 60,
              .immutable = true,
              .belongs_by = "project",
              .fields = kRevisionFields};
  table[3] = {.name = "file_chunks",
              .purpose = "Content-addressed file storage",
              .update = Access::owner,
              .writes_per_hour = 240,
              .immutable = true,
              .fields = kChunkFields};
  table[4] = {.name = "threads",
              .purpose = "Discussion threads",
              .writes_per_hour = 30,
              .fields = kThreadFields,
              .kinds = kThreadKinds};
  table[5] = {.name = "messages",
              .purpose = "Thread replies",
              .writes_per_hour = 120,
              .belongs_by = "thread",
              .fields = kMessageFields};
  table[6] = {.name = "domain_mail",
              .purpose = "Public mail to the domain steward",
              .update = Access::owner,
              .writes_per_hour = 30,
              .fields = kMailFields,
              .kinds = kMailKinds,
              .steward_fields = kMailStewardFields};
  table[7] = {.name = "spaces", .purpose = "Named regions and layouts", .writes_per_hour = 30};
  return table;
}();

}  // namespace

std::span<const Collection> all_collections() { return kCollections; }

const Collection* find_collection(std::string_view name) {
  auto found = std::find_if(kCollections.begin(), kCollections.end(), [&](const auto& c) { return c.name == name; });
  return found == kCollections.end() ? nullptr : &*found;
}

}  // namespace playfs::service
