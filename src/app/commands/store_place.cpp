#include "app/commands/store_place.h"

#include <filesystem>

#include "runtime/local_playground.h"
#include "service/postgres_uri.h"

namespace playfs::app {

std::string StorePlace::file() const {
  std::error_code unknown;
  if (std::filesystem::is_regular_file(directory, unknown)) return directory;
  return directory + "/" + std::string(runtime::LocalPlayground::kStoreFile);
}

std::string StorePlace::name() const { return is_database() ? service::without_password(database) : file(); }

namespace {

/// The operator names the directory, so a link is followed: under systemd's DynamicUser=, the state directory is one.
std::string real_directory(std::string path) {
  std::error_code unknown;
  auto real = std::filesystem::canonical(path, unknown);
  return unknown ? std::move(path) : real.string();
}

}  // namespace

Result<StorePlace> store_place(const CommandContext& context, const std::string& store) {
  if (store.empty()) return StorePlace{context.places.data + "/default", {}};
  if (service::is_postgres_uri(store)) return StorePlace{context.places.data + "/served", store};
  if (store.find("://") != std::string::npos)
    return fail(
        ErrorCode::not_supported,
        "a store is a directory or a PostgreSQL database; " + store.substr(0, store.find("://")) + " is not supported",
        "--store DIR, or --store postgresql://HOST/DATABASE");
  return StorePlace{real_directory(context.io.absolute(store)), {}};
}

}  // namespace playfs::app
