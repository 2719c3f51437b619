const bool is_active = t <= lengths[row];
new_h[unit] = is_active ? tanhf(x[at] + dot(weights + unit * S, 1, old_h, S)) : old_h[unit];
outputs[at] = new_h[unit];
