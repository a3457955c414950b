#include "vfs/control/handles.h"

#include <algorithm>

#include "base/shell.h"
#include "vfs/attempt_fetches.h"
#include "vfs/mount.h"
#include "vfs/published/list_fetches.h"

namespace playfs::vfs {

Async<void> check_handle_is_free(Mount& mount, OperationPtr op, std::string handle, std::string own) {
  if (handle.empty()) co_return Status();
  PLAYFS_AWAIT(const ListPtr list, repeat([&] { return list_here(mount, op, "agents"); }));
  const bool is_taken =
      std::any_of(list->begin(), list->end(), [&](const auto& each) { return each.name == handle && each.id != own; });
  if (!is_taken) co_return Status();
  co_return fail(ErrorCode::already_exists, "there is an agent \"" + handle + "\" already; nothing was sent",
                 "if it is yours, change it by writing JSON to agents/" + handle + ".json; else choose another handle");
}

Error not_registered(const std::string& handle, bool is_sure) {
  if (!is_sure)
    return {ErrorCode::not_found,
            "not all agents are listed, so nobody can tell which of them has the handle \"" + handle + "\"",
            "use the agent's id"};
  return {ErrorCode::not_found, "nobody has registered the handle \"" + handle + "\"",
          "playfs agent register " + shell_operand(handle) + ", or write the handle to agents/new"};
}

}  // namespace playfs::vfs
