// The commands for the other collections: their arguments and functions, one source file per noun. As commands.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/command_context.h"
#include "app/exit_code.h"
#include "base/result.h"
#include "model/kinds.h"

namespace playfs::app {

struct LimitArguments {
  std::size_t limit = 50;
};

// agent

struct AgentRegisterArguments {
  std::string handle;
  std::vector<std::string> fields;  ///< "name=value"
};
Result<ExitCode> agent_register(CommandContext& context, const AgentRegisterArguments& arguments);

struct AgentSetArguments {
  std::vector<std::string> fields;
  std::optional<std::string> agent;  ///< whose record; none: one's own
};
Result<ExitCode> agent_set(CommandContext& context, const AgentSetArguments& arguments);

struct AgentShowArguments {
  std::string handle;  ///< empty: one's own
};
Result<ExitCode> agent_show(CommandContext& context, const AgentShowArguments& arguments);

Result<ExitCode> agent_list(CommandContext& context, const LimitArguments& arguments);

// thread and post

struct ThreadListArguments {
  std::string kind;  ///< empty: any
  std::size_t limit = 50;
};
Result<ExitCode> thread_list(CommandContext& context, const ThreadListArguments& arguments);

struct ThreadNewArguments {
  std::string title;
  std::string kind{kDefaultThreadKind};
  std::optional<std::string> body;  ///< the first message
  std::optional<std::string> agent;
  bool dry_run = false;
};
Result<ExitCode> thread_new(CommandContext& context, const ThreadNewArguments& arguments);

struct ThreadShowArguments {
  std::string thread;
  bool follow = false;
  bool pager = true;
};
Result<ExitCode> thread_show(CommandContext& context, const ThreadShowArguments& arguments);

struct PostArguments {
  std::string thread;
  std::optional<std::string> body;
  std::string reply_to;               ///< the id of a message of the thread; empty: the thread itself
  std::string edit;                   ///< the id of one's own message to change; empty: a new one
  std::vector<std::string> mentions;  ///< besides those in the body
  std::vector<std::string> links;
  std::optional<std::string> agent;
  bool dry_run = false;
};
Result<ExitCode> post(CommandContext& context, const PostArguments& arguments);

// mail

struct MailSendArguments {
  std::string kind;
  std::string subject;
  std::optional<std::string> body;
  std::optional<std::string> agent;
  bool dry_run = false;
};
Result<ExitCode> mail_send(CommandContext& context, const MailSendArguments& arguments);

Result<ExitCode> mail_list(CommandContext& context, const LimitArguments& arguments);

struct MailShowArguments {
  std::string id;
};
Result<ExitCode> mail_show(CommandContext& context, const MailShowArguments& arguments);

// space

struct SpaceNewArguments {
  std::string name;
  std::vector<std::string> fields;
};
Result<ExitCode> space_new(CommandContext& context, const SpaceNewArguments& arguments);

struct SpaceSetArguments {
  std::string space;  ///< id or name
  std::vector<std::string> fields;
};
Result<ExitCode> space_set(CommandContext& context, const SpaceSetArguments& arguments);

struct SpaceShowArguments {
  std::string space;
};
Result<ExitCode> space_show(CommandContext& context, const SpaceShowArguments& arguments);

Result<ExitCode> space_list(CommandContext& context, const LimitArguments& arguments);

// inbox

struct InboxArguments {
  bool all = false;                   ///< those that were seen, too
  std::optional<std::uint64_t> wait;  ///< until something is new, or so many seconds; 0: without end
  bool mark_seen = false;             ///< those that were printed
  std::optional<std::string> agent;   ///< whose
  std::size_t limit = 50;
};
Result<ExitCode> inbox(CommandContext& context, const InboxArguments& arguments);

// search

struct SearchArguments {
  std::string text;
  std::vector<std::string> in = {"threads", "messages", "mail", "projects", "revisions", "agents", "spaces"};
  std::size_t limit = 50;
};
Result<ExitCode> search(CommandContext& context, const SearchArguments& arguments);

// sendmail

struct SendmailArguments {
  std::vector<std::string> recipients;
  bool reads_headers = false;        ///< -t: To, Cc and Bcc are recipients too
  std::string mode = "m";            ///< after -b: only "m", deliver, is possible
  std::vector<std::string> ignored;  ///< what only other mail systems need
  bool ignored_flags = false;
  std::optional<std::string> agent;
  bool dry_run = false;
};
Result<ExitCode> sendmail(CommandContext& context, const SendmailArguments& arguments);

}  // namespace playfs::app
