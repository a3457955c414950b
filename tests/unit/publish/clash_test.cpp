// Whatever two sides did to a path, either it merges or the path is in conflict, and no commit passes over a conflict.
//
// Every pair of changes of a file, of a new name and of a directory is combined in three ways: by an update, by a
// commit that finds head moved, and by merging a branch. Afterwards each side's change is there, or the path is in the
// list of conflicts; a commit is refused until that is resolved, with ordinary operations, and then succeeds.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/await.h"
#include "model/chunking.h"
#include "publish/conflicts.h"
#include "support/publish_world.h"
#include "wire/json.h"

namespace playfs::publish {
namespace {

using test::WorkTree;

struct File {
  std::string content;
  FileMode mode = FileMode::regular;
  bool operator==(const File&) const = default;
};
using Files = std::map<std::string, File>;

const std::string kBinary("\0one", 4);
const Files kBase = {
    {"f", {"a\nb\nc\nd\ne\n"}}, {"b", {kBinary}}, {"d/x", {"x\n"}}, {"d/y", {"y\n"}}, {"e/deep/z", {"z\n"}}};

/// One side's change, as another client publishes it and as a work tree does it.
struct Change {
  std::string name;
  std::function<void(Files&)> published;
  std::function<void(WorkTree&)> staged;
};

void remove_directory(WorkTree& work, const std::string& name) {
  ASSERT_TRUE(work.stage->remove_directory(work.stage->root(), name)) << name;
}

/// `who` is part of the content, so that both sides do the same kind of thing differently.
std::vector<Change> changes_of_a_file(const std::string& path, const std::string& who) {
  const std::string text = "a\n" + who + "\nc\nd\ne\n", binary = std::string("\0", 1) + who;
  const std::string beginning = who == "ours" ? "ours\na\nb\nc\nd\ne\n" : "a\nb\nc\nd\ne\ntheirs\n";
  return {
      {"edit a line", [=](Files& files) { files[path] = {text}; }, [=](WorkTree& work) { work.write(path, text); }},
      {"edit elsewhere", [=](Files& files) { files[path] = {beginning}; },
       [=](WorkTree& work) { work.write(path, beginning); }},
      {"make binary", [=](Files& files) { files[path] = {binary}; }, [=](WorkTree& work) { work.write(path, binary); }},
      {"chmod", [=](Files& files) { files[path].mode = FileMode::executable; },
       [=](WorkTree& work) {
         auto file = work.stage->lookup(work.stage->root(), path);
         stage::AttributeChange change;
         change.permissions = 0755;
         ASSERT_TRUE(work.stage->set_attributes(*file, change));
       }},
      {"delete", [=](Files& files) { files.erase(path); }, [=](WorkTree& work) { work.remove(path); }},
      {"rename away",
       [=](Files& files) {
         files["moved-" + who] = files[path];
         files.erase(path);
       },
       [=](WorkTree& work) { work.rename(path, "moved-" + who); }},
      {"rename over",
       [=](Files& files) {
         files[path] = files["b"];
         files.erase("b");
       },
       [=](WorkTree& work) { work.rename("b", path); }},
      {"make a link",
       [=](Files& files) {
         files[path] = {who, FileMode::symlink};
       },
       [=](WorkTree& work) {
         work.remove(path);
         ASSERT_TRUE(work.stage->make_symlink(work.stage->root(), path, who, {}));
       }},
      {"make a directory",
       [=](Files& files) {
         files.erase(path);
         files[path + "/in"] = {who};
       },
       [=](WorkTree& work) {
         work.remove(path);
         work.write(path + "/in", who);
       }},
  };
}

std::vector<Change> changes_of_a_new_name(const std::string& who, const std::string& name = "n") {
  return {
      {"new file", [=](Files& files) { files[name] = {who + "\n"}; },
       [=](WorkTree& work) { work.write(name, who + "\n"); }},
      {"new binary", [=](Files& files) { files[name] = {std::string("\0", 1) + who}; },
       [=](WorkTree& work) { work.write(name, std::string("\0", 1) + who); }},
      {"new directory", [=](Files& files) { files[name + "/in"] = {who}; },
       [=](WorkTree& work) { work.write(name + "/in", who); }},
      {"new deep directory", [=](Files& files) { files[name + "/in/deep"] = {who}; },
       [=](WorkTree& work) { work.write(name + "/in/deep", who); }},
  };
}

std::vector<Change> changes_of_a_directory(const std::string& who) {
  auto remove_all = [](WorkTree& work) {
    work.remove("d/x");
    work.remove("d/y");
    remove_directory(work, "d");
  };
  auto erase_all = [](Files& files) {
    files.erase("d/x");
    files.erase("d/y");
  };
  return {
      {"edit within", [=](Files& files) { files["d/x"] = {who + "\n"}; },
       [=](WorkTree& work) { work.write("d/x", who + "\n"); }},
      {"add within", [=](Files& files) { files["d/new-" + who] = {who}; },
       [=](WorkTree& work) { work.write("d/new-" + who, who); }},
      {"delete all", erase_all, remove_all},
      {"replace by a file",
       [=](Files& files) {
         erase_all(files);
         files["d"] = {who};
       },
       [=](WorkTree& work) {
         remove_all(work);
         work.write("d", who);
       }},
  };
}

/// Of paths that the other side leaves alone: a file becomes a directory, a directory a file.
std::vector<Change> changes_of_kind(const std::string& who) {
  return {
      {"a file becomes a directory",
       [=](Files& files) {
         files.erase("f");
         files["f/in/deep"] = {who};
       },
       [=](WorkTree& work) {
         work.remove("f");
         work.write("f/in/deep", who);
       }},
      {"a directory becomes a file",
       [=](Files& files) {
         files.erase("d/x");
         files.erase("d/y");
         files["d"] = {who};
       },
       [=](WorkTree& work) {
         work.remove("d/x");
         work.remove("d/y");
         remove_directory(work, "d");
         work.write("d", who);
       }},
      {"a deep directory becomes a link",
       [=](Files& files) {
         files.erase("e/deep/z");
         files["e"] = {who, FileMode::symlink};
       },
       [=](WorkTree& work) {
         work.remove("e/deep/z");
         auto above = work.stage->find("e");
         ASSERT_TRUE(work.stage->remove_directory(above, "deep"));
         remove_directory(work, "e");
         ASSERT_TRUE(work.stage->make_symlink(work.stage->root(), "e", who, {}));
       }},
  };
}
std::vector<Change> changes_of_nothing_else(const std::string& who) {
  return {{"elsewhere", [=](Files& files) { files["of-" + who] = {who}; },
           [=](WorkTree& work) { work.write("of-" + who, who); }}};
}

class ClashTest : public testing::Test {
 public:
  struct Case {
    std::string project, root, theirs;
    Files published;
  };

