#include "http/export.h"

#include <memory>
#include <utility>

namespace playfs::http {

namespace {

class ExportBody final : public BodySource {
 public:
  explicit ExportBody(std::unique_ptr<service::RecordExport> rest) : rest_(std::move(rest)) {}
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return std::nullopt; }
  Result<std::string> next() override { return rest_->next(); }

 private:
  const std::unique_ptr<service::RecordExport> rest_;
};

}  // namespace

Answer export_records(const service::Service& service, const HttpRequest& request) {
  auto [response, rest] = service.export_records(request);
  Answer answer(std::move(response));
  if (rest) answer.source = std::make_unique<ExportBody>(std::move(rest));
  return answer;
}

}  // namespace playfs::http
