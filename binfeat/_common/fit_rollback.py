"""Fits that leave a whole estimator behind, whatever happens."""

import functools


def all_or_nothing(fit):
    """Decorate a method that fits: one that fails or is interrupted leaves the estimator as it was before.

    Only what Ctrl-C finds worth keeping stays: a fit says so by setting `status_` to "interrupted", last of all.
    """

    @functools.wraps(fit)
    def run(self, *arguments, **options):
        before = vars(self).copy()
        vars(self).pop("status_", None)
        try:
            return fit(self, *arguments, **options)
        except BaseException as error:
            if not (isinstance(error, KeyboardInterrupt) and vars(self).get("status_") == "interrupted"):
                self.__dict__ = before
            raise

    return run
