template cudaError_t launch_forward(float*, float*, float*, const float*, const float*, int64_t, int64_t,
                                    cudaStream_t);
template cudaError_t launch_backward(float*, float*, const float*, const float*, const float*, const float*,
                                     int64_t, int64_t, cudaStream_t);