  std::string publish(const std::string& project, const std::vector<std::string>& parents, const Files& contents) {
    JsonObject files;
    for (const auto& [path, file] : contents) {
      auto encoding = encoding_for(file.content);
      JsonObject entry{{"inline", encode_content(file.content, encoding)}};
      if (encoding == ContentEncoding::base64) entry.set("e", "base64");
      if (file.mode == FileMode::executable) entry.set("m", "100755");
      if (file.mode == FileMode::symlink) entry.set("m", "120000");
      files.set(path, std::move(entry));
    }
    Json::Array ids;
    for (const auto& parent : parents) ids.emplace_back(parent);
    JsonObject body{
        {"project", project}, {"parents", std::move(ids)}, {"manifest", JsonObject{{"files", std::move(files)}}}};
    return world.create("revisions", wire::to_text(body)).id;
  }
  RevisionTreePtr revision(WorkTree& work, const std::string& id) {
    auto tree = await<RevisionTreePtr>([&](auto done) { work.site->revision(RevisionId(id), {}, std::move(done)); });
    EXPECT_TRUE(tree);
    return *tree;
  }
  Result<Integrated> update(WorkTree& work, const std::string& id) {
    return await<Integrated>(
        [&](auto done) { work.publisher->update(revision(work, id), CancelToken(), std::move(done)); });
  }
  Result<Integrated> merge(WorkTree& work, const std::string& id) {
    return await<Integrated>(
        [&](auto done) { work.publisher->merge(revision(work, id), CancelToken(), std::move(done)); });
  }

  static Files files_of(const WorkTree& work) {
    Files all;
    std::function<void(const stage::InodePtr&, const std::string&)> walk = [&](const auto& directory,
                                                                               const std::string& above) {
      auto entries = work.stage->list(directory, 0, 1000);
      ASSERT_TRUE(entries);
      for (const auto& entry : *entries) {
        std::string path = above + entry.name;
        auto attributes = work.stage->attributes(entry.inode).value();
        if (attributes.kind == stage::Kind::directory) {
          walk(entry.inode, path + "/");
          continue;
        }
        bool is_link = attributes.kind == stage::Kind::symlink;
        File file{{},
                  is_link                                ? FileMode::symlink
                  : (attributes.permissions & 0100) != 0 ? FileMode::executable
                                                         : FileMode::regular};
        if (auto lower = work.stage->lower_content(entry.inode)) file.content = lower->entry->inline_content().value();
        else if (is_link) file.content = work.stage->symlink_target(entry.inode).value();
        else file.content = work.stage->read(entry.inode, 0, attributes.size).value();
        all[path] = file;
      }
    };
    walk(work.stage->root(), "");
    return all;
  }
  static std::set<std::string> conflicts_of(const WorkTree& work) {
    std::set<std::string> paths;
    auto left = unresolved(*work.stage);
    EXPECT_TRUE(left);
    for (const auto& each : *left) paths.insert(each.path);
    return paths;
  }
  static const File* at(const Files& files, const std::string& path) {
    auto found = files.find(path);
    return found == files.end() ? nullptr : &found->second;
  }
  static bool same(const File* a, const File* b) { return a && b ? *a == *b : a == b; }

