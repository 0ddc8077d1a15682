"""Ridge machines: the normal equations of rows anywhere, and the solvers on them."""
