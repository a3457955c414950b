// libfuse's low-level API, at the version this code is written for.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_log.h>
#include <fuse3/fuse_lowlevel.h>
