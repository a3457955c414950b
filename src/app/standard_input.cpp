#include "app/standard_input.h"

namespace playfs::app {

std::string read_standard_input(CommandContext& context, const std::string& what, std::size_t longest) {
  if (context.io.in_is_terminal)
    context.out.note("Type " + what + "; Ctrl-D on a line of its own ends it, Ctrl-C sends nothing.");
  std::string text(longest + 1, '\0');
  context.io.in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(context.io.in.gcount()));
  return text;
}

}  // namespace playfs::app
