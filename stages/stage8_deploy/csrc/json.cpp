#include "json.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>

#include <nlohmann/json.hpp>
#include <set>

namespace {

using nlohmann::json;
constexpr size_t kLongestName = 100;

// Text, a number, true, false or null in an error message.
std::string shown(const json& value) {
  const std::string text = value.dump();
  return text.size() > 40 ? std::string(value.type_name()) : text;
}

// Receives the parts of a request in their order, and throws at the first that does not belong there. So a
// body costs no more memory than the steps of a valid request, and no recursion, however deep its lists are.
class RequestReader {
 public:
  explicit RequestReader(const Sizes& sizes) : sizes_(sizes) {}

  Request finish() {
    if (steps_ == 0) throw Failure(kBadRequest, "the request has no field steps");
    request_.steps = at::from_blob(numbers_.data(), {steps_, sizes_.features}).clone();
    return std::move(request_);
  }

  // The functions that json::sax_parse calls. Each returns whether to go on.
  bool null() { return scalar(nullptr); }
  bool boolean(bool value) { return scalar(value); }
  bool number_integer(int64_t value) { return number(value); }
  bool number_unsigned(uint64_t value) { return number(value); }
  bool number_float(double value, const std::string&) { return number(value); }
  bool string(const std::string& value) { return scalar(value); }
  bool binary(const json::binary_t&) { return false; }  // not in JSON

  bool start_object(size_t) {
    if (place_ != Place::kRequest) refuse("an object");
    place_ = Place::kFields;
    return true;
  }

  bool key(const std::string& name) {
    if (name != "steps" && name != "stream" && name != "start" && name != "end")
      throw Failure(kBadRequest, "there is no field ", shown(name),
                    "; the fields are steps, stream, start and end");
    if (!seen_.insert(name).second) throw Failure(kBadRequest, "the field ", name, " is there twice");
    field_ = name;
    return true;
  }

  bool end_object() { return true; }

  bool start_array(size_t) {
    if (place_ == Place::kFields && field_ == "steps") {
      place_ = Place::kSteps;
    } else if (place_ == Place::kSteps) {
      if (steps_ == sizes_.max_length)
        throw Failure(kBadRequest, "steps has more than ", steps_,
                      " steps; the model was exported for at most ", sizes_.max_length);
      place_ = Place::kStep;
      feature_ = 0;
    } else {
      refuse("a list");
    }
    return true;
  }

  bool end_array() {
    if (place_ == Place::kStep) {
      if (feature_ != sizes_.features) refuse_length(c10::str("a list of ", feature_));
      ++steps_;
      place_ = Place::kSteps;
    } else {
      place_ = Place::kFields;
      if (steps_ == 0) refuse("[]");
    }
    return true;
  }

  bool parse_error(size_t, const std::string&, const json::exception& error) {
    const std::string_view message = error.what();  // after the name of the exception in brackets
    throw Failure(kBadRequest, "the request is not JSON: ", message.substr(message.find("] ") + 2));
  }

 private:
  enum class Place { kRequest, kFields, kSteps, kStep };

  const Sizes& sizes_;
  Request request_;
  std::vector<float> numbers_;  // [T,I]
  Place place_ = Place::kRequest;
  std::string field_;
  std::set<std::string> seen_;
  int64_t steps_ = 0, feature_ = 0;  // how many there have been

  template <typename Number>
  bool number(Number value) {
    if (place_ != Place::kStep) return scalar(value);
    if (feature_ == sizes_.features) refuse_length(c10::str("a list of more than ", feature_));
    numbers_.push_back(float(value));
    ++feature_;
    return true;
  }

  bool scalar(const json& value) {
    if (place_ != Place::kFields || field_ == "steps") refuse(shown(value));
    if (field_ == "stream")
      request_.stream = parse_name(value);
    else
      (field_ == "start" ? request_.start : request_.end) = parse_flag(value);
    return true;
  }

  std::string parse_name(const json& value) {
    if (!value.is_string()) refuse(shown(value));
    const std::string name = value;
    if (name.empty() || name.size() > kLongestName) refuse(shown(value));
    return name;
  }

  bool parse_flag(const json& value) {
    if (!value.is_boolean()) refuse(shown(value));
    return value;
  }

  [[noreturn]] void refuse_length(const std::string& what) const {
    throw Failure(kBadRequest, "step ", steps_, " is ", what, "; expected a list of ", sizes_.features,
                  " numbers");
  }

  // Says what belongs at this place.
  [[noreturn]] void refuse(const std::string& what) const {
    if (place_ == Place::kRequest)
      throw Failure(kBadRequest, "the request is ", what, "; expected an object with the field steps");
    if (place_ == Place::kSteps) refuse_length(what);
    if (place_ == Place::kStep)
      throw Failure(kBadRequest, "steps has ", what, " in step ", steps_, ", feature ", feature_,
                    "; expected a number");
    if (field_ == "steps")
      throw Failure(kBadRequest, "steps is ", what, "; expected a list of steps, each a list of ",
                    sizes_.features, " numbers");
    if (field_ == "stream")
      throw Failure(kBadRequest, "stream is ", what, "; expected a name of 1 to ", kLongestName, " bytes");
    throw Failure(kBadRequest, field_, " is ", what, "; expected true or false");
  }
};

}  // namespace

Request parse_request(const std::string& text, const Sizes& sizes) {
  RequestReader reader(sizes);
  json::sax_parse(text, &reader);
  Request request = reader.finish();
  if (request.stream.empty() && (request.start || request.end))
    throw Failure(kBadRequest, "start and end are for streams, but the request has no field stream");
  sizes.check(request.steps);
  return request;
}

std::string format_prediction(const Prediction& prediction, int64_t steps) {
  if (!at::isfinite(prediction.scores).all().item<bool>())
    throw Failure(kBadRequest, "the scores are not finite: the numbers in steps are too large for the model");
  const auto scores = prediction.scores.contiguous();
  const float* first = scores.const_data_ptr<float>();
  const json object = {{"label", at::argmax(scores).item<int64_t>()},
                       {"scores", std::vector<float>(first, first + scores.numel())},
                       {"steps", steps}};
  return object.dump();
}

std::string format_error(const std::string& message) {
  return json{{"error", message}}.dump(-1, ' ', false, json::error_handler_t::replace);
}
