"""The search for length scales, and the exact kernel matrices and leave-one-out errors that it needs."""
