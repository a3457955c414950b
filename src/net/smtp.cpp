#include "net/smtp.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "net/curl_functions.h"

namespace playfs::net {

namespace {

struct Cleanup {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::size_t read_from(char* buffer, std::size_t, std::size_t size, void* data) {
  auto& rest = *static_cast<std::string_view*>(data);
  std::size_t count = std::min(size, rest.size());
  std::memcpy(buffer, rest.data(), count);
  rest.remove_prefix(count);
  return count;
}

ErrorCode code_of(CURLcode result) {
  switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT: return ErrorCode::unreachable;
    case CURLE_OPERATION_TIMEDOUT: return ErrorCode::timed_out;
    case CURLE_LOGIN_DENIED: return ErrorCode::unauthorized;
    default: return ErrorCode::io;
  }
}

}  // namespace

Status send_mail(const SmtpServer& server, const MailMessage& message) {
  PLAYFS_TRY(const std::string mail, mail_text(server.from, message));
  PLAYFS_CHECK(kCurl.load());
  std::unique_ptr<CURL, Cleanup> easy(curl_easy_init());
  std::unique_ptr<curl_slist, Cleanup> to(curl_slist_append(nullptr, ("<" + message.to + ">").c_str()));
  if (!easy || !to) return fail(ErrorCode::internal, "out of memory");
  CURL* handle = easy.get();
  std::string_view rest = mail;
  char error_text[CURL_ERROR_SIZE] = {};

  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error_text);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_URL, server.url.c_str());
  curl_easy_setopt(handle, CURLOPT_USE_SSL, static_cast<long>(server.plain ? CURLUSESSL_TRY : CURLUSESSL_ALL));
  curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!server.ca_file.empty()) curl_easy_setopt(handle, CURLOPT_CAINFO, server.ca_file.c_str());
  if (!server.user.empty()) {
    curl_easy_setopt(handle, CURLOPT_USERNAME, server.user.c_str());
    curl_easy_setopt(handle, CURLOPT_PASSWORD, server.password.c_str());
  }
  curl_easy_setopt(handle, CURLOPT_TIMEOUT, static_cast<long>(server.limit.count()));
  curl_easy_setopt(handle, CURLOPT_MAIL_FROM, ("<" + server.from + ">").c_str());
  curl_easy_setopt(handle, CURLOPT_MAIL_RCPT, to.get());
  curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(handle, CURLOPT_READFUNCTION, read_from);
  curl_easy_setopt(handle, CURLOPT_READDATA, &rest);

  CURLcode result = curl_easy_perform(handle);
  if (result == CURLE_OK) return {};
  const char* why = error_text[0] ? error_text : curl_easy_strerror(result);
  return fail(code_of(result), "mail through " + server.url + ": " + why);
}

}  // namespace playfs::net
