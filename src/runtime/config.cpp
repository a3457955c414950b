#include "runtime/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <sstream>

#include <toml++/toml.h>

#include "base/fd.h"
#include "base/text.h"
#include "model/instructions.h"

namespace playfs::runtime {

namespace {

constexpr std::array kSettings{
    SettingName{"site", "PLAYFS_SITE", SettingKind::text},
    SettingName{"agent", "PLAYFS_AGENT", SettingKind::text},
    SettingName{"account_url", "PLAYFS_ACCOUNT_URL", SettingKind::text},
    SettingName{"base_path", "PLAYFS_BASE_PATH", SettingKind::text},
    SettingName{"cafile", "PLAYFS_CAFILE", SettingKind::path},
    SettingName{"refresh", "PLAYFS_REFRESH", SettingKind::seconds},
    SettingName{"cache_size", "PLAYFS_CACHE_SIZE", SettingKind::size},
    SettingName{"offline", "PLAYFS_OFFLINE", SettingKind::flag},
    SettingName{"noprefetch", "PLAYFS_NOPREFETCH", SettingKind::flag},
    SettingName{"instructions", "PLAYFS_INSTRUCTIONS", SettingKind::instructions},
};

const SettingName* find_name(std::string_view name) {
  auto found = std::find_if(kSettings.begin(), kSettings.end(), [&](const SettingName& s) { return s.name == name; });
  return found == kSettings.end() ? nullptr : &*found;
}

Status check_kind(const SettingName& setting, const std::string& value) {
  auto bad = [&](const char* wanted, const char* example) {
    return fail(ErrorCode::invalid_argument, std::string(setting.name) + "=" + value + ": not " + wanted,
                std::string(setting.name) + "=" + example);
  };
  switch (setting.kind) {
    case SettingKind::text:
      if (value.empty()) return bad("a text", "…");
      return {};
    case SettingKind::path:
      if (value.empty() || value.front() != '/') return bad("an absolute path", "/directory/file");
      return {};
    case SettingKind::seconds:
      if (!parse_seconds(value)) return bad("a number of seconds", "10");
      return {};
    case SettingKind::size:
      if (!parse_size(value)) return bad("a size in bytes", "2G");
      return {};
    case SettingKind::flag:
      if (!parse_flag(value)) return bad("yes or no", "yes");
      return {};
    case SettingKind::instructions:
      if (!parse_instructions(value)) return bad("show or hide", "hide");
      return {};
  }
  return {};
}

/// A TOML value as the text that -o would carry; nullopt for tables, arrays and dates.
std::optional<std::string> as_text(const toml::node& node) {
  if (auto text = node.value_exact<std::string>()) return *text;
  if (auto flag = node.value_exact<bool>()) return *flag ? "yes" : "no";
  if (auto whole = node.value_exact<std::int64_t>()) return std::to_string(*whole);
  if (auto number = node.value_exact<double>()) {
    std::ostringstream text;
    text << *number;
    return text.str();
  }
  return std::nullopt;
}

class FileLoader {
 public:
  FileLoader(Settings& settings, Settings::Layer layer, const std::string& path, std::vector<std::string>& warnings)
      : settings_(settings), layer_(layer), path_(path), warnings_(warnings) {}

  Status load() {
    auto content = read_file(path_, 1 << 20);
    if (!content) return content.error().code == ErrorCode::not_found ? Status{} : fail(content.error());
    auto document = parse(*content);
    if (!document) return fail(document.error());
    for (auto&& [key, node] : *document) {
      if (key.str() != "sites") {
        PLAYFS_CHECK(take(key.str(), node, ""));
      } else if (const toml::table* sites = node.as_table()) {
        PLAYFS_CHECK(take_sites(*sites));
      }
    }
    return {};
  }

 private:
  Result<toml::table> parse(const std::string& content) const {
    try {
      return toml::parse(content, path_);
    } catch (const toml::parse_error& error) {
      return fail(ErrorCode::invalid_argument, path_ + ", line " + std::to_string(error.source().begin.line) + ": " +
                                                   std::string(error.description()));
    }
  }

  Status take_sites(const toml::table& sites) {
    for (auto&& [site, table] : sites) {
      const toml::table* fields = table.as_table();
      if (fields == nullptr) {
        warnings_.push_back(path_ + ": sites." + std::string(site.str()) + " is not a table");
        continue;
      }
      for (auto&& [key, node] : *fields) PLAYFS_CHECK(take(key.str(), node, site.str()));
    }
    return {};
  }

