// The inode numbers that stat shows: the same for the same path in every mount, of different trees different ones
// (tar and find take two names of one number for hard links or loops). Pure functions.
//
// 64 bits spread over all of a mount's paths: among a million paths two share a number with a chance of one in ten
// million.
#pragma once

#include <cstdint>
#include <string_view>

namespace playfs::vfs {

/// A bijection that spreads neighbours far apart (the finaliser of splitmix64).
constexpr std::uint64_t spread(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Of a name in a directory. FNV-1a over the name, begun with the directory's number.
constexpr std::uint64_t ino_below(std::uint64_t directory, std::string_view name) {
  std::uint64_t hash = spread(directory) ^ 0xcbf29ce484222325;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return spread(hash);
}

/// Of an inode of a work tree, whose own numbers start at 1 in every project. `salt` is the number of the tree's root.
constexpr std::uint64_t ino_in_work(std::uint64_t salt, std::uint64_t ino) { return spread(salt ^ spread(ino)); }

}  // namespace playfs::vfs
