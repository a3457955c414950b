// The FUSE layer against the real kernel, over a file system of four files that answers only when the test says so.

#include "fuse/session.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <playfs/ioctl.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/text.h"
#include "support/eventually.h"
#include "support/temporary_directory.h"

namespace playfs::fuse {
namespace {

using namespace vfs;

constexpr NodeId kPlain = 2, kSlow = 3, kForgotten = 4;

/// Root with three files: "plain" has content and takes writes; a read of "slow" waits for its cancellation; the reply
/// to a read of "forgotten" is dropped.
class FewFiles final : public FileSystem {
 public:
  void lookup(const Caller& caller, NodeId, std::string_view name, Reply<Entry> reply) override {
    ++lookups;
    if (name == "slow-name") return wait_for_cancel(caller, std::move(reply));
    auto found = names_.find(std::string(name));
    if (found == names_.end()) return reply(Entry{0, {}, kEndless, 0});
    reply(entry(found->second));
  }
  void forget(NodeId, std::uint64_t) override {}
  void get_attributes(const Caller&, NodeId node, Reply<AttributesReply> reply) override {
    reply(AttributesReply{attributes(node), kEndless});
  }
  void set_attributes(const Caller&, NodeId node, const SetAttributes& change, Reply<AttributesReply> reply) override {
    if (change.size) {
      MutexLock lock(mutex_);
      content_.resize(*change.size);
    }
    reply(AttributesReply{attributes(node), kEndless});
  }
  void read(const Caller& caller, NodeId node, std::uint64_t offset, std::size_t size,
            Reply<std::string> reply) override {
    ++reads;
    if (node == kForgotten) return;
    if (node == kSlow) return wait_for_cancel(caller, std::move(reply));
    MutexLock lock(mutex_);
    reply(offset < content_.size() ? content_.substr(offset, size) : std::string());
  }
  void write(const Caller&, NodeId, std::uint64_t offset, std::string data, Reply<std::size_t> reply) override {
    {
      MutexLock lock(mutex_);
      if (content_.size() < offset + data.size()) content_.resize(offset + data.size());
      content_.replace(offset, data.size(), data);
    }
    reply(data.size());
  }
  void drop_pages(NodeId, std::uint64_t) override {}
  void list(const Caller&, NodeId, std::uint64_t offset, bool with_entries, Room room, Reply<void> reply) override {
    ++listings;
    std::uint64_t at = 0;
    for (auto& [name, node] : names_)
      if (at++ >= offset && !room({name, at, with_entries ? entry(node) : Entry{}})) break;
    reply({});
  }
  void commit(const Caller&, NodeId, CommitRequest request, Reply<CommitResult> reply) override {
    CommitResult result;
    result.outcome = Outcome::branched;
    result.revision = RevisionId(request.agent + "/" + request.message);
    result.chunks_total = request.wait ? 1 : 2;
    reply(result);
  }
  void work_status(const Caller&, NodeId, Reply<WorkStatus> reply) override {
    reply(fail(ErrorCode::not_supported, "no work tree"));
  }
  void discard(const Caller&, NodeId, DiscardRequest request, Reply<DiscardResult> reply) override {
    if (request.paths == std::vector<std::string>{"busy"}) {
      std::string words = "busy is being published";
      for (int i = 0; i < 1000; ++i) words += "ü";
      return reply(fail(Error{ErrorCode::busy, words, "wait", std::chrono::seconds(7), 0}));
    }
    if (request.paths == std::vector<std::string>{"elsewhere"})
      return reply(fail(ErrorCode::not_supported, "not here"));
    {
      MutexLock lock(mutex_);
      discarded_ = request;
    }
    reply(DiscardResult{7, 12, {request.paths.empty() ? "" : request.paths.back()}});
  }
  void checkpoint(const Caller&, NodeId, CheckpointRequest request, Reply<CheckpointResult> reply) override {
    if (request.drop == 404) return reply(fail(ErrorCode::not_found, "there is no checkpoint 404"));
    reply(CheckpointResult{request.message.size(), 2});
  }
  void restore(const Caller&, NodeId, RestoreRequest request, Reply<RestoreResult> reply) override {
    if (request.id == 404) return reply(fail(ErrorCode::not_found, "there is no checkpoint 404"));
    MutexLock lock(mutex_);
    restored_ = request;
    reply(RestoreResult{5, 8, 1, "then", "now"});
  }
  void cancel(const Caller&, NodeId, Reply<Cancelled> reply) override { reply(Cancelled{3, true}); }
  void get_xattr(const Caller&, NodeId, std::string_view name, Reply<std::string> reply) override {
    ++xattrs;
    if (name == "user.playfs.hash") return reply(std::string("0123"));
    reply(fail(ErrorCode::no_attribute, "none"));
  }

