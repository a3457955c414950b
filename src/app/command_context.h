// The environment of every command. For one thread; everything referred to outlives the command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/output.h"
#include "app/tree_origin.h"
#include "base/result.h"
#include "runtime/client_stack.h"
#include "runtime/config.h"
#include "runtime/io.h"
#include "runtime/places.h"
#include "runtime/source.h"

namespace playfs::app {

struct CommandContext {
  runtime::Io& io;
  Output& out;
  runtime::Places places;
  runtime::Settings settings;

  /// The service for a command without a mount: --site, else that of the mount or exported tree around the working
  /// directory, else PLAYFS_SITE or the configuration, else the embedded playground.
  [[nodiscard]] Result<runtime::Source> source() const;
  [[nodiscard]] Result<runtime::Source> source(const std::string& text) const;
  /// The service that a tree was exported from.
  [[nodiscard]] Result<runtime::Source> source(const TreeOrigin& origin) const;
  [[nodiscard]] Result<std::unique_ptr<runtime::ClientStack>> open_client_stack() const;

  /// The author of writes to this service, without a mount: PLAYFS_AGENT or the configuration, else the handle chosen
  /// at login, else the user's name (author.h). A command's own --agent is stronger.
  [[nodiscard]] std::string agent(const std::string& site) const;

  /// A command to type next, for the same service.
  [[nodiscard]] std::string next_command(std::vector<std::string> words) const;
};

}  // namespace playfs::app
