#include "json.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>

#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;
constexpr size_t kLongestName = 100;

// A JSON value in an error message. `replace`: a client may send text that is not UTF-8.
std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > 40 ? std::string(value.type_name()) : text;
}

float parse_number(const json& value, size_t step, size_t feature) {
  if (!value.is_number())
    throw Failure(kBadRequest, "steps has ", shown(value), " in step ", step, ", feature ", feature,
                  "; expected a number");
  return value.get<float>();
}

// A list of T lists of I numbers as a tensor [T,I].
at::Tensor parse_steps(const json& steps, int64_t features) {
  if (!steps.is_array() || steps.empty())
    throw Failure(kBadRequest, "steps is ", shown(steps), "; expected a list of steps, each a list of ",
                  features, " numbers");
  std::vector<float> numbers;
  for (size_t step = 0; step < steps.size(); ++step) {
    const json& values = steps[step];
    if (!values.is_array() || int64_t(values.size()) != features)
      throw Failure(kBadRequest, "step ", step, " is ",
                    values.is_array() ? c10::str("a list of ", values.size()) : shown(values),
                    "; expected a list of ", features, " numbers");
    for (size_t feature = 0; feature < values.size(); ++feature)
      numbers.push_back(parse_number(values[feature], step, feature));
  }
  return at::from_blob(numbers.data(), {int64_t(steps.size()), features}).clone();
}

bool parse_flag(const json& value, const std::string& name) {
  if (!value.is_boolean()) throw Failure(kBadRequest, name, " is ", shown(value), "; expected true or false");
  return value;
}

std::string parse_name(const json& value) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty() ||
      value.get_ref<const std::string&>().size() > kLongestName)
    throw Failure(kBadRequest, "stream is ", shown(value), "; expected a name of 1 to ", kLongestName,
                  " bytes");
  return value;
}

json parse_object(const std::string& text) {
  json object;
  try {
    object = json::parse(text);
  } catch (const json::exception& error) {          // a syntax error, or a number that no double can hold
    const std::string_view message = error.what();  // after the name of the exception in brackets
    throw Failure(kBadRequest, "the request is not JSON: ", message.substr(message.find("] ") + 2));
  }
  if (!object.is_object())
    throw Failure(kBadRequest, "the request is ", shown(object), "; expected an object with the field steps");
  return object;
}

}  // namespace

Request parse_request(const std::string& text, const Package& package) {
  const json object = parse_object(text);
  Request request;
  for (const auto& [name, value] : object.items()) {
    if (name == "steps")
      request.steps = parse_steps(value, package.features);
    else if (name == "stream")
      request.stream = parse_name(value);
    else if (name == "start")
      request.start = parse_flag(value, name);
    else if (name == "end")
      request.end = parse_flag(value, name);
    else
      throw Failure(kBadRequest, "there is no field ", shown(name),
                    "; the fields are steps, stream, start and end");
  }
  if (!request.steps.defined()) throw Failure(kBadRequest, "the request has no field steps");
  if (request.stream.empty() && (request.start || request.end))
    throw Failure(kBadRequest, "start and end are for streams, but the request has no field stream");
  package.check(request.steps);
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
