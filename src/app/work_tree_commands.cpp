// The command line of the commands of a work tree: status, diff, log, blame; commit, checkpoint, discard, restore,
// revert; update, merge, branches.
#include "app/command_registry.h"
#include "app/commands/commands.h"

namespace playfs::app {

namespace {

void add_inspecting(CommandRegistry& registry) {
  std::shared_ptr<StatusArguments> st;
  registry
      .add(registry.app(), "status", "Show what is staged in the work tree",
           "  playfs status\n  playfs status --json ~/play/projects/ID/work", status, st)
      ->add_option("PATH", st->path, "A path in the mount (default: the working directory)");

  std::shared_ptr<DiffArguments> d;
  auto* diff_command = registry.add(
      registry.app(), "diff", "Show staged changes, or the differences between revisions, as a unified diff",
      "  playfs diff\n"
      "  playfs diff --stat src\n"
      "  playfs diff head              the work tree against the latest revision\n"
      "  playfs diff REV..head src/    two revisions; base is the work tree's base revision",
      diff, d);
  diff_command
      ->add_option("PATH", d->words, "What to compare (default: base and work tree); limit the diff to these paths")
      ->option_text("[REV[..REV]] PATH");
  diff_command->add_flag("--stat", d->stat, "Only show how many lines changed in each file");
  diff_command->add_flag("!--no-pager", d->pager, "Do not use a pager");

  std::shared_ptr<LogArguments> l;
  auto* log_command =
      registry.add(registry.app(), "log", "Show a project's revisions and the graph of their parents, newest first",
                   "  playfs log -n 5\n  playfs log --oneline --all\n  playfs log --project demo --json\n"
                   "  playfs log src/main.c         the revisions that changed this file\n"
                   "  playfs log -S 'parse(' src    those that added or removed this text there\n"
                   "\n"
                   "With --json: one revision per line (NDJSON), in the order they are found.",
                   log, l);
  log_command->add_option("PATH", l->path,
                          "Only revisions that changed this file, or anything in this directory, of the work tree "
                          "(default: all revisions of the project of the working directory)");
  log_command->add_option("-S", l->text, "Only revisions that changed how often this text occurs")->type_name("TEXT");
  log_command->add_option("--project", l->project, "Show this project's log (id or name), without a mount")
      ->type_name("PROJECT");
  log_command->add_option("-n,--limit", l->limit, "Show at most N revisions")->type_name("N");
  log_command->add_flag("--all", l->all,
                        "Fetch the list of branches first; without it, only branches already known are shown");
  log_command->add_flag("--oneline", l->oneline, "Show each revision on one line");
  log_command->add_flag("!--no-graph", l->graph, "Do not draw the graph");
  log_command->add_flag("!--no-pager", l->pager, "Do not use a pager");
}

void add_publishing(CommandRegistry& registry) {
  std::shared_ptr<CommitArguments> c;
  auto* commit_command = registry.add(registry.app(), "commit", "Publish what is staged",
                                      "  playfs commit -m 'Fix the parser'\n"
                                      "  playfs commit --no-wait -m 'Large import' --agent ada\n"
                                      "  playfs publish --dry-run      show what each path costs; send nothing\n"
                                      "  playfs commit --cancel        take back a commit that has not been sent",
                                      commit, c);
  commit_command->add_option("PATH", c->path, "A path in the mount (default: the working directory)");
  commit_command->add_option("-m,--message", c->message, "What has changed, and why")->type_name("MESSAGE");
  commit_command->add_option("--agent", c->agent, "The author's handle")->type_name("HANDLE");
  commit_command->add_flag("!--no-wait", c->wait,
                           "Return as soon as the commit is safe on disk; publish in the background");
  commit_command->add_flag(
      "!--no-merge", c->merge,
      "Do not merge now: if head has moved, publish a branch (any mount may merge it later, if nothing conflicts)");
  commit_command->add_flag("--resolved", c->resolved, "Mark all conflicts as resolved");
  commit_command->add_flag("--dry-run", c->dry_run, "Show what the commit would cost; send nothing");
  commit_command->add_flag("--cancel", c->cancel,
                           "Cancel commits that have not been sent; their changes are staged again");
  commit_command->alias("publish");
  commit_command->parse_complete_callback([c] {
    if (c->message.empty() && !c->dry_run && !c->cancel) throw CLI::RequiredError("--message");
  });

  std::shared_ptr<DiscardArguments> x;
  registry
      .add(registry.app(), "discard", "Discard staged changes at and below paths",
           "  playfs discard src/main.c\n  playfs discard   (everything below the working directory)\n"
           "\n"
           "What was staged is kept in a checkpoint first. To bring it back: playfs checkpoint restore ID PATH",
           discard, x)
      ->add_option("PATH", x->paths, "What to discard (default: the working directory)");
}

void add_checkpoints(CommandRegistry& registry) {
  std::shared_ptr<CheckpointArguments> c;
  auto* command =
      registry.add(registry.app(), "checkpoint", "Keep what is staged on this machine, to return to it",
                   "  playfs checkpoint -m 'Before the rewrite'\n"
                   "  playfs checkpoint list\n"
                   "  playfs checkpoint restore 3 src\n"
                   "\n"
                   "Ignored files are not part of a checkpoint. It is never published, and kept until there\n"
                   "are 100 newer ones, or for 30 days. It takes the space of files that were changed or\n"
                   "deleted since, until it is dropped.",
                   checkpoint, c);
  command->add_option("-m,--message", c->message, "What it is for")->type_name("TEXT");
  command->add_option("PATH", c->path, "A path in the work tree (default: the working directory)");

  std::shared_ptr<CheckpointListArguments> l;
  registry
      .add(*command, "list", "List the checkpoints, newest first",
           "  playfs checkpoint list\n  playfs checkpoint list --json", list_checkpoints, l)
      ->add_option("PATH", l->path, "A path in the work tree (default: the working directory)");

  std::shared_ptr<CheckpointDropArguments> dr;
  registry
      .add(*command, "drop", "Drop checkpoints, to free their space",
           "  playfs checkpoint list        shows the size of large ones\n  playfs checkpoint drop 3 4",
           drop_checkpoints, dr)
      ->add_option("ID", dr->ids, "The checkpoints, as playfs checkpoint list shows them")
      ->required();

  std::shared_ptr<CheckpointRestoreArguments> r;
  auto* restore_command =
      registry.add(*command, "restore", "Stage what a checkpoint has, and drop what it has not",
                   "  playfs checkpoint restore 3\n"
                   "  playfs checkpoint restore 3 src/main.c   only what is at and below these paths\n"
                   "\n"
                   "What was staged before is kept in another checkpoint, so that this can be taken back.\n"
                   "If the work tree has been updated since, what the checkpoint has is staged on the new\n"
                   "base: playfs diff shows it. Files that were published otherwise since are in conflict.",
                   restore_checkpoint, r);
  restore_command->add_option("ID", r->id, "The checkpoint, as playfs checkpoint list shows it")->required();
  restore_command->add_option("PATH", r->paths, "Files and directories of the work tree (default: all of it)");
}

void add_restoring(CommandRegistry& registry) {
  std::shared_ptr<RestoreArguments> re;
  auto* restore_command =
      registry.add(registry.app(), "restore", "Give files of the work tree what they have in a revision",
                   "  playfs restore src/main.c             drop what is staged in this file\n"
                   "  playfs restore --from REV src         as in a revision that playfs log shows\n"
                   "\n"
                   "Files that have not been published are left alone. To delete those, too: playfs discard",
                   restore, re);
  restore_command->add_option("PATH", re->paths, "Files and directories of the work tree")->required();
  restore_command->add_option("--from", re->revision, "The revision (default: the work tree's base)")->type_name("REV");

  std::shared_ptr<RevertArguments> rv;
  auto* revert_command =
      registry.add(registry.app(), "revert", "Take back what a revision changed, for the next commit to publish",
                   "  playfs revert REV\n  playfs commit -m 'Revert the new parser'\n"
                   "\n"
                   "What was changed since is merged line by line. Where that is not possible, nothing\n"
                   "is changed, and the files are named. Of a merge, the changes since its first parent\n"
                   "are taken back. Only files are: the project's state stays.",
                   revert, rv);
  revert_command->add_option("REV", rv->revision, "The revision, as playfs log shows it")->required();
  revert_command->add_option("PATH", rv->path, "A path in the mount (default: the working directory)");

  std::shared_ptr<BlameArguments> bl;
  auto* blame_command = registry.add(registry.app(), "blame", "Show which revision last changed each line of a file",
                                     "  playfs blame src/main.c\n  playfs blame --from REV src/main.c\n"
                                     "\n"
                                     "With --json: one line of the file per line (NDJSON).",
                                     blame, bl);
  blame_command->add_option("FILE", bl->path, "A file of the work tree")->required();
  blame_command->add_option("--from", bl->revision, "Its version in this revision (default: in the work tree)")
      ->type_name("REV");
  blame_command->add_flag("!--no-pager", bl->pager, "Do not use a pager");
}

void add_merging(CommandRegistry& registry) {
  std::shared_ptr<UpdateArguments> up;
  registry
      .add(registry.app(), "update", "Update the work tree to head, keeping staged changes", "  playfs update", update,
           up)
      ->add_option("PATH", up->path, "A path in the mount (default: the working directory)");

  std::shared_ptr<MergeArguments> me;
  auto* merge_command =
      registry.add(registry.app(), "merge", "Merge another revision into the work tree, for the next commit to publish",
                   "  playfs merge REVISION\n  playfs commit -m 'Merge the parser'", merge, me);
  merge_command->add_option("REV", me->revision, "The revision, as listed under branches/")->required();
  merge_command->add_option("PATH", me->path, "A path in the mount (default: the working directory)");

  std::shared_ptr<BranchesArguments> b;
  registry
      .add(registry.app(), "branches", "List revisions beside head that nobody has merged",
           "  playfs branches\n  playfs branches --json", branches, b)
      ->add_option("PATH", b->path, "A path in the mount (default: the working directory)");
}

}  // namespace

void add_work_tree_commands(CommandRegistry& registry) {
  add_inspecting(registry);
  add_publishing(registry);
  add_checkpoints(registry);
  add_restoring(registry);
  add_merging(registry);
}

}  // namespace playfs::app
