// The work tree as a few maps: the expected result of any sequence of operations on a stage.
//
// Operations are data, so the same ones can be run on the model and on a stage, in one process or two.
#pragma once

#include <fcntl.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/workbench.h"

namespace playfs::model_test {

using test::Text;
using test::Texts;

struct Operation {
  enum class Kind {
    make_file,
    make_directory,
    make_symlink,
    make_fifo,
    write,
    truncate,
    punch,
    chmod,
    link,
    unlink,
    remove_directory,
    rename,
    rename_no_replace,
    exchange,
    discard,
    freeze,
    settle,
    thaw,
    move_base,
    reopen,
    check,
  };
  Kind kind = Kind::check;
  std::string path, other;
  std::string data;
  std::uint64_t offset = 0;
  unsigned permissions = 0644;
  std::uint64_t seed = 0;  ///< of what others publish meanwhile
};

/// For a person who investigates a failure.
std::string describe(const Operation& operation);

class Model {
 public:
  struct Node {
    stage::Kind kind = stage::Kind::file;
    std::string content;
    bool runs = false;
    std::map<std::string, std::shared_ptr<Node>> children;
  };
  using NodePtr = std::shared_ptr<Node>;

  explicit Model(Texts base);
  Model(const Model& other);  ///< deep copy
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;
  ~Model() = default;

  /// The expected result of the operation: nullopt for success.
  std::optional<ErrorCode> apply(const Operation& operation);
  /// An operation that makes sense most of the time.
  Operation invent(std::mt19937_64& random) const;

  /// All files and links that could be published (without ignored ones and fifos).
  [[nodiscard]] Texts published_view() const;
  /// One line per name: path, kind, mode, content, and which names are one file.
  [[nodiscard]] std::vector<std::string> lines() const;
  [[nodiscard]] std::vector<std::string> changes() const;
  [[nodiscard]] const Texts& base() const { return base_; }
  [[nodiscard]] std::string base_id() const { return "r" + std::to_string(revision_); }
  /// The base after settle() or move_base() with this operation.
  [[nodiscard]] Texts next_base(const Operation& operation) const;
  [[nodiscard]] bool has_pending() const { return pending_.has_value(); }

  NodePtr find(std::string_view path) const;

 private:
  NodePtr parent(std::string_view path) const;
  std::optional<ErrorCode> rename(const Operation& operation);
  /// What differs from the base at or below a path.
  [[nodiscard]] std::set<std::string> changed_below(const std::string& top) const;
  /// Whether something that stays occupies the place of a published file that must come back.
  [[nodiscard]] bool is_obstructed(const std::set<std::string>& dropped) const;
  /// The rule of rebase.h, path by path.
  void follow(Texts published, const Texts& next);
  void set_file(const std::string& path, const Text& text);
  void remove_file(const std::string& path);

  NodePtr root_;
  Texts base_;
  std::optional<Texts> pending_;  ///< the base with the frozen layer on top
  int revision_ = 1;
};

/// Runs the same on a stage.
std::optional<ErrorCode> apply(test::Workbench& bench, const Model& before, const Operation& operation);
std::vector<std::string> lines(test::Workbench& bench);

}  // namespace playfs::model_test
