// SRC: the service that a command uses. Pure values, no I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/io.h"
#include "runtime/places.h"

namespace playfs::runtime {

struct Source {
  enum class Kind {
    http,      ///< a host, by http or https
    embedded,  ///< a local playground: the service's code over a store on this disk
  };
  Kind kind = Kind::embedded;
  std::string text;    ///< canonical: "https://example.org", "local:default", "local:/dir"
  std::string origin;  ///< http: scheme, host, and the port unless it is the scheme's default
  std::string base_path = "/.site/data";
  std::string directory;  ///< embedded: where the store is

  /// Whether an API key may be sent there: https, or loopback.
  [[nodiscard]] bool may_carry_credentials() const;
};

/// `https://host[:port]`, `http://host[:port]`, `local:NAME`, `local:/dir`. A URL may end with the API's own path; any
/// other path must be given as base_path. Errors: invalid_argument, saying what is wrong.
Result<Source> parse_source(std::string_view text, std::optional<std::string> base_path, const Places& places,
                            const Io& io);

/// Whether a word can only be a SRC.
bool is_source(std::string_view text);

inline constexpr std::string_view kDefaultSource = "local:default";

}  // namespace playfs::runtime