  /// Each path that a side changed is as that side has it, or contains what it wrote, or is in conflict.
  static void expect_nothing_lost(const Files& side, const Files& now, const std::set<std::string>& conflicts,
                                  const std::string& who) {
    std::set<std::string> paths;
    for (const Files* files : {&kBase, &side})
      for (const auto& [path, file] : *files) paths.insert(path);
    for (const auto& path : paths) {
      const File* was = at(kBase, path);
      const File* wanted = at(side, path);
      const File* is = at(now, path);
      if (same(was, wanted) || same(wanted, is)) continue;
      bool is_in_conflict = std::any_of(conflicts.begin(), conflicts.end(), [&](const std::string& each) {
        return path == each || path.starts_with(each + "/") || each.starts_with(path + "/");
      });
      bool is_merged = wanted && is && is->content.find(who) != std::string::npos;
      // One side changed the bytes and the other the mode: both are there.
      bool has_mode = wanted && is && was && wanted->mode != was->mode && is->mode == wanted->mode;
      bool has_content = wanted && is && was && wanted->content != was->content && is->content == wanted->content;
      EXPECT_TRUE(is_in_conflict || is_merged || has_mode || has_content)
          << "what " << who << " did to " << path << " is gone, and nothing says so";
    }
  }

  /// A commit is refused, with the paths, until each conflict is resolved; then it succeeds.
  void expect_resolvable(WorkTree& work, const std::string& project) {
    auto conflicts = conflicts_of(work);
    if (!conflicts.empty()) {
      Files before = files_of(work);
      auto refused = work.commit();
      ASSERT_FALSE(refused) << "published over a conflict at " << *conflicts.begin();
      EXPECT_EQ(refused.error().code, ErrorCode::conflict);
      bool is_named = std::any_of(conflicts.begin(), conflicts.end(), [&](const std::string& path) {
        return refused.error().message.find(path) != std::string::npos;
      });
      EXPECT_TRUE(is_named) << refused.error().message;
      EXPECT_EQ(files_of(work), before);
      // Updating again reverts nothing: it is refused as well.
      std::string later = publish(project, {world.head(project)}, {{"f", {"a later head\n"}}});
      auto again = update(work, later);
      ASSERT_FALSE(again);
      EXPECT_EQ(again.error().code, ErrorCode::conflict);
      EXPECT_EQ(files_of(work), before);
      EXPECT_EQ(conflicts_of(work), conflicts);
    }
    auto open = unresolved(*work.stage);
    for (const auto& each : *open) {
      if (!each.beside.empty()) {
        work.rename(each.beside, "kept-" + std::to_string(number_++));
      } else if (at(files_of(work), each.path)) {
        work.remove(each.path);
      } else {
        work.write(each.path, "resolved\n");
      }
    }
    EXPECT_EQ(conflicts_of(work), std::set<std::string>());
    Files resolved = files_of(work);
    auto result = work.commit("resolved");
    ASSERT_TRUE(result) << result.error().message;
    if (result->outcome == Outcome::published) {
      auto published = world.contents(result->revision.text());
      EXPECT_EQ(published.size(), resolved.size());
      for (const auto& [path, file] : resolved) EXPECT_EQ(published[path], file.content) << path;
    }
    EXPECT_TRUE(work.stage->is_clean());
  }

  void by_update(const Change& ours, const Change& theirs) {
    std::string project = world.create("projects", R"({"name":"p"})").id;
    std::string root = publish(project, {}, kBase);
    world.set_head(project, root);
    WorkTree work(world, project, directory.path() + "/" + project);
    ours.staged(work);
    Files staged = files_of(work), published = kBase;
    theirs.published(published);
    std::string head = publish(project, {root}, published);
    world.set_head(project, head);
    auto updated = update(work, head);
    ASSERT_TRUE(updated) << updated.error().message;
    Files now = files_of(work);
    auto conflicts = conflicts_of(work);
    expect_nothing_lost(staged, now, conflicts, "ours");
    expect_nothing_lost(published, now, conflicts, "theirs");
    expect_resolvable(work, project);
  }

