#include "vfs/attempt_fetches.h"

#include <atomic>

#include "vfs/attempt_driver.h"
#include "vfs/listings.h"
#include "vfs/once.h"

namespace playfs::vfs {
namespace {

/// Missing content of a published file makes the file unreadable, not absent.
Error as_unreadable(Error error, const std::string& path) {
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::corrupt;
  return error.while_doing("read " + path);
}

Fetch fetch_blob(Mount& mount, const FileRef& file) {
  return [&mount, file](CancelToken cancel, Callback<void> done) {
    mount.site().blob(file, std::move(cancel),
                      [path = file.path, done = std::move(done)](Result<content::Blob> blob) mutable {
                        done(blob ? Status() : Status(fail(as_unreadable(std::move(blob).error(), path))));
                      });
  };
}

Attempt<ListPtr> list_or_fetch(Mount& mount, const OperationPtr& op, const std::string& collection, bool any_age) {
  const std::string fact = "listed/" + collection;
  ListPtr here = mount.site().try_list(collection);
  if (here && (any_age || op->noted(fact) || op->noted(kGoesOn))) return here;
  const auto patience = here ? mount.site().patience().left_for(collection) : std::nullopt;
  if (here && !patience) return here;
  auto ask = [&mount, op, collection, fact](CancelToken cancel, Callback<void> done) {
    mount.site().list(collection, std::move(cancel), [op, fact, done = std::move(done)](Result<ListPtr> list) mutable {
      if (list) op->note(fact);
      done(list ? Status() : Status(fail(std::move(list).error())));
    });
  };
  if (!here) return missing(std::move(ask));
  return missing(fetch_news(mount, op, collection, *patience, fact, std::move(ask)));
}

}  // namespace

Attempt<RevisionTreePtr> revision_here(Mount& mount, const OperationPtr& op, const RevisionId& id) {
  const std::string name = "tree/" + id.text();
  if (auto tree = op->held<RevisionTree>(name)) return tree;
  if (auto tree = mount.site().revision_at_once(id).tree) return tree;
  return missing([&mount, op, id, name](CancelToken cancel, Callback<void> done) {
    mount.site().revision(id, std::move(cancel),
                          [op, name, done = std::move(done)](Result<RevisionTreePtr> tree) mutable {
                            if (!tree) return done(fail(std::move(tree).error()));
                            op->hold(name, std::move(*tree));
                            done({});
                          });
  });
}

Attempt<RevisionTreePtr> known_revision(Mount& mount, const OperationPtr& op, const RevisionId& id) {
  const std::string name = "tree/" + id.text(), read = "read/" + name;
  if (auto tree = op->held<RevisionTree>(name)) return tree;
  auto here = mount.site().revision_at_once(id);
  if (!here.takes_long || op->noted(read)) return std::move(here.tree);
  return missing(off_thread(mount, mount.large(), [&mount, op, id, name, read](const auto&, Callback<void> done) {
    if (auto tree = mount.site().try_revision(id)) op->hold(name, std::move(tree));
    op->note(read);
    done({});
  }));
}

Attempt<SummaryPtr> known_summary(Mount& mount, const OperationPtr& op, const RevisionId& id) {
  if (auto summary = summary_here(mount, op, id)) return summary;
  PLAYFS_ATTEMPT(RevisionTreePtr tree, known_revision(mount, op, id));
  return tree ? keep_summary(mount, op, *tree) : nullptr;
}

Attempt<content::Blob> blob_here(Mount& mount, const FileRef& file) {
  if (auto blob = mount.site().try_blob(file)) return std::move(*blob);
  return missing(fetch_blob(mount, file));
}

namespace {

Attempt<std::string> read_of(Mount& mount, const content::Blob& blob, const FileRef& file, std::uint64_t offset,
                             std::size_t size) {
  auto bytes = blob.read(offset, size);
  if (!bytes && bytes.error().code == ErrorCode::corrupt) return missing(fetch_blob(mount, file));
  return bytes;
}

}  // namespace

Attempt<std::string> read_here(Mount& mount, const FileRef& file, std::uint64_t offset, std::size_t size) {
  PLAYFS_ATTEMPT(content::Blob blob, blob_here(mount, file));
  return read_of(mount, blob, file, offset, size);
}

namespace {

/// The value of `unknown_` when an operation began to wait for a size.
struct UnknownBefore {
  std::uint64_t times = 0;
};

}  // namespace

Attempt<std::uint64_t> ToldSize::tell(const OperationPtr& op, Mount& mount, const FileRef& file) {
  auto known = mount.site().size_of(file);
  if (!known) {
    if (!op->outcome<UnknownBefore>()) op->set_outcome(UnknownBefore{unknown_});
    PLAYFS_ATTEMPT(content::Blob blob, blob_here(mount, file));
    known = blob.size();
  }
  told_ = *known;
  // The kernel takes a reply that overtook this one as the newer, so it would drop this one and keep no size at all.
  // `stale` makes it look again, unseen by the program. If it may be looking again already, it has to do without: stat
  // shows the reply itself, and the first read finds the end.
  if (auto before = op->outcome<UnknownBefore>(); before && before->times != unknown_ && !op->may_be_second) {
    op->note(kRecorded);
    mount.sent_back().note(op->caller.pid);
    return fail(ErrorCode::stale, "superseded by a newer response: try again");
  }
  return *known;
}

std::uint64_t ToldSize::tell_at_once(Mount& mount, const FileRef& file) {
  if (auto known = mount.site().size_of(file)) {
    told_ = *known;
    return *known;
  }
  ++unknown_;  // before reading told_; tell() uses the opposite order, so one of the two sees the other
  const std::uint64_t told = told_;
  return told == kNothing ? kUnknownSize : told;
}

void show_size(AttributesReply& reply, std::uint64_t size) {
  const bool is_known = size != kUnknownSize;
  reply.attributes.size = size;
  reply.attributes.blocks = is_known ? (size + 511) / 512 : 0;
  if (!is_known) reply.timeout = 0;
}

Attempt<content::Blob> ToldSize::blob(const Node& node, Mount& mount, const FileRef& file) {
  PLAYFS_ATTEMPT(content::Blob blob, blob_here(mount, file));
  const std::uint64_t told = told_;
  if (told == kNothing || told == blob.size()) return blob;
  mount.notifications().node_changed(node.id(), -1);
  return fail(ErrorCode::stale,
              "its manifest says " + std::to_string(told) + " bytes, but it has " + std::to_string(blob.size()),
              "open it again: its real size is known now");
}

Attempt<std::string> ToldSize::read(const Node& node, Mount& mount, const FileRef& file, std::uint64_t offset,
                                    std::size_t size) {
  PLAYFS_ATTEMPT(content::Blob content, blob(node, mount, file));
  return read_of(mount, content, file, offset, size);
}

Attempt<content::Head> head_here(Mount& mount, const ProjectId& id) {
  if (auto head = mount.site().try_head(id)) return std::move(*head);
  return missing([&mount, id](CancelToken cancel, Callback<void> done) {
    mount.site().head(id, std::move(cancel), only_status<content::Head>(std::move(done)));
  });
}

Attempt<bool> is_gone(Mount& mount, const OperationPtr& op, const ProjectId& id) {
  if (mount.site().try_head(id)) return false;
  const std::string fact = "gone/projects/" + id.text();
  if (op->noted(fact)) return true;
  return missing([&mount, op, id, fact](CancelToken cancel, Callback<void> done) {
    mount.site().head(id, std::move(cancel), [op, fact, done = std::move(done)](Result<content::Head> head) mutable {
      const bool is_gone = !head && head.error().code == ErrorCode::not_found;
      if (is_gone) op->note(fact);
      done(head || is_gone ? Status() : Status(fail(std::move(head).error())));
    });
  });
}

namespace {
std::string asked_fact(const ProjectId& id) { return "asked/" + id.text(); }
}  // namespace

bool asked_for_head(const OperationPtr& op, const ProjectId& id) { return op->noted(asked_fact(id)); }

Attempt<content::Head> head_for_use(Mount& mount, const OperationPtr& op, const ProjectId& id) {
  PLAYFS_ATTEMPT(content::Head head, head_here(mount, id));
  if (mount.site().is_current(id) || asked_for_head(op, id)) return head;
  const std::string what = "projects/" + id.text();
  const auto patience = mount.site().patience().left_for(what);
  if (!patience) return head;
  return missing(
      fetch_news(mount, op, what, *patience, asked_fact(id), [&mount, id](CancelToken cancel, Callback<void> done) {
        mount.site().shown_head(id, std::move(cancel), only_status<content::Head>(std::move(done)));
      }));
}

Attempt<RevisionId> shown_id(Mount& mount, const OperationPtr& op, const ProjectId& id) {
  PLAYFS_ATTEMPT(content::Head head, head_for_use(mount, op, id));
  if (!head.shown) {
    return missing([&mount, id](CancelToken cancel, Callback<void> done) {
      mount.site().shown_head(id, std::move(cancel), only_status<content::Head>(std::move(done)));
    });
  }
  return std::move(*head.shown);
}

Attempt<RevisionTreePtr> shown_here(Mount& mount, const OperationPtr& op, const ProjectId& id) {
  PLAYFS_ATTEMPT(const RevisionId shown, shown_id(mount, op, id));
  if (shown.empty()) return RevisionTreePtr();
  return revision_here(mount, op, shown);
}

void bring_shown(Mount& mount, const ProjectId& project, std::function<void(const RevisionTreePtr&)> came) {
  auto head = mount.site().try_head(project);
  if (!head || (head->shown && head->shown->empty())) return;
  if (!head->shown) {
    // Head's record arrived before anyone asked for the revision it names: nobody else will request that one.
    mount.site().shown_head(
        project, mount.gate()->closing(),
        [&mount, project, gate = mount.gate(), came = std::move(came)](const Result<content::Head>& shown) mutable {
          auto ticket = gate->enter();
          if (ticket && shown) bring_shown(mount, project, std::move(came));
        });
    return;
  }
  mount.site().revision(*head->shown, mount.gate()->closing(),
                        [gate = mount.gate(), came = std::move(came)](const Result<RevisionTreePtr>& tree) {
                          auto ticket = gate->enter();
                          if (ticket && tree) came(*tree);
                        });
}

void make_part(Mount& mount, content::RecordTextPtr text, content::Reduce reduce, const CancelToken& cancel,
               Callback<RecordPartPtr> done) {
  auto answer = [](RecordPartPtr part, Callback<RecordPartPtr>& to) {
    if (part) to(std::move(part));
    else to(fail(ErrorCode::protocol, "the record is not readable"));
  };
  auto here = mount.site().part_of(*text, reduce, content::Reads::at_once);
  if (!here.takes_long) return answer(std::move(here.part), done);
  auto made = std::make_shared<RecordPartPtr>();
  off_thread(mount, here.is_large ? mount.large() : mount.reading(),
             [&mount, text = std::move(text), reduce, made](const CancelToken&, Callback<void> finish) {
               *made = mount.site().part_of(*text, reduce, content::Reads::any).part;
               finish({});
             })(cancel, [made, answer, done = std::move(done)](Status status) mutable {
    if (status) answer(std::move(*made), done);
    else done(fail(std::move(status).error()));
  });
}

namespace {

/// Receives the text of a record. By then the caller may be gone, and so may the mount.
Callback<content::RecordTextPtr> then_make_part(Mount& mount, content::Reduce reduce, const CancelToken& cancel,
                                                Callback<RecordPartPtr> done) {
  return [&mount, gate = mount.gate(), reduce, cancel,
          done = std::move(done)](Result<content::RecordTextPtr> text) mutable {
    if (!text) return done(fail(std::move(text).error()));
    auto ticket = gate->enter();
    if (!ticket) return done(fail(ErrorCode::interrupted, "the mount is shutting down"));
    make_part(mount, std::move(*text), reduce, cancel, std::move(done));
  };
}

std::string part_name(const std::string& collection, const std::string& id) { return "part/" + collection + "/" + id; }

/// As last seen; nullptr: nothing is here.
Attempt<RecordPartPtr> stored_part(Mount& mount, const OperationPtr& op, const std::string& collection,
                                   const std::string& id, content::Reduce reduce) {
  const std::string name = "stored " + part_name(collection, id), read = "read/" + name;
  if (auto part = op->held<content::RecordPart>(name)) return part;
  if (op->noted(read)) return nullptr;
  auto here = mount.site().known_part(collection, id, reduce, content::Reads::at_once);
  if (!here.takes_long) return std::move(here.part);
  return missing(off_thread(mount, here.is_large ? mount.large() : mount.reading(),
                            [&mount, op, collection, id, reduce, name, read](const auto&, Callback<void> done) {
                              auto any = mount.site().known_part(collection, id, reduce, content::Reads::any);
                              if (any.part) op->hold(name, std::move(any.part));
                              op->note(read);
                              done({});
                            }));
}

}  // namespace

Attempt<RecordPartPtr> known_part(Mount& mount, const OperationPtr& op, const std::string& collection,
                                  const std::string& id, content::Reduce reduce) {
  PLAYFS_ATTEMPT(RecordPartPtr known, stored_part(mount, op, collection, id, reduce));
  if (known) return known;
  return part_here(mount, op, collection, id, reduce);
}

Attempt<RecordPartPtr> part_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                                 const std::string& id, content::Reduce reduce) {
  const std::string name = part_name(collection, id);
  if (auto part = op->held<content::RecordPart>(name)) return part;
  auto ask = [&mount, op, collection, id, reduce, name](const CancelToken& cancel, Callback<void> done) {
    auto made = [op, name, done = std::move(done)](Result<RecordPartPtr> part) mutable {
      if (!part) return done(fail(std::move(part).error()));
      op->hold(name, std::move(*part));
      done({});
    };
    mount.site().record_text(collection, id, cancel, then_make_part(mount, reduce, cancel, std::move(made)));
  };
  PLAYFS_ATTEMPT(RecordPartPtr known, stored_part(mount, op, collection, id, reduce));
  if (!known) return missing(std::move(ask));
  const std::string what = collection + "/" + id, fact = "asked/" + what;
  const auto patience = mount.site().patience().left_for(what);
  if (!patience || op->noted(fact)) return known;
  return missing(fetch_news(mount, op, what, *patience, fact, std::move(ask)));
}

