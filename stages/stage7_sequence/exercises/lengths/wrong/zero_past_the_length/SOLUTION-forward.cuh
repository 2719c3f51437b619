new_h[unit] = t < lengths[row] ? tanhf(x[at] + dot(weights + unit * S, 1, old_h, S)) : 0;
outputs[at] = new_h[unit];
