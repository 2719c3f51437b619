if (t >= lengths[row]) {
  new_h[unit] = outputs[at] = old_h[unit];
  continue;
}
new_h[unit] = tanhf(x[at] + dot(weights + unit * S, 1, old_h, S));
outputs[at] = new_h[unit];
