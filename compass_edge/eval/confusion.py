"""The confusion of the Verifier: its rulings against the annotation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compass_edge.eval.rate import Rate
from compass_edge.eval.result import Result


@dataclass(frozen=True, slots=True)
class Confusion:
    """`left_out`: rulings of runs whose plan does not match. Nobody can say which annotated step they are about."""

    true_accepts: int = 0
    false_accepts: int = 0
    true_rejects: int = 0
    false_rejects: int = 0
    left_out: int = 0

    @property
    def false_accept_rate(self) -> Rate:
        """Of all completions that were none: early ones, and those that were there before the step began."""
        return Rate(self.false_accepts, self.false_accepts + self.true_rejects)

    @property
    def false_reject_rate(self) -> Rate:
        """gamma."""
        return Rate(self.false_rejects, self.false_rejects + self.true_accepts)


def confusion(results: Iterable[Result]) -> Confusion:
    """Of runs of the loop; other results have no rulings."""
    counts = {(True, True): 0, (True, False): 0, (False, False): 0, (False, True): 0}
    left_out = 0
    for result in results:
        for ruling in result.trace.rulings if result.trace is not None else ():
            if result.trace is not None and result.trace.plan_matches:
                counts[ruling.accepted, ruling.true] += 1
            else:
                left_out += 1
    return Confusion(
        counts[True, True], counts[True, False], counts[False, False], counts[False, True], left_out=left_out
    )
