#include "support/faulty_transport.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace playfs::test {

struct FaultyTransport::Held {
  std::size_t index;
  HttpRequest request;
  net::Deadline deadline;
  CancelToken cancel;
  Callback<HttpResponse> done;  ///< called by whoever sets `is_over`
  std::atomic<bool> is_over = false;
  CancelToken::Registration on_cancel;
};

struct FaultyTransport::State {
  std::mutex planning;  ///< one request at a time; taken before `mutex`
  std::mutex mutex;
  Plan plan;
  Heard on_reply;
  bool is_cut = false;
  std::vector<Sent> sent;
  std::vector<std::shared_ptr<Held>> held;
};

FaultyTransport::FaultyTransport(net::Transport& below) : below_(below), state_(std::make_shared<State>()) {}

FaultyTransport::~FaultyTransport() {
  std::vector<std::shared_ptr<Held>> held;
  std::lock_guard lock(state_->mutex);
  state_->on_reply = {};
  held.swap(state_->held);
}

void FaultyTransport::set_plan(Plan plan) {
  std::lock_guard planning(state_->planning);
  std::lock_guard lock(state_->mutex);
  state_->plan = std::move(plan);
}

void FaultyTransport::on_reply(Heard heard) {
  std::lock_guard lock(state_->mutex);
  state_->on_reply = std::move(heard);
}

void FaultyTransport::hold(std::string part) {
  set_plan([part = std::move(part)](const HttpRequest& request) {
    return request.target.find(part) == std::string::npos ? Fault() : hang();
  });
}

void FaultyTransport::open() {
  set_plan({});
  std::vector<std::shared_ptr<Held>> held;
  {
    std::lock_guard lock(state_->mutex);
    held.swap(state_->held);
  }
  for (auto& each : held)
    if (!each->is_over.exchange(true))
      carry(each->index, false, std::move(each->request), each->deadline, each->cancel, std::move(each->done));
}

void FaultyTransport::cut() {
  std::lock_guard lock(state_->mutex);
  state_->is_cut = true;
}

std::vector<Sent> FaultyTransport::sent() const {
  std::lock_guard lock(state_->mutex);
  return state_->sent;
}

int FaultyTransport::count(std::string_view part) const {
  std::lock_guard lock(state_->mutex);
  return static_cast<int>(std::count_if(state_->sent.begin(), state_->sent.end(), [&](const Sent& each) {
    return each.request.target.find(part) != std::string::npos;
  }));
}

int FaultyTransport::held() const {
  std::lock_guard lock(state_->mutex);
  return static_cast<int>(state_->held.size());
}

void FaultyTransport::send(HttpRequest request, net::Deadline deadline, CancelToken cancel,
                           Callback<HttpResponse> done) {
  Fault fault;
  std::size_t index = 0;
  std::shared_ptr<Held> held;
  {
    std::lock_guard planning(state_->planning);
    Plan plan;
    {
      std::lock_guard lock(state_->mutex);
      plan = state_->plan;
    }
    if (plan) fault = plan(request);
    std::lock_guard lock(state_->mutex);
    if (state_->is_cut) fault = lose_request();
    index = state_->sent.size();
    state_->sent.push_back({request, 0});
    if (fault.kind == Fault::Kind::hang) {
      held = std::make_shared<Held>();
      held->index = index;
      held->request = std::move(request);
      held->deadline = deadline;
      held->cancel = cancel;
      held->done = std::move(done);
      state_->held.push_back(held);
    }
  }
  switch (fault.kind) {
    case Fault::Kind::lose_request: done(fail(ErrorCode::unreachable, "the test lost the request")); return;
    case Fault::Kind::answer: done(std::move(fault.response)); return;
    case Fault::Kind::hang:
      held->on_cancel = cancel.on_cancel([weak = std::weak_ptr(held)] {
        if (auto given_up = weak.lock(); given_up && !given_up->is_over.exchange(true))
          given_up->done(fail(ErrorCode::interrupted, "the test let it hang"));
      });
      return;
    case Fault::Kind::lose_reply:
    case Fault::Kind::none: break;
  }
  carry(index, fault.kind == Fault::Kind::lose_reply, std::move(request), deadline, std::move(cancel), std::move(done));
}

void FaultyTransport::carry(std::size_t index, bool loses_reply, HttpRequest request, net::Deadline deadline,
                            CancelToken cancel, Callback<HttpResponse> done) {
  auto answered = [state = state_, index, loses_reply, done = std::move(done)](Result<HttpResponse> response) mutable {
    Heard heard;
    HttpRequest asked;
    {
      std::lock_guard lock(state->mutex);
      if (response) state->sent[index].status = response->status;
      heard = state->on_reply;
      asked = state->sent[index].request;
    }
    if (heard) heard(asked, response);
    if (loses_reply) response = fail(ErrorCode::timed_out, "the test lost the reply");
    done(std::move(response));
  };
  below_.send(std::move(request), deadline, std::move(cancel), std::move(answered));
}

}  // namespace playfs::test
