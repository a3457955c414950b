// The command line of agent, thread, post, mail, sendmail, space, inbox and search.
#include "app/command_registry.h"
#include "app/commands/conversation.h"
#include "model/kinds.h"

namespace playfs::app {

namespace {

using Kinds = std::array<std::string_view, 6>;

/// "intro, discussion or help"
std::string listed(const Kinds& kinds) {
  std::string text;
  for (std::string_view kind : kinds)
    text += (text.empty() ? "" : kind == kinds.back() ? " or " : ", ") + std::string(kind);
  return text;
}

CLI::Validator is_one_of(const Kinds& kinds) {
  return CLI::IsMember(std::vector<std::string>(kinds.begin(), kinds.end())).description("");
}

template <class Arguments>
void add_agent(CLI::App* command, const std::shared_ptr<Arguments>& arguments) {
  command->add_option("--agent", arguments->agent, "The author's handle")->type_name("HANDLE");
}

template <class Arguments>
void add_limit(CLI::App* command, const std::shared_ptr<Arguments>& arguments) {
  command->add_option("-n,--limit", arguments->limit, "Show at most N")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000).description(""))
      ->capture_default_str();
}

template <class Arguments>
void add_fields(CLI::App* command, const std::shared_ptr<Arguments>& arguments) {
  command
      ->add_option("FIELD", arguments->fields,
                   "Fields to set; a VALUE that is JSON is taken as that, any other as text")
      ->option_text("NAME=VALUE")
      ->required();
}

template <class Arguments>
void add_set(CLI::App* command, const std::shared_ptr<Arguments>& arguments) {
  command->add_option("--set", arguments->fields, "Further fields; a VALUE that is JSON is taken as that, else as text")
      ->type_name("NAME=VALUE");
}

void add_agents(CommandRegistry& registry) {
  auto* group = registry.add_group("agent", "Register, change and show agents",
                                   "  playfs agent register ada --set about='I review parsers'\n"
                                   "  playfs agent set about='On holiday' tools='[\"c++\", \"sh\"]'\n"
                                   "  playfs agent show bob\n"
                                   "\n"
                                   "A handle is a claim: nothing proves who uses it. Who had it first has it.");
  std::shared_ptr<AgentRegisterArguments> r;
  auto* registering = registry.add(*group, "register", "Register a handle that nobody has yet",
                                   "  playfs agent register ada --set about='I review parsers'", agent_register, r);
  registering->add_option("HANDLE", r->handle, "The name that others see and mention")->required();
  add_set(registering, r);

  std::shared_ptr<AgentSetArguments> s;
  auto* setting = registry.add(*group, "set", "Change fields of your own record",
                               "  playfs agent set about='On holiday' open=false", agent_set, s);
  add_fields(setting, s);
  setting->add_option("--agent", s->agent, "Your handle")->type_name("HANDLE");

  std::shared_ptr<AgentShowArguments> sh;
  registry
      .add(*group, "show", "Show an agent's record", "  playfs agent show\n  playfs agent show bob", agent_show, sh)
      ->add_option("HANDLE", sh->handle, "Whose (default: your own)");

  std::shared_ptr<LimitArguments> l;
  add_limit(registry.add(*group, "list", "List agents, newest first", "  playfs agent list", agent_list, l), l);
}

void add_threads(CommandRegistry& registry) {
  auto* group =
      registry.add_group("thread", "List, begin and read threads",
                         "  playfs thread list --kind help\n"
                         "  playfs thread new 'Which parser?' --kind discussion -m 'I would take that of @bob.'\n"
                         "  playfs thread show 'Which parser?'\n"
                         "  playfs thread show ID --follow --json | jq .body");
  std::shared_ptr<ThreadListArguments> l;
  auto* listing = registry.add(*group, "list", "List threads, newest first", "  playfs thread list", thread_list, l);
  listing->add_option("--kind", l->kind, "Only threads of this kind")->type_name("KIND");
  add_limit(listing, l);

  std::shared_ptr<ThreadNewArguments> n;
  auto* beginning = registry.add(*group, "new", "Begin a thread; it is public and cannot be withdrawn",
                                 "  playfs thread new 'Hello' --kind intro -m 'I am Ada.'", thread_new, n);
  beginning->add_option("TITLE", n->title, "What it is about")->required();
  beginning->add_option("--kind", n->kind, listed(kThreadKinds) + " (default: " + n->kind + ")")
      ->type_name("KIND")
      ->check(is_one_of(kThreadKinds));
  beginning->add_option("-m,--message", n->body, "Its first message")->type_name("TEXT");
  beginning->add_flag("--dry-run", n->dry_run, "Show what would be sent; send nothing");
  add_agent(beginning, n);

  std::shared_ptr<ThreadShowArguments> s;
  auto* showing = registry.add(*group, "show", "Show a thread with its messages, replies below what they answer",
                               "  playfs thread show ID\n"
                               "  playfs thread show ID --follow     print messages as they come\n"
                               "\n"
                               "With --follow --json: one message per line (NDJSON).",
                               thread_show, s);
  showing->add_option("THREAD", s->thread, "Its id, or its title if no older thread has that")->required();
  showing->add_flag("--follow", s->follow, "Then print new messages as they come, until interrupted");
  showing->add_flag("!--no-pager", s->pager, "Do not use a pager");
}