  Status take(std::string_view name, const toml::node& node, std::string_view site) {
    auto value = as_text(node);
    if (find_name(name) == nullptr || !value) {
      warnings_.push_back(path_ + ": '" + std::string(name) + "' is not a setting of this version");
      return {};
    }
    auto taken = settings_.set(layer_, name, std::move(*value), site);
    if (!taken) return fail(taken.error().while_doing(path_));
    return {};
  }

  Settings& settings_;
  Settings::Layer layer_;
  const std::string& path_;
  std::vector<std::string>& warnings_;
};

}  // namespace

std::span<const SettingName> setting_names() { return kSettings; }

Status Settings::set(Layer layer, std::string_view name, std::string value, std::string_view for_site) {
  const SettingName* setting = find_name(name);
  if (setting == nullptr) return fail(ErrorCode::invalid_argument, "'" + std::string(name) + "' is not a setting");
  PLAYFS_CHECK(check_kind(*setting, value));
  values_[Key{layer, std::string(for_site), std::string(name)}] = std::move(value);
  return {};
}

std::optional<std::string> Settings::text(std::string_view name, std::string_view site) const {
  auto found = setting(name, site);
  return found ? std::optional(std::move(found->value)) : std::nullopt;
}

std::optional<Settings::Found> Settings::setting(std::string_view name, std::string_view site) const {
  for (Layer layer : {Layer::flag, Layer::environment, Layer::user, Layer::system}) {
    if (!site.empty())
      if (auto found = values_.find(Key{layer, std::string(site), std::string(name)}); found != values_.end())
        return Found{layer, found->second};
    if (auto found = values_.find(Key{layer, "", std::string(name)}); found != values_.end())
      return Found{layer, found->second};
  }
  return std::nullopt;
}

std::optional<std::string> Settings::text_of(Layer layer, std::string_view name) const {
  auto found = values_.find(Key{layer, "", std::string(name)});
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::chrono::milliseconds> Settings::seconds(std::string_view name, std::string_view site) const {
  auto value = text(name, site);
  return value ? parse_seconds(*value) : std::nullopt;
}

std::optional<std::uint64_t> Settings::size(std::string_view name, std::string_view site) const {
  auto value = text(name, site);
  return value ? parse_size(*value) : std::nullopt;
}

bool Settings::flag(std::string_view name, std::string_view site) const {
  auto value = text(name, site);
  return value && parse_flag(*value).value_or(false);
}

Result<Settings> load_settings(const Io& io, const Places& places, std::vector<std::string>& warnings) {
  Settings settings;
  PLAYFS_CHECK(FileLoader(settings, Settings::Layer::system, places.system_config, warnings).load());
  std::string own = places.config + "/config.toml";
  PLAYFS_CHECK(FileLoader(settings, Settings::Layer::user, own, warnings).load());
  for (const SettingName& setting : kSettings) {
    auto value = io.variable(setting.variable);
    if (!value) continue;
    auto taken = settings.set(Settings::Layer::environment, setting.name, *value);
    if (!taken) return fail(taken.error().while_doing(setting.variable));
  }
  return settings;
}

Instructions instructions_for(const Settings& settings, std::string_view site) {
  auto value = settings.text("instructions", site);
  return (value ? parse_instructions(*value) : std::nullopt).value_or(Instructions::hide_others);
}

std::optional<std::chrono::milliseconds> parse_seconds(std::string_view text) {
  double seconds = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  if (!(seconds >= 0.001 && seconds <= 366.0 * 86'400)) return std::nullopt;
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string suffix = to_lower(std::string_view(stop, static_cast<std::size_t>(text.data() + text.size() - stop)));
  if (suffix.ends_with("ib")) suffix.resize(suffix.size() - 2);
  if (suffix.empty() || suffix == "b") return number;
  constexpr std::string_view units = "kmgt";
  auto unit = suffix.size() == 1 ? units.find(suffix.front()) : std::string_view::npos;
  if (unit == std::string_view::npos) return std::nullopt;
  unsigned shift = 10 * static_cast<unsigned>(unit + 1);
  if (number > UINT64_MAX >> shift) return std::nullopt;
  return number << shift;
}

std::optional<bool> parse_flag(std::string_view text) {
  std::string word = to_lower(text);
  if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
  if (word == "0" || word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

}  // namespace playfs::runtime
