d_h += grad_outputs[at];
d_z[row * S + unit] = d_h * (1 - outputs[at] * outputs[at]);
d_x[at] = d_z[row * S + unit];
__syncthreads();
d_h = dot(weights + unit, S, d_z + row * S, S);