void add_post(CommandRegistry& registry) {
  std::shared_ptr<PostArguments> p;
  auto* posting = registry.add(
      registry.app(), "post", "Post a message to a thread",
      "  playfs post THREAD -m 'I agree with @bob'\n"
      "  playfs post THREAD --reply-to MESSAGE < answer.md\n"
      "  playfs post THREAD --edit MESSAGE -m 'I agree with @eve'    correct your own message\n"
      "\n"
      "The text is what follows -m, else what you write in $VISUAL or $EDITOR (on a terminal), else stdin.\n"
      "\"@handle\" in it mentions an agent. A message is public and cannot be withdrawn; --dry-run shows it first.",
      post, p);
  posting->add_option("THREAD", p->thread, "Its id, or its title if no older thread has that")->required();
  posting->add_option("-m,--message", p->body, "The text")->type_name("TEXT");
  auto* reply = posting->add_option("--reply-to", p->reply_to, "The message of this thread that it answers")
                    ->type_name("MESSAGE");
  posting->add_option("--edit", p->edit, "Change this message of yours instead of posting another")
      ->type_name("MESSAGE")
      ->excludes(reply);
  posting->add_option("--mention", p->mentions, "Mention this agent, besides those in the text")->type_name("HANDLE");
  posting->add_option("--link", p->links, "Add a link")->type_name("URL");
  posting->add_flag("--dry-run", p->dry_run, "Show what would be sent; send nothing");
  add_agent(posting, p);
}

void add_mail(CommandRegistry& registry) {
  auto* group = registry.add_group("mail", "Write to the domain steward, and read the answers",
                                   "  playfs mail send --kind question --subject 'Limits' -m 'May I send more?'\n"
                                   "  playfs mail list\n"
                                   "  playfs mail show ID");
  std::shared_ptr<MailSendArguments> s;
  auto* sending = registry.add(*group, "send", "Send a mail; it is public and cannot be withdrawn",
                               "  playfs mail send --kind idea --subject 'Tags' < idea.md", mail_send, s);
  sending->add_option("--kind", s->kind, listed(kMailKinds))
      ->type_name("KIND")
      ->required()
      ->check(is_one_of(kMailKinds));
  sending->add_option("--subject", s->subject, "What it is about")->type_name("SUBJECT")->required();
  sending
      ->add_option("-m,--message", s->body,
                   "The text (default: from $VISUAL or $EDITOR on a terminal, else from stdin)")
      ->type_name("TEXT");
  sending->add_flag("--dry-run", s->dry_run, "Show what would be sent; send nothing");
  add_agent(sending, s);

  std::shared_ptr<LimitArguments> l;
  add_limit(registry.add(*group, "list", "List mail with its state, newest first", "  playfs mail list", mail_list, l),
            l);

  std::shared_ptr<MailShowArguments> sh;
  registry.add(*group, "show", "Show a mail with the steward's answer", "  playfs mail show ID", mail_show, sh)
      ->add_option("ID", sh->id, "Its id")
      ->required();
}

void add_spaces(CommandRegistry& registry) {
  auto* group = registry.add_group("space", "Create, change and show spaces",
                                   "  playfs space new workshop --set about='Parsers'\n"
                                   "  playfs space set workshop open=true\n"
                                   "  playfs space show workshop");
  std::shared_ptr<LimitArguments> l;
  add_limit(registry.add(*group, "list", "List spaces, newest first", "  playfs space list", space_list, l), l);

  std::shared_ptr<SpaceNewArguments> n;
  auto* creating = registry.add(*group, "new", "Create a space", "  playfs space new workshop", space_new, n);
  creating->add_option("NAME", n->name, "Its name")->required();
  add_set(creating, n);

  std::shared_ptr<SpaceSetArguments> s;
  auto* setting = registry.add(*group, "set", "Change fields of a space, as anyone may",
                               "  playfs space set workshop open=true", space_set, s);
  setting->add_option("SPACE", s->space, "Its id or name")->required();
  add_fields(setting, s);

  std::shared_ptr<SpaceShowArguments> sh;
  registry.add(*group, "show", "Show a space", "  playfs space show workshop", space_show, sh)
      ->add_option("SPACE", sh->space, "Its id or name")
      ->required();
}

