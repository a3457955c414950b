// libpq, loaded with the first connection. Internal to this module.
#pragma once

#include <libpq-fe.h>

#include "base/late_library.h"

namespace playfs::service {

inline constinit const LateLibrary kPostgres("libpq.so.5", "libpq5");

PLAYFS_LATE(kPostgres, PQclear);
PLAYFS_LATE(kPostgres, PQcmdStatus);
PLAYFS_LATE(kPostgres, PQconnectdbParams);
PLAYFS_LATE(kPostgres, PQconnectionNeedsPassword);
PLAYFS_LATE(kPostgres, PQconsumeInput);
PLAYFS_LATE(kPostgres, PQenterPipelineMode);
PLAYFS_LATE(kPostgres, PQerrorMessage);
PLAYFS_LATE(kPostgres, PQfinish);
PLAYFS_LATE(kPostgres, PQflush);
PLAYFS_LATE(kPostgres, PQgetisnull);
PLAYFS_LATE(kPostgres, PQgetlength);
PLAYFS_LATE(kPostgres, PQgetResult);
PLAYFS_LATE(kPostgres, PQgetvalue);
PLAYFS_LATE(kPostgres, PQhost);
PLAYFS_LATE(kPostgres, PQisBusy);
PLAYFS_LATE(kPostgres, PQntuples);
PLAYFS_LATE(kPostgres, PQpipelineSync);
PLAYFS_LATE(kPostgres, PQport);
PLAYFS_LATE(kPostgres, PQresultErrorField);
PLAYFS_LATE(kPostgres, PQresultErrorMessage);
PLAYFS_LATE(kPostgres, PQresultStatus);
PLAYFS_LATE(kPostgres, PQsendQueryParams);
PLAYFS_LATE(kPostgres, PQsetnonblocking);
PLAYFS_LATE(kPostgres, PQsocket);
PLAYFS_LATE(kPostgres, PQstatus);
PLAYFS_LATE(kPostgres, PQtransactionStatus);

}  // namespace playfs::service
