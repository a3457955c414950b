// Messages of a thread on a page. For one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "http/pages/conversation.h"
#include "http/pages/html.h"
#include "http/pages/reader.h"

namespace playfs::http {

/// Tells which message another one answers, where the arrangement does not: it may be on another page, in another
/// thread, or nowhere. Reads those that are not on the page, a bounded number of them.
class Answered {
 public:
  /// `shown`: all messages on the page.
  Answered(Reader& reader, std::string thread, const std::vector<Reply>& shown);

  /// A line with a link to it; nothing if the message answers none, or stands right below it.
  void show(Html& html, const Reply& reply) const;

 private:
  struct Message {
    Url url;
    std::string beginning;    // author and first words; empty if it could not be read
    bool is_missing = false;  // there is no such message
    bool in_other_thread = false;
  };
  [[nodiscard]] Message read(Reader& reader, const std::string& id) const;

  const std::string thread_;
  std::unordered_map<std::string, Message> messages_;
};

/// Whole, or its beginning with a link to its own page if it takes more than `most_bytes` of HTML.
void show_message(Html& html, const Reply& reply, std::string_view thread, const Answered& answered,
                  std::size_t most_bytes);

/// The id of a message's element.
std::string anchor_of(std::string_view message);

/// Who wrote it, and its beginning.
std::string beginning_of(const Record& message);

}  // namespace playfs::http
