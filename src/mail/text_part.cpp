#include "mail/text_part.h"

#include "base/text.h"
#include "mail/header_text.h"

namespace playfs::mail {

namespace {

constexpr int kDeepestPart = 8;
constexpr int kMostParts = 20;

bool is_of_type(GMimeObject* part, const char* type, const char* subtype) {
  GMimeContentType* content = g_mime_object_get_content_type(part);
  return content != nullptr && g_mime_content_type_is_type(content, type, subtype);
}

std::string type_of(GMimeObject* part) {
  GMimeContentType* content = g_mime_object_get_content_type(part);
  const Text text(content == nullptr ? nullptr : g_mime_content_type_get_mime_type(content));
  return text ? text.get() : "unknown";
}

bool is_attached(GMimeObject* part) {
  const char* disposition = g_mime_object_get_disposition(part);
  return disposition != nullptr && equals_ignoring_case(disposition, "attachment");
}

tl::unexpected<Error> refuse(GMimeObject* part) {
  if (is_of_type(part, "text", "html") && !is_attached(part))
    return fail(ErrorCode::invalid_argument, "the mail has its text as HTML only",
                "have the mail program send plain text (text/plain)");
  const char* name = GMIME_IS_PART(part) ? g_mime_part_get_filename(GMIME_PART(part)) : nullptr;
  return fail(ErrorCode::invalid_argument,
              "the mail has an attachment (" + (name != nullptr ? "'" + std::string(name) + "', " : "") +
                  type_of(part) + "), and a message holds only text",
              "publish the file in a project, and name it in the text");
}

/// Finds the text of a mail.
class Search {
 public:
  /// `text` is null if there is none.
  Status run(GMimeObject* part, int depth = 0) {
    if (depth > kDeepestPart || ++parts_ > kMostParts)
      return fail(ErrorCode::invalid_argument, "the mail has too many parts", "send plain text");
    if (!GMIME_IS_MULTIPART(part)) return take(part);
    auto* multipart = GMIME_MULTIPART(part);
    const int count = g_mime_multipart_get_count(multipart);
    if (is_of_type(part, "multipart", "alternative")) {
      for (int i = 0; i < count; ++i)
        if (GMimeObject* each = g_mime_multipart_get_part(multipart, i); is_of_type(each, "text", "plain"))
          return take(each);
    }
    for (int i = 0; i < count; ++i) PLAYFS_CHECK(run(g_mime_multipart_get_part(multipart, i), depth + 1));
    return {};
  }

  GMimePart* text = nullptr;

 private:
  Status take(GMimeObject* part) {
    if (text != nullptr || !GMIME_IS_PART(part) || !is_of_type(part, "text", "plain") || is_attached(part))
      return refuse(part);
    text = GMIME_PART(part);
    return {};
  }

  int parts_ = 0;
};

/// Without its transfer encoding.
std::string content_of(GMimePart* part) {
  GMimeDataWrapper* content = g_mime_part_get_content(part);
  if (content == nullptr) return {};
  const Ref<GMimeStream> out(g_mime_stream_mem_new());
  g_mime_data_wrapper_write_to_stream(content, out.get());
  const GByteArray* bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(out.get()));
  return std::string(reinterpret_cast<const char*>(bytes->data), bytes->len);
}

/// From the part's character set. A mail that names none, or US-ASCII, may still have UTF-8.
Result<std::string> converted(GMimePart* part, const std::string& bytes) {
  const char* charset = g_mime_object_get_content_type_parameter(GMIME_OBJECT(part), "charset");
  if (charset == nullptr || equals_ignoring_case(charset, "us-ascii") || equals_ignoring_case(charset, "utf-8"))
    return readable(bytes);
  const Ref<GMimeFilter> filter(g_mime_filter_charset_new(charset, "utf-8"));
  if (!filter)
    return fail(ErrorCode::invalid_argument, "the mail's character set '" + std::string(charset) + "' is unknown",
                "send it as UTF-8");
  char* out = nullptr;
  std::size_t size = 0, before = 0;
  // The filter only reads what it is given.
  g_mime_filter_complete(filter.get(), const_cast<char*>(bytes.data()), bytes.size(), 0, &out, &size, &before);
  return readable(std::string_view(out, size));
}

}  // namespace

Result<std::string> text_of_mail(GMimeObject* part) {
  Search search;
  if (part != nullptr) PLAYFS_CHECK(search.run(part));
  std::string text;
  if (search.text != nullptr) {
    PLAYFS_TRY(text, converted(search.text, content_of(search.text)));
  }
  std::string body;
  body.reserve(text.size());
  for (const char c : text) {
    // All of "\r\r\n": with one "\r" left, the text would be another one after the next round through a mail.
    while (c == '\n' && body.ends_with('\r')) body.pop_back();
    body += c;
  }
  body.erase(body.find_last_not_of("\r\n") + 1);
  if (body.find_first_not_of(" \t\r\n") == body.npos)
    return fail(ErrorCode::invalid_argument, "the mail has no text",
                "write something below the empty line after the headers");
  return body;
}

}  // namespace playfs::mail
