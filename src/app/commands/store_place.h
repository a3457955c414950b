// Where a playground's records are, as `serve --store` and its words name it. For one thread.
#pragma once

#include <string>

#include "app/command_context.h"
#include "base/result.h"

namespace playfs::app {

struct StorePlace {
  std::string directory;  ///< with a database: for what only this server keeps
  std::string database;   ///< postgresql://…; empty: they are in the directory

  [[nodiscard]] bool is_database() const { return !database.empty(); }
  /// The file in the directory, or the directory's name if that is a file itself: a backup.
  [[nodiscard]] std::string file() const;
  /// To be shown.
  [[nodiscard]] std::string name() const;
};

/// Empty: the default local playground. Errors: not_supported for databases of other kinds.
Result<StorePlace> store_place(const CommandContext& context, const std::string& store);

}  // namespace playfs::app
