if (t == lengths[row]) break;
new_h[unit] = tanhf(x[at] + dot(weights + unit * S, 1, old_h, S));
outputs[at] = new_h[unit];