ShownText shown_text_of(Mount& mount, const std::string& collection, const std::string& id, content::Reduce reduce,
                        const content::RecordPart& part) {
  return {part.text, [&mount, collection, id, reduce](const OperationPtr& op) -> Attempt<content::Text> {
            PLAYFS_ATTEMPT(RecordPartPtr again, known_part(mount, op, collection, id, reduce));
            return again->text;
          }};
}

namespace {

struct Asked {
  std::string collection;
  std::vector<std::string> ids;
  content::Reduce reduce;
  std::string what, fact;

  [[nodiscard]] std::string name_of(const std::string& id) const { return part_name(collection, id); }
  /// Of what was known before.
  [[nodiscard]] std::string stored_name_of(const std::string& id) const { return "stored " + name_of(id); }
};

Ask ask_for_records(Mount& mount, const OperationPtr& op, const Asked& asked, std::vector<std::string> wanted) {
  return [&mount, op, asked, wanted = std::move(wanted)](const CancelToken& cancel, Callback<void> done) {
    Once<void> all(std::move(done));
    auto left = std::make_shared<std::atomic<std::size_t>>(wanted.size());
    auto question = mount.site().patience().ask(asked.what);
    for (const std::string& id : wanted) {
      auto made = [op, name = asked.name_of(id), all, left, question](Result<RecordPartPtr> part) {
        if (part) op->hold(name, std::move(*part));
        else if (part.error().code == ErrorCode::not_found) op->note("gone/" + name);
        else all(fail(part.error()));
        if (left->fetch_sub(1) == 1) all({});
      };
      mount.site().record_text(asked.collection, id, cancel,
                               then_make_part(mount, asked.reduce, cancel, std::move(made)));
    }
  };
}

/// First reads what is stored of them; then asks for all, for a short time if all are stored. Large ones are read on a
/// thread of their own.
void fetch_parts(Mount& mount, const OperationPtr& op, const Asked& asked, content::Reads reads,
                 const CancelToken& cancel, Callback<void> done) {
  std::vector<std::string> wanted;
  bool all_known = true;
  for (const std::string& id : asked.ids) {
    const std::string name = asked.name_of(id);
    if (op->held<content::RecordPart>(name) || op->noted("gone/" + name)) continue;
    wanted.push_back(id);
    if (op->held<content::RecordPart>(asked.stored_name_of(id))) continue;
    if (cancel.cancelled()) return done(fail(ErrorCode::interrupted, "the wait was cancelled"));
    auto part = mount.site().known_part(asked.collection, id, asked.reduce, reads);
    if (part.takes_long) {
      auto again = [&mount, op, asked](const CancelToken& token, Callback<void> callback) {
        fetch_parts(mount, op, asked, content::Reads::any, token, std::move(callback));
      };
      return off_thread(mount, mount.large(), std::move(again))(cancel, std::move(done));
    }
    if (part.part) op->hold(asked.stored_name_of(id), std::move(part.part));
    else all_known = false;
  }
  Ask ask = ask_for_records(mount, op, asked, std::move(wanted));
  if (!all_known) return ask(cancel, std::move(done));
  const auto patience = mount.site().patience().left_for(asked.what);
  if (patience)
    return fetch_news(mount, op, asked.what, *patience, asked.fact, std::move(ask))(cancel, std::move(done));
  op->note(asked.fact);
  done({});
}

}  // namespace

