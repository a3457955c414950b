#include "model/memory.h"

#include <string>
#include <vector>

namespace playfs {
namespace {

/// The allocator's overhead per block, rounding included.
constexpr std::size_t kBlock = 16;
/// Links and colour of a node of std::map.
constexpr std::size_t kMapNode = 4 * sizeof(void*);

// What a value allocates, beyond its own size.

std::size_t block(std::size_t bytes) { return bytes == 0 ? 0 : bytes + kBlock; }

std::size_t beyond(const std::string& text) {
  static const std::size_t kInside = std::string().capacity();
  return text.capacity() <= kInside ? 0 : block(text.capacity() + 1);
}

template <class Tag>
std::size_t beyond(const std::vector<Id<Tag>>& ids) {
  std::size_t bytes = block(ids.capacity() * sizeof(Id<Tag>));
  for (const auto& id : ids) bytes += beyond(id.text());
  return bytes;
}

std::size_t beyond(const JsonObject& object);

std::size_t beyond(const Json& value) {
  if (auto* text = value.string()) return beyond(*text);
  if (auto* number = value.number()) return beyond(number->text);
  if (auto* object = value.object()) return beyond(*object);
  auto* array = value.array();
  if (!array) return 0;
  std::size_t bytes = block(array->capacity() * sizeof(Json));
  for (const Json& item : *array) bytes += beyond(item);
  return bytes;
}

std::size_t beyond(const JsonObject& object) {
  // Its capacity is not visible; members that were appended take at most twice their size.
  std::size_t bytes = block(2 * object.size() * sizeof(JsonMember));
  for (const auto& member : object) bytes += beyond(member.name) + beyond(member.value);
  return bytes;
}

std::size_t beyond(const FileEntry& entry) {
  return beyond(entry.hash_claim) + (entry.inline_text ? beyond(*entry.inline_text) : 0) + beyond(entry.chunks) +
         beyond(entry.extra);
}

std::size_t beyond(const Manifest& manifest) {
  std::size_t bytes = beyond(manifest.extra) + beyond(manifest.tx);
  for (const auto& [path, entry] : manifest.files)
    bytes += block(kMapNode + sizeof path + sizeof entry) + beyond(path) + beyond(entry);
  bytes += block(manifest.refused.capacity() * sizeof(RefusedEntry));
  for (const RefusedEntry& refused : manifest.refused)
    bytes += beyond(refused.path) + beyond(refused.reason) + beyond(refused.entry);
  if (manifest.continuation) bytes += beyond(manifest.continuation->entry);
  return bytes;
}

/// Directories nest as deep as a path may have components.
std::size_t beyond(const Tree::Directory& directory) {
  std::size_t bytes = 0;
  for (const auto& [name, child] : directory.children) {
    bytes += block(kMapNode + sizeof name + sizeof child) + beyond(name);
    if (auto* below = std::get_if<std::unique_ptr<Tree::Directory>>(&child))
      bytes += block(sizeof(Tree::Directory)) + beyond(**below);
  }
  return bytes;
}

}  // namespace

std::size_t memory_of(const Json& value) { return sizeof value + beyond(value); }

std::size_t memory_of(const JsonObject& object) { return sizeof object + beyond(object); }

std::size_t memory_of(const Record& record) {
  return sizeof record + beyond(record.id) + beyond(record.created_at) + beyond(record.updated_at) +
         beyond(record.status) + beyond(record.fields);
}

std::size_t memory_of(const RevisionTree& tree) {
  const Revision& revision = tree.revision;
  return sizeof tree + beyond(revision.id.text()) + beyond(revision.project.text()) + beyond(revision.parents) +
         beyond(revision.agent) + beyond(revision.message) + beyond(revision.state) + beyond(revision.extra) +
         beyond(tree.tree.manifest()) + beyond(tree.tree.root());
}

}  // namespace playfs
