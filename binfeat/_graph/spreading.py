"""The linear system of label spreading, in the form that the solver of ridge machines takes."""

import numpy as np


class SpreadingSystem:
    """``(I - alpha S) F = Y`` with the normalised similarities S; if the F of `held` rows is Y, of the other rows."""

    def __init__(self, graph, alpha, Y, held):
        self._graph, self._alpha, self._free = graph, alpha, None if held is None else ~held[:, None]
        self.diagonal = np.zeros((len(Y), 1))
        self._known = np.zeros_like(Y) if held is None else Y * held[:, None]
        self.right = np.asfortranarray(Y if held is None else -self.apply(self._known, slice(None)))

    def apply(self, V, targets):
        """``-alpha S V``, in the rows that are not held."""
        image = self._graph.normalised(V)
        image *= -self._alpha
        if self._free is not None:
            image *= self._free
        return image

    def intercept(self, V):
        """Zeros: there is no intercept."""
        return np.zeros(V.shape[1])

    def scores(self, solution):
        """F of all rows."""
        return solution + self._known
