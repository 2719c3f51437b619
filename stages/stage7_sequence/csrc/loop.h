// The pointwise part of one step on a GPU, for the loop over steps in sequence_cuda.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

// A tensor that is missing is undefined. All are contiguous, and their last dimension is [G,S] or [K,S].
struct ForwardStep {
  at::Tensor x;          // [B,G*S]
  at::Tensor recurrent;  // [B,G*S]: the recurrent parts, with their bias
  at::Tensor old_h;      // [B,S]
  at::Tensor h;          // [B,S], out
  at::Tensor cell;       // [B,S], in and out
  at::Tensor cells;      // [B,S], out: the new cell once more
  at::Tensor z;          // [B,K*S], out
  at::Tensor lengths;    // [B]
  int64_t time;
};

// math is float for half and bfloat16.
struct BackwardStep {
  at::Tensor grad_outputs;  // [B,S]
  at::Tensor
      product;   // [B,S]: the part of the gradient of h that comes from the step after, through the product
  at::Tensor z;  // [B,K*S]
  at::Tensor old_h;     // [B,S]
  at::Tensor old_cell;  // [B,S]
  at::Tensor cell;      // [B,S]: after this step
  at::Tensor d_h;       // [B,S] math, in and out: the rest of the gradient of h, after and before this step
  at::Tensor d_cell;    // [B,S] math, in and out
  at::Tensor d_z;       // [B,K*S], out
  at::Tensor d_recurrent;  // [B,G*S], out
  at::Tensor lengths;      // [B]
  int64_t time;
};

void launch_step(const ForwardStep& step, std::string_view cell);
void launch_step(const BackwardStep& step, std::string_view cell);
