"""Cells of rows in trees."""

from binfeat._engine.policy import jit


@jit
def find_cells(X, inputs, places, children, roots, cells):
    """Follow the splits of several trees, for every row.

    A row goes to the second child of a split if it lies beyond the place of the split along its input. Children are
    numbers of splits; ``-1 - c`` stands for cell c. Every split comes before its children.

    Parameters
    ----------
    X : (n_rows, n_inputs) float64
    inputs : (n_splits,) int32
    places : (n_splits,) float64
    children : (n_splits, 2) int32
    roots : (n_trees,) int32
        First split of each tree, or its only cell.
    cells : (n_trees, n_rows) int32, output
    """
    for t in range(roots.size):
        for i in range(X.shape[0]):
            node = roots[t]
            while node >= 0:
                node = children[node, 1 if X[i, inputs[node]] > places[node] else 0]
            cells[t, i] = -1 - node
