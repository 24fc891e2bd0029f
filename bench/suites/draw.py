"""Skewed, correlated columns from a seed. The same seed gives the same rows with the same version of NumPy."""

import numpy
import pyarrow


class Draw:
    def __init__(self, seed):
        self.seed = seed
        self.random = numpy.random.Generator(numpy.random.PCG64(seed))

    def of(self, name):
        """Draws of its own for a table, so that rows of one do not depend on how many another has."""
        return Draw([*numpy.atleast_1d(self.seed), *name.encode()])

    def below(self, end, size):
        """Whole numbers from 0 to `end`, each as likely."""
        return self.random.integers(0, end, size)

    def zipf(self, end, size, skew=1.0, scattered=True):
        """Whole numbers below `end`: the k-th most frequent one as 1 / k**skew. Scattered, that is not the k-th smallest."""
        weights = numpy.arange(1, end + 1, dtype=float) ** -skew
        drawn = numpy.searchsorted(numpy.cumsum(weights) / weights.sum(), self.random.random(size), side="right")
        drawn = numpy.minimum(drawn, end - 1)
        return self.random.permutation(end)[drawn] if scattered else drawn

    def choice(self, values, size, weights=None):
        """Some of `values`, as texts or what they are."""
        share = None if weights is None else numpy.array(weights, dtype=float) / sum(weights)
        return take(values, self.random.choice(len(values), size, p=share))

    def chance(self, share, size):
        return self.random.random(size) < share

    def holes(self, values, share):
        """The same values, some of them NULL."""
        return nulls(values, self.chance(share, len(values)))


def take(values, which):
    """`values[which]` as a column, for texts without a Python object a row."""
    return pyarrow.array(values).take(pyarrow.array(which))


def nulls(values, where):
    """The same column, NULL where `where` says so."""
    import pyarrow.compute

    values = pyarrow.array(values) if isinstance(values, numpy.ndarray) else values
    return pyarrow.compute.if_else(pyarrow.array(where), pyarrow.scalar(None, values.type), values)


def moments(begin, seconds):
    """Timestamps, whole or parts of seconds after `begin` (`2020-01-01`)."""
    micros = (numpy.asarray(seconds) * 1_000_000).astype("timedelta64[us]")
    return pyarrow.array(numpy.datetime64(begin, "us") + micros)


def days(begin, number):
    return pyarrow.array((numpy.datetime64(begin, "D") + numpy.asarray(number).astype("timedelta64[D]")))
