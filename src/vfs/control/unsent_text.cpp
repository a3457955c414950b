#include "vfs/control/unsent_text.h"

#include "base/fd.h"
#include "base/shell.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

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

}  // namespace

Unsent keep_unsent(const std::string& directory, const JournalledRequest& request, Error why) {
  const UnsentText unsent = unsent_of(request);
  const std::string text = wire::to_pretty_text(unsent.body),
                    path = directory + "/" + request.steps.front().key + ".json";
  Status kept = make_private_directory(directory);
  if (kept) kept = write_file_atomically(path, text);
  const std::string look = "see whether it has arrived; else ";
  // Only what is refused here, before it is sent, has this code and says so.
  if (why.code == ErrorCode::already_exists) {
    why.message += kept ? "; its text is in " + path : "; its text is " + text;
  } else if (kept) {
    why.message += "; nobody knows whether it arrived, and its text is in " + path;
    why.hint = look + "send it, at the top of the mount: cat " + shell_word(path) + " > " + shell_word(unsent.path);
  } else {
    why.message += "; nobody knows whether it arrived, and its text is " + text;
    why.hint = look + "write it again";
  }
  return {std::move(why), kept.has_value()};
}

}  // namespace playfs::vfs
