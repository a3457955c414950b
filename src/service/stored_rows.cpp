#include "service/stored_rows.h"

namespace playfs::service {

std::string column_list(std::span<const StoredColumn> columns) {
  std::string list;
  for (const StoredColumn& column : columns) list += (list.empty() ? "" : ", ") + std::string(column.name);
  return list;
}

}  // namespace playfs::service
