#include "vfs/control/record_name.h"

#include <algorithm>

#include "content/names.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

Status check_is_same(const std::string& now, const std::string& name, const std::string& id, const std::string& by_id) {
  if (now == name) return {};
  return fail(ErrorCode::stale,
              "what was called \"" + name + "\" (" + id + ") is called \"" + now +
                  "\" by now: others have renamed it; nothing was sent",
              "if you mean it, write to " + by_id + "; else see what has the name now");
}

}  // namespace

Async<Record> current_record(Mount& mount, std::string collection, std::string id) {
  auto ask = [&mount, collection, id](const CancelToken& cancel, Callback<Record> done) {
    mount.site().client().ask_now();
    mount.site().client().get_record(collection, id, cancel, std::move(done));
  };
  auto asked = answer<Record>(std::move(ask));
  co_return co_await asked;
}

Status check_name(const std::string& collection, const Record& record, const std::string& name,
                  const std::string& by_id) {
  return check_is_same(content::name_carried(collection, record), name, record.id, by_id);
}

Async<void> check_thread_is_called(Mount& mount, OperationPtr, std::string thread, std::string name) {
  const std::string by_id = "threads/" + thread + "/reply";
  if (const auto list = mount.site().is_list_told("threads") ? mount.site().try_list("threads") : nullptr) {
    const auto is_it = [&](const content::Listed& each) { return each.id == thread; };
    const auto known = std::find_if(list->begin(), list->end(), is_it);
    if (known != list->end()) co_return check_is_same(known->name, name, thread, by_id);
  }
  // A plain GET of one small record: a conditional one would need its ETag kept, and save some hundred bytes.
  auto asking = current_record(mount, "threads", thread);
  Result<Record> now = co_await asking;
  if (!now) co_return fail(std::move(now).error().while_doing("see what the thread is called"));
  Status is_it = check_name("threads", *now, name, by_id);
  if (!is_it) mount.site().relearn("threads", *now);  // the old name leads there no more
  co_return is_it;
}

}  // namespace playfs::vfs
