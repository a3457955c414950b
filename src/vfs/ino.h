// The inode numbers that stat shows: equal for equal paths in every mount, and different in different trees (tar and
// find take two names with one number for hard links or loops). Pure functions.
//
// Numbers have 64 bits over all paths of a mount: among a million paths, two collide with a probability of one in ten
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

/// For a name in a directory: FNV-1a over the name, seeded with the directory's number.
constexpr std::uint64_t ino_below(std::uint64_t directory, std::string_view name) {
  std::uint64_t hash = spread(directory) ^ 0xcbf29ce484222325;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return spread(hash);
}

/// For a letter of a folder: increases with the letter's time, since mail readers open letters in the order of their
/// inode numbers and work longer if a reply comes before its parent. The name's hash distinguishes letters of the same
/// millisecond.
constexpr std::uint64_t ino_by_time(std::uint64_t folder, std::string_view unique, std::int64_t microseconds) {
  constexpr int kOfHash = 21;  // and one bit, so that it is never 0
  return static_cast<std::uint64_t>(microseconds > 0 ? microseconds / 1000 : 0) << (kOfHash + 1) |
         ino_below(folder, unique) >> (64 - kOfHash) << 1 | 1;
}

/// For an inode of a work tree, whose own numbers start at 1 in every project. `salt` is the root's number.
constexpr std::uint64_t ino_in_work(std::uint64_t salt, std::uint64_t ino) { return spread(salt ^ spread(ino)); }

}  // namespace playfs::vfs
