const scalar_t before = old_cell.data()[row * old_cell.size(1) + unit];
