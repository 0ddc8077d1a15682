"""Types in saved files: the names to trust, and the names that older versions wrote."""

import json
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

_ESTIMATORS = (
    "CGRidge",
    "CGRidgeClassifier",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "LabelSpreading",
    "OutlierDetector",
    "RandomBinning",
    "RandomFeatureUnion",
    "RandomFourier",
    "SpectralClustering",
    "SpectralEmbedding",
)
_DISTRIBUTED = (
    "CGRidge",
    "CGRidgeClassifier",
    "KernelMachineClassifier",
    "KernelMachineRegressor",
    "OutlierDetector",
    "RandomBinning",
    "RandomFourier",
)
_KERNELS = "Cauchy", "GammaPitch", "Hat", "Laplacian", "Matern", "RBF", "Skip"  # the others contain functions

TRUSTED_TYPES = [
    *(f"binfeat.{name}" for name in _ESTIMATORS),
    *(f"binfeat.distributed.{name}" for name in _DISTRIBUTED),
    *(f"binfeat.kernels.{name}" for name in _KERNELS),
    "binfeat.features.learn_gamma.learning.LearnedGamma",
    "binfeat.graph.wider_grids.WiderGrids",
]

_RENAMED = {  # version 0.2.0 wrote the modules that contained the classes
    "binfeat.binning.RandomBinning": "binfeat.RandomBinning",
    "binfeat.clusters.SpectralClustering": "binfeat.SpectralClustering",
    "binfeat.clusters.SpectralEmbedding": "binfeat.SpectralEmbedding",
    "binfeat.few_labels.LabelSpreading": "binfeat.LabelSpreading",
    "binfeat.fourier.RandomFourier": "binfeat.RandomFourier",
    "binfeat.machine.KernelMachineClassifier": "binfeat.KernelMachineClassifier",
    "binfeat.machine.KernelMachineRegressor": "binfeat.KernelMachineRegressor",
    "binfeat.ridge.CGRidge": "binfeat.CGRidge",
    "binfeat.ridge.CGRidgeClassifier": "binfeat.CGRidgeClassifier",
    "binfeat.union.RandomFeatureUnion": "binfeat.RandomFeatureUnion",
}
_SCHEMA = "schema.json"


def with_new_names(path: Path) -> bytes | None:
    """Return the content of a skops file with new names for types of older versions; None if it has none."""
    with ZipFile(path) as old:
        schema = json.loads(old.read(_SCHEMA))
        if not _rename(schema):
            return None
        content = BytesIO()
        with ZipFile(content, "w") as new:
            for name in old.namelist():
                new.writestr(name, json.dumps(schema) if name == _SCHEMA else old.read(name))
    return content.getvalue()


def _rename(schema: object) -> bool:
    """Rename the types in a description of an object, in place; return True if there are any."""
    waiting, has_renamed = [schema], False
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            renamed = _RENAMED.get(f"{node.get('__module__')}.{node.get('__class__')}")
            if renamed is not None:
                node["__module__"], _, node["__class__"] = renamed.rpartition(".")
                has_renamed = True
        children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        waiting.extend(child for child in children if isinstance(child, dict | list))
    return has_renamed
