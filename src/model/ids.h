// Record ids, with one type per collection so that a project id cannot be passed as a revision id.
//
// The service does not define what an id looks like: it is an opaque, bounded string. Plain values.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <utility>

namespace playfs {

template <class Tag>
class Id {
 public:
  Id() = default;
  explicit Id(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  auto operator<=>(const Id&) const = default;

 private:
  std::string text_;
};

using ProjectId = Id<struct ProjectTag>;
using RevisionId = Id<struct RevisionTag>;
using ChunkId = Id<struct ChunkTag>;

/// The longest id accepted from a service, in bytes.
inline constexpr std::size_t kMaxIdLength = 200;

}  // namespace playfs

template <class Tag>
struct std::hash<playfs::Id<Tag>> {
  std::size_t operator()(const playfs::Id<Tag>& id) const { return std::hash<std::string>()(id.text()); }
};
