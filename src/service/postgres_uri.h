// Connection URIs: postgresql://USER@HOST:PORT/DATABASE?PARAMETERS. Pure.
#pragma once

#include <string>
#include <string_view>

namespace playfs::service {

/// Whether that names a PostgreSQL database rather than a directory.
bool is_postgres_uri(std::string_view text);

/// `uri` without its password, to be shown.
std::string without_password(const std::string& uri);

}  // namespace playfs::service
