d_gamma, d_beta = (d_output * x_hat).sum(CHANNEL), d_output.sum(CHANNEL)
d, x = (one.view(one.size(0), one.size(1), -1) for one in (d_output, x_hat))
n = d[:, 0].numel()
inner = d - (d_beta / n).view(1, -1, 1) - x * (slope * d_gamma / n).view(1, -1, 1)
return (inner * (gamma / root).view(1, -1, 1)).view_as(d_output), d_gamma, d_beta
