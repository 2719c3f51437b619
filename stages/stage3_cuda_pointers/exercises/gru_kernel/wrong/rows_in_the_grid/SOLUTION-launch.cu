const dim3 grid((S + kThreads - 1) / kThreads, B);
gru_kernel<<<grid, kThreads>>>(new_h, from_input, from_h, h, B, S);
