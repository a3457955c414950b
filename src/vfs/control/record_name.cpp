#include "vfs/control/record_name.h"

#include "content/names.h"
#include "model/for_me.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

std::string what_became_of_it(const Record& now, const std::string& name) {
  if (is_hidden(now)) return "is hidden by now, so nobody is shown what it is called";
  if (name.empty()) return "has a name by now that cannot be shown";
  return "is called \"" + name + "\" by now: others have renamed it";
}

}  // namespace

Addressed addressed_thread(const std::string& thread, const std::string& title) {
  return {"threads", thread, title, "threads/" + thread + "/reply"};
}

Async<Record> current_record(Mount& mount, std::string collection, std::string id) {
  auto ask = [&mount, collection, id](const CancelToken& cancel, Callback<Record> done) {
    mount.site().client().ask_now();
    mount.site().client().get_record(collection, id, cancel, std::move(done));
  };
  auto asked = answer<Record>(std::move(ask));
  co_return co_await asked;
}

Status check_name(const Addressed& addressed, const Record& now, bool is_in_doubt) {
  const std::string name = content::name_carried(addressed.collection, now);
  if (name == addressed.name) return {};
  const std::string so_far = is_in_doubt ? "it was not sent again" : "nothing was sent";
  const std::string first = is_in_doubt ? "see whether it has arrived; if it has not, and" : "if";
  return fail(ErrorCode::stale,
              "what was called \"" + addressed.name + "\" (" + addressed.id + ") " + what_became_of_it(now, name) +
                  "; " + so_far,
              first + " you mean it, write to " + addressed.by_id + "; else see what has the name now");
}

void ask_name(Mount& mount, Addressed addressed, bool is_in_doubt, const CancelToken& cancel, Callback<void> done) {
  // A plain GET of one small record: a conditional one would need its ETag kept, and save some hundred bytes.
  auto asked = [&mount, addressed, is_in_doubt, done = std::move(done)](Result<Record> now) mutable {
    if (!now) return done(fail(std::move(now).error().while_doing("see what " + addressed.id + " is called")));
    Status is_it = check_name(addressed, *now, is_in_doubt);
    if (is_it) return done({});
    // The old name leads there no more. Not on this thread: the client's threads carry all responses.
    auto learn = [&mount, addressed, now = std::move(*now), is_it = std::move(is_it),
                  done = std::move(done)]() mutable {
      mount.site().relearn(addressed.collection, now);
      done(std::move(is_it));
    };
    mount.executor().post(std::move(learn));
  };
  // In its turn: what is sent next waits for the service's pauses, too.
  mount.site().client().get_record(addressed.collection, addressed.id, cancel, std::move(asked));
}

}  // namespace playfs::vfs