  void update(const Caller&, NodeId, RevisionId, Reply<UpdateResult> reply) override { reply(none()); }
  void read_link(const Caller&, NodeId, Reply<std::string> reply) override { reply(none()); }
  void make_node(const Caller&, NodeId, std::string_view, mode_t, dev_t, Reply<Entry> reply) override { reply(none()); }
  void make_directory(const Caller&, NodeId, std::string_view, mode_t, Reply<Entry> reply) override { reply(none()); }
  void make_symlink(const Caller&, NodeId, std::string_view, std::string_view, Reply<Entry> reply) override {
    reply(none());
  }
  void link(const Caller&, NodeId, NodeId, std::string_view, Reply<Entry> reply) override { reply(none()); }
  void unlink(const Caller&, NodeId, std::string_view, Reply<void> reply) override { reply(none()); }
  void remove_directory(const Caller&, NodeId, std::string_view, Reply<void> reply) override { reply(none()); }
  void rename(const Caller&, NodeId, std::string_view, NodeId, std::string_view, unsigned, Reply<void> reply) override {
    reply(none());
  }
  void sync(const Caller&, NodeId, Reply<void> reply) override { reply(none()); }
  void allocate(const Caller&, NodeId, int, std::uint64_t, std::uint64_t, Reply<void> reply) override { reply(none()); }
  void seek(const Caller&, NodeId, std::uint64_t, int, Reply<std::uint64_t> reply) override { reply(none()); }
  void status(const Caller&, NodeId, Reply<FileSystemStatus> reply) override { reply(FileSystemStatus{}); }
  void set_xattr(const Caller&, NodeId, std::string_view, std::string_view, Reply<void> reply) override {
    reply(none());
  }
  void remove_xattr(const Caller&, NodeId, std::string_view, Reply<void> reply) override { reply(none()); }

  std::atomic<int> lookups = 0, reads = 0, listings = 0, cancelled = 0, xattrs = 0;
  /// The latest one.
  RestoreRequest restored() {
    MutexLock lock(mutex_);
    return restored_;
  }
  DiscardRequest discarded() {
    MutexLock lock(mutex_);
    return discarded_;
  }

 private:
  template <class T>
  void wait_for_cancel(const Caller& caller, Reply<T> reply) {
    auto shared = std::make_shared<Reply<T>>(std::move(reply));
    auto registration = caller.cancel.on_cancel([this, shared] {
      ++cancelled;
      (*shared)(fail(ErrorCode::interrupted, "cancelled"));
    });
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(registration));
  }
  static tl::unexpected<Error> none() { return fail(ErrorCode::not_supported, "not in this test"); }
  NodeAttributes attributes(NodeId node) {
    NodeAttributes result;
    result.ino = node;
    result.mode = node == kRootNode ? S_IFDIR | 0755 : S_IFREG | 0644;
    MutexLock lock(mutex_);
    result.size = node == kRootNode ? 0 : node == kPlain ? content_.size() : 5;
    return result;
  }
  Entry entry(NodeId node) { return {node, attributes(node), kEndless, kEndless}; }