Attempt<std::vector<RecordPartPtr>> parts_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                                               const std::vector<std::string>& ids, content::Reduce reduce) {
  if (ids.empty()) return std::vector<RecordPartPtr>();
  // If all of them are known, the wait is as short as for a single one.
  const std::string what = collection + "/…";
  const Asked asked{collection, ids, reduce, what, "asked/" + what + ids.front()};
  const bool old_will_do = op->noted(asked.fact);
  std::vector<RecordPartPtr> parts;
  for (const std::string& id : ids) {
    const std::string name = asked.name_of(id);
    if (op->noted("gone/" + name)) continue;
    auto old = old_will_do ? op->held<content::RecordPart>(asked.stored_name_of(id)) : nullptr;
    if (auto part = op->held<content::RecordPart>(name)) parts.push_back(std::move(part));
    else if (old) parts.push_back(std::move(old));
    else
      return missing(
          off_thread(mount, mount.reading(), [&mount, op, asked](const CancelToken& cancel, Callback<void> done) {
            fetch_parts(mount, op, asked, content::Reads::ordinary, cancel, std::move(done));
          }));
  }
  return parts;
}

Attempt<ListPtr> list_here(Mount& mount, const OperationPtr& op, const std::string& collection) {
  return list_or_fetch(mount, op, collection, false);
}

