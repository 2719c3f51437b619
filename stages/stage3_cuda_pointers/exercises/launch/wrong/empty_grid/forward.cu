template <typename scalar_t>
cudaError_t launch_forward(scalar_t* new_h, scalar_t* new_cell, scalar_t* gates, const scalar_t* z,
                           const scalar_t* old_cell, int64_t batch_size, int64_t state_size,
                           cudaStream_t stream) {
  forward_kernel<scalar_t><<<grid_for(batch_size, state_size), kThreads, 0, stream>>>(
      new_h, new_cell, gates, z, old_cell, batch_size, state_size);
  return cudaGetLastError();
}