  const std::map<std::string, NodeId> names_ = {{"plain", kPlain}, {"slow", kSlow}, {"forgotten", kForgotten}};
  Mutex mutex_;
  std::string content_ PLAYFS_GUARDED_BY(mutex_) = "hello";
  DiscardRequest discarded_ PLAYFS_GUARDED_BY(mutex_);
  RestoreRequest restored_ PLAYFS_GUARDED_BY(mutex_);
  std::vector<CancelToken::Registration> waiting_ PLAYFS_GUARDED_BY(mutex_);
};

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (access("/dev/fuse", R_OK | W_OK) != 0) GTEST_SKIP() << "no /dev/fuse here";
    auto mounted = Session::mount(files_, {.mountpoint = directory_, .source = "a,b\\c"});
    ASSERT_TRUE(mounted) << mounted.error().message;
    session_ = std::move(*mounted);
    loop_ = std::thread([this] { ended_ = session_->run().has_value(); });
  }
  void TearDown() override {
    if (session_) session_->stop();
    if (loop_.joinable()) loop_.join();
    session_.reset();
  }
  std::string path(const std::string& name) const { return made_ / name; }

  FewFiles files_;
  test::TemporaryDirectory made_;
  const std::string& directory_ = made_.path();
  std::unique_ptr<Session> session_;
  std::thread loop_;
  std::atomic<bool> ended_ = false;
};

TEST_F(SessionTest, WarmReadsAndListingsReachTheKernelAlone) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(read_file(path("plain"), 100).value_or("?"), "hello");
    int names = 0;
    for (auto& entry : std::filesystem::directory_iterator(directory_)) names += entry.is_regular_file();
    EXPECT_EQ(names, 3);
  }
  EXPECT_EQ(files_.reads, 1);
  EXPECT_LE(files_.listings, 2);  // the entries, and the end
  EXPECT_EQ(files_.lookups, 1);   // plain, before the first listing returned everything
}

TEST_F(SessionTest, TruncatingOpenReachesTheFileAlthoughOpenHasNoMessage) {
  for (const char* text : {"a longer text", "short"}) {
    UniqueFd fd(open(path("plain").c_str(), O_WRONLY | O_TRUNC));
    ASSERT_TRUE(fd);
    ASSERT_TRUE(write_all(fd.get(), text));
    EXPECT_EQ(read_file(path("plain"), 100).value_or("?"), text);
  }
}

TEST_F(SessionTest, TheKernelAsksForPrivilegesOnceAFileNotAtEveryWrite) {
  UniqueFd fd(open(path("plain").c_str(), O_WRONLY));
  for (int round = 0; round < 20; ++round) ASSERT_TRUE(write_all(fd.get(), "text"));
  EXPECT_LE(files_.xattrs, 1);
}

TEST_F(SessionTest, AReplyThatIsDroppedIsAnError) {
  auto read = read_file(path("forgotten"), 100);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::io);
}

/// Reads a file in a child process, like `cat`.
pid_t reader_process(const std::string& path) {
  pid_t child = fork();
  if (child == 0) {
    signal(SIGINT, SIG_DFL);
    execlp("cat", "cat", path.c_str(), nullptr);
    _exit(127);
  }
  return child;
}

// The kernel reads pages ahead outside of any process. It sends no INTERRUPT for them, but lets the waiting process
// die.
TEST_F(SessionTest, CtrlCEndsAWaitingCat) {
  pid_t child = reader_process(path("slow"));
  EXPECT_TRUE(test::eventually([&] { return files_.reads > 0; }));
  kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  EXPECT_EQ(read_file(path("plain"), 100).value_or("?"), "hello");
}

TEST_F(SessionTest, ALookupThatWaitsIsCancelledByTheKernelsInterrupt) {
  pid_t child = reader_process(path("slow-name"));
  EXPECT_TRUE(test::eventually([&] { return files_.lookups > 0; }));
  kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(test::eventually([&] { return files_.cancelled > 0; }));
}

TEST_F(SessionTest, UnmountingEndsWhoeverWaits) {
  std::atomic<bool> failed = false;
  std::thread reader([&] { failed = !read_file(path("slow"), 100); });
  EXPECT_TRUE(test::eventually([&] { return files_.reads > 0; }));
  session_->stop();
  loop_.join();
  session_.reset();  // the connection ends here
  reader.join();
  EXPECT_TRUE(failed);
}

