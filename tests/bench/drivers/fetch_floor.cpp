// What the network alone takes: given requests in stages, each stage sent at once when the one before has been answered
// in full, as a client that wastes nothing would.
//
//   bench-fetch CAFILE|- CONNECTIONS STREAMS < "STAGE URL" lines
//
// STREAMS over 1 uses HTTP/2 with that many concurrent streams on a connection; CONNECTIONS bounds how many there are.
// Prints seconds from nothing (no connection open) to the last byte, then bytes and connections made.

#include <curl/curl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using Easy = std::unique_ptr<CURL, void (*)(CURL*)>;

std::size_t count_bytes(char*, std::size_t size, std::size_t count, void* total) {
  *static_cast<std::size_t*>(total) += size * count;
  return size * count;
}

struct Fetched {
  std::size_t bytes = 0;
  long connections = 0;
};

bool fetch(CURLM* multi, const std::vector<std::string>& urls, const char* cafile, bool http2, Fetched& fetched) {
  std::vector<Easy> handles;
  for (const auto& url : urls) {
    CURL* easy = handles.emplace_back(curl_easy_init(), curl_easy_cleanup).get();
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &fetched.bytes);
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, http2 ? 1L : 0L);
    if (cafile) curl_easy_setopt(easy, CURLOPT_CAINFO, cafile);
    curl_multi_add_handle(multi, easy);
  }
  bool all_well = true;
  int running = 1;
  while (running) {
    curl_multi_perform(multi, &running);
    if (running) curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      long connections = 0;
      curl_easy_getinfo(message->easy_handle, CURLINFO_NUM_CONNECTS, &connections);
      fetched.connections += connections;
      if (message->data.result == CURLE_OK) continue;
      std::fprintf(stderr, "bench-fetch: %s\n", curl_easy_strerror(message->data.result));
      all_well = false;
    }
  }
  for (auto& handle : handles) curl_multi_remove_handle(multi, handle.get());
  return all_well;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench-fetch CAFILE|- CONNECTIONS STREAMS < 'STAGE URL' lines\n");
    return 2;
  }
  const char* cafile = std::strcmp(argv[1], "-") == 0 ? nullptr : argv[1];
  long streams = std::atol(argv[3]);
  std::map<int, std::vector<std::string>> stages;
  int stage = 0;
  for (std::string url; std::cin >> stage >> url;) stages[stage].push_back(url);

  curl_global_init(CURL_GLOBAL_DEFAULT);
  std::unique_ptr<CURLM, void (*)(CURLM*)> multi(curl_multi_init(), [](CURLM* handle) { curl_multi_cleanup(handle); });
  curl_multi_setopt(multi.get(), CURLMOPT_MAX_HOST_CONNECTIONS, std::atol(argv[2]));
  curl_multi_setopt(multi.get(), CURLMOPT_MAX_CONCURRENT_STREAMS, streams);
  curl_multi_setopt(multi.get(), CURLMOPT_PIPELINING, streams > 1 ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING);
  curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, std::atol(argv[2]));

  Fetched fetched;
  auto start = std::chrono::steady_clock::now();
  for (const auto& [_, urls] : stages)
    if (!fetch(multi.get(), urls, cafile, streams > 1, fetched)) return 1;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%.6f %zu %ld\n", seconds, fetched.bytes, fetched.connections);
  return 0;
}
