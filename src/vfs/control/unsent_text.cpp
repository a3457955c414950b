#include "vfs/control/unsent_text.h"

#include "base/fd.h"
#include "base/shell.h"
#include "base/text.h"
#include "vfs/control/text_room.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

/// It is on the disk in another form: writing it again would send it twice.
constexpr const char* kStillThere = "nothing need be done: it is still in the journal, and the next mount ";

struct UnsentText {
  std::string path;  ///< of the control file
  JsonObject body;   ///< as it takes it
};

UnsentText unsent_of(const JournalledRequest& request) {
  const RequestStep& first = request.steps.front();
  UnsentText unsent{request.path, first.body};
  if (request.steps.size() > 1) {
    const JsonObject& message = request.steps.back().body;
    if (!first.made.empty()) unsent = {"threads/" + first.made + "/reply", message};
    else if (const Json* text = message.find("body")) unsent.body.set("body", *text);
  }
  if (request.steps.back().collection == "messages") unsent.body.erase("thread");  // the path says it
  return unsent;
}

/// Returns where it is. An equal text may be somebody else's, so only the one by which it was admitted will do.
Result<std::string> write_unsent(const std::string& directory, const std::string& name, const std::string& text,
                                 const std::optional<SavedText>& saved) {
  if (saved && is_saved_as(saved->path, saved->text)) return saved->path;
  const std::string unsent = unsent_directory_of(directory), path = unsent + "/" + name;
  PLAYFS_CHECK(make_private_directory(unsent));
  PLAYFS_CHECK(write_file_atomically(path, text));
  return path;
}

constexpr std::size_t kMostOfAgent = 100;  ///< bytes of a file's name

std::string file_name(const std::string& name, const std::string& agent) {
  return name + (agent.empty() ? "" : ".by-" + percent_encode(agent).substr(0, kMostOfAgent)) + ".txt";
}

/// What to type at the top of the mount.
std::string sending(const std::string& kept, const std::string& control_file) {
  return "at the top of the mount: cat " + shell_word(kept) + " > " + shell_word(control_file);
}

/// The same for a text of this agent, to which the file's mount adds who wrote it.
std::string sending_as(const std::string& agent, const JournalUser& reader, const std::string& kept,
                       const std::string& control_file) {
  if (agent.empty() || agent == reader.agent) return sending(kept, control_file);
  // DIR is to be replaced: as it stands, the command fails and sends nothing.
  return "in a mount that writes as '" + agent + "', as this one does not: " +
         shell_line({{"playfs", "mount"}, {reader.site, "DIR"}, {"-o", "agent=" + escape_for_mount(agent)}}) +
         " && cat " + shell_word(kept) + " > DIR/" + shell_word(control_file);
}

}  // namespace

bool is_refused_here(const Error& why) { return why.code == ErrorCode::already_exists || why.code == ErrorCode::stale; }

Unsent keep_unsent(const std::string& directory, const JournalledRequest& request,
                   const std::optional<SavedText>& saved, Error why) {
  const UnsentText unsent = unsent_of(request);
  const std::string text = wire::to_pretty_text(unsent.body);
  const auto path = write_unsent(directory, request.steps.front().key + ".json", text, saved);
  const std::string place = path ? "in " + *path : text;
  const bool is_refused = is_refused_here(why)
                              ? !request.may_have_arrived
                              : traits_of(why.code).reached == Reached::decision && !request.is_resumed;
  why.message += (is_refused ? "; its text is " : "; nobody knows whether it arrived, and its text is ") + place;
  if (!path) why.hint = std::string(kStillThere) + "tries to send it, or saves it";
  else if (!is_refused) why.hint = "see whether it has arrived; else send it, " + sending(*path, unsent.path);
  else if (why.code == ErrorCode::stale)
    why.hint = "if you mean it, send it by its id, " + sending(*path, unsent.path) + "; else see what has the name now";
  else if (why.hint.empty()) why.hint = "to send it again, " + sending(*path, unsent.path);
  return {std::move(why), path.has_value()};
}

Unsent keep_unsent_text(const std::string& directory, const std::string& name, const DraftEntry& draft,
                        const JournalUser& reader, const std::optional<SavedText>& saved, Error why) {
  const auto kept = write_unsent(directory, file_name(name, draft.agent), draft.text, saved);
  if (kept) {
    why.message += "; it is in " + *kept;
    const std::string how = sending_as(draft.agent, reader, *kept, draft.path);
    why.hint += (why.hint.empty() ? "" : "; then ") + ("send it, " + how);
  } else {
    why.message += "; its text could not be kept (" + kept.error().message + "): " + draft.text;
    why.hint = std::string(kStillThere) + "saves it";
  }
  return {std::move(why), kept.has_value()};
}

}  // namespace playfs::vfs
