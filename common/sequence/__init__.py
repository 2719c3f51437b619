"""A cell over a sequence: the three cells that stage 7 computes, the reference loop in float64, and test cases."""
