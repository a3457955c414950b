// Settings. A flag overrides PLAYFS_* in the environment, which overrides the user's config.toml, which overrides the
// system's.
//
//   agent = "ada"                       # for every service
//   refresh = 30
//   [sites."https://example.org"]       # for one service: overrides the lines above in the same file
//   agent = "ada-at-work"
//   cafile = "/etc/ssl/work.pem"
//
// Values are stored as text; each is checked against its kind when it is set, whatever its source. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/instructions.h"
#include "runtime/io.h"
#include "runtime/places.h"

namespace playfs::runtime {

enum class SettingKind { text, path, seconds, size, flag, instructions };

struct SettingName {
  std::string_view name;      ///< in config.toml and after -o
  std::string_view variable;  ///< in the environment
  SettingKind kind;
};

/// All settings.
std::span<const SettingName> setting_names();

class Settings {
 public:
  /// Where a value comes from, strongest first.
  enum class Layer { flag, environment, user, system };

  struct Found {
    Layer layer;
    std::string value;
  };

  /// Errors: invalid_argument if `value` is not of the setting's kind. REQUIRES: `name` is one of setting_names().
  Status set(Layer layer, std::string_view name, std::string value, std::string_view for_site = {});

  /// The strongest value; within one layer, the site's overrides the general one.
  [[nodiscard]] std::optional<std::string> text(std::string_view name, std::string_view site = {}) const;
  /// The same, and where it comes from.
  [[nodiscard]] std::optional<Found> setting(std::string_view name, std::string_view site = {}) const;
  /// The general value in exactly this layer.
  [[nodiscard]] std::optional<std::string> text_of(Layer layer, std::string_view name) const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> seconds(std::string_view name,
                                                                 std::string_view site = {}) const;
  [[nodiscard]] std::optional<std::uint64_t> size(std::string_view name, std::string_view site = {}) const;
  [[nodiscard]] bool flag(std::string_view name, std::string_view site = {}) const;

 private:
  struct Key {
    Layer layer;
    std::string site;  ///< "" for all sites
    std::string name;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::string> values_;
};

/// Loads the environment and both files. Unknown names in a file only give `warnings`, since a newer playfs may know
/// them. A file that cannot be read or parsed is an error; a missing one is not.
Result<Settings> load_settings(const Io& io, const Places& places, std::vector<std::string>& warnings);

/// Which files that give instructions to agents are shown: as set, or else the author's own.
Instructions instructions_for(const Settings& settings, std::string_view site);

// Parsers of values, shared with -o.
/// "10", "0.5": seconds, from a millisecond to a year.
std::optional<std::chrono::milliseconds> parse_seconds(std::string_view text);
/// "512M", "2G", "1048576": bytes, with the suffixes K, M, G and T as powers of 1024.
std::optional<std::uint64_t> parse_size(std::string_view text);
/// 1/0, true/false, yes/no, on/off.
std::optional<bool> parse_flag(std::string_view text);

}  // namespace playfs::runtime
