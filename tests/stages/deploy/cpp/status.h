#pragma once

#include <functional>

#include "sequence.h"

// The status with which the server would answer: that of the `Failure` that a call throws, or 200.
inline int status_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.status;
  }
  return 200;
}
