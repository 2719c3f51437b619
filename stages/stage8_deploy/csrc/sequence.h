// What goes into the model and what comes out, and the error for what cannot.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/StringUtil.h>

#include <stdexcept>

// What the cell carries from one step to the next.
struct State {
  at::Tensor h, cell;  // [S] each
};

struct Sequence {
  at::Tensor steps;  // [T,I]
  State state;       // before the first step
};

struct Prediction {
  at::Tensor scores;  // [C]
  State state;        // after the last step
};

// The sizes of a model.
struct Sizes {
  int64_t features, state_size, classes;  // I, S and C
  int64_t max_batch, max_length;          // the largest B and T that the model was exported for

  // Throws Failure unless `steps` has the shape (T, I), with 1 to max_length steps, and finite numbers.
  void check(const at::Tensor& steps) const;
};

// An error with a message for the client, and its HTTP status.
struct Failure : std::runtime_error {
  template <typename... Parts>
  explicit Failure(int status, const Parts&... message)
      : std::runtime_error(c10::str(message...)), status(status) {}
  int status;
};

constexpr int kBadRequest = 400, kNotFound = 404, kTooSlow = 408, kConflict = 409, kTooLarge = 413,
              kInternalError = 500, kUnavailable = 503, kTimeout = 504;
