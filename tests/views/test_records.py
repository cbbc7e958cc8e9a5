"""Records of large results: what is summed up, and what is still listed."""

from __future__ import annotations

from views import records


def test_of_many_links_the_busiest_are_listed() -> None:
    many = {(f"a{i}", "b"): float(i * 7 % 1009) for i in range(records.MOST_LINKS + 1)}
    listed = records._most(many)
    assert [seconds for _, seconds in listed] == sorted(many.values(), reverse=True)[: records.BUSIEST]
    assert all(many[ends] == seconds for ends, seconds in listed)
    few = dict(list(many.items())[: records.MOST_LINKS])
    assert records._most(few) == list(few.items())
