#include "service/postgres_pool.h"

#include <algorithm>
#include <thread>

#include "base/random.h"

namespace playfs::service {

namespace {
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kBetweenAttempts{500};
constexpr std::chrono::seconds kReadLimit{5};
}  // namespace

Result<PostgresPool::Loan> PostgresPool::take(PostgresDeadline deadline) {
  for (;;) {
    PLAYFS_TRY(auto connection, free_or_room(deadline));
    if (!connection) connection = connect();
    if (connection) return Loan(*this, std::move(connection));
  }
}

Result<std::unique_ptr<PostgresConnection>> PostgresPool::free_or_room(PostgresDeadline deadline) {
  std::vector<std::unique_ptr<PostgresConnection>> gone;  // closed without the lock
  MutexLock lock(mutex_);
  for (;;) {
    while (!free_.empty()) {
      auto connection = std::move(free_.back());
      free_.pop_back();
      if (connection->is_ready()) return connection;
      gone.push_back(std::move(connection));
      --open_;
    }
    const auto now = steady_clock::now();
    const bool may_connect = !failure_ || (!is_trying_ && now >= try_again_);
    // The database may grant fewer connections than are wanted here. In an outage those in use end soon, too.
    const bool others_are_open = open_ > static_cast<std::size_t>(is_trying_);
    if (!may_connect && !others_are_open) {
      returned_.notify_all();  // those who wait for a connection that was just found to be gone
      return fail(*failure_);
    }
    if (now >= deadline) return fail(ErrorCode::busy, "all database connections are in use");
    if (may_connect && open_ < most_) {
      ++open_;
      is_trying_ = failure_.has_value();
      return nullptr;
    }
    returned_.wait_for(mutex_, deadline - now);
  }
}

std::unique_ptr<PostgresConnection> PostgresPool::connect() {
  auto made = PostgresConnection::open(uri_);
  MutexLock lock(mutex_);
  is_trying_ = false;
  if (made) {
    failure_.reset();
    return *std::move(made);
  }
  --open_;
  failure_ = made.error();
  try_again_ = steady_clock::now() + kBetweenAttempts;
  returned_.notify_all();
  return nullptr;
}

void PostgresPool::give_back(std::unique_ptr<PostgresConnection> connection) {
  const bool is_ready = connection->is_ready();
  if (!is_ready) connection.reset();
  MutexLock lock(mutex_);
  if (is_ready) {
    free_.push_back(std::move(connection));
    returned_.notify_one();
  } else {
    --open_;
    returned_.notify_all();  // if it was the last one, nobody can wait for another
  }
}

Result<PostgresRows> PostgresPool::run(const PostgresStatement& statement) {
  const auto deadline = steady_clock::now() + kReadLimit;
  Retries retries(deadline);
  for (bool was_lost = false;;) {
    PLAYFS_TRY(auto connection, take(deadline));
    auto rows = connection->run({statement}, deadline);
    if (rows) return std::move(rows->front());
    const bool is_first_loss = is_lost(rows.error()) && !std::exchange(was_lost, true);
    if (!is_first_loss && !retries.again(rows.error())) return fail(std::move(rows).error());
  }
}

bool Retries::again(const Error& error) {
  constexpr int doublings = 6;
  if (!is_conflict(error)) return false;
  // Random, so that two transactions that collided do not collide again.
  const auto most = std::chrono::microseconds(2000) * (1 << std::min(attempts_++, doublings));
  SystemRandom random;
  const auto pause = std::chrono::microseconds(random.next() % static_cast<std::uint64_t>(most.count()));
  if (steady_clock::now() + pause >= deadline_) return false;
  std::this_thread::sleep_for(pause);
  return true;
}

}  // namespace playfs::service
