def clamp(x, low, high):
    # There is no lower limit
    # for what is below it,
    # and none above
    # the other one.
    return min(x, high)
