"""Random features of a fit: how many, by a sample, the rows, memory and time, and the function that grows from them."""
