#include "metrics.h"

#include <algorithm>
#include <charconv>

namespace {
void write_head(std::ostream& out, const std::string& name, const std::string& help, const char* type) {
  out << "# HELP " << name << ' ' << help << "\n# TYPE " << name << ' ' << type << '\n';
}

// With all digits: a rate is the difference of two sums.
std::string format(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}
}  // namespace

Histogram::Histogram(std::string name, std::string help, std::vector<double> bounds)
    : name_(std::move(name)),
      help_(std::move(help)),
      bounds_(std::move(bounds)),
      counts_(bounds_.size() + 1) {}

void Histogram::observe(double value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_[std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin()];
  sum_ += value;
}

void Histogram::write(std::ostream& out) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  write_head(out, name_, help_, "histogram");
  int64_t total = 0;
  for (size_t k = 0; k < counts_.size(); ++k) {
    out << name_ << "_bucket{le=\"";
    if (k < bounds_.size())
      out << format(bounds_[k]);
    else
      out << "+Inf";
    out << "\"} " << (total += counts_[k]) << '\n';
  }
  out << name_ << "_sum " << format(sum_) << '\n' << name_ << "_count " << total << '\n';
}

void StatusCounts::add(int status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_[status];
}

void StatusCounts::write(std::ostream& out) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  write_head(out, "lltm_responses_total", "Responses by HTTP status.", "counter");
  for (const auto& [status, count] : counts_)
    out << "lltm_responses_total{status=\"" << status << "\"} " << count << '\n';
}

void write_gauge(std::ostream& out, const char* name, const char* help, int64_t value) {
  write_head(out, name, help, "gauge");
  out << name << ' ' << value << '\n';
}
