#include "http/watch.h"

#include <functional>
#include <memory>
#include <utility>

namespace playfs::http {

namespace {

class ChangesBody final : public LiveBody {
 public:
  ChangesBody(service::ChangeFeed& feed, service::Position after) : feed_(feed), after_(after) {}
  void start(std::function<void(const Text&)> take) override {
    subscription_ = feed_.subscribe(after_, std::move(take));
  }
  void more() override { subscription_->more(); }

 private:
  service::ChangeFeed& feed_;
  const service::Position after_;
  std::unique_ptr<service::ChangeFeed::Subscription> subscription_;
};

}  // namespace

Answer watch(const service::Service& service, service::ChangeFeed& feed, const HttpRequest& request) {
  auto [response, after] = service.watch(request);
  Answer answer(std::move(response));
  if (after) answer.live = std::make_unique<ChangesBody>(feed, *after);
  return answer;
}

}  // namespace playfs::http
