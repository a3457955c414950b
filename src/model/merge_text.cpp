// Text merges, by libgit2's three-way file merge. Nothing else merges text.
#include <algorithm>

#include <git2.h>

#include "model/git_library.h"
#include "model/merge.h"

namespace playfs {

namespace {

git_merge_file_input input_of(std::string_view text, const char* name) {
  git_merge_file_input input;
  git_merge_file_input_init(&input, GIT_MERGE_FILE_INPUT_VERSION);
  input.ptr = text.data() ? text.data() : "";
  input.size = text.size();
  input.path = name;
  return input;
}

}  // namespace

Result<MergedText> merge_text(std::string_view base, std::string_view ours, std::string_view theirs,
                              const MergeLabels& labels) {
  set_up_git_library();
  git_merge_file_options options;
  git_merge_file_options_init(&options, GIT_MERGE_FILE_OPTIONS_VERSION);
  options.ancestor_label = "base";
  options.our_label = labels.ours.c_str();
  options.their_label = labels.theirs.c_str();
  auto before = input_of(base, "file"), one = input_of(ours, "file"), other = input_of(theirs, "file");
  git_merge_file_result result{};
  if (git_merge_file(&result, &before, &one, &other, &options) != 0) {
    const git_error* error = git_error_last();
    return fail(ErrorCode::internal, std::string("merging text failed: ") + (error ? error->message : "no reason"));
  }
  MergedText merged{std::string(result.ptr ? result.ptr : "", result.len), result.automergeable == 0};
  git_merge_file_result_free(&result);
  return merged;
}

void MarkerSearch::take(std::string_view piece) {
  constexpr std::size_t matters = 9;
  while (!piece.empty()) {
    auto end = piece.find('\n');
    std::string_view part = piece.substr(0, end);
    line_ += part.substr(0, matters - std::min(matters, line_.size()));
    if (end == std::string_view::npos) return;
    end_line();
    piece.remove_prefix(end + 1);
  }
}

void MarkerSearch::end_line() {
  if (line_.starts_with("<<<<<<< ")) begun_ = true;
  else if (begun_ && (line_ == "=======" || line_ == "=======\r")) divided_ = true;
  else if (divided_ && line_.starts_with(">>>>>>> ")) found_ = true;
  line_.clear();
}

bool MarkerSearch::found() {
  end_line();
  return found_;
}

bool has_conflict_markers(std::string_view text) {
  MarkerSearch search;
  search.take(text);
  return search.found();
}

}  // namespace playfs
