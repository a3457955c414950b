// Tells the service manager (systemd, Type=notify) how far this process is. Thread-safe.
#pragma once

namespace playfs::runtime {

/// "READY=1", "STOPPING=1". Does nothing without a service manager, or if it does not listen.
void tell_service_manager(const char* state);

}  // namespace playfs::runtime