Attempt<ListPtr> fresh_list(Mount& mount, const OperationPtr& op, const std::string& collection) {
  return list_or_fetch(mount, op, collection, mount.site().is_list_fresh(collection));
}

Attempt<ListPtr> known_list(Mount& mount, const OperationPtr& op, const std::string& collection) {
  return list_or_fetch(mount, op, collection, true);
}

Fetch fetch_revisions(Mount& mount, const OperationPtr& op, const ProjectId& project, std::vector<RevisionId> ids) {
  return [&mount, op, project, ids = std::move(ids)](CancelToken cancel, Callback<void> done) {
    if (ids.empty()) return done({});
    Once<void> all(std::move(done));
    auto left = std::make_shared<std::atomic<std::size_t>>(ids.size());
    for (const RevisionId& id : ids) {
      auto came = [&mount, op, id, all, left](const Result<RevisionTreePtr>& tree) {
        if (tree) {
          keep_summary(mount, op, **tree);
        } else {
          if (tree.error().code == ErrorCode::interrupted) all(fail(tree.error()));
          op->note("gone/" + id.text());
        }
        if (left->fetch_sub(1) == 1) all({});
      };
      mount.site().revision(id, cancel, std::move(came), project);
    }
  };
}

SummaryPtr summary_here(Mount& mount, const OperationPtr& op, const RevisionId& id) {
  auto own = op->held<RevisionSummary>("summary/" + id.text());
  return own ? own : mount.summaries().find(id);
}

