// The environment of every command. For one thread; everything referred to outlives the command.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/config.h"
#include "app/io.h"
#include "app/output.h"
#include "app/places.h"
#include "app/source.h"
#include "app/tree_origin.h"
#include "app/world.h"
#include "base/result.h"

namespace playfs::app {

struct Context {
  Io& io;
  Output& out;
  Places places;
  Settings settings;

  /// The service for a command without a mount: --site, else that of the mount or exported tree around the working
  /// directory, else PLAYFS_SITE or the configuration, else the embedded playground.
  [[nodiscard]] Result<Source> source() const;
  [[nodiscard]] Result<Source> source(const std::string& text) const;
  /// The service that a tree was exported from.
  [[nodiscard]] Result<Source> source(const TreeOrigin& origin) const;
  [[nodiscard]] Result<std::unique_ptr<World>> open_world() const;

  /// The author of writes to this service: --agent, PLAYFS_AGENT or the configuration; else the login name.
  [[nodiscard]] std::string agent(const std::string& site) const;
};

}  // namespace playfs::app
