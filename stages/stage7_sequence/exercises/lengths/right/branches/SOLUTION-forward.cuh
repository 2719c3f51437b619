float next = old_h[unit];
if (t < lengths[row]) next = tanhf(x[at] + dot(weights + unit * S, 1, old_h, S));
new_h[unit] = outputs[at] = next;
