// Caches SQLite's prepared statements: parsing them would dominate the cost of a run, since a process of playfs lives
// for hours but a simulated one for a moment. The linker redirects the calls of base/sqlite.cpp here (`--wrap`, see
// meson.build). A statement is prepared at its first use; a finalized one is reused when the same text is prepared on
// the same connection. For one thread.
#include <sqlite3.h>

#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

struct Kept {
  sqlite3* database;
  std::string text;
  unsigned flags;
  sqlite3_stmt* real = nullptr;
};

using Connection = std::unordered_map<std::string, std::vector<sqlite3_stmt*>>;
std::unordered_map<sqlite3*, Connection>& connections() {
  static std::unordered_map<sqlite3*, Connection> all;
  return all;
}

}  // namespace

#define PLAYFS_SQLITE(result, name, ...) \
  result __real_##name(__VA_ARGS__);     \
  result __wrap_##name(__VA_ARGS__)

extern "C" {

int __real_sqlite3_prepare_v3(sqlite3*, const char*, int, unsigned, sqlite3_stmt**, const char**);
int __real_sqlite3_step(sqlite3_stmt*);
int __real_sqlite3_reset(sqlite3_stmt*);
int __real_sqlite3_finalize(sqlite3_stmt*);

}  // extern "C"

namespace {

Kept* kept(sqlite3_stmt* statement) { return reinterpret_cast<Kept*>(statement); }

int prepare(Kept& statement) {
  if (statement.real) return SQLITE_OK;
  auto& idle = connections()[statement.database][statement.text];
  if (!idle.empty()) {
    statement.real = idle.back();
    idle.pop_back();
    return SQLITE_OK;
  }
  return __real_sqlite3_prepare_v3(statement.database, statement.text.c_str(), static_cast<int>(statement.text.size()),
                                   statement.flags, &statement.real, nullptr);
}

}  // namespace

extern "C" {

int __wrap_sqlite3_prepare_v3(sqlite3* database, const char* text, int size, unsigned flags, sqlite3_stmt** statement,
                              const char**) {
  auto* made = new Kept{database, std::string(text, static_cast<std::size_t>(size)), flags};
  // Pragmas may take effect while being prepared.
  int result = made->text.starts_with("PRAGMA") ? prepare(*made) : SQLITE_OK;
  if (result != SQLITE_OK) {
    delete made;
    made = nullptr;
  }
  *statement = reinterpret_cast<sqlite3_stmt*>(made);
  return result;
}

int __wrap_sqlite3_finalize(sqlite3_stmt* statement) {
  if (!statement) return SQLITE_OK;
  Kept* done = kept(statement);
  int result = SQLITE_OK;
  auto connection = connections().find(done->database);
  if (done->real && (connection == connections().end() || done->text.starts_with("PRAGMA"))) {
    result = __real_sqlite3_finalize(done->real);
  } else if (done->real) {
    result = __real_sqlite3_reset(done->real);
    sqlite3_clear_bindings(done->real);
    connection->second[done->text].push_back(done->real);
  }
  delete done;
  return result;
}

int __wrap_sqlite3_step(sqlite3_stmt* statement) {
  int result = prepare(*kept(statement));
  return result == SQLITE_OK ? __real_sqlite3_step(kept(statement)->real) : result;
}
int __wrap_sqlite3_reset(sqlite3_stmt* statement) {
  return kept(statement)->real ? __real_sqlite3_reset(kept(statement)->real) : SQLITE_OK;
}
sqlite3* __wrap_sqlite3_db_handle(sqlite3_stmt* statement) { return kept(statement)->database; }

PLAYFS_SQLITE(int, sqlite3_bind_int64, sqlite3_stmt* statement, int index, sqlite3_int64 value) {
  int result = prepare(*kept(statement));
  return result == SQLITE_OK ? __real_sqlite3_bind_int64(kept(statement)->real, index, value) : result;
}
PLAYFS_SQLITE(int, sqlite3_bind_null, sqlite3_stmt* statement, int index) {
  int result = prepare(*kept(statement));
  return result == SQLITE_OK ? __real_sqlite3_bind_null(kept(statement)->real, index) : result;
}
PLAYFS_SQLITE(int, sqlite3_bind_text64, sqlite3_stmt* statement, int index, const char* text, sqlite3_uint64 size,
              void (*release)(void*), unsigned char encoding) {
  int result = prepare(*kept(statement));
  return result == SQLITE_OK ? __real_sqlite3_bind_text64(kept(statement)->real, index, text, size, release, encoding)
                             : result;
}
PLAYFS_SQLITE(int, sqlite3_bind_blob64, sqlite3_stmt* statement, int index, const void* bytes, sqlite3_uint64 size,
              void (*release)(void*)) {
  int result = prepare(*kept(statement));
  return result == SQLITE_OK ? __real_sqlite3_bind_blob64(kept(statement)->real, index, bytes, size, release) : result;
}

PLAYFS_SQLITE(sqlite3_int64, sqlite3_column_int64, sqlite3_stmt* statement, int column) {
  return __real_sqlite3_column_int64(kept(statement)->real, column);
}
PLAYFS_SQLITE(const void*, sqlite3_column_blob, sqlite3_stmt* statement, int column) {
  return __real_sqlite3_column_blob(kept(statement)->real, column);
}
PLAYFS_SQLITE(int, sqlite3_column_bytes, sqlite3_stmt* statement, int column) {
  return __real_sqlite3_column_bytes(kept(statement)->real, column);
}
PLAYFS_SQLITE(int, sqlite3_column_type, sqlite3_stmt* statement, int column) {
  return __real_sqlite3_column_type(kept(statement)->real, column);
}

PLAYFS_SQLITE(int, sqlite3_exec, sqlite3* database, const char* text, int (*each)(void*, int, char**, char**),
              void* argument, char** error) {
  bool is_frequent = std::strcmp(text, "BEGIN IMMEDIATE") == 0 || std::strcmp(text, "COMMIT") == 0;
  if (!is_frequent) return __real_sqlite3_exec(database, text, each, argument, error);
  sqlite3_stmt* statement = nullptr;
  __wrap_sqlite3_prepare_v3(database, text, static_cast<int>(std::strlen(text)), SQLITE_PREPARE_PERSISTENT, &statement,
                            nullptr);
  int result = __wrap_sqlite3_step(statement);
  // The connection holds the error only until the statement is used again.
  int reset = __wrap_sqlite3_finalize(statement);
  return result == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : result;
}

PLAYFS_SQLITE(int, sqlite3_close_v2, sqlite3* database) {
  if (auto found = connections().find(database); found != connections().end()) {
    for (auto& [text, idle] : found->second)
      for (sqlite3_stmt* statement : idle) __real_sqlite3_finalize(statement);
    connections().erase(found);
  }
  return __real_sqlite3_close_v2(database);
}

}  // extern "C"
