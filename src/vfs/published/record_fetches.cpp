#include "vfs/published/record_fetches.h"

#include <atomic>

#include "vfs/attempt_fetches.h"
#include "vfs/mount.h"
#include "vfs/once.h"

namespace playfs::vfs {

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

/// A callback that makes a part from a record's text. When it runs, the caller and the mount may be gone.
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

/// The part as last seen; nullptr if the record is not stored.
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
  if (mount.site().is_record_told(collection, id)) return known;
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

struct PartsQuery {
  std::string collection;
  std::vector<std::string> ids;
  content::Reduce reduce;
  std::string what, fact;
  bool any_age = false;  ///< what is stored is not requested

  [[nodiscard]] std::string name_of(const std::string& id) const { return part_name(collection, id); }
  /// Of what was known before.
  [[nodiscard]] std::string stored_name_of(const std::string& id) const { return "stored " + name_of(id); }
};

Ask ask_for_records(Mount& mount, const OperationPtr& op, const PartsQuery& query, std::vector<std::string> wanted) {
  return [&mount, op, query, wanted = std::move(wanted)](const CancelToken& cancel, Callback<void> done) {
    Once<void> all(std::move(done));
    auto left = std::make_shared<std::atomic<std::size_t>>(wanted.size());
    auto question = mount.site().patience().ask(query.what);
    for (const std::string& id : wanted) {
      auto made = [op, name = query.name_of(id), all, left, question](Result<RecordPartPtr> part) {
        if (part) op->hold(name, std::move(*part));
        else if (part.error().code == ErrorCode::not_found) op->note("gone/" + name);
        else all(fail(part.error()));
        if (left->fetch_sub(1) == 1) all({});
      };
      mount.site().record_text(query.collection, id, cancel,
                               then_make_part(mount, query.reduce, cancel, std::move(made)));
    }
  };
}

/// First reads the records that are stored; then requests all, waiting only briefly if all are stored. Large ones are
/// read on a thread of their own.
void fetch_parts(Mount& mount, const OperationPtr& op, const PartsQuery& query, content::Reads reads,
                 const CancelToken& cancel, Callback<void> done) {
  std::vector<std::string> wanted;
  bool all_known = true;
  for (const std::string& id : query.ids) {
    const std::string name = query.name_of(id);
    if (op->held<content::RecordPart>(name) || op->noted("gone/" + name)) continue;
    const bool is_stored = op->held<content::RecordPart>(query.stored_name_of(id)) != nullptr;
    if (is_stored && query.any_age) continue;
    wanted.push_back(id);
    if (is_stored) continue;
    if (cancel.cancelled()) return done(fail(ErrorCode::interrupted, "the wait was cancelled"));
    auto part = mount.site().known_part(query.collection, id, query.reduce, reads);
    if (part.takes_long) {
      auto again = [&mount, op, query](const CancelToken& token, Callback<void> callback) {
        fetch_parts(mount, op, query, content::Reads::any, token, std::move(callback));
      };
      return off_thread(mount, mount.large(), std::move(again))(cancel, std::move(done));
    }
    if (!part.part) {
      all_known = false;
      continue;
    }
    const bool is_current = mount.site().is_record_told(query.collection, id);
    op->hold(is_current ? name : query.stored_name_of(id), std::move(part.part));
    if (is_current || query.any_age) wanted.pop_back();
  }
  if (wanted.empty()) {
    op->note(query.fact);
    return done({});
  }
  Ask ask = ask_for_records(mount, op, query, std::move(wanted));
  if (!all_known) return ask(cancel, std::move(done));
  const auto patience = mount.site().patience().left_for(query.what);
  if (patience)
    return fetch_news(mount, op, query.what, *patience, query.fact, std::move(ask))(cancel, std::move(done));
  op->note(query.fact);
  done({});
}

}  // namespace

namespace {

Attempt<std::vector<RecordPartPtr>> parts(Mount& mount, const OperationPtr& op, const PartsQuery& query) {
  const bool old_will_do = query.any_age || op->noted(query.fact);
  std::vector<RecordPartPtr> found;
  for (const std::string& id : query.ids) {
    const std::string name = query.name_of(id);
    if (op->noted("gone/" + name)) continue;
    auto old = old_will_do ? op->held<content::RecordPart>(query.stored_name_of(id)) : nullptr;
    if (auto part = op->held<content::RecordPart>(name)) found.push_back(std::move(part));
    else if (old) found.push_back(std::move(old));
    else
      return missing(
          off_thread(mount, mount.reading(), [&mount, op, query](const CancelToken& cancel, Callback<void> done) {
            fetch_parts(mount, op, query, content::Reads::ordinary, cancel, std::move(done));
          }));
  }
  return found;
}

PartsQuery query_for(const std::string& collection, const std::vector<std::string>& ids, content::Reduce reduce) {
  // If all of them are known, the wait is as short as for a single one.
  const std::string what = collection + "/…";
  return {collection, ids, reduce, what, "asked/" + what + ids.front()};
}

}  // namespace

Attempt<std::vector<RecordPartPtr>> parts_here(Mount& mount, const OperationPtr& op, const std::string& collection,
                                               const std::vector<std::string>& ids, content::Reduce reduce) {
  if (ids.empty()) return std::vector<RecordPartPtr>();
  return parts(mount, op, query_for(collection, ids, reduce));
}

Attempt<std::vector<RecordPartPtr>> known_parts(Mount& mount, const OperationPtr& op, const std::string& collection,
                                                const std::vector<std::string>& ids, content::Reduce reduce) {
  if (ids.empty()) return std::vector<RecordPartPtr>();
  PartsQuery query = query_for(collection, ids, reduce);
  query.any_age = true;
  return parts(mount, op, query);
}

}  // namespace playfs::vfs