  void by_commit(const Change& ours, const Change& theirs) {
    std::string project = world.create("projects", R"({"name":"p"})").id;
    std::string root = publish(project, {}, kBase);
    world.set_head(project, root);
    WorkTree work(world, project, directory.path() + "/" + project);
    ours.staged(work);
    Files staged = files_of(work), published = kBase;
    theirs.published(published);
    std::string head = publish(project, {root}, published);
    world.set_head(project, head);
    auto result = work.commit();
    ASSERT_TRUE(result) << result.error().message;
    if (result->outcome == Outcome::branched) {
      EXPECT_EQ(world.head(project), head);
      auto updated = update(work, head);
      ASSERT_TRUE(updated) << updated.error().message;
      EXPECT_FALSE(conflicts_of(work).empty());
    }
    Files now = files_of(work);
    auto conflicts = conflicts_of(work);
    expect_nothing_lost(staged, now, conflicts, "ours");
    expect_nothing_lost(published, now, conflicts, "theirs");
    expect_resolvable(work, project);
  }

  void by_merge(const Change& ours, const Change& theirs) {
    std::string project = world.create("projects", R"({"name":"p"})").id;
    std::string root = publish(project, {}, kBase);
    world.set_head(project, root);
    WorkTree work(world, project, directory.path() + "/" + project);
    ours.staged(work);
    Files staged = files_of(work), published = kBase;
    theirs.published(published);
    ASSERT_TRUE(work.commit());
    std::string branch = publish(project, {root}, published);
    auto merged = merge(work, branch);
    ASSERT_TRUE(merged) << merged.error().message;
    Files now = files_of(work);
    auto conflicts = conflicts_of(work);
    expect_nothing_lost(staged, now, conflicts, "ours");
    expect_nothing_lost(published, now, conflicts, "theirs");
    expect_resolvable(work, project);
  }

  void each_pair(const std::vector<Change>& ours, const std::vector<Change>& theirs,
                 void (ClashTest::*bring_together)(const Change&, const Change&)) {
    for (const auto& mine : ours) {
      for (const auto& yours : theirs) {
        SCOPED_TRACE("ours: " + mine.name + "; theirs: " + yours.name);
        (this->*bring_together)(mine, yours);
      }
    }
  }
  test::World world;
  test::TemporaryDirectory directory;
  int number_ = 0;
};

TEST_F(ClashTest, AFileByUpdate) {
  each_pair(changes_of_a_file("f", "ours"), changes_of_a_file("f", "theirs"), &ClashTest::by_update);
}
TEST_F(ClashTest, AFileByACommitThatFindsHeadMoved) {
  each_pair(changes_of_a_file("f", "ours"), changes_of_a_file("f", "theirs"), &ClashTest::by_commit);
}
TEST_F(ClashTest, AFileByTakingABranchIn) {
  each_pair(changes_of_a_file("f", "ours"), changes_of_a_file("f", "theirs"), &ClashTest::by_merge);
}
TEST_F(ClashTest, ANewNameByUpdate) {
  each_pair(changes_of_a_new_name("ours"), changes_of_a_new_name("theirs"), &ClashTest::by_update);
}
TEST_F(ClashTest, ANewNameByACommitThatFindsHeadMoved) {
  each_pair(changes_of_a_new_name("ours"), changes_of_a_new_name("theirs"), &ClashTest::by_commit);
}
TEST_F(ClashTest, ANewNameByTakingABranchIn) {
  each_pair(changes_of_a_new_name("ours"), changes_of_a_new_name("theirs"), &ClashTest::by_merge);
}
// Theirs would be put beside ours under a longer name.
TEST_F(ClashTest, ANameThatCannotGetLonger) {
  std::string of_characters = "n";
  while (of_characters.size() < 255) of_characters += "\u00e9";
  for (const std::string& name : {std::string(255, 'n'), of_characters})
    for (auto bring_together : {&ClashTest::by_update, &ClashTest::by_commit, &ClashTest::by_merge})
      each_pair(changes_of_a_new_name("ours", name), changes_of_a_new_name("theirs", name), bring_together);
}
TEST_F(ClashTest, ADirectoryByUpdate) {
  each_pair(changes_of_a_directory("ours"), changes_of_a_directory("theirs"), &ClashTest::by_update);
}
TEST_F(ClashTest, ADirectoryByACommitThatFindsHeadMoved) {
  each_pair(changes_of_a_directory("ours"), changes_of_a_directory("theirs"), &ClashTest::by_commit);
}
TEST_F(ClashTest, ADirectoryByTakingABranchIn) {
  each_pair(changes_of_a_directory("ours"), changes_of_a_directory("theirs"), &ClashTest::by_merge);
}
// The two sides changed different things: it merges, whichever of them is in the work tree.
TEST_F(ClashTest, AnotherKind) {
  for (auto bring_together : {&ClashTest::by_update, &ClashTest::by_commit, &ClashTest::by_merge}) {
    each_pair(changes_of_nothing_else("ours"), changes_of_kind("theirs"), bring_together);
    each_pair(changes_of_kind("ours"), changes_of_nothing_else("theirs"), bring_together);
  }
}

}  // namespace
}  // namespace playfs::publish
