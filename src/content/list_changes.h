// Private to this module's lists: changes of a list while they are made.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "content/lists.h"
#include "wire/cursors.h"

namespace playfs::content {

/// One update of a list. Only accessed by the page that has just arrived.
struct Lists::Reading {
  /// A record from a page. What was received of it since then may be later.
  struct Taken {
    Listed item;
    SteadyTime at;
  };
  std::string collection;
  ListPtr known;  ///< never nullptr
  bool is_known_whole = true;
  std::unordered_map<std::string_view, std::size_t> anchors;  ///< ids of the newest known records to index in `known`
  std::deque<Taken> fresh;                                    ///< including the first that is too many
  std::size_t bytes = 0;                                      ///< of `fresh`
  std::vector<Taken> renamed;
  std::unordered_set<std::string_view> fresh_ids;  ///< into `fresh`
  wire::Cursors cursors;
  std::size_t cursor_bytes = 0;  ///< of all those read
  std::string cursor;            ///< of the next page
  std::string behind;            ///< of the page after the last one read
  SteadyTime asked_at;
  int again = 0;  ///< readings before this one for the same flight
  Patience::Question question;
  int empty_pages = 0;
  bool met_known = false;
  std::unordered_set<std::string_view> met;  ///< known records on the pages; into `known`
  std::uint64_t loaded = 0;                  ///< List::loaded of `known`
  std::uint64_t period = 0;                  ///< of Live
  std::uint64_t event = 0;                   ///< number of the last event before it
};

/// A list as it will be after a change.
struct Lists::Next {
  std::vector<Listed> items;
  std::vector<Listed> renamed;  ///< those that were known as something else
  Dated dated;
  bool is_part = false, is_stored = false, is_cut = false;
  ListPtr list;  ///< `items` as they are shared; nullptr: the same as before
};

}  // namespace playfs::content
