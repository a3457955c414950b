// Paths of files within a project, validated once on arrival.
//
// A TreePath is relative, non-empty and made of valid components joined by '/'. Any other path from the service is
// refused with a reason and never reaches the kernel. Plain values.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace playfs {

inline constexpr std::size_t kMaxComponentLength = 255;  // bytes, as NAME_MAX
inline constexpr std::size_t kMaxPathLength = 4095;      // bytes, as PATH_MAX without its NUL

/// Why a name cannot be a path component, human-readable; nullopt if it can. Refused: empty, "." and "..", '/' or NUL
/// inside, over 255 bytes, invalid UTF-8, `.playfs`, and what git or another version-control system takes for its
/// directory (`.git`, `git~1` or `.hg` in any case, with trailing dots, a stream suffix, …).
std::optional<std::string> why_not_a_component(std::string_view name);

class TreePath {
 public:
  /// nullopt if the text is not a valid path; `why` then gets the reason.
  static std::optional<TreePath> parse(std::string_view text, std::string* why = nullptr);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::string_view name() const;  ///< the last component
  auto operator<=>(const TreePath&) const = default;

 private:
  explicit TreePath(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

using PathSet = std::set<std::string, std::less<>>;

/// A path as it names something below a root, with "." for the root itself, which becomes ""; nullopt if it is none. It
/// may be one that no tree can hold.
std::optional<std::string> path_below_root(const std::string& text);

/// `top` is "" for the root.
bool is_at_or_below(std::string_view path, std::string_view top);
bool has_at_or_above(const PathSet& paths, const std::string& path);
bool has_at_or_below(const PathSet& paths, const std::string& top);

}  // namespace playfs
