"""Shared by all tests: hypothesis draws the same examples everywhere."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests run when they are asked for: ``make fuzz``, or ``-m`` with their marker."""
    asked = str(config.getoption("markexpr"))
    for item in items:
        if item.get_closest_marker("slow") and "slow" not in asked:
            item.add_marker(pytest.mark.skip(reason="long; run by hand: make fuzz"))