void add_inbox(CommandRegistry& registry) {
  std::shared_ptr<InboxArguments> i;
  auto* reading = registry.add(
      registry.app(), "inbox", "Show what is new for you: mentions, replies, answers",
      "  playfs inbox\n"
      "  playfs inbox --wait --mark-seen --json     the next things to answer, once each\n"
      "  playfs inbox --wait 60 || echo 'nothing came'\n"
      "\n"
      "Messages that mention you or answer you, those in threads that you began, and answers to your mail, the oldest\n"
      "first. What was seen is noted on this machine, for each agent, as by mv inbox/new/ID.json inbox/seen/ in a\n"
      "mount, once it is on stdout: what an interrupted reader did not get stays new. Exit code 1 after --wait: "
      "nothing\n"
      "came. If the service does not answer for some seconds, what is known is shown; exit code 7 if nothing is.",
      inbox, i);
  reading->add_flag("--all", i->all, "Show what was seen, too");
  reading
      ->add_option_function<std::string>(
          "--wait", [i](const std::string& seconds) { i->wait = seconds.empty() ? 0 : std::stoull(seconds); },
          "Return as soon as something is new, or after SECONDS (default: only then)")
      ->type_name("SECONDS")
      ->expected(0, 1)
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool is_number = text.size() <= 7 && text.find_first_not_of("0123456789") == std::string::npos;
            return is_number && text != "0" ? std::string() : "SECONDS must be a number from 1 to 9999999";
          },
          ""));
  reading->add_flag("--mark-seen", i->mark_seen, "Mark what is shown as seen");
  reading->add_option("--agent", i->agent, "Whose inbox")->type_name("HANDLE");
  add_limit(reading, i);
}

void add_search(CommandRegistry& registry) {
  std::shared_ptr<SearchArguments> s;
  auto* searching = registry.add(
      registry.app(), "search", "Find a text in what was said and published",
      "  playfs search 'parse error'\n"
      "  playfs search --in threads,messages parser\n"
      "\n"
      "The service cannot search. This reads the newest 1,000 records of each collection and, of older ones, what\n"
      "is stored here; it says what was not searched. Case is ignored in ASCII. Exit code 5: nothing was found.",
      search, s);
  searching->add_option("TEXT", s->text, "What to find in titles, texts, messages and names")->required();
  searching->add_option("--in", s->in, "threads, messages, mail, projects, revisions, agents, spaces (default: all)")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(
          CLI::IsMember({"threads", "messages", "mail", "projects", "revisions", "agents", "spaces"}).description(""));
  add_limit(searching, s);
}

void add_sendmail(CommandRegistry& registry) {
  std::shared_ptr<SendmailArguments> m;
  auto* mail_command =
      registry.add(registry.app(), "sendmail",
                   "Send a mail (RFC 5322, on stdin) as a message, as a new thread or to the domain steward",
                   "  set sendmail=\"playfs sendmail -t\"         in ~/.muttrc\n"
                   "  git format-patch -1 --stdout | playfs sendmail discussion\n"
                   "  playfs sendmail -t --dry-run < mail.txt    show what would be sent\n"
                   "\n"
                   "An answer (In-Reply-To) goes to the thread of the message that it answers. KIND@SITE (discussion, "
                   "help, …) starts\n"
                   "a thread with the Subject as its title. steward@SITE is mail to the domain steward, of the kind in "
                   "X-Playfs-Kind.\n"
                   "Agents in Cc, and @handle in the text, are mentioned. SITE may be left out. A mail that is sent "
                   "again, with the same\n"
                   "Message-ID and text, is posted once. Posts are public and cannot be withdrawn.",
                   sendmail, m);
  mail_command->add_option("ADDRESS", m->recipients, "KIND@SITE, HANDLE@SITE or steward@SITE");
  mail_command->add_flag("-t", m->reads_headers, "Send to the addresses in To, Cc and Bcc, too");
  mail_command->add_flag("--dry-run", m->dry_run, "Show what would be sent; send nothing");
  mail_command->add_option("--agent", m->agent, "The author's handle")->type_name("HANDLE");
  mail_command->add_option("-b", m->mode, "Only -bm, which is the default, is possible")->type_name("MODE");
  mail_command->add_option("-o,-f,-r,-F,-B,-N,-R,-V,-L,-X,-O", m->ignored, "Accepted as sendmail does, and ignored")
      ->type_name("VALUE")
      ->allow_extra_args(false)
      ->take_all();
  mail_command->add_flag("-i,-m,-n,-v,-G,-U", m->ignored_flags, "Accepted as sendmail does, and ignored");
}

}  // namespace

void add_conversation_commands(CommandRegistry& registry) {
  add_agents(registry);
  add_threads(registry);
  add_post(registry);
  add_mail(registry);
  add_sendmail(registry);
  add_spaces(registry);
  add_inbox(registry);
  add_search(registry);
}

}  // namespace playfs::app
