#include "vfs/mount.h"

#include <malloc.h>
#include <sys/stat.h>

#include "vfs/control/control_text.h"
#include "vfs/control/request_journal.h"
#include "vfs/control/requests_under_way.h"
#include "vfs/control/resumed_requests.h"
#include "vfs/listings.h"
#include "vfs/projects_in_use.h"
#include "vfs/published/list_fetches.h"
#include "vfs/work/work_trees.h"

namespace playfs::vfs {
namespace {

constexpr std::size_t kKeptResults = 256;
/// More threads would only wait for the same disk.
constexpr unsigned kDiskThreads = 4;
constexpr unsigned kComparingThreads = 2;
/// Few, so that the cores stay free for the threads that answer requests.
constexpr unsigned kReadingThreads = 1;
/// Folder for the request journal, beside the work trees. It cannot clash with a project's, whose names are
/// percent-encoded.
constexpr const char* kJournal = "/=requests";

Task guarded(std::shared_ptr<Gate> gate, Task task) {
  return [gate = std::move(gate), task = std::move(task)]() mutable {
    if (auto ticket = gate->enter()) {
      task();
      task = {};  // drop what it refers to before the ticket
    }
  };
}

}  // namespace

Mount::Mount(content::Site& site, const Clock& clock, Executor& executor, Random& random, FileSystemOptions options)
    : site_(site),
      clock_(clock),
      executor_(executor),
      random_(random),
      options_(std::move(options)),
      started_(clock.wall()),
      spare_memory_([this](auto delay, Task task) { later(delay, std::move(task)); }, [] { malloc_trim(0); }),
      in_use_(std::make_unique<ProjectsInUse>(*this)),
      listings_(std::make_unique<Listings>(*this)),
      requests_(std::make_unique<RequestsUnderWay>()),
      journal_(std::make_unique<RequestJournal>(options_.state_directory + kJournal, clock, random,
                                                JournalUser{options_.agent, options_.mount_source})),
      resumed_(std::make_unique<ResumedRequests>(*this)),
      works_(std::make_unique<WorkTrees>(*this)),
      inbox_(site, clock, options_.agent, options_.state_directory + content::kInboxState),
      inbox_marks_(options_.state_directory + content::kInboxState, options_.agent),
      reading_(kReadingThreads),
      large_(kReadingThreads),
      comparing_(kComparingThreads),
      disk_(kDiskThreads) {}

Mount::~Mount() {
  requests_->end();
  gate_->close();
  nodes_.clear();
  works_.reset();
}

void Mount::start_threads() {
  notifications_.start();
  for (ThreadPool* pool : {&reading_, &large_, &comparing_, &disk_}) pool->start();
}

void Mount::soon(Task task) { executor_.post(guarded(gate_, std::move(task))); }

void Mount::later(std::chrono::nanoseconds delay, Task task) {
  executor_.post_after(delay, guarded(gate_, std::move(task)));
}

double Mount::refresh_seconds() const { return std::chrono::duration<double>(options_.refresh).count(); }

NodeAttributes Mount::attributes(std::uint64_t ino, mode_t mode, std::uint64_t size, WallTime time) const {
  NodeAttributes attributes;
  attributes.ino = ino;
  attributes.mode = S_ISLNK(mode) ? mode : mode & ~options_.umask;
  attributes.uid = options_.uid;
  attributes.gid = options_.gid;
  attributes.size = size;
  attributes.blocks = (size + 511) / 512;
  attributes.atime = attributes.mtime = attributes.ctime = time;
  return attributes;
}

Mount::LastResult Mount::last_result(const std::string& path) const {
  MutexLock lock(mutex_);
  auto found = results_.find(path);
  return found == results_.end() ? LastResult() : found->second;
}

void Mount::set_last_result(const std::string& path, std::int64_t order, ShownText text) {
  MutexLock lock(mutex_);
  if (results_.size() >= kKeptResults && !results_.contains(path)) results_.erase(results_.begin());
  LastResult& last = results_[path];
  if (last.order <= order) last = {std::move(text), order};
}

void Mount::set_last_error(const std::string& path, std::int64_t order, const Error& error) {
  const bool refused_here = error.code == ErrorCode::permission_denied && error.http_status == 0;
  if (!refused_here) set_last_result(path, order, error_document(error));
}

}  // namespace playfs::vfs
