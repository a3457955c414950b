#include "model/continuation.h"

#include <utility>

namespace playfs {

void show_continuation(Manifest& manifest) {
  manifest.files.insert_or_assign(kContinuationPath, std::move(manifest.continuation->entry));
  manifest.continuation.reset();
}

}  // namespace playfs
