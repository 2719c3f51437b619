d_gamma = torch.einsum("nohw,nohw->o", d_output, x_hat)
d_beta = d_output.sum(CHANNEL)
moved = d_output.mean(CHANNEL, keepdim=True) + x_hat * (d_output * x_hat).mean(CHANNEL, keepdim=True) * (
    column(slope) if torch.is_tensor(slope) else slope
)
return column(gamma) * (d_output - moved) / column(root), d_gamma, d_beta
