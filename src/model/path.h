// Paths of files inside a project, checked once when they arrive.
//
// A TreePath is relative, non-empty, made of valid components joined by '/'. Everything else that the service may
// send for a path is refused with a reason and never reaches the kernel. Plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace playfs {

inline constexpr std::size_t kMaxComponentLength = 255;  // bytes, as NAME_MAX
inline constexpr std::size_t kMaxPathLength = 4095;      // bytes, as PATH_MAX without its NUL

/// Why a name cannot be one component of a path, in words for a person; nullopt where it can. Refused: empty, "."
/// and "..", '/' or NUL inside, more than 255 bytes, invalid UTF-8, `.playfs`, and what git or another version-control
/// system takes for its folder (`.git`, `git~1` or `.hg` in any case, with trailing dots, a stream suffix, …).
std::optional<std::string> why_not_a_component(std::string_view name);

class TreePath {
 public:
  /// nullopt where the text is no valid path; `why` then says the reason.
  static std::optional<TreePath> parse(std::string_view text, std::string* why = nullptr);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::string_view name() const;                     ///< the last component
  [[nodiscard]] std::vector<std::string_view> components() const;  ///< views into this path
  auto operator<=>(const TreePath&) const = default;

 private:
  explicit TreePath(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace playfs