TEST_F(SessionTest, IoctlsCarryTheirStructsBothWays) {
  for (const std::string& name : {directory_, path("plain")}) {
    UniqueFd fd(open(name.c_str(), O_RDONLY));
    playfs_commit commit{};
    commit.size = sizeof commit;
    commit.version = PLAYFS_IOCTL_VERSION;
    commit.flags = PLAYFS_COMMIT_NOWAIT;
    strcpy(commit.agent, "ada");
    strcpy(commit.message, "grüße");
    ASSERT_EQ(ioctl(fd.get(), PLAYFS_IOC_COMMIT, &commit), 0) << strerror(errno);
    EXPECT_EQ(commit.outcome, static_cast<unsigned>(PLAYFS_BRANCHED));
    EXPECT_STREQ(commit.revision, "ada/grüße");
    EXPECT_EQ(commit.chunks_total, 2u);
  }
  UniqueFd fd(open(directory_.c_str(), O_RDONLY));
  playfs_discard discard{};
  discard.size = sizeof discard;
  discard.version = PLAYFS_IOCTL_VERSION;
  ASSERT_EQ(ioctl(fd.get(), PLAYFS_IOC_DISCARD, &discard), 0);
  EXPECT_EQ(discard.discarded, 7u);
  EXPECT_EQ(discard.checkpoint, 12u);
  EXPECT_EQ(files_.discarded().paths, std::vector<std::string>());
}

TEST_F(SessionTest, CheckpointsAreMadeAndRestoredByIoctl) {
  UniqueFd fd(open(directory_.c_str(), O_RDONLY));
  playfs_checkpoint made{};
  made.size = sizeof made;
  made.version = PLAYFS_IOCTL_VERSION;
  strcpy(made.message, "grüße");
  ASSERT_EQ(ioctl(fd.get(), PLAYFS_IOC_CHECKPOINT, &made), 0) << strerror(errno);
  EXPECT_EQ(made.id, 7u);
  EXPECT_EQ(made.paths, 2u);
  auto drop = [&](std::uint64_t id, unsigned flags) {
    made.flags = flags;
    made.id = id;
    return ioctl(fd.get(), PLAYFS_IOC_CHECKPOINT, &made) == 0 ? 0 : errno;
  };
  EXPECT_EQ(drop(7, PLAYFS_CHECKPOINT_DROP), 0);
  EXPECT_EQ(made.id, 7u);
  EXPECT_EQ(drop(404, PLAYFS_CHECKPOINT_DROP), ENOENT);
  EXPECT_EQ(drop(0, PLAYFS_CHECKPOINT_DROP), EINVAL);
  EXPECT_EQ(drop(7, 2), EINVAL);

  auto restore = [&](std::uint64_t id, const std::string& paths) {
    playfs_restore request{};
    request.size = sizeof request;
    request.version = PLAYFS_IOCTL_VERSION;
    request.id = id;
    memcpy(request.paths, paths.data(), paths.size());
    const int failed = ioctl(fd.get(), PLAYFS_IOC_RESTORE, &request) == 0 ? 0 : errno;
    return std::pair(failed, request);
  };
  using namespace std::string_literals;
  auto [done, answer] = restore(3, "a b\0.\0c/d\0"s);
  ASSERT_EQ(done, 0);
  EXPECT_EQ(files_.restored().id, 3u);
  EXPECT_EQ(files_.restored().paths, (std::vector<std::string>{"a b", "", "c/d"}));
  EXPECT_EQ(answer.restored, 5u);
  EXPECT_EQ(answer.before, 8u);
  EXPECT_EQ(answer.conflicts, 1u);
  EXPECT_STREQ(answer.base_then, "then");
  EXPECT_STREQ(answer.base_now, "now");
  EXPECT_EQ(restore(3, "").first, 0);
  EXPECT_EQ(files_.restored().paths, std::vector<std::string>());
  EXPECT_EQ(restore(404, "").first, ENOENT);
  for (const std::string& paths : {"/a"s, "a\0../b"s, "\xff"s, std::string(PLAYFS_PATHS_MAX, 'a')})
    EXPECT_EQ(restore(3, paths).first, EINVAL) << paths;
}

