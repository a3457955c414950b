// libcurl, loaded with the first transport that sends something. Internal to this module.
#pragma once

#include <curl/curl.h>

#include "base/late_library.h"

// Macros of the same names, which only count the arguments.
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

namespace playfs::net {

inline constinit const LateLibrary kCurl("libcurl.so.4", "libcurl4 ca-certificates");

PLAYFS_LATE(kCurl, curl_easy_cleanup);
PLAYFS_LATE(kCurl, curl_easy_getinfo);
PLAYFS_LATE(kCurl, curl_easy_init);
PLAYFS_LATE(kCurl, curl_easy_perform);
PLAYFS_LATE(kCurl, curl_easy_setopt);
PLAYFS_LATE(kCurl, curl_easy_strerror);
PLAYFS_LATE(kCurl, curl_free);
PLAYFS_LATE(kCurl, curl_getdate);
PLAYFS_LATE(kCurl, curl_global_init);
PLAYFS_LATE(kCurl, curl_multi_add_handle);
PLAYFS_LATE(kCurl, curl_multi_cleanup);
PLAYFS_LATE(kCurl, curl_multi_info_read);
PLAYFS_LATE(kCurl, curl_multi_init);
PLAYFS_LATE(kCurl, curl_multi_perform);
PLAYFS_LATE(kCurl, curl_multi_poll);
PLAYFS_LATE(kCurl, curl_multi_remove_handle);
PLAYFS_LATE(kCurl, curl_multi_setopt);
PLAYFS_LATE(kCurl, curl_multi_strerror);
PLAYFS_LATE(kCurl, curl_multi_wakeup);
PLAYFS_LATE(kCurl, curl_slist_append);
PLAYFS_LATE(kCurl, curl_slist_free_all);
PLAYFS_LATE(kCurl, curl_url);
PLAYFS_LATE(kCurl, curl_url_cleanup);
PLAYFS_LATE(kCurl, curl_url_get);
PLAYFS_LATE(kCurl, curl_url_set);

}  // namespace playfs::net
