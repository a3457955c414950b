#include "service/postgres_connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "service/closed_store.h"

namespace playfs::service {

namespace {

using std::chrono::steady_clock;

/// One line: libpq's messages have several.
std::string in_one_line(std::string_view message) {
  while (!message.empty() && message.back() == '\n') message.remove_suffix(1);
  std::string line(message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

/// The error code of a SQLSTATE, whose first two characters are its class.
ErrorCode code_of(std::string_view state) {
  if (state == "53100") return ErrorCode::no_space;
  if (state == "57014" || state == "55P03") return ErrorCode::timed_out;
  // Conflicts, connections, resources, shutdown, a server that became a standby.
  for (std::string_view passing : {"40", "08", "53", "57"})
    if (state.substr(0, 2) == passing) return ErrorCode::busy;
  if (state == "25006" || state == "25P03" || state == "23505") return ErrorCode::busy;
  return ErrorCode::io;
}

bool can_be_read(int socket) {
  pollfd waiting{socket, POLLIN, 0};
  return poll(&waiting, 1, 0) != 0;
}

/// libpq gives no code, only words; those of the server are in its language.
std::string what_to_check(PGconn* connection, const std::string& why) {
  if (PQconnectionNeedsPassword(connection) == 1)
    return "give the password: in ~/.pgpass (mode 0600), or the file that PGPASSFILE names";
  const char *host = PQhost(connection), *port = PQport(connection);
  const std::string where =
      std::string(host && *host ? " -h " + std::string(host) : "") + (port && *port ? " -p " + std::string(port) : "");
  if (why.find("FATAL:") != std::string::npos)
    return "the server is up and refuses: check user and password; psql" + where + " -l lists its databases, createdb" +
           where + " NAME makes one; its pg_hba.conf says who may connect";
  return "pg_isready" + where +
         " says whether a server answers there; systemctl status postgresql, whether one runs here";
}

}  // namespace

bool is_conflict(const Error& error) {
  return error.remote_code == "40001" || error.remote_code == "40P01" || error.remote_code == kUniqueViolation;
}

bool is_lost(const Error& error) {
  return (error.code == ErrorCode::busy || error.code == ErrorCode::timed_out) && error.remote_code.empty();
}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::open(const std::string& uri) {
  PLAYFS_CHECK(kPostgres.load());
  // The URI comes last, so what it says replaces these.
  static constexpr std::array<const char*, 7> names = {"connect_timeout",
                                                       "tcp_user_timeout",
                                                       "keepalives_idle",
                                                       "fallback_application_name",
                                                       "client_encoding",
                                                       "dbname",
                                                       nullptr};
  const std::array<const char*, 7> values = {"3", "10000", "10", "playfs", "UTF8", uri.c_str(), nullptr};
  std::unique_ptr<PostgresConnection> made(new PostgresConnection(PQconnectdbParams(names.data(), values.data(), 1)));
  PGconn* connection = made->connection_.get();
  if (!connection) return fail(ErrorCode::internal, "no memory for a database connection");
  if (PQstatus(connection) != CONNECTION_OK) {
    const std::string why = in_one_line(PQerrorMessage(connection));
    return fail(ErrorCode::busy, "no connection to the database: " + why, what_to_check(connection, why));
  }
  if (PQsetnonblocking(connection, 1) != 0 || PQenterPipelineMode(connection) != 1)
    return fail(ErrorCode::internal, "pipeline mode: " + in_one_line(PQerrorMessage(connection)));
  return made;
}

Error PostgresConnection::lost(const std::string& what) {
  is_lost_ = true;
  return {ErrorCode::busy, "the database connection is lost: " + what};
}

Error PostgresConnection::error_of(const PGresult* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  std::string message = in_one_line(PQresultErrorMessage(result));
  if (!state || (severity && std::string_view(severity) != "ERROR")) return lost(message);
  if (std::string_view(state) == "25006") return lost(message);
  Error error = std::string_view(state) == kNotNullViolation ? closed_for_writing()
                                                             : Error{code_of(state), "the database says: " + message};
  error.remote_code = state;
  return error;
}

Status PostgresConnection::send(const std::vector<PostgresStatement>& statements) {
  PGconn* connection = connection_.get();
  for (const auto& [sql, parameters] : statements) {
    std::vector<const char*> values;
    std::vector<int> lengths;
    for (const std::string& value : parameters.values()) {
      values.push_back(value.data());
      lengths.push_back(static_cast<int>(value.size()));
    }
    const std::vector<int> formats(parameters.count(), 1);
    if (PQsendQueryParams(connection, sql, static_cast<int>(parameters.count()), parameters.types().data(),
                          values.data(), lengths.data(), formats.data(), 1) != 1)
      return fail(lost(in_one_line(PQerrorMessage(connection))));
  }
  if (PQpipelineSync(connection) != 1) return fail(lost(in_one_line(PQerrorMessage(connection))));
  return {};
}

Status PostgresConnection::wait(PostgresDeadline deadline) {
  PGconn* connection = connection_.get();
  const int unsent = PQflush(connection);
  if (unsent < 0) return fail(lost(in_one_line(PQerrorMessage(connection))));
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
  pollfd waiting{PQsocket(connection), static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN), 0};
  const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(left)) : 0;
  if (ready == 0) {
    is_lost_ = true;
    return fail(ErrorCode::timed_out, "the database does not answer in time");
  }
  if (ready < 0 && errno != EINTR) return fail(lost(error_from_errno(errno, "poll").message));
  if (PQconsumeInput(connection) != 1) return fail(lost(in_one_line(PQerrorMessage(connection))));
  return {};
}

Result<std::vector<PostgresRows>> PostgresConnection::run(const std::vector<PostgresStatement>& statements,
                                                          PostgresDeadline deadline) {
  PLAYFS_CHECK(send(statements));
  std::vector<PostgresRows> rows;
  std::optional<Error> error;
  for (;;) {
    while (PQisBusy(connection_.get())) {
      if (auto waited = wait(deadline); !waited) return fail(error ? *std::move(error) : std::move(waited).error());
    }
    PGresult* result = PQgetResult(connection_.get());
    if (!result) {  // between two statements, or at the end of a connection that is lost
      if (PQstatus(connection_.get()) == CONNECTION_OK) continue;
      return fail(error ? *std::move(error) : lost(in_one_line(PQerrorMessage(connection_.get()))));
    }
    PostgresRows owned(result);
    switch (PQresultStatus(result)) {
      case PGRES_TUPLES_OK:
      case PGRES_COMMAND_OK: rows.push_back(std::move(owned)); break;
      case PGRES_PIPELINE_SYNC:
        if (error) return fail(*std::move(error));
        return rows;
      case PGRES_PIPELINE_ABORTED: break;  // after the error
      default:
        if (!error) error = error_of(result);
    }
  }
}

Status PostgresConnection::roll_back(PostgresDeadline deadline) {
  PLAYFS_TRY(auto rows, run({{"ROLLBACK"}}, deadline));
  return {};
}

bool PostgresConnection::is_ready() {
  PGconn* connection = connection_.get();
  // An idle connection has nothing to say, unless its server is going away.
  return !is_lost_ && PQstatus(connection) == CONNECTION_OK && PQtransactionStatus(connection) == PQTRANS_IDLE &&
         !can_be_read(PQsocket(connection));
}

}  // namespace playfs::service
