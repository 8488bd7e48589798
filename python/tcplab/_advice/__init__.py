"""Advice with evidence: which settings are best for a path and its traffic.

| question | module |
|---|---|
| what is asked: the experiment, what may change, what is to be best | `question`, `goals` |
| what can be changed, and to which values | `levers` |
| over which paths and loads | `ranges` |
| all stages in their order | `search` |
| the candidates, and the race among them; where runs are kept | `race`, `stages` |
| how much better, and how sure | `evidence` |
| whether limits are kept | `limits`, `limit_checks` |
| why, and where it flips | `causes`, `sensitivity` |
| the verdict: a change, or nothing that is distinguishably better | `advice` |
| the answer, in sentences and as a page | `words`, `phrases`, `page` |
| the files of a folder: question, answer, scripts | `folder` |
| the files that put it in and take it out | `applied`, `sockops`, and the scripts in `shell` |
"""
