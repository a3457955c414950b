// The state that a publisher's thread and its callers share. Internal to the publisher.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "publish/publication_engine.h"
#include "publish/publisher.h"
#include "publish/upload_pace.h"
#include "publish/waiters.h"

namespace playfs::publish {

struct Publisher::State : std::enable_shared_from_this<Publisher::State> {
  /// Work that the thread does between publications. If called with an error, it only answers.
  using Job = std::function<void(std::optional<Error>)>;

  State(ProjectId project, content::Site& site, stage::Stage& stage, Executor& executor, const Clock& clock,
        Random& random, PublisherOptions options)
      : project(std::move(project)),
        site(site),
        stage(stage),
        executor(executor),
        clock(clock),
        random(random),
        options(std::move(options)) {}

  const ProjectId project;
  content::Site& site;
  stage::Stage& stage;
  Executor& executor;
  const Clock& clock;
  Random& random;
  const PublisherOptions options;
  std::unique_ptr<Journal> journal;
  CancelSource stop;
  std::unique_ptr<Absences> absences;
  std::unique_ptr<SiteUpstream> upstream;  // used by the thread only, like the following
  Settled settled;
  std::unique_ptr<Merging> merging;
  std::unique_ptr<Integration> integration;
  std::unique_ptr<WorkTreeLayers> layers;
  std::unique_ptr<PublicationEngine> engine;
  int failed_reconciles = 0;  ///< in a row
  std::thread thread;

  Mutex mutex;
  Condition changed;
  bool stopping PLAYFS_GUARDED_BY(mutex) = false;
  bool has_work PLAYFS_GUARDED_BY(mutex) = false;
  bool wants_reconcile PLAYFS_GUARDED_BY(mutex) = false;
  bool is_reconciling PLAYFS_GUARDED_BY(mutex) = false;   ///< `round` is a reconcile, for which nobody waits
  std::uint64_t reconciles PLAYFS_GUARDED_BY(mutex) = 0;  ///< counts reconciles, so that a late alarm starts no other
  std::deque<Job> jobs PLAYFS_GUARDED_BY(mutex);
  std::uint64_t backoffs PLAYFS_GUARDED_BY(mutex) = 0;  ///< counts them, so that a late alarm ends no later one
  bool backoff_is_over PLAYFS_GUARDED_BY(mutex) = false;
  SteadyTime goes_on PLAYFS_GUARDED_BY(mutex);
  bool goes_on_later PLAYFS_GUARDED_BY(mutex) = false;
  Progress progress PLAYFS_GUARDED_BY(mutex);
  Pace pace PLAYFS_GUARDED_BY(mutex);           ///< of the upload in `progress`
  CancelSource round PLAYFS_GUARDED_BY(mutex);  ///< ends what the thread is doing now
  std::vector<Callback<Cancelled>> cancelling PLAYFS_GUARDED_BY(mutex);
  std::optional<PlannedCommit> planned PLAYFS_GUARDED_BY(mutex);
  std::optional<Result<CommitResult>> last PLAYFS_GUARDED_BY(mutex);
  Waiters waiters;

  void run();
  std::optional<Error> run_front();
  bool answer_cancelling();
  Result<Cancelled> give_back();
  void run_jobs();
  Result<bool> keep_lost_base(const RevisionTreePtr& head);
  /// False if something could not be kept; if time may cure that, a later reconcile tries again.
  bool keep_what_lies_elsewhere();
  void reconcile_later(const Error& error);
  void refuse_jobs(const Error& why);
  template <class T, class Work>
  void add_job(CancelToken cancel, Callback<T> done, Work work);
  void back_off(const Error& error, int streak);
  void wait_for_work();
  void has_progress(const Progress& now);
  void has_ended(const Publication& publication);

  void enqueue(Waiters::Id waiter, const CommitRequest& request, const std::string& tx);
  void wake();
  /// Interrupts a reconcile for work that somebody waits for: a service may let a reconcile hang for a minute.
  void interrupt_reconcile();
  CommitResult pending_result(const std::string& tx);
};

template <class T, class Work>
void Publisher::State::add_job(CancelToken cancel, Callback<T> done, Work work) {
  auto shared = std::make_shared<Callback<T>>(std::move(done));
  Job job = [this, shared, cancel = std::move(cancel), work = std::move(work)](std::optional<Error> why) {
    if (!why && cancel.cancelled()) why = Error{ErrorCode::interrupted, "cancelled"};
    if (why) return (*shared)(fail(*std::move(why)));
    CancelSource ends;
    const CancelToken::Registration by_caller = cancel.on_cancel([ends]() mutable { ends.cancel(); }),
                                    by_closing = stop.token().on_cancel([ends]() mutable { ends.cancel(); });
    upstream->until(ends.token());
    (*shared)(work());
    upstream->until(stop.token());
  };
  {
    MutexLock lock(mutex);
    if (!stopping && !goes_on_later) {  // that may take hours
      jobs.push_back(std::exchange(job, nullptr));
      changed.notify_all();
    }
  }
  if (!job) return interrupt_reconcile();
  job(Error{ErrorCode::busy, "a publication is in progress", "wait for it to finish: playfs status"});
}

}  // namespace playfs::publish
