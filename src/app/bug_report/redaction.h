// Takes out of texts and JSON what is nobody else's business: keys, passwords, codes, e-mail addresses, values in URLs;
// handles, and the paths of files in projects. What occurs several times has the same stand-in each time ("HANDLE-1"),
// so that the result can still be followed. In doubt it takes out more rather than less.
//
// Pure, for one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json.h"

namespace playfs::app {

/// What a stand-in is for; its name is the stand-in's: "KEY-1".
enum class Hidden { key, email, handle, path, value, home, host, user };

class Redaction {
 public:
  explicit Redaction(bool shows_paths) : shows_paths_(shows_paths) {}

  /// Takes this out wherever it occurs, in whatever is given later. Of all but keys, only whole words.
  void hide(Hidden kind, std::string_view text);
  /// Paths at and below this one are shown: it is no project's. REQUIRES: what is to be hidden in it is hidden already.
  void show_below(std::string_view place);
  /// Paths below are a mount's: what is in its projects is hidden.
  void mount_at(std::string_view place);

  [[nodiscard]] std::string text(std::string_view text);
  /// Line by line.
  [[nodiscard]] Json lines(std::string_view text);
  /// Fields are judged by their names, too.
  [[nodiscard]] Json json(const Json& value);

  /// How many different texts of each kind were taken out.
  [[nodiscard]] JsonObject removed() const;

 private:
  [[nodiscard]] std::string stand_in(Hidden kind, std::string_view text);
  [[nodiscard]] std::string without_known(std::string_view text);
  [[nodiscard]] Json field(std::string_view name, const Json& value);
  [[nodiscard]] std::string handle(std::string_view name);
  [[nodiscard]] std::string path(std::string_view path);
  [[nodiscard]] std::string path_in_mount(std::string_view path);
  [[nodiscard]] std::string url(std::string_view url);
  [[nodiscard]] std::string word(std::string_view word);
  [[nodiscard]] std::string without_keys(std::string_view word);

  const bool shows_paths_;
  std::map<std::pair<Hidden, std::string>, std::string, std::less<>> stand_ins_;
  std::set<std::string, std::less<>> made_;  ///< the stand-ins
  std::map<Hidden, std::uint64_t> counts_;
  std::vector<std::pair<std::string, Hidden>> known_;  ///< longest first
  std::set<std::string> shown_;
  std::set<std::string> mounts_;
};

}  // namespace playfs::app
