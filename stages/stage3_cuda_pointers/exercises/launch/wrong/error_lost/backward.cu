template <typename scalar_t>
cudaError_t launch_backward(scalar_t* d_z, scalar_t* d_old_cell, const scalar_t* grad_h,
                            const scalar_t* grad_cell, const scalar_t* gates, const scalar_t* new_cell,
                            int64_t batch_size, int64_t state_size, cudaStream_t stream) {
  if (batch_size == 0 || state_size == 0) return cudaSuccess;
  backward_kernel<scalar_t><<<grid_for(batch_size, state_size), kThreads, 0, stream>>>(
      d_z, d_old_cell, grad_h, grad_cell, gates, new_cell, batch_size, state_size);
  return cudaSuccess;
}
