"""The one exception family. A message is a full sentence: what was expected, what came, what to do."""


class CompassError(Exception):
    """The task failed, though it was asked for correctly: a camera that does not answer, a video that cannot be read."""

    exit_code = 1


class UsageError(CompassError, ValueError):
    """It was asked for in a way that cannot work."""

    exit_code = 2


class EnvironmentFault(CompassError):
    """Something that must be installed, enabled or freed first."""

    exit_code = 3


class IntegrityError(CompassError):
    """A file is not what its manifest says it is."""

    exit_code = 4
