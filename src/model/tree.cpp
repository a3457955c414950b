#include "model/tree.h"

#include <iterator>

namespace playfs {

namespace {

/// Splits off the first component; `path` is empty after the last one.
std::string_view take_component(std::string_view& path) {
  auto slash = path.find('/');
  std::string_view name = path.substr(0, slash);
  path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  return name;
}

/// The child of that name, made if there is none. Manifests are sorted, so most often it is the last one or comes next.
Tree::Child& child_named(std::string_view name, Tree::Directory& directory) {
  auto& children = directory.children;
  if (!children.empty() && std::prev(children.end())->first == name) return std::prev(children.end())->second;
  return children.emplace_hint(children.end(), name, Tree::Child())->second;
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
      Child& child = child_named(name, *directory);
      if (!std::holds_alternative<std::unique_ptr<Directory>>(child)) child = std::make_unique<Directory>();
      directory = std::get<std::unique_ptr<Directory>>(child).get();
    }
    child_named(name, *directory) = &entry;
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
