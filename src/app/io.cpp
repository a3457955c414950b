#include "app/io.h"

#include <filesystem>

namespace playfs::app {

std::optional<std::string> Io::variable(std::string_view name) const {
  auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::string Io::absolute(std::string_view path) const {
  auto normal = (std::filesystem::path(directory) / path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

}  // namespace playfs::app
