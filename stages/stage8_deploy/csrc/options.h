// Options of the command line, such as --port 8080.
#pragma once

#include <charconv>
#include <map>
#include <string>
#include <vector>

#include "sequence.h"

// Options with whole numbers as values. Throws Failure for unknown names and for values outside of their
// bounds.
class Options {
 public:
  struct Range {
    int64_t standard, least, most;
  };

  explicit Options(std::map<std::string, Range> ranges) : ranges_(std::move(ranges)) {}

  void parse(const std::vector<std::string>& arguments) {
    for (size_t k = 0; k < arguments.size(); k += 2) {
      const auto found = ranges_.find(arguments[k]);
      if (found == ranges_.end()) throw Failure(kBadRequest, "there is no option ", arguments[k]);
      const std::string text = k + 1 < arguments.size() ? arguments[k + 1] : "";
      const auto [standard, least, most] = found->second;
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
        throw Failure(kBadRequest, arguments[k], " is '", text, "', expected a number from ", least, " to ",
                      most);
      values_[arguments[k]] = value;
    }
  }

  int64_t operator[](const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? ranges_.at(name).standard : found->second;
  }

 private:
  const std::map<std::string, Range> ranges_;
  std::map<std::string, int64_t> values_;
};
