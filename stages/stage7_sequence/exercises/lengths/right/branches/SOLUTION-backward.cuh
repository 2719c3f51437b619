const float upstream = d_h + grad_outputs[at];
float& own = d_z[row * S + unit];
own = 0;
if (t < lengths[row]) own = upstream * (1 - outputs[at] * outputs[at]);
d_x[at] = own;
__syncthreads();
if (t < lengths[row])
  d_h = dot(weights + unit, S, d_z + row * S, S);
else
  d_h = upstream;
