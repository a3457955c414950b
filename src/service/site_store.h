// Everything that a site keeps: its records and its accounts, in one store. Implementations are thread-safe.
#pragma once

#include "service/accounts.h"
#include "service/store.h"

namespace playfs::service {

class SiteStore : public Store, public Accounts {};

}  // namespace playfs::service
