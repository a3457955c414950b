// Where playfs keeps its files, by the XDG base directory specification. Finding them creates nothing.
#pragma once

#include <string>
#include <string_view>

#include "app/io.h"
#include "base/result.h"
#include "model/ids.h"

namespace playfs::app {

struct Places {
  std::string config;         ///< $XDG_CONFIG_HOME/playfs: config.toml, credentials.toml
  std::string cache;          ///< $XDG_CACHE_HOME/playfs: may be deleted at any time
  std::string state;          ///< $XDG_STATE_HOME/playfs: staged changes and journals; losing it loses work
  std::string data;           ///< $XDG_DATA_HOME/playfs: local playgrounds
  std::string system_config;  ///< /etc/playfs/config.toml

  /// Where the contents of published files are kept, within the cache.
  [[nodiscard]] std::string cache_objects() const { return cache + "/objects"; }
  /// Everything that is kept for one service. `site` is remote::Client::site().
  [[nodiscard]] std::string site_state(std::string_view site) const;
};

/// Relative values of the XDG variables are ignored, as the specification asks; without HOME the user database says
/// where home is.
Result<Places> find_places(const Io& io);

/// Any text as one safe component of a path, different for different texts: readable where it is short and plain,
/// otherwise a readable beginning and a hash.
std::string as_component(std::string_view text);

}  // namespace playfs::app
