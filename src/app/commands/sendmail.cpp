// playfs sendmail: sends a mail as a mail program hands it over, as a record of the site.
//
// A mail program that got no answer sends the same mail again. So the Idempotency-Keys are derived from the mail's
// Message-ID, author and text: the service creates each record once, even if it was edited since. The same Message-ID
// with another text is another mail. The text is not compared with the record, which may differ because somebody has
// edited it.
#include "app/commands/conversation.h"
#include "app/conversation.h"
#include "app/sending.h"
#include "app/standard_input.h"
#include "base/await.h"
#include "mail/address.h"
#include "mail/incoming.h"
#include "model/content_hash.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

using Purpose = mail::Incoming::Purpose;

constexpr const char* kWhat = "send the mail";

/// A record to create.
struct Post {
  std::string collection;
  JsonObject fields;
};

class Delivery {
 public:
  Delivery(CommandContext& context, runtime::ClientStack& stack, const mail::Incoming& mail, std::string agent)
      : context_(context), stack_(stack), mail_(mail), agent_(std::move(agent)) {}

  Result<ExitCode> run(bool dry_run) {
    std::vector<Post> posts;
    switch (mail_.purpose) {
      case Purpose::reply: {
        PLAYFS_TRY(Post reply, reply_to(mail_.parent));
        posts.push_back(std::move(reply));
        break;
      }
      case Purpose::thread:
        posts.push_back({"threads", {{"title", mail_.subject}, {"agent", agent_}, {"kind", mail_.kind}}});
        posts.push_back({"messages", message_in("", "")});
        break;
      case Purpose::mail:
        posts.push_back({"domain_mail",
                         {{"agent", agent_}, {"kind", mail_.kind}, {"subject", mail_.subject}, {"body", mail_.body}}});
        break;
    }
    for (const Post& post : posts) PLAYFS_CHECK(check_fits(post.fields, kWhat));
    return dry_run ? show(posts) : send(posts);
  }

 private:
  [[nodiscard]] JsonObject message_in(const std::string& thread, const std::string& parent) const {
    return message_body(thread, parent, agent_, mail_.body, mail_.mentions);
  }

  Result<Post> reply_to(const std::string& parent) {
    auto answered =
        await<Record>([&](auto done) { stack_.client().get_record("messages", parent, {}, std::move(done)); });
    if (!answered && answered.error().code == ErrorCode::not_found)
      return fail(ErrorCode::not_found,
                  "the message '" + parent + "' that the mail answers is not at " + stack_.source().text,
                  "start a thread instead, without In-Reply-To and References: To: discussion@" +
                      mail::domain_of(stack_.source().text));
    if (!answered) return fail(answered.error().while_doing("read the message '" + parent + "' that the mail answers"));
    const Json* thread = answered->fields.find("thread");
    if (thread == nullptr || thread->string() == nullptr || thread->string()->empty())
      return fail(ErrorCode::refused_input, "the message '" + parent + "' that the mail answers is in no thread",
                  context_.next_command({{"api", "GET", "/messages/" + percent_encode(parent)}}));
    return Post{"messages", message_in(*thread->string(), parent)};
  }

  /// The same for the same mail. One without a Message-ID may well be sent twice on purpose: its key is kept only until
  /// it has its answer.
  [[nodiscard]] std::string key_of(const std::string& collection) const {
    if (mail_.message_id.empty()) return {};
    std::string all;
    Json::Array mentions(mail_.mentions.begin(), mail_.mentions.end());
    for (const std::string& part :
         {stack_.source().text, mail_.message_id, agent_, collection, std::to_string(static_cast<int>(mail_.purpose)),
          mail_.kind, mail_.parent, mail_.subject, mail_.body, wire::to_text(Json(mentions))})
      all += std::to_string(part.size()) + ":" + part;
    std::string hex = ContentHash::of(all).hex().substr(0, 32);
    // A UUID of version 8, which is free for all uses.
    hex[12] = '8';
    hex[16] = 'a';
    for (std::size_t at : {20, 16, 12, 8}) hex.insert(at, "-");
    return hex;
  }

  Result<ExitCode> show(const std::vector<Post>& posts) {
    Json::Array records;
    for (const Post& post : posts) {
      records.emplace_back(JsonObject{{"collection", post.collection}, {"record", post.fields}});
      context_.out.line("POST /" + post.collection + " " + safe_json(wire::to_text(post.fields)));
    }
    context_.out.document({{"dry_run", true}, {"records", std::move(records)}});
    return ExitCode::done;
  }

  /// Creates the records, and returns the document that describes them.
  Result<JsonObject> deliver(const std::vector<Post>& posts) {
    const std::string again = mail_.message_id.empty() ? "" : "send the same mail again: it is posted once";
    if (mail_.purpose == Purpose::thread) {
      Beginning beginning{posts[0].fields, posts[1].fields, kWhat, again};
      beginning.key_of = [this](const std::string& collection) { return key_of(collection); };
      PLAYFS_TRY(const BegunThread begun, begin_thread(context_, stack_, std::move(beginning)));
      const Result<Record>& first = begun.message.value();  // not moved: g++ 12 takes the copy for uninitialized
      if (!first) return fail(first.error());
      return JsonObject{{"collection", "messages"}, {"id", first->id}, {"thread", begun.thread.id}};
    }
    const Post& post = posts.front();
    const std::string list = "/" + post.collection + "?limit=5";
    const Sending sending{post.collection, kWhat, context_.next_command({{"api", "GET", list}}),
                          key_of(post.collection), again};
    PLAYFS_TRY(const Record sent, create_record(stack_, sending, post.fields));
    JsonObject document{{"collection", post.collection}, {"id", sent.id}};
    if (mail_.purpose == Purpose::reply) document.append("thread", *post.fields.find("thread"));
    return document;
  }

  Result<ExitCode> send(const std::vector<Post>& posts) {
    PLAYFS_TRY(JsonObject document, deliver(posts));
    if (!mail_.from.empty() && mail_.from != agent_)
      context_.out.note("playfs: sent as '" + safe(agent_) + "', not as '" + safe(mail_.from) +
                        "' (--agent and PLAYFS_AGENT say who writes)");
    const std::string& id = *document.find("id")->string();
    context_.out.line(context_.out.is_terminal() ? safe(id) : id);
    context_.out.document(std::move(document));
    return ExitCode::done;
  }

  CommandContext& context_;
  runtime::ClientStack& stack_;
  const mail::Incoming& mail_;
  std::string agent_;
};

}  // namespace

Result<ExitCode> sendmail(CommandContext& context, const SendmailArguments& arguments) {
  if (arguments.mode != "m")
    return fail(ErrorCode::not_supported,
                "-b" + arguments.mode + " is not possible: playfs only sends a mail from stdin",
                "playfs sendmail -t < mail.txt");
  // A line with only a dot does not end the text, as it would in sendmail(8): a truncated mail could not be withdrawn.
  const std::string text =
      read_standard_input(context, "the mail, with its header and an empty line", mail::kLargestMail);
  PLAYFS_TRY(runtime::Source source, context.source(Marks::do_not_count));
  PLAYFS_TRY(mail::Incoming mail,
             mail::parse_mail(text, {mail::domain_of(source.text), arguments.recipients, arguments.reads_headers}));
  PLAYFS_TRY(auto stack, context.open_client_stack(source));
  PLAYFS_TRY(std::string agent, context.agent(arguments.agent, source.text));
  return Delivery(context, *stack, mail, std::move(agent)).run(arguments.dry_run);
}

}  // namespace playfs::app
