#include "vfs/notifications.h"

namespace playfs::vfs {

Notifications::Notifications() : thread_([this] { run(); }) {}

Notifications::~Notifications() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Notifications::set_receiver(KernelNotifier* receiver) {
  MutexLock lock(mutex_);
  receiver_ = receiver;
  while (delivering_) changed_.wait(mutex_);
}

void Notifications::entry_changed(NodeId parent, std::string name) {
  push([parent, name = std::move(name)](KernelNotifier* receiver) {
    if (receiver) receiver->entry_changed(parent, name);
  });
}

void Notifications::node_changed(NodeId node, std::int64_t offset) {
  push([node, offset](KernelNotifier* receiver) {
    if (receiver) receiver->node_changed(node, offset);
  });
}

void Notifications::then(Task task) {
  push([task = std::move(task)](KernelNotifier*) mutable { task(); });
}

void Notifications::push(Item item) {
  MutexLock lock(mutex_);
  if (ending_) return;
  queue_.push_back(std::move(item));
  changed_.notify_all();
}

void Notifications::run() {
  while (true) {
    Item item;
    KernelNotifier* receiver = nullptr;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !ending_) changed_.wait(mutex_);
      if (ending_) return;
      item = std::move(queue_.front());
      queue_.pop_front();
      receiver = receiver_;
      delivering_ = true;
    }
    item(receiver);
    MutexLock lock(mutex_);
    delivering_ = false;
    changed_.notify_all();
  }
}

}  // namespace playfs::vfs
