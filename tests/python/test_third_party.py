"""The licences that are allowed for linked crates."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "scripts"))

from third_party import is_allowed, refused

ALLOWED = {"MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"}


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("MIT", True),
        ("MIT/GPL-3.0", True),
        ("GPL-2.0-only", False),
        ("", False),
        ("MIT OR LGPL-2.1-or-later", True),
        ("MIT AND LGPL-2.1-or-later", False),
        ("GPL-2.0 OR Apache-2.0 AND MIT", True),
        ("(GPL-2.0 OR Apache-2.0) AND MPL-2.0", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0 WITH Classpath-exception-2.0", False),
    ],
)
def test_an_expression_is_allowed_if_a_choice_of_it_is(licence: str, expected: bool) -> None:
    assert is_allowed(licence, ALLOWED) is expected


def test_other_licences_and_sources_are_refused() -> None:
    crate = {"name": "x", "version": "1.0.0", "license": "AGPL-3.0", "source": "git+https://x.test"}
    assert refused(crate) == [
        "x 1.0.0: its licence, AGPL-3.0, is not allowed by deny.toml",
        "x 1.0.0: its source, git+https://x.test, is not allowed by deny.toml",
    ]
