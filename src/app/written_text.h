// The text of a message or mail: given by an option, else written in the user's editor if stdin is a
// terminal and an editor was chosen, else read from stdin.
//
// Blocking, for one thread. What was written in an editor stays in its file until it has been sent, so that a failed
// request does not cost somebody's work.
#pragma once

#include <optional>
#include <string>

#include "app/command_context.h"
#include "base/result.h"

namespace playfs::app {

class WrittenText {
 public:
  /// `explanation`: lines that the editor shows below the text. Without line breaks at the end. Fails with
  /// `invalid_argument` if the text is not UTF-8, with `no_data` if there is none.
  static Result<WrittenText> get(CommandContext& context, const std::optional<std::string>& given,
                                 const std::string& explanation);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// Removes the editor's file: the text was sent, or is not to be kept.
  void discard();
  /// Adds where the text is to the error of a request that did not send it.
  [[nodiscard]] Error kept(Error error) const;

 private:
  std::string text_;
  std::string file_;  ///< empty if no editor wrote it
};

}  // namespace playfs::app
