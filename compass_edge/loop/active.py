"""The step in flight: what P has said of it, what V has, and the frames they were shown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compass_edge.loop.candidate import Candidate, CandidateRule, Watch
from compass_edge.loop.mark import Mark
from compass_edge.loop.middle import MiddleRule
from compass_edge.loop.plan import Subtask


@dataclass(frozen=True, slots=True)
class Scored:
    frame: Mark
    score: float


@dataclass(frozen=True, slots=True)
class Proposal:
    frame: Mark
    during: Mark


@dataclass(frozen=True, slots=True)
class ActiveStep:
    step_id: int
    subtask: Subtask
    began: Mark
    stride: int = 1  # of the clip in ticks: doubles whenever the clip would outgrow its limit
    clip: tuple[Scored, ...] = ()  # the frames since, thinned; the last one is always the newest
    watch: Watch = field(default_factory=Watch)
    candidate: Candidate | None = None  # the rule's, not yet put to V
    proposal: Proposal | None = None  # with V
    verifications: int = 0
    tried: int = -1  # the frame of the last verification
    stalled: bool = False

    @property
    def newest(self) -> Mark:
        return self.clip[-1].frame if self.clip else self.began

    @property
    def local(self) -> float:
        """P's estimate of how far this step is, 0 to 1."""
        return self.clip[-1].score if self.clip else 0.0

    def scored(self, scored: Scored, rule: CandidateRule, every: int, max_frames: int) -> ActiveStep:
        watch, candidate = rule.observe(self.watch, scored.frame, scored.score)
        longer = self.longer(scored, every, max_frames)
        return replace(longer, watch=watch, candidate=None if self.stalled else candidate)

    def longer(self, newest: Scored, every: int, max_frames: int) -> ActiveStep:
        """With one more frame in the clip: every `stride`-th tick since the step began, and always the newest.

        When the clip would hold more than `max_frames` (the start included) the stride doubles, so that what is left still
        covers the step evenly. It depends on the frames alone, never on when they came.
        """
        clip, stride = self.clip, self.stride
        if clip and not self._on_stride(clip[-1].frame, stride, every):
            clip = clip[:-1]
        while len(clip) + 2 > max_frames:
            stride *= 2
            clip = tuple(scored for scored in clip if self._on_stride(scored.frame, stride, every))
        return replace(self, stride=stride, clip=(*clip, newest))

    def _on_stride(self, frame: Mark, stride: int, every: int) -> bool:
        return (frame.seq - self.began.seq) // every % stride == 0

    def proposed(self, proposal: Proposal) -> ActiveStep:
        return replace(self, candidate=None, proposal=proposal)

    def rejected(self, rule: CandidateRule) -> ActiveStep:
        tried = self.proposal.frame.seq if self.proposal else self.tried
        return replace(
            self, proposal=None, verifications=self.verifications + 1, tried=tried, watch=rule.rejected(self.watch)
        )

    def restarted(self, frame: Mark) -> ActiveStep:
        """From that frame on, with nothing of before but the verifications it has had."""
        fresh = ActiveStep(self.step_id, self.subtask, frame)
        return replace(fresh, verifications=self.verifications, stalled=self.stalled)

    def during(self, candidate: Mark, rule: MiddleRule) -> Mark:
        """The middle frame for V."""
        between = [scored for scored in self.clip if scored.frame.seq < candidate.seq]
        return rule.choose(between, self.subtask.completion, self.verifications) if between else self.began
