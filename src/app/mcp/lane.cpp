#include "app/mcp/lane.h"

namespace playfs::app {

Lane::Lane(const CommandContext& from, const std::string& agent)
    : io_{nothing_,          out_stream_, notes_, from.io.clock, from.io.random, from.io.environment,
          from.io.directory, false,       false,  false},
      out_(io_, false),
      context_{io_, out_, from.places, from.settings} {
  if (!agent.empty()) static_cast<void>(context_.settings.set(runtime::Settings::Layer::flag, "agent", agent));
}

std::string Lane::taken(std::ostringstream& stream) {
  std::string text = stream.str();
  stream.str({});
  return text;
}

}  // namespace playfs::app
