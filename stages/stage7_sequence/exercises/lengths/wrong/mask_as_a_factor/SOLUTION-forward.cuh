const float mask = t < lengths[row];
const float next = tanhf(x[at] + dot(weights + unit * S, 1, old_h, S));
new_h[unit] = mask * next + (1 - mask) * old_h[unit];
outputs[at] = new_h[unit];
