// Settings: a flag wins over PLAYFS_* in the environment, over the user's config.toml, over the system's.
//
//   agent = "ada"                       # of every service
//   refresh = 30
//   [sites."https://example.org"]       # of one service: wins over the lines above in the same file
//   agent = "ada-at-work"
//   cafile = "/etc/ssl/work.pem"
//
// Values are kept as text and checked by kind as they come in, wherever they come from. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/io.h"
#include "app/places.h"
#include "base/result.h"

namespace playfs::app {

enum class SettingKind { text, path, seconds, size, flag };

struct SettingName {
  std::string_view name;      ///< in config.toml and after -o
  std::string_view variable;  ///< in the environment
  SettingKind kind;
};

/// All settings that there are.
std::span<const SettingName> setting_names();

class Settings {
 public:
  /// Where a value came from, strongest first.
  enum class Layer { flag, environment, user, system };

  /// Fails with invalid_argument where `value` is not of the setting's kind. REQUIRES: a name of setting_names().
  Status set(Layer layer, std::string_view name, std::string value, std::string_view for_site = {});

  /// The strongest value; within one layer that of the site wins over the general one.
  [[nodiscard]] std::optional<std::string> text(std::string_view name, std::string_view site = {}) const;
  /// The value that exactly this layer gives for every site.
  [[nodiscard]] std::optional<std::string> text_of(Layer layer, std::string_view name) const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> seconds(std::string_view name,
                                                                 std::string_view site = {}) const;
  [[nodiscard]] std::optional<std::uint64_t> size(std::string_view name, std::string_view site = {}) const;
  [[nodiscard]] bool flag(std::string_view name, std::string_view site = {}) const;

 private:
  struct Key {
    Layer layer;
    std::string site;  ///< "" is every site
    std::string name;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::string> values_;
};

/// The environment and both files. Names in a file that mean nothing are told in `warnings`: a newer playfs may know
/// them. A file that cannot be read or parsed is an error; one that does not exist is none.
Result<Settings> load_settings(const Io& io, const Places& places, std::vector<std::string>& warnings);

// The forms of values, shared with -o.
/// "10", "0.5": seconds, at least a millisecond, at most a year.
std::optional<std::chrono::milliseconds> parse_seconds(std::string_view text);
/// "512M", "2G", "1048576": bytes, with the suffixes K, M, G and T of 1024.
std::optional<std::uint64_t> parse_size(std::string_view text);
/// 1/0, true/false, yes/no, on/off.
std::optional<bool> parse_flag(std::string_view text);

}  // namespace playfs::app
