// A whole client: a mount without a kernel, over an in-memory service. A target may change each response of the
// service; time can then run faster, so that retries do not slow down the fuzzer.
//
// The target's thread makes operations one after the other, and each must get exactly one reply.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "content/site.h"
#include "remote/client.h"
#include "runtime/local_transport.h"
#include "site.h"
#include "support/faulty_transport.h"
#include "support/running_clock.h"
#include "support/temporary_directory.h"
#include "vfs/mount_file_system.h"

namespace playfs::fuzz {

class HurriedExecutor final : public Executor {
 public:
  explicit HurriedExecutor(int times) : times_(times) {}
  void post(Task task) override { threads_.post(std::move(task)); }
  void post_after(std::chrono::nanoseconds delay, Task task) override {
    threads_.post_after(delay / times_, std::move(task));
  }
  void stop() { threads_.stop(); }

 private:
  const int times_;
  ThreadPool threads_{2};
};

/// Changes a response, possibly into an error. Called for one request at a time.
using Change = std::function<void(const HttpRequest&, Result<HttpResponse>&)>;

class Mount {
 public:
  /// How long a cancelled operation may take on a machine that is busy otherwise.
  static constexpr std::chrono::milliseconds kLongest{40'000};

  /// Shows the whole service, or only its project's work tree. `hurry` is the factor by which time runs faster; slow
  /// operations are then cancelled. Whatever has a time limit may then fail on a busy machine.
  explicit Mount(bool of_project, Change change = {}, int hurry = 1);
  ~Mount();

  using Patience = std::optional<std::chrono::milliseconds>;

  /// Makes an operation and waits for its reply; cancels it when `patience` is over, by default what the hurry leaves.
  template <class T, class Start>
  Result<T> ask(const Start& start, Patience patience = {}) {
    auto asked = std::make_shared<Asked<T>>();
    asked_.push_back(asked);
    CancelSource cancel;
    const vfs::Caller caller{owner(), group(), 1, cancel.token()};
    start(caller, Callback<T>([asked](Result<T> result) {
            std::lock_guard lock(asked->mutex);
            if (++asked->replies == 1) asked->result.emplace(std::move(result));
            asked->replied.notify_all();
          }));
    std::unique_lock lock(asked->mutex);
    auto is_there = [&] { return asked->result.has_value(); };
    if (!asked->replied.wait_for(lock, patience.value_or(patience_), is_there)) {
      lock.unlock();
      cancel.cancel();
      lock.lock();
      FUZZ_CHECK(asked->replied.wait_for(lock, kLongest, is_there));
    }
    return *asked->result;
  }

  [[nodiscard]] vfs::FileSystem& fs() { return *fs_; }
  [[nodiscard]] const std::string& project() const { return project_; }
  [[nodiscard]] const std::string& revision() const { return revision_; }
  [[nodiscard]] const test::FaultyTransport& network() const { return network_; }
  [[nodiscard]] static uid_t owner();
  [[nodiscard]] static gid_t group();

 private:
  struct Counted {
    virtual ~Counted() = default;
    std::mutex mutex;
    std::condition_variable replied;
    int replies = 0;
  };
  template <class T>
  struct Asked final : Counted {
    std::optional<Result<T>> result;
  };
  std::string create(const std::string& collection, JsonObject fields);

  const std::chrono::milliseconds patience_;
  test::TemporaryDirectory directory_ = test::TemporaryDirectory::in_memory();
  test::RunningClock clock_;
  CountedRandom random_;
  sim::MemoryStore store_{clock_, random_};
  MemoryAccounts accounts_;
  service::Service service_;
  std::string project_, revision_;
  HurriedExecutor executor_;
  SystemRandom own_random_;  // random_ belongs to the service, which has one thread
  ThreadPool service_thread_{1};
  runtime::LocalTransport transport_{service_, "play.test", service_thread_};
  std::mutex changing_;
  test::FaultyTransport network_{transport_};
  std::unique_ptr<remote::Client> client_;
  std::unique_ptr<cache::ObjectStore> objects_;
  std::unique_ptr<cache::RecordIndex> records_;
  std::unique_ptr<content::EventLog> events_;
  std::unique_ptr<content::Site> site_;
  std::unique_ptr<vfs::MountFileSystem> fs_;
  std::vector<std::shared_ptr<Counted>> asked_;
};

}  // namespace playfs::fuzz
