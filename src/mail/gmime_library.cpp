#include "mail/gmime_library.h"

#include "mail/letter.h"

namespace playfs::mail {

namespace {
bool initialise() {
  g_mime_init();
  return true;
}
}  // namespace

Status load_library() { return kGMime.load(); }

void set_up_gmime() { [[maybe_unused]] static const bool is_ready = initialise(); }

}  // namespace playfs::mail
