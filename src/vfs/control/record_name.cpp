#include "vfs/control/record_name.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "content/names.h"
#include "model/for_me.h"
#include "vfs/link_names.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

/// Before it is asked again.
constexpr std::array<std::chrono::seconds, 2> kPauses{std::chrono::seconds(1), std::chrono::seconds(2)};

std::string what_became_of_it(const Record& now, const std::string& name) {
  if (is_hidden(now)) return "is hidden by now, so nobody is shown what it is called";
  if (name.empty()) return "has a name by now that cannot be shown";
  return "is called \"" + name + "\" by now: others have renamed it";
}

/// Whether the same link stands for both names: whoever writes the path means either.
bool is_same_link(const std::string& collection, const std::string& one, const std::string& other) {
  if (collection != "threads" && collection != "spaces") return false;
  const std::string link = link_name(one);
  return !link.empty() && link == link_name(other);
}

/// Whether the record was addressed by this name of it.
bool is_meant(Mount& mount, const Addressed& addressed, const std::string& name) {
  return mount.own_renames().lead(addressed.collection, addressed.id, addressed.name, name) ||
         is_same_link(addressed.collection, addressed.name, name);
}

/// The version of the record that the list has.
std::optional<content::Listed> known_of(Mount& mount, const Addressed& addressed) {
  const auto list = mount.site().try_list(addressed.collection);
  if (!list) return std::nullopt;
  const auto known =
      std::find_if(list->begin(), list->end(), [&](const auto& each) { return each.id == addressed.id; });
  return known == list->end() ? std::nullopt : std::optional(*known);
}

/// Whether the service's answer comes from a replica that lags.
bool is_earlier(const Record& now, const content::Listed& known) {
  const auto changed = parse_iso8601(now.updated_at);
  return changed && *changed < known.updated_at;
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

Status check_name(Mount& mount, const Addressed& addressed, const Record& now, bool is_in_doubt) {
  const std::string name = content::name_carried(addressed.collection, now);
  if (is_meant(mount, addressed, name)) return {};
  const auto known = known_of(mount, addressed);
  if (known && is_earlier(now, *known) && is_meant(mount, addressed, known->name)) return {};
  const std::string so_far = is_in_doubt ? "it was not sent again" : "nothing was sent";
  const std::string first = is_in_doubt ? "see whether it has arrived; if it has not, and" : "if";
  return fail(ErrorCode::stale,
              "what was called \"" + addressed.name + "\" (" + addressed.id + ") " + what_became_of_it(now, name) +
                  "; " + so_far,
              first + " you mean it, write to " + addressed.by_id + "; else see what has the name now");
}

namespace {

struct NameQuestion {
  Addressed addressed;
  bool is_in_doubt;
  CancelToken cancel;
  Callback<void> done;
  std::size_t times = 0;  ///< that it was asked
};
using NameQuestionPtr = std::shared_ptr<NameQuestion>;

bool may_be_lagging(Mount& mount, const Addressed& addressed, const Result<Record>& now) {
  if (!now) return now.error().code == ErrorCode::not_found;
  const auto known = known_of(mount, addressed);
  return known && is_earlier(*now, *known);
}

void ask_name(Mount& mount, const NameQuestionPtr& question);

void answer_name(Mount& mount, const NameQuestionPtr& question, Result<Record> now) {
  const Addressed& addressed = question->addressed;
  if (question->times < kPauses.size() && may_be_lagging(mount, addressed, now))
    return mount.later(kPauses.at(question->times++), [&mount, question] { ask_name(mount, question); });
  if (!now) return question->done(fail(std::move(now).error().while_doing("see what " + addressed.id + " is called")));
  Status is_it = check_name(mount, addressed, *now, question->is_in_doubt);
  // The old name leads there no more.
  if (!is_it) mount.site().relearn(addressed.collection, *now);
  question->done(std::move(is_it));
}

void ask_name(Mount& mount, const NameQuestionPtr& question) {
  // A plain GET of one small record: a conditional one would need its ETag kept, and save some hundred bytes.
  auto asked = [&mount, question](Result<Record> now) mutable {
    // Not on this thread: the client's threads carry all responses.
    mount.executor().post(
        [&mount, question, now = std::move(now)]() mutable { answer_name(mount, question, std::move(now)); });
  };
  // In its turn: what is sent next waits for the service's pauses, too.
  mount.site().client().get_record(question->addressed.collection, question->addressed.id, question->cancel,
                                   std::move(asked));
}

}  // namespace

void ask_name(Mount& mount, Addressed addressed, bool is_in_doubt, const CancelToken& cancel, Callback<void> done) {
  ask_name(mount,
           std::make_shared<NameQuestion>(NameQuestion{std::move(addressed), is_in_doubt, cancel, std::move(done)}));
}

}  // namespace playfs::vfs
