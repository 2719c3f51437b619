def double(x):
    # BEGIN SOLUTION
    return 2 * x
    # BEGIN STARTER
    # return x
    # END STARTER
    # END SOLUTION
