// Requests and predictions as JSON.
#pragma once

#include <string>

#include "sequence.h"

// {"steps": [[...], ...]}, and for a stream also {"stream": "name", "start": true, "end": true}.
struct Request {
  at::Tensor steps;    // [T,I], checked
  std::string stream;  // empty: the request is the whole sequence
  bool start = false;  // the first request of the stream
  bool end = false;    // the last one
};

// Throws Failure with a message for the client.
Request parse_request(const std::string& text, const Sizes& sizes);

// {"label": 3, "scores": [...], "steps": 8}. Throws Failure if the scores are not finite.
std::string format_prediction(const Prediction& prediction, int64_t steps);

// {"error": "..."}
std::string format_error(const std::string& message);
