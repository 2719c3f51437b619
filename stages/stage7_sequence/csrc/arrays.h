// What kernels read and write: the arrays of a sequence in row-major order, which are the same
// for every rung.
//
// T: steps, B: rows of the batch, S: units of the state. G is the cell's kGates, K its kSaved (cells.h).
// number_t is void where the kernel's type is chosen later. A pointer to an array that is missing is null.
#pragma once

#include <cstdint>

template <typename number_t>
struct ForwardArrays {
  const number_t* x;        // [T,B,G,S]: the input part of the pre-activations
  const number_t* weights;  // [G,S,S]
  int64_t weights_stride;   // between rows, in elements
  const number_t* bias;     // [G,S], added to the recurrent part, or null
  const number_t* h0;       // [B,S]
  const number_t* cell0;    // [B,S], or null for a cell without one
  const int64_t* lengths;   // [B]: how many steps each row has, or null for all steps
  number_t* outputs;        // [T,B,S]
  number_t* h;              // [B,S]: after the last step
  number_t* cell;           // [B,S]: after the last step, or null
  number_t* cells;          // [T,B,S]: after each step, or null
  number_t* z;              // [T,B,K,S], or null
  bool reverse;             // from the last step to the first
};

template <typename number_t>
struct BackwardArrays {
  const number_t* grad_outputs;  // [T,B,S], or null for zeros
  const number_t* grad_h;        // [B,S], or null for zeros
  const number_t* grad_cell;     // [B,S], or null for zeros
  const number_t* weights;       // [G,S,S]
  int64_t weights_stride;
  const number_t* h0;       // [B,S]
  const number_t* cell0;    // [B,S], or null
  const number_t* outputs;  // [T,B,S]
  const number_t* cells;    // [T,B,S], or null
  const number_t* z;        // [T,B,K,S]
  const int64_t* lengths;   // [B], or null
  number_t* d_z;            // [T,B,K,S]
  number_t* d_h0;           // [B,S]
  number_t* d_cell0;        // [B,S], or null
  bool reverse;             // as in forward
};
