"""The verdicts of a run as markup: the three frames that V was shown, what it wrote of each, and what it decided."""

from __future__ import annotations

from compass_edge.eval.report.markup import words
from compass_edge.run_page.record import Seen, Verdict


def verdict(one: Verdict) -> str:
    told = (("expected", one.tau), ("seen to change", one.change), ("verdict", one.verdict.replace("_", " ")))
    beside = "".join(f"<dt>{name}</dt><dd>{words(text)}</dd>" for name, text in told if text)
    kind, word = ("yes", "accepted") if one.accepted else ("no", "rejected")
    return f"""<article class="verdict {kind}">
<header><span class="badge">{word}</span><h3>{one.step}. {words(one.sentence)}</h3></header>
<div class="ruling">
<div class="frames">{_seen("start", one.start)}{_seen("during", one.during)}{_seen("candidate", one.candidate)}</div>
<dl>{beside}<dt>proposed for</dt><dd>{words(one.reason)}, P says {one.score:.2f}</dd></dl>
</div>
</article>
"""


def _seen(name: str, seen: Seen) -> str:
    picture = (
        f'<img src="{seen.picture}" alt="frame {seen.frame}">' if seen.picture else '<span class="none">not kept</span>'
    )
    said = f"<p>{words(seen.said)}</p>" if seen.said else ""
    return (
        f'<figure><button type="button" data-at="{seen.at_s:.3f}" title="Show it in the video">{picture}</button>'
        f"<figcaption><b>{name}</b> {seen.at_s:.1f} s, frame {seen.frame}{said}</figcaption></figure>"
    )
