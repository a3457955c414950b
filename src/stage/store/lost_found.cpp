#include "stage/store/lost_found.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "stage/store/operations_log.h"

namespace playfs::stage {

void SpoolNames::add(const RowChange& change) {
  if (const auto* put = std::get_if<PutEntry>(&change)) add(put->row);
  if (const auto* put = std::get_if<PutInode>(&change); put && put->row.spool != 0)
    files_[put->row.spool] = put->row.ino;
}

void SpoolNames::add(const EntryRow& row) {
  if (row.ino != 0) names_[row.ino] = {row.parent, row.name};
}

void SpoolNames::add_log(const std::string& directory) {
  constexpr std::size_t most = std::size_t{1} << 32;
  std::vector<LogRecord> records;
  for (const char* file : OperationsLog::kFiles) {
    auto bytes = read_file(directory + file, most);
    if (!bytes) continue;
    for (LogRecord& record : OperationsLog::salvage(*bytes, std::nullopt)) records.push_back(std::move(record));
  }
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  for (const LogRecord& record : records) {
    std::string_view left = record.payload;
    for (auto change = decode(left); change; change = decode(left)) add(*change);
  }
}

std::string SpoolNames::list() const {
  std::string list;
  for (const auto& [number, ino] : files_) {
    std::string name = path_of(number);
    if (!name.empty()) list += "spool/" + std::to_string(number) + "\t" + escape_for_terminal(name) + "\n";
  }
  return list;
}

std::string SpoolNames::path_of(std::uint64_t spool) const {
  std::string name;
  std::size_t depth = 0;
  auto file = files_.find(spool);
  auto at = file == files_.end() ? names_.end() : names_.find(file->second);
  for (; at != names_.end() && depth < 1000; at = names_.find(at->second.first), ++depth)
    name = name.empty() ? at->second.second : at->second.second + "/" + name;
  return name;
}

Result<std::string> new_lost_folder(const std::string& directory, const std::string& label) {
  const std::string parent = directory + "/lost+found";
  PLAYFS_CHECK(make_private_directory(parent));
  for (int i = 1;; ++i) {
    std::string folder = parent + "/" + label + (i == 1 ? "" : "-" + std::to_string(i));
    if (mkdir(folder.c_str(), 0700) == 0) return folder;
    if (errno != EEXIST) return fail(error_from_errno(errno, "create " + folder));
  }
}

Status move_to(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT)
    return fail(error_from_errno(errno, "move " + from + " to " + to));
  return {};
}

Status copy_log(const std::string& directory, const std::string& folder) {
  constexpr std::size_t most = std::size_t{1} << 32;
  for (const char* file : OperationsLog::kFiles) {
    struct stat attributes {};
    if (lstat((directory + file).c_str(), &attributes) != 0) continue;
    PLAYFS_TRY(std::string bytes, read_file(directory + file, most));
    PLAYFS_CHECK(write_file_atomically(folder + file, bytes));
  }
  return {};
}

}  // namespace playfs::stage
