#include "http/pages/conversation.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "http/pages/reader.h"

namespace playfs::http {

std::vector<Reply> arrange(const std::vector<Record>& newest_first) {
  std::vector<const Record*> messages;
  for (auto record = newest_first.rbegin(); record != newest_first.rend(); ++record) messages.push_back(&*record);

  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<std::vector<std::size_t>> answers(messages.size());
  std::vector<Reply> replies(messages.size());
  std::vector<std::size_t> roots;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    replies[i].message = messages[i];
    replies[i].parent = text_field(messages[i]->fields, "parent");
    if (replies[i].parent == messages[i]->id) replies[i].parent.clear();
    auto found = places.find(replies[i].parent);
    // Only messages before this one have a place yet.
    std::size_t parent = found == places.end() ? kNone : found->second;
    replies[i].shows_parent = parent != kNone;
    (parent == kNone ? roots : answers[parent]).push_back(i);
    places.emplace(messages[i]->id, i);
  }

  // With an explicit stack: a chain of replies may be as long as the page.
  std::vector<Reply> arranged;
  std::vector<std::pair<std::size_t, std::size_t>> open;  // place and depth, the next one last
  std::vector<std::size_t> branch;                        // in `arranged`: the message before, and those it is below
  auto close_branches = [&](std::size_t depth) {
    for (; branch.size() > depth; branch.pop_back()) arranged[branch.back()].branch_end = arranged.size();
  };
  for (auto root = roots.rbegin(); root != roots.rend(); ++root) open.emplace_back(*root, 0);
  while (!open.empty()) {
    auto [place, depth] = open.back();
    open.pop_back();
    close_branches(depth);
    branch.push_back(arranged.size());
    replies[place].depth = std::min(depth, kDeepest);
    replies[place].shows_parent = replies[place].shows_parent && depth <= kDeepest;
    arranged.push_back(std::move(replies[place]));
    for (auto answer = answers[place].rbegin(); answer != answers[place].rend(); ++answer)
      open.emplace_back(*answer, depth + 1);
  }
  close_branches(0);
  return arranged;
}

}  // namespace playfs::http