TEST_F(SessionTest, AnIoctlThatFailsBringsItsReasonBack) {
  UniqueFd fd(open(directory_.c_str(), O_RDONLY));
  auto attempt = [&](const char* path, unsigned flags = 0) {
    playfs_discard discard{};
    discard.size = sizeof discard;
    discard.version = PLAYFS_IOCTL_VERSION;
    discard.flags = flags;
    strcpy(discard.path, path);
    int failed = ioctl(fd.get(), PLAYFS_IOC_DISCARD, &discard) == 0 ? 0 : errno;
    return std::pair(failed, discard);
  };
  auto [busy, told] = attempt("busy");
  EXPECT_EQ(busy, EBUSY);
  EXPECT_STREQ(told.error.code, "busy");
  EXPECT_EQ(std::string(told.error.message).substr(0, 23), "busy is being published");
  EXPECT_TRUE(is_valid_utf8(told.error.message));
  EXPECT_STREQ(told.error.hint, "wait");
  EXPECT_EQ(told.error.retryable, 1u);
  EXPECT_EQ(told.error.retry_after_s, 7u);
  EXPECT_EQ(attempt("elsewhere").first, ENOTTY);
  EXPECT_STREQ(attempt("elsewhere").second.error.code, "not_supported");

  for (const char* path : {"/a", "a/", "a//b", "..", "a/../b", "./a", "a/.", "\xff", "/"}) {
    auto [refused, why] = attempt(path);
    EXPECT_EQ(refused, EINVAL) << path;
    EXPECT_STREQ(why.error.code, "invalid_argument") << path;
    EXPECT_STRNE(why.error.message, "") << path;
  }
  EXPECT_EQ(attempt("a", 0x80).first, EINVAL);
  EXPECT_EQ(attempt(std::string(300, 'x').c_str()).first, EINVAL);
  EXPECT_EQ(attempt("a b/ü\n", PLAYFS_DISCARD_DRY_RUN).first, 0);
  EXPECT_EQ(files_.discarded().paths, std::vector<std::string>{"a b/ü\n"});
  EXPECT_TRUE(files_.discarded().dry_run);
  EXPECT_EQ(attempt(".").first, 0);
  EXPECT_EQ(files_.discarded().paths, std::vector<std::string>{""});
  EXPECT_EQ(attempt("").second.error.code[0], '\0');
}

TEST_F(SessionTest, SeveralPathsAreDiscardedByOneIoctl) {
  using namespace std::string_literals;
  UniqueFd fd(open(directory_.c_str(), O_RDONLY));
  auto attempt = [&](const std::string& list) {
    playfs_discard discard{};
    discard.size = sizeof discard;
    discard.version = PLAYFS_IOCTL_VERSION;
    discard.flags = PLAYFS_DISCARD_LIST;
    memcpy(discard.path, list.data(), list.size());
    const int failed = ioctl(fd.get(), PLAYFS_IOC_DISCARD, &discard) == 0 ? 0 : errno;
    return std::pair(failed, discard);
  };
  auto [done, answer] = attempt("a b\0.\0c/d\0"s);
  ASSERT_EQ(done, 0);
  EXPECT_EQ(files_.discarded().paths, (std::vector<std::string>{"a b", "", "c/d"}));
  EXPECT_EQ(std::string(answer.path, 5), "c/d\0\0"s) << "where something was dropped";
  EXPECT_EQ(answer.discarded, 7u);
  ASSERT_EQ(attempt(".\0"s).first, 0);
  EXPECT_EQ(files_.discarded().paths, std::vector<std::string>{""});
  for (const std::string& list : {""s, "/a"s, "a\0../b"s, "\xff"s, std::string(PLAYFS_PATH_MAX, 'a')})
    EXPECT_EQ(attempt(list).first, EINVAL) << list;
}

