#include "support/faulty_transport.h"

#include <memory>
#include <utility>

namespace playfs::test {

void FaultyTransport::set_plan(Plan plan) {
  std::lock_guard planning(planning_);
  std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
}

void FaultyTransport::on_reply(std::function<void(const HttpRequest&)> heard) {
  std::lock_guard lock(mutex_);
  on_reply_ = std::move(heard);
}

void FaultyTransport::cut() {
  std::lock_guard lock(mutex_);
  is_cut_ = true;
}

std::vector<Sent> FaultyTransport::sent() const {
  std::lock_guard lock(mutex_);
  return sent_;
}

void FaultyTransport::send(HttpRequest request, net::Deadline deadline, CancelToken cancel,
                           Callback<HttpResponse> done) {
  Fault fault;
  std::size_t index = 0;
  {
    std::lock_guard planning(planning_);
    Plan plan;
    {
      std::lock_guard lock(mutex_);
      plan = plan_;
    }
    if (plan) fault = plan(request);
    std::lock_guard lock(mutex_);
    if (is_cut_) fault = lose_request();
    index = sent_.size();
    sent_.push_back({request, 0});
  }
  switch (fault.kind) {
    case Fault::Kind::lose_request: done(fail(ErrorCode::unreachable, "the test lost the request")); return;
    case Fault::Kind::answer: done(std::move(fault.response)); return;
    case Fault::Kind::hang: {
      auto waiting = std::make_shared<Callback<HttpResponse>>(std::move(done));
      auto hook = cancel.on_cancel([waiting] { (*waiting)(fail(ErrorCode::interrupted, "the test let it hang")); });
      std::lock_guard lock(mutex_);
      hanging_.push_back(std::move(hook));
      return;
    }
    case Fault::Kind::lose_reply:
    case Fault::Kind::none: break;
  }
  bool is_lost = fault.kind == Fault::Kind::lose_reply;
  auto answered = [this, index, is_lost, done = std::move(done)](Result<HttpResponse> response) mutable {
    std::function<void(const HttpRequest&)> heard;
    HttpRequest asked;
    {
      std::lock_guard lock(mutex_);
      if (response) sent_[index].status = response->status;
      heard = on_reply_;
      asked = sent_[index].request;
    }
    if (heard) heard(asked);
    if (is_lost) response = fail(ErrorCode::timed_out, "the test lost the reply");
    done(std::move(response));
  };
  below_.send(std::move(request), deadline, std::move(cancel), std::move(answered));
}

}  // namespace playfs::test
