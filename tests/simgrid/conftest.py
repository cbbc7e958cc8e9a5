"""These tests are asked for by name (`make simgrid`): they are no part of `make test`."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "simgrid" in str(config.getoption("markexpr")):
        return
    for item in items:
        if item.get_closest_marker("simgrid"):
            item.add_marker(pytest.mark.skip(reason="against another simulator; run `make simgrid`"))
