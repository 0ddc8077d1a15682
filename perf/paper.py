"""Figures of A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Test error in percent, seconds of training in 2007, and D (frequencies) or P (grids)."""

    error: float
    seconds: float
    size: int | None = None


@dataclass(frozen=True)
class Experiment:
    """A line of Table 1.

    Errors are shares of wrong labels, or RMS errors divided by the norm of the true targets.
    """

    rows: int
    inputs: int
    fourier: Published
    binning: Published
    others: dict[str, Published]


TABLE_1 = {
    "CPU": Experiment(
        6_500,
        21,
        Published(3.6, 20, 300),
        Published(5.3, 3 * 60, 350),
        {"CVM": Published(5.5, 51), "ASVM": Published(11, 31)},
    ),
    "Census": Experiment(
        18_000,
        119,
        Published(5, 36, 500),
        Published(7.5, 19 * 60, 30),
        {"CVM": Published(8.8, 7.5 * 60), "SVMTorch": Published(9, 13 * 60)},
    ),
    "Adult": Experiment(
        32_000,
        123,
        Published(14.9, 9, 500),
        Published(15.3, 1.5 * 60, 30),
        {"CVM": Published(14.8, 73 * 60), "SVMlight": Published(15.1, 7 * 60)},
    ),
    "Forest Cover": Experiment(
        522_000,
        54,
        Published(11.6, 71 * 60, 5000),
        Published(2.2, 25 * 60, 50),
        {"CVM": Published(2.3, 7.5 * 3600), "libSVM": Published(2.2, 44 * 3600)},
    ),
    "KDDCUP99": Experiment(
        4_900_000,
        127,
        Published(7.3, 1.5 * 60, 50),
        Published(7.3, 35 * 60, 10),
        {"CVM": Published(6.2, 1.4), "CVM, second figure": Published(18, 20), "SVM + sampling": Published(8.3, 1)},
    ),
}
