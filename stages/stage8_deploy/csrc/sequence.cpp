#include "sequence.h"

#include <cmath>

// AOTInductor compiles no checks of sizes into the model: it would read past the end of a step that is too
// short.
void Sizes::check(const at::Tensor& steps) const {
  const auto shape = steps.sizes();
  if (shape.size() != 2 || shape[0] < 1 || shape[1] != features)
    throw Failure(kBadRequest, "steps has shape ", shape, ", expected [T, ", features,
                  "] with T of 1 or more");
  if (shape[0] > max_length)
    throw Failure(kBadRequest, "steps has ", shape[0], " steps; the model was exported for at most ",
                  max_length);
  const auto numbers = steps.accessor<float, 2>();
  for (int64_t step = 0; step < shape[0]; ++step)
    for (int64_t feature = 0; feature < features; ++feature)
      if (const float value = numbers[step][feature]; !std::isfinite(value))
        throw Failure(kBadRequest, "steps has the value ", value, " in step ", step, ", feature ", feature,
                      "; the numbers must be finite in float32");
}
