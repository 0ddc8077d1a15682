"""`RandomBinning` on a source of row blocks."""

from binfeat._binning.bin_matrix import BinMatrix, code_dtype
from binfeat._binning.bins import count_bins_of_blocks
from binfeat._binning.code_store import CodeStore, code_budget
from binfeat._binning.input_checks import fold_codes, output_dtype
from binfeat._common.gamma_scale import over_blocks
from binfeat._rows.sources import Survey
from binfeat._rows.streamed import StreamedRows


def fit_blocks(binning, source):
    """Draw the grids and find the occupied bins of all blocks."""
    rows, _ = _begin(binning, source)
    if binning.n_features is None:
        binning._set_bins(count_bins_of_blocks(binning._grids, rows, rows.n_rows, n_jobs=binning.n_jobs), rows.n_rows)


def fit_transform_blocks(binning, source):
    """The same, and the codes of all rows: kept, or made again for each product where no room is found for them."""
    rows, survey = _begin(binning, source)
    hashed = binning.n_features is not None
    budget, n_slots = code_budget(binning.max_bytes), binning.bin_offsets_[1] if hashed else 0
    try:
        store = CodeStore(rows.n_rows, binning.n_grids, budget, code_dtype(n_slots))
    except OSError:
        if not hashed:
            raise
        return StreamedRows.of(survey, binning.encode, binning.n_features, dense=False)
    (_fold if hashed else _learn)(binning, rows, store)
    Z = BinMatrix._trusted(store.array, binning.bin_offsets_, output_dtype(survey), binning.n_jobs)
    Z.y, Z.sample_weight, Z._max_bytes = survey.y, survey.sample_weight, budget
    return Z


def _begin(binning, source):
    """Check parameters and all blocks, and draw the grids; rows for more passes, and what came with them."""
    binning._check_parameters()
    survey = Survey(source, binning._check)
    rows = survey.rows()
    binning._draw(over_blocks(rows))
    return rows, survey


def _learn(binning, rows, store):
    bins = count_bins_of_blocks(binning._grids, rows, rows.n_rows, store, binning.n_jobs)
    new_codes = binning._set_bins(bins, rows.n_rows)
    store.recode(new_codes, bins.starts, binning._code_dtype, binning.n_jobs)


def _fold(binning, rows, store):
    stop = 0
    for X in rows:
        start, stop = stop, stop + X.shape[0]
        store.array[:, start:stop] = fold_codes(binning._grids, X, binning.bin_offsets_, binning.n_jobs)
