#include "model/tree.h"

namespace playfs {

namespace {

/// Splits off the first component; `path` is empty after the last one.
std::string_view take_component(std::string_view& path) {
  auto slash = path.find('/');
  std::string_view name = path.substr(0, slash);
  path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  return name;
}

}  // namespace

const Tree::Directory* Tree::Directory::directory(std::string_view name) const {
  auto found = children.find(name);
  if (found == children.end()) return nullptr;
  auto* directory = std::get_if<std::unique_ptr<Directory>>(&found->second);
  return directory ? directory->get() : nullptr;
}

const FileEntry* Tree::Directory::file(std::string_view name) const {
  auto found = children.find(name);
  if (found == children.end()) return nullptr;
  auto* file = std::get_if<const FileEntry*>(&found->second);
  return file ? *file : nullptr;
}

Tree::Tree(Manifest manifest) : manifest_(std::move(manifest)) {
  for (const auto& [path, entry] : manifest_.files) {
    Directory* directory = &root_;
    std::string_view rest = path;
    std::string_view name = take_component(rest);
    for (; !rest.empty(); name = take_component(rest)) {
      Child& child = directory->children[std::string(name)];
      if (!std::holds_alternative<std::unique_ptr<Directory>>(child)) child = std::make_unique<Directory>();
      directory = std::get<std::unique_ptr<Directory>>(child).get();
    }
    directory->children.emplace(name, &entry);
  }
}

const Tree::Directory* Tree::directory_at(std::string_view path) const {
  const Directory* directory = &root_;
  while (directory && !path.empty()) directory = directory->directory(take_component(path));
  return directory;
}

const FileEntry* Tree::file_at(std::string_view path) const {
  auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return root_.file(path);
  const Directory* directory = directory_at(path.substr(0, slash));
  return directory ? directory->file(path.substr(slash + 1)) : nullptr;
}

}  // namespace playfs
