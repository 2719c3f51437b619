template <typename scalar_t>
cudaError_t launch_forward(scalar_t* new_h, scalar_t* new_cell, scalar_t* gates, const scalar_t* z,
                           const scalar_t* old_cell, int batch_size, int state_size,
                           cudaStream_t stream);
template <typename scalar_t>
cudaError_t launch_backward(scalar_t* d_z, scalar_t* d_old_cell, const scalar_t* grad_h,
                            const scalar_t* grad_cell, const scalar_t* gates, const scalar_t* new_cell,
                            int batch_size, int state_size, cudaStream_t stream);

