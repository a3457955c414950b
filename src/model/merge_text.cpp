// Text merges, by libgit2's three-way file merge. Nothing else merges text.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "model/git_library.h"
#include "model/merge.h"

namespace playfs {

std::size_t count_lines(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) +
         (!text.empty() && !text.ends_with('\n'));
}

namespace {

/// Removes the first line from `text`, and returns it without its line break, and the break.
std::pair<std::string_view, std::string_view> take_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end);
  const std::size_t length = line.size() - (line.ends_with("\r\n") ? 2 : line.ends_with('\n') ? 1 : 0);
  return {line.substr(0, length), line.substr(length)};
}

/// Texts with their lines replaced by numbers, equal lines by equal ones; breaks are kept. The merge is the same, but
/// nobody can choose lines whose hashes collide in libgit2, which would compare each with all others.
struct Numbered {
  std::array<std::string, 3> texts;
  std::vector<std::string_view> lines;
};

Numbered numbered(const std::array<std::string_view, 3>& texts) {
  Numbered result;
  std::map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::string_view rest = texts[i]; !rest.empty();) {
      auto [line, end] = take_line(rest);
      auto [known, is_new] = numbers.emplace(line, result.lines.size());
      if (is_new) result.lines.push_back(line);
      result.texts[i] += std::to_string(known->second);
      result.texts[i] += end;
    }
  }
  return result;
}

/// Puts the lines back into a merge, and completes its markers.
std::string with_lines(std::string_view merge, const std::vector<std::string_view>& lines, const MergeLabels& labels) {
  std::string text;
  while (!merge.empty()) {
    auto [line, end] = take_line(merge);
    std::size_t number = 0;
    const bool is_marker = std::from_chars(line.data(), line.data() + line.size(), number).ec != std::errc();
    text += is_marker ? line : lines[number];
    if (is_marker && line.starts_with('<')) text += labels.ours;
    if (is_marker && line.starts_with('>')) text += labels.theirs;
    text += end;
  }
  return text;
}

git_merge_file_input input_of(const std::string& text) {
  git_merge_file_input input;
  git_merge_file_input_init(&input, GIT_MERGE_FILE_INPUT_VERSION);
  input.ptr = text.data();
  input.size = text.size();
  input.path = "file";
  return input;
}

std::size_t lines_between_first_and_last_change(std::string_view a, std::string_view b) {
  const auto begin = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  a.remove_prefix(static_cast<std::size_t>(begin));
  b.remove_prefix(static_cast<std::size_t>(begin));
  const auto end = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin();
  a.remove_suffix(static_cast<std::size_t>(end));
  b.remove_suffix(static_cast<std::size_t>(end));
  return count_lines(a) + count_lines(b);
}

}  // namespace

std::size_t cost_of_merge(std::string_view base, std::string_view ours, std::string_view theirs) {
  return count_lines(base) + count_lines(ours) + count_lines(theirs) + lines_between_first_and_last_change(base, ours) +
         lines_between_first_and_last_change(base, theirs);
}

Result<MergedText> merge_text(std::string_view base, std::string_view ours, std::string_view theirs,
                              const MergeLabels& labels) {
  PLAYFS_CHECK(set_up_git_library());
  git_merge_file_options options;
  git_merge_file_options_init(&options, GIT_MERGE_FILE_OPTIONS_VERSION);
  options.our_label = options.their_label = "";
  const Numbered numbers = numbered({base, ours, theirs});
  auto before = input_of(numbers.texts[0]), one = input_of(numbers.texts[1]), other = input_of(numbers.texts[2]);
  git_merge_file_result result{};
  if (git_merge_file(&result, &before, &one, &other, &options) != 0) {
    const git_error* error = git_error_last();
    return fail(ErrorCode::internal, std::string("merging text failed: ") + (error ? error->message : "no reason"));
  }
  MergedText merged{with_lines({result.ptr ? result.ptr : "", result.len}, numbers.lines, labels),
                    result.automergeable == 0};
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
