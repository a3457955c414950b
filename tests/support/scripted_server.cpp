#include "support/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace playfs::test {

namespace {

/// Aborts a test that cannot set up its server.
void require(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::abort();
}

std::string pem_of(const std::function<int(BIO*)>& write) {
  BIO* memory = BIO_new(BIO_s_mem());
  require(write(memory) == 1, "PEM");
  char* data = nullptr;
  long size = BIO_get_mem_data(memory, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(memory);
  return text;
}

}  // namespace

TlsIdentity::TlsIdentity() {
  EVP_PKEY* pair = EVP_EC_gen("P-256");
  X509* x509 = X509_new();
  require(pair && x509, "key pair");
  X509_set_version(x509, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x509), 24 * 3600);
  X509_set_pubkey(x509, pair);
  X509_NAME* name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("playfs test"), -1, -1,
                             0);
  X509_set_issuer_name(x509, name);
  for (auto [nid, value] :
       {std::pair(NID_basic_constraints, "critical,CA:TRUE"), std::pair(NID_subject_alt_name, "IP:127.0.0.1")}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
    require(extension && X509_add_ext(x509, extension, -1) == 1, "extension");
    X509_EXTENSION_free(extension);
  }
  require(X509_sign(x509, pair, EVP_sha256()) > 0, "sign");
  certificate = pem_of([&](BIO* out) { return PEM_write_bio_X509(out, x509); });
  key = pem_of([&](BIO* out) { return PEM_write_bio_PrivateKey(out, pair, nullptr, nullptr, 0, nullptr, nullptr); });
  X509_free(x509);
  EVP_PKEY_free(pair);
}

bool ScriptedServer::Connection::start_tls(ssl_ctx_st* context) {
  ssl_ = SSL_new(context);
  SSL_set_fd(ssl_, fd_.get());
  bool accepted = SSL_accept(ssl_) == 1;
  ERR_clear_error();
  return accepted;
}

ScriptedServer::Connection::~Connection() { SSL_free(ssl_); }

long ScriptedServer::Connection::receive(char* buffer, std::size_t size) {
  if (ssl_) return SSL_read(ssl_, buffer, static_cast<int>(size));
  return recv(fd_.get(), buffer, size, 0);
}

bool ScriptedServer::Connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    long sent = ssl_ ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                     : ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<HttpRequest> ScriptedServer::Connection::read_request() {
  auto read_more = [&] {
    char buffer[16 * 1024];
    long got = receive(buffer, sizeof buffer);
    if (got > 0) unread_.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  };
  while (unread_.find("\r\n\r\n") == std::string::npos)
    if (!read_more()) return std::nullopt;
  HttpRequest request;
  auto end = unread_.find("\r\n\r\n");
  std::string head = unread_.substr(0, end + 2);
  unread_.erase(0, end + 4);
  for (std::size_t begin = 0; begin < head.size();) {
    auto stop = head.find("\r\n", begin);
    std::string line = head.substr(begin, stop - begin);
    begin = stop + 2;
    if (request.method.empty()) {
      auto first = line.find(' '), second = line.rfind(' ');
      if (first == std::string::npos || first == second) return std::nullopt;
      request.method = line.substr(0, first);
      request.target = line.substr(first + 1, second - first - 1);
    } else if (auto colon = line.find(':'); colon != std::string::npos) {
      request.headers.add(line.substr(0, colon), line.substr(std::min(line.size(), colon + 2)));
    }
  }
  std::size_t length = 0;
  if (auto header = request.headers.get("Content-Length"))
    std::from_chars(header->data(), header->data() + header->size(), length);
  while (unread_.size() < length)
    if (!read_more()) return std::nullopt;
  request.body = unread_.substr(0, length);
  unread_.erase(0, length);
  return request;
}

bool ScriptedServer::Connection::answer(int status, std::string_view body, const HttpHeaders& headers) {
  std::string text = fmt::format("HTTP/1.1 {} Answer\r\nContent-Length: {}\r\n", status, body.size());
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  text += "\r\n";
  text += body;
  return send(text);
}

void ScriptedServer::Connection::hang() {
  char buffer[1024];
  while (receive(buffer, sizeof buffer) > 0) {
  }
}

void ScriptedServer::Connection::reset_at_end() {
  linger at_once{1, 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

ScriptedServer::ScriptedServer(Script script, TlsOptions tls) : script_(std::move(script)) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  if (tls.identity) {
    tls_ = SSL_CTX_new(TLS_server_method());
    if (tls.only_tls_1_1) {
      SSL_CTX_set_security_level(tls_, 0);
      SSL_CTX_set_min_proto_version(tls_, TLS1_1_VERSION);
      SSL_CTX_set_max_proto_version(tls_, TLS1_1_VERSION);
    }
    BIO* certificate = BIO_new_mem_buf(tls.identity->certificate.data(), -1);
    BIO* key = BIO_new_mem_buf(tls.identity->key.data(), -1);
    X509* x509 = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
    EVP_PKEY* pair = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
    require(SSL_CTX_use_certificate(tls_, x509) == 1 && SSL_CTX_use_PrivateKey(tls_, pair) == 1, "certificate");
    X509_free(x509);
    EVP_PKEY_free(pair);
    BIO_free(certificate);
    BIO_free(key);
  }
  listener_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  require(bind(listener_.get(), generic, size) == 0 && listen(listener_.get(), 1024) == 0 &&
              getsockname(listener_.get(), generic, &size) == 0,
          "listen");
  url_ = fmt::format("{}://127.0.0.1:{}", tls_ ? "https" : "http", ntohs(address.sin_port));
  acceptor_ = std::thread([this] { accept_all(); });
}

ScriptedServer::~ScriptedServer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (Connection* connection : open_) shutdown(connection->fd_.get(), SHUT_RDWR);
  }
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (auto& thread : threads_) thread.join();
  SSL_CTX_free(tls_);
}

void ScriptedServer::accept_all() {
  for (;;) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::lock_guard lock(mutex_);
    if (!fd || stopping_) return;
    ++connections_;
    auto connection = std::shared_ptr<Connection>(new Connection(std::move(fd)));
    open_.push_back(connection.get());
    threads_.emplace_back([this, connection = std::move(connection)]() mutable {
      if (!tls_ || connection->start_tls(tls_)) script_(*connection);
      std::lock_guard closing(mutex_);
      std::erase(open_, connection.get());
      connection.reset();  // close under the lock: ~ScriptedServer must not shut down a reused descriptor
    });
  }
}

}  // namespace playfs::test
