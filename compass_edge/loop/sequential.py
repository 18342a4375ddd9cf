"""The sequential executor: one call at a time, nothing before its turn. The reference that the others are held to."""

from __future__ import annotations

from compass_edge.loop.breaker import Breaker
from compass_edge.loop.call import Call, Failure
from compass_edge.loop.episode import Episode
from compass_edge.loop.lanes import ROLES, Finished, Job, Lanes
from compass_edge.loop.memo import Memo


def run_sequential(episode: Episode, lanes: Lanes) -> None:
    memo, breakers = Memo(), {role: Breaker() for role in ROLES}
    while (need := episode.advance(memo, lanes.now_ns())) is not None:
        if not isinstance(need, Call):
            lanes.wait(episode.ticks.due_ns())
            episode.ticks.newest()  # between two turns: a backlog that nobody will use is thinned
            continue
        while breakers[need.role].is_open(lanes.now_ns()) or not lanes.room(need.role):
            again = max(breakers[need.role].closed_again_ns, lanes.now_ns() + 1_000_000)
            due = episode.ticks.due_ns()
            lanes.wait(again if due is None else min(again, due))
            episode.ticks.newest()  # a model that rests is no reason to lose frames
        job = Job(need.role, (need,))
        memo.begin(need, lanes.now_ns(), "needed")
        lanes.start(job)
        while memo.pending(need.key):
            for signal in lanes.wait(episode.ticks.due_ns()):
                if isinstance(signal, Finished):
                    breakers[need.role].record(isinstance(signal.replies[0], Failure), lanes.now_ns())
                    memo.finish(need.key, signal.replies[0], lanes.now_ns())
            episode.ticks.newest()  # reads a live ring before it is overwritten
