#include "app/written_text.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "app/ignored_signal.h"
#include "app/standard_input.h"
#include "base/fd.h"
#include "base/shell.h"
#include "base/text.h"

namespace playfs::app {

namespace {

/// The most that is read. No record holds as much, so a longer text is refused anyway.
constexpr std::size_t kLongestText = 1 << 20;
constexpr const char* kBlanks = " \t\r\n";
/// As in git. Lines that begin with "#" cannot mark comments, since Markdown uses them.
constexpr const char* kScissors = "# ------------------------ >8 ------------------------\n";

Error nothing_written() {
  return {ErrorCode::no_data, "there is no text: nothing was sent", "-m TEXT, or write it to stdin"};
}

Result<std::string> from_stdin(CommandContext& context) {
  std::string text = read_standard_input(context, "the text, which will be public", kLongestText);
  if (text.size() > kLongestText)
    return fail(ErrorCode::record_too_large, "the text from stdin is longer than any record: nothing was sent");
  return text;
}

std::string without_explanation(std::string text) {
  if (text.starts_with(kScissors)) return {};
  const std::size_t at = text.find("\n" + std::string(kScissors));
  return at == std::string::npos ? text : text.substr(0, at + 1);
}

/// nullopt without a terminal, or if no editor was chosen.
std::optional<std::string> editor_of(const runtime::Io& io) {
  if (!io.in_is_terminal) return std::nullopt;
  auto editor = io.variable("VISUAL");
  return editor ? editor : io.variable("EDITOR");
}

Result<std::string> new_file(const runtime::Io& io, const std::string& content) {
  std::string path = io.variable("TMPDIR").value_or("/tmp") + "/playfs-message-XXXXXX.md";
  UniqueFd file(mkstemps(path.data(), 3));
  if (!file) return fail(error_from_errno(errno, path));
  PLAYFS_CHECK(write_all(file.get(), content));
  return path;
}

/// Runs the editor as a shell would, since $EDITOR may have arguments.
Status run_editor(CommandContext& context, const std::string& editor, const std::string& path) {
  context.io.out.flush();
  // Ctrl-C is for the editor; it must not leave the file behind half written. The child does not inherit that.
  const pid_t child = fork();
  if (child < 0) return fail(error_from_errno(errno, "start the editor"));
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", (editor + " \"$1\"").c_str(), "sh", path.c_str(), nullptr);
    _exit(127);
  }
  const IgnoredSignal interrupt(SIGINT), quit(SIGQUIT);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fail(error_from_errno(errno, "wait for the editor"));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(ErrorCode::no_data, "the editor '" + editor + "' failed: nothing was sent", "-m TEXT");
  return {};
}

}  // namespace

Result<WrittenText> WrittenText::get(CommandContext& context, const std::optional<std::string>& given,
                                     const std::string& explanation) {
  WrittenText written;
  if (given) {
    written.text_ = *given;
  } else if (const auto editor = editor_of(context.io); !editor) {
    PLAYFS_TRY(written.text_, from_stdin(context));
  } else {
    PLAYFS_TRY(written.file_, new_file(context.io, "\n" + (kScissors + explanation)));
    Status edited = run_editor(context, *editor, written.file_);
    auto whole = read_file(written.file_, kLongestText);
    if (!whole) return fail(written.kept(std::move(whole).error()));
    written.text_ = without_explanation(std::move(*whole));
    if (!edited && !trim(written.text_, kBlanks).empty()) return fail(written.kept(std::move(edited).error()));
    if (!edited) written.discard();
    PLAYFS_CHECK(edited);
  }
  written.text_.erase(written.text_.find_last_not_of(kBlanks) + 1);
  if (written.text_.empty()) {
    written.discard();
    return fail(nothing_written());
  }
  if (!is_valid_utf8(written.text_))
    return fail(written.kept({ErrorCode::invalid_argument, "the text is not UTF-8: nothing was sent"}));
  return written;
}

void WrittenText::discard() {
  if (!file_.empty()) unlink(file_.c_str());
  file_.clear();
}

Error WrittenText::kept(Error error) const {
  if (!file_.empty()) error.message += "; your text is in " + shell_word(file_);
  return error;
}

}  // namespace playfs::app
