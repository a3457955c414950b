#include "app/bug_report/libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <string>

namespace playfs::app {

namespace {

/// "libpsl/0.21.2 (+libidn2/2.3.3)": without what is in parentheses.
std::string without_remarks(std::string text) {
  for (auto begin = text.find(" ("); begin != std::string::npos; begin = text.find(" ("))
    text.erase(begin, std::min(text.find(')', begin), text.size() - 1) + 1 - begin);
  return text;
}

/// Calls the function of a library that says its version; what is linked in statically counts, too.
Json version_by(const char* library, const char* function) {
  void* found = dlsym(RTLD_DEFAULT, function);
  if (found == nullptr) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);  // stays: the process ends soon
    if (handle != nullptr) found = dlsym(handle, function);
  }
  return found == nullptr ? Json() : Json(without_remarks(reinterpret_cast<const char* (*)()>(found)()));
}

}  // namespace

JsonObject library_versions() {
  return {{"libfuse", version_by("libfuse3.so.3", "fuse_pkgversion")},
          {"libcurl", version_by("libcurl.so.4", "curl_version")},
          {"sqlite", version_by("libsqlite3.so.0", "sqlite3_libversion")},
          {"glibc", version_by("libc.so.6", "gnu_get_libc_version")}};
}

}  // namespace playfs::app
