aten = torch.ops.aten
tanh_new_cell = new_cell.tanh()
d_new_cell = grad_cell + aten.tanh_backward(grad_h * output_gate, tanh_new_cell)
d_z = torch.hstack([
    aten.sigmoid_backward(d_new_cell * candidate_cell, input_gate),
    aten.sigmoid_backward(grad_h * tanh_new_cell, output_gate),
    aten.elu_backward(d_new_cell * input_gate, 1.0, 1.0, 1.0, True, candidate_cell),
])
d_old_h, d_input = (d_z @ weights).tensor_split([new_cell.shape[1]], dim=1)
return d_input, d_z.T @ X, d_z.sum(0), d_old_h, d_new_cell