TEST_F(SessionTest, IoctlsRefuseWhatTheyDoNotKnow) {
  UniqueFd fd(open(directory_.c_str(), O_RDONLY));
  auto attempt = [&](auto change) {
    playfs_commit commit{};
    commit.size = sizeof commit;
    commit.version = PLAYFS_IOCTL_VERSION;
    change(commit);
    return ioctl(fd.get(), PLAYFS_IOC_COMMIT, &commit) == 0 ? 0 : errno;
  };
  EXPECT_EQ(attempt([](auto&) {}), 0);
  EXPECT_EQ(attempt([](auto& commit) { commit.version = 99; }), EINVAL);
  EXPECT_EQ(attempt([](auto& commit) { commit.size = 8; }), EINVAL);
  EXPECT_EQ(attempt([](auto& commit) { commit.flags = 0x80; }), EINVAL);
  EXPECT_EQ(attempt([](auto& commit) { memset(commit.agent, 'x', sizeof commit.agent); }), EINVAL);
  EXPECT_EQ(attempt([](auto& commit) { strcpy(commit.message, "\xff"); }), EINVAL);
  playfs_status status{};
  status.size = sizeof status;
  status.version = PLAYFS_IOCTL_VERSION;
  EXPECT_EQ(ioctl(fd.get(), PLAYFS_IOC_STATUS, &status), -1);
  EXPECT_EQ(errno, ENOTTY);
  EXPECT_EQ(ioctl(fd.get(), _IOWR('P', 0x7f, int), &status), -1);
  EXPECT_EQ(errno, ENOTTY);
}

TEST_F(SessionTest, ExtendedAttributesKeepTheirSizesRight) {
  char buffer[16];
  EXPECT_EQ(getxattr(path("plain").c_str(), "user.playfs.hash", nullptr, 0), 4);
  EXPECT_EQ(getxattr(path("plain").c_str(), "user.playfs.hash", buffer, sizeof buffer), 4);
  EXPECT_EQ(getxattr(path("plain").c_str(), "user.playfs.hash", buffer, 2), -1);
  EXPECT_EQ(errno, ERANGE);
  EXPECT_EQ(getxattr(path("plain").c_str(), "user.other", buffer, sizeof buffer), -1);
  EXPECT_EQ(errno, ENODATA);
  EXPECT_EQ(listxattr(path("plain").c_str(), nullptr, 0), 0);
  EXPECT_EQ(listxattr(path("plain").c_str(), buffer, sizeof buffer), 0);
}

TEST_F(SessionTest, NotifiedEntriesAreAskedForAgain) {
  struct stat attributes {};
  ASSERT_EQ(stat(path("plain").c_str(), &attributes), 0);
  int before = files_.lookups;
  ASSERT_EQ(stat(path("plain").c_str(), &attributes), 0);
  EXPECT_EQ(files_.lookups, before);
  session_->notifier().entry_changed(kRootNode, "plain");
  ASSERT_EQ(stat(path("plain").c_str(), &attributes), 0);
  EXPECT_EQ(files_.lookups, before + 1);
}

/// Whether the kernel has FUSE_NOTIFY_INC_EPOCH: since Linux 6.16.
bool knows_epochs() {
  utsname kernel{};
  unsigned major = 0, minor = 0;
  return uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
         std::pair(major, minor) >= std::pair(6U, 16U);
}

TEST_F(SessionTest, OneMessageHasAllNamesAskedForAgain) {
  struct stat attributes {};
  for (const char* name : {"plain", "slow"}) ASSERT_EQ(stat(path(name).c_str(), &attributes), 0);
  const int before = files_.lookups;
  const bool told = session_->notifier().all_names_changed();
  EXPECT_EQ(told, knows_epochs());
  for (const char* name : {"plain", "slow"}) ASSERT_EQ(stat(path(name).c_str(), &attributes), 0);
  EXPECT_EQ(files_.lookups, before + (told ? 2 : 0));
}

TEST(SessionErrors, SayWhatIsInTheWay) {
  FewFiles files;
  auto missing = Session::mount(files, {.mountpoint = "/nonexistent/playfs", .source = "x"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace playfs::fuse
