def clamp(x, low, high):
    # The nearest of the range.
    if x < low:
        return low
    if x > high:
        return high
    return x