SummaryPtr keep_summary(Mount& mount, const OperationPtr& op, const RevisionTree& tree) {
  SummaryPtr summary = content::summary_of(tree);
  op->hold("summary/" + summary->id.text(), summary);
  mount.summaries().add(summary);
  return summary;
}

Fetch fetch_news(Mount& mount, const OperationPtr& op, std::string what, std::chrono::milliseconds patience,
                 std::string fact, Ask ask) {
  return [&mount, op, what = std::move(what), patience, fact = std::move(fact), ask = std::move(ask)](
             CancelToken cancel, Callback<void> done) mutable {
    Once<void> first(std::move(done));
    ask(std::move(cancel), [op, fact, first](Status asked) {
      if (!asked && asked.error().code == ErrorCode::interrupted) return first(std::move(asked));
      op->note(fact);
      first({});
    });
    auto ran_out = [&mount, gate = mount.gate(), op, what, fact, first] {
      if (op->noted(fact)) return;
      op->note(fact);
      if (auto ticket = gate->enter()) mount.site().patience().ran_out(what);
      first({});
    };
    if (patience > patience.zero()) mount.executor().post_after(patience, ran_out);
    else ran_out();
  };
}

Fetch fetch_for_a_while(Mount& mount, const OperationPtr& op, std::chrono::milliseconds patience,
                        std::chrono::milliseconds longer, std::string fact, Fetch fetch) {
  /// The request may outlast the operation; so must its cancellation and the mount's ticket.
  struct Asked {
    explicit Asked(Gate::Ticket in) : ticket(std::move(in)) {}
    Gate::Ticket ticket;
    CancelSource source;
    std::vector<CancelToken::Registration> ends;
  };
  return [&mount, op, patience, longer, fact = std::move(fact), fetch = std::move(fetch)](const CancelToken& cancel,
                                                                                          Callback<void> done) mutable {
    const auto left = op->begun + patience - std::chrono::steady_clock::now();
    Once<void> first(std::move(done));
    auto ran_out = [op, fact, first] {
      op->note(fact);
      first({});
    };
    if (left <= left.zero()) return ran_out();
    auto ticket = mount.gate()->enter();
    if (!ticket) return first(fail(ErrorCode::interrupted, "the mount is shutting down"));
    auto asked = std::make_shared<Asked>(std::move(*ticket));
    for (const CancelToken& end : {cancel, mount.gate()->closing()})
      asked->ends.push_back(end.on_cancel([source = asked->source]() mutable { source.cancel(); }));
    mount.executor().post_after(left, ran_out);
    mount.executor().post_after(left + longer, [source = asked->source]() mutable { source.cancel(); });
    CancelToken token = asked->source.token();
    fetch(std::move(token), [first, asked](Status status) { first(std::move(status)); });
  };
}

