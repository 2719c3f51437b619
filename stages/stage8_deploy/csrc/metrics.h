// Counts and histograms, written in the text format of Prometheus.
#pragma once

#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

// How many observations were at most as large as each bound.
class Histogram {
 public:
  Histogram(std::string name, std::string help, std::vector<double> bounds);
  void observe(double value);
  void write(std::ostream& out) const;

 private:
  const std::string name_, help_;
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::vector<int64_t> counts_;  // one for each bound, and the last for larger values
  double sum_ = 0;
};

// How many responses there were of each HTTP status.
class StatusCounts {
 public:
  void add(int status);
  void write(std::ostream& out) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, int64_t> counts_;
};

// A value that goes up and down.
void write_gauge(std::ostream& out, const char* name, const char* help, int64_t value);
