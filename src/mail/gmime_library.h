// GMime, which writes and parses RFC 5322. Internal to this module. Thread-safe; its objects belong to one thread at a
// time.
#pragma once

#include <memory>

#include <gmime/gmime.h>

namespace playfs::mail {

/// Call before using GMime. The first call initialises it for the life of the process.
void set_up_gmime();

struct Unref {
  void operator()(gpointer object) const { g_object_unref(object); }
};
/// One reference to an object of GMime.
template <class T>
using Ref = std::unique_ptr<T, Unref>;

struct Free {
  void operator()(gpointer memory) const { g_free(memory); }
};
/// A text that GMime allocated.
using Text = std::unique_ptr<char, Free>;

}  // namespace playfs::mail