Fetch on_disk(Mount& mount, UniqueFunction<Status()> work) {
  return [&threads = mount.disk(), work = std::move(work)](const CancelToken&, Callback<void> done) mutable {
    threads.post([work = std::move(work), done = std::move(done)]() mutable {
      Status status = work();
      work = {};
      done(std::move(status));
    });
  };
}

Fetch off_thread(Mount& mount, Executor& threads, UniqueFunction<void(const CancelToken&, Callback<void>)> work) {
  return [&mount, &threads, work = std::move(work)](const CancelToken& cancel, Callback<void> done) mutable {
    Once<void> first(std::move(done));
    auto ending = std::make_shared<CancelToken::Registration>(
        cancel.on_cancel([first] { first(fail(ErrorCode::interrupted, "the wait was cancelled")); }));
    threads.post([gate = mount.gate(), cancel, first, ending, work = std::move(work)]() mutable {
      auto ticket = gate->enter();
      if (ticket && !cancel.cancelled()) work(cancel, [first, ending](Status status) { first(std::move(status)); });
      work = {};  // drop what it refers to before the ticket
    });
  };
}

namespace {
/// Bytes that honest histories and records together rarely exceed.
constexpr std::size_t kMostOrdinary = 1 << 20;
}  // namespace

Attempt<std::string> rendered(Mount& mount, const OperationPtr& op, const std::string& name, std::size_t bytes,
                              UniqueFunction<std::string()> render) {
  if (bytes <= kRenderedAtOnce) return render();
  const std::string held = "text/" + name;
  if (auto text = op->held<std::string>(held)) return *text;
  Executor& threads = bytes > kMostOrdinary ? mount.large() : mount.reading();
  return missing(off_thread(mount, threads,
                            [op, held, render = std::move(render)](const CancelToken&, Callback<void> done) mutable {
                              op->hold(held, std::make_shared<const std::string>(render()));
                              done({});
                            }));
}

