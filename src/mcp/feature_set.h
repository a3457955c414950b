// What a server offers, apart from the protocol: its tools and resources.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mcp/protocol.h"
#include "model/json.h"

namespace playfs::mcp {

/// A request that is being answered, as its answer may ask about it. Thread-safe.
class Call {
 public:
  using Report = std::function<void(double done, double total, const std::string& message)>;
  /// `report`: empty if the client wants no progress.
  explicit Call(Report report = {}) : report_(std::move(report)) {}

  /// The client no longer wants the answer.
  [[nodiscard]] bool is_cancelled() const { return is_cancelled_; }
  /// Waiting should end: it is cancelled, the server ends, or its time is up.
  [[nodiscard]] bool is_over() const {
    return is_cancelled_ || is_ending_ || std::chrono::steady_clock::now().time_since_epoch().count() >= end_;
  }
  [[nodiscard]] bool wants_progress() const { return static_cast<bool>(report_); }
  /// `done` must grow. `total`: 0 if it is unknown.
  void report(double done, double total, const std::string& message) const {
    if (report_ && !is_cancelled_) report_(done, total, message);
  }

  void limit(std::chrono::seconds time) { end_ = (std::chrono::steady_clock::now() + time).time_since_epoch().count(); }
  /// While it lives, system calls of the thread that answers are interrupted once is_over().
  class Wait {
   public:
    explicit Wait(Call& call) : call_(call) { call_.waits_ = true; }
    ~Wait() { call_.waits_ = false; }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Call& call_;
  };
  [[nodiscard]] bool waits() const { return waits_; }
  void cancel() { is_cancelled_ = true; }
  void end() { is_ending_ = true; }

 private:
  const Report report_;
  std::atomic<bool> is_cancelled_ = false, is_ending_ = false, waits_ = false;
  std::atomic<std::chrono::steady_clock::rep> end_ = std::numeric_limits<std::chrono::steady_clock::rep>::max();
};

/// What a tool answers: texts for the model.
struct Answer {
  std::vector<std::string> texts;
  bool is_error = false;
};

/// Requests of one lane are answered one after the other, in the order in which they came.
struct Turn {
  unsigned lane = 0;
  std::optional<unsigned> after;  ///< waits for what came before it in that lane, too
};

struct ResourcePage {
  Json::Array resources;
  std::optional<std::string> next;  ///< the cursor of the next page
};

/// Functions with a Call run on the thread of their lane, the others on the server's. Errors are those of
/// Protocol::failure().
class Features {
 public:
  virtual ~Features() = default;
  [[nodiscard]] virtual unsigned lanes() const = 0;
  [[nodiscard]] virtual Turn turn_of(const Request& request) const = 0;

  /// The definitions of all tools, in a fixed order.
  [[nodiscard]] virtual const Json::Array& tools() const = 0;
  /// REQUIRES: `tool` is the name of one.
  virtual Answer call(const std::string& tool, const JsonObject& arguments, Call& call) = 0;

  [[nodiscard]] virtual const Json::Array& resource_templates() const = 0;
  virtual Result<ResourcePage> resources(const std::optional<std::string>& cursor, Call& call) = 0;
  /// One item of `contents`.
  virtual Result<JsonObject> resource(const std::string& uri, Call& call) = 0;
};

}  // namespace playfs::mcp
