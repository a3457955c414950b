#include "stage/store/begun.h"

#include <charconv>

#include "base/fd.h"
#include "stage/store/identity.h"

namespace playfs::stage {

namespace {

/// "" if there is no mark.
std::string mark_of(const std::string& directory) {
  constexpr std::size_t most = 100;
  return read_file(directory + kBegun, most).value_or("");
}

Result<std::string> id_of(Tables& stored) {
  PLAYFS_TRY(Tables::LogState state, stored.log_state());
  return std::to_string(state.stage_id) + '\n';
}

}  // namespace

std::uint64_t identity_of_stage(const std::string& directory) {
  const std::string mark = mark_of(directory);
  std::uint64_t id = 0;
  std::from_chars(mark.data(), mark.data() + mark.size(), id);
  return id;
}

bool is_begun(const std::string& directory) { return !mark_of(directory).empty(); }

Status mark_begun(const std::string& directory, Tables& stored) {
  PLAYFS_TRY(std::string number, id_of(stored));
  if (mark_of(directory) == number) return {};
  PLAYFS_CHECK(stored.empty_log());
  PLAYFS_CHECK(sync_directory(directory));
  return write_file_atomically(directory + kBegun, number);
}

Status check_begun(const std::string& directory, Tables& stored) {
  const std::string mark = mark_of(directory);
  if (mark.empty()) return {};
  PLAYFS_TRY(std::string number, id_of(stored));
  PLAYFS_TRY(auto base, stored.value("base"));
  if (mark == number && base) return {};
  return fail(ErrorCode::corrupt, "stage.db does not hold the staged changes: it was replaced or emptied",
              "playfs doctor --repair");
}

}  // namespace playfs::stage
