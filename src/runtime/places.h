// Where playfs keeps its files, by the XDG base directory specification. Finding them creates nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/ids.h"
#include "runtime/io.h"

namespace playfs::runtime {

struct Places {
  std::string config;         ///< $XDG_CONFIG_HOME/playfs: config.toml, credentials.toml
  std::string cache;          ///< $XDG_CACHE_HOME/playfs: may be deleted at any time
  std::string state;          ///< $XDG_STATE_HOME/playfs: staged changes and journals; losing it loses work
  std::string data;           ///< $XDG_DATA_HOME/playfs: local playgrounds
  std::string system_config;  ///< /etc/playfs/config.toml

  /// The contents of published files, within the cache.
  [[nodiscard]] std::string cache_objects() const { return cache + "/objects"; }
  /// The state kept for one service. `site` is remote::Client::site().
  [[nodiscard]] std::string site_state(std::string_view site) const;
};

/// Ignores relative values of the XDG variables, as the specification requires. Without HOME, asks the user database.
Result<Places> find_places(const Io& io);

/// Maps any text to one safe path component, different texts to different ones: unchanged if short and plain, otherwise
/// a hash and a readable beginning.
std::string as_component(std::string_view text);

}  // namespace playfs::runtime