namespace {

/// `ask` receives the task to run once the kernel knows.
template <class Ask>
Fetch until_told(Mount& mount, const OperationPtr& op, std::string fact, std::chrono::milliseconds patience, Ask ask) {
  return [&mount, op, fact = std::move(fact), patience, ask](const CancelToken& cancel, Callback<void> done) {
    Once<void> first(std::move(done));
    auto give_up = [op, fact, first] {
      op->note(kUntold);
      op->note(fact);
      first({});
    };
    auto ending = std::make_shared<CancelToken::Registration>(cancel.on_cancel(give_up));
    ask([op, fact, first, ending] {
      op->note(fact);
      first({});
    });
    mount.executor().post_after(patience, give_up);
  };
}

}  // namespace

Fetch until_kernel_knows(Mount& mount, const OperationPtr& op, const ProjectId& project, std::string fact,
                         std::chrono::milliseconds patience) {
  return until_told(mount, op, std::move(fact), patience, [&mount, whose = project.text()](Task task) {
    mount.notifications().when_told(whose, std::move(task));
  });
}

Fetch until_kernel_knows(Mount& mount, const OperationPtr& op, NodeId node, std::string fact) {
  return until_told(mount, op, std::move(fact), kKernelPatience,
                    [&mount, node](Task task) { mount.notifications().then(node, std::move(task)); });
}

Fetch until_listings_are_dropped(Mount& mount, const OperationPtr& op, const std::string& collection,
                                 std::string fact) {
  return until_told(mount, op, std::move(fact), kKernelPatience, [&mount, whose = listings_of(collection)](Task task) {
    mount.notifications().when_told(whose, std::move(task));
  });
}

}  // namespace playfs::vfs
