// The lines of an inbox, in the order in which their records came. A line that changes or vanishes changes all places,
// so that whoever shows the lines begins anew. Memory is bounded: the older half is dropped. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

namespace playfs::content {

class InboxLines {
 public:
  /// `most`: bytes.
  explicit InboxLines(std::size_t most) : most_(most) {}

  /// Adds the line of a record at the end; a line that the record has already is removed. `line`: without its end.
  void append(const std::string& record, std::string line);
  /// Changes the record's line in its place; "": it has nothing to show. If it has none, or it was dropped, none comes.
  void replace(const std::string& record, std::string line);
  /// Hides the record's line, or shows it again.
  void show(const std::string& record, bool is_shown);

  [[nodiscard]] std::string text() const;
  /// The place behind them.
  [[nodiscard]] std::uint64_t end() const { return begin_ + bytes_; }
  /// What was added since end() was `place`; nullopt if anything else has changed.
  [[nodiscard]] std::optional<std::string> text_from(std::uint64_t place) const;
  /// Whether lines were dropped.
  [[nodiscard]] bool is_cut() const { return is_cut_; }

 private:
  struct Line {
    std::string record, text;
    bool is_shown = true;
    [[nodiscard]] std::size_t bytes() const { return is_shown ? text.size() : 0; }
  };
  using Place = std::map<std::uint64_t, Line>::iterator;

  [[nodiscard]] Place find(const std::string& record);
  void remove(Place line);
  /// Makes former places unknown.
  void begin_anew() { begin_ += bytes_ + 1; }

  const std::size_t most_;
  std::map<std::uint64_t, Line> lines_;  ///< by number
  std::unordered_map<std::string, std::uint64_t> numbers_;
  std::uint64_t next_ = 1;
  std::uint64_t begin_ = 0;  ///< the place of the first line
  std::size_t bytes_ = 0;    ///< that are shown
  bool is_cut_ = false;
};

}  // namespace playfs::content
