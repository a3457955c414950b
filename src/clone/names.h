// Paths below a clone's root, taken apart and put together. Pure.
#pragma once

#include <string>

namespace playfs::clone {

/// "a" and "b" are "a/b"; in the root, "b".
inline std::string joined(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

/// "" for a name in the root.
inline std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

inline std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace playfs::clone
