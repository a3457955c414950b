// toml++ itself, which is in its headers, and in Debian otherwise only in a shared library.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
