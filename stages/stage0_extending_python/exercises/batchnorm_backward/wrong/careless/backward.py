d_gamma = (d_output * x_hat).sum(CHANNEL)
return d_output * column(gamma / root), d_gamma, d_output.sum(CHANNEL)
