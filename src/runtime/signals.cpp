#include "runtime/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace playfs::runtime {

namespace {

sigset_t termination_set() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

}  // namespace

TerminationSignals::TerminationSignals() {
  sigset_t set = termination_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  end_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
}

void TerminationSignals::end() {
  std::uint64_t one = 1;
  while (write(end_.get(), &one, sizeof one) < 0 && errno == EINTR) continue;
  if (watcher_.joinable()) watcher_.join();
}

TerminationSignals::~TerminationSignals() {
  end();
  signalfd_siginfo dropped{};
  while (read(signals_.get(), &dropped, sizeof dropped) > 0) continue;
  sigset_t set = termination_set();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool TerminationSignals::next(std::chrono::milliseconds most) {
  for (;;) {
    pollfd ready[2] = {{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    const int count = poll(ready, 2, static_cast<int>(most.count()));
    if (count == 0) return false;
    if (count < 0) continue;
    if ((ready[1].revents & POLLIN) != 0) return false;
    signalfd_siginfo signal{};
    if (read(signals_.get(), &signal, sizeof signal) == sizeof signal) return true;
  }
}

void TerminationSignals::on_signal(std::function<void()> stop) {
  watcher_ = std::thread([this, stop = std::move(stop)] {
    if (next()) stop();
  });
}

void TerminationSignals::wait() { next(); }
void TerminationSignals::wait_for(std::chrono::milliseconds most) { next(most); }

}  // namespace playfs::runtime
