"""How flows share resources: max-min fair rates, or one after the other. Knows routes and capacities, no time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from sim.routes import Route

SAME = 1 + 1e-12  # shares this close are one bottleneck: rounding must not split a symmetric step


class Sharing(Protocol):
    """Flows come and go within an instant; ``settle`` then says whose rate [B/s] is new."""

    limit: dict[int, int]
    """The resource that held each flow to its rate."""

    def add(self, flow: int, route: Route) -> None: ...
    def remove(self, flow: int) -> None: ...
    def settle(self) -> list[tuple[int, float]]: ...


class FairSharing:
    """Max-min fairness by progressive filling: raise all rates alike until a resource is full, freeze its flows, go on with the
    rest. Only flows connected by shared resources to a change are looked at. ``incast``: the penalty of each resource, or none."""

    def __init__(self, capacity: Sequence[float], incast: Sequence[float] = ()) -> None:
        self.capacity, self.incast = capacity, incast or [0.0] * len(capacity)
        self.limit: dict[int, int] = {}
        self._users: list[dict[int, float]] = [{} for _ in capacity]  # resource -> flow -> weight
        self._routes: dict[int, Route] = {}
        self._rate: dict[int, float] = {}
        self._touched: set[int] = set()

    def add(self, flow: int, route: Route) -> None:
        self._routes[flow] = route
        self._rate[flow] = 0.0
        for resource, weight in zip(route.resources, route.weights, strict=True):
            self._users[resource][flow] = weight
        self._touched.update(route.resources)

    def remove(self, flow: int) -> None:
        route = self._routes.pop(flow)
        del self._rate[flow]
        for resource in route.resources:
            del self._users[resource][flow]
        self._touched.update(route.resources)

    def settle(self) -> list[tuple[int, float]]:
        changed = []
        for flows in self._components():
            for flow, rate in (self._alone(flows[0]) if len(flows) == 1 else self._fill(flows)).items():
                if rate != self._rate[flow]:
                    self._rate[flow] = rate
                    changed.append((flow, rate))
        self._touched.clear()
        return sorted(changed)

    def _components(self) -> Iterable[list[int]]:
        seen: set[int] = set()
        for first in sorted(self._touched):
            if first in seen:
                continue
            flows: set[int] = set()
            frontier = [first]
            seen.add(first)
            while frontier:
                for flow in self._users[frontier.pop()]:
                    if flow not in flows:
                        flows.add(flow)
                        fresh = [r for r in self._routes[flow].resources if r not in seen]
                        seen.update(fresh)
                        frontier += fresh
            if flows:
                yield sorted(flows)

    def _alone(self, flow: int) -> dict[int, float]:
        route = self._routes[flow]
        rate, self.limit[flow] = min((self.capacity[r] / w, r) for r, w in zip(route.resources, route.weights, strict=True))
        return {flow: rate}

    def _fill(self, flows: list[int]) -> dict[int, float]:
        resources = sorted({r for flow in flows for r in self._routes[flow].resources})
        left = {r: self.capacity[r] / (1 + self.incast[r] * (len(self._users[r]) - 1)) for r in resources}
        open_flows = {r: dict(self._users[r]) for r in resources}
        rates: dict[int, float] = {}
        share = 0.0
        while len(rates) < len(flows):
            shares = {r: left[r] / sum(users.values()) for r, users in open_flows.items() if users}
            share = max(share, min(shares.values()))  # never falls in exact arithmetic
            for full in [r for r, s in shares.items() if s <= share * SAME]:
                for flow in list(open_flows[full]):
                    rates[flow] = share
                    self.limit[flow] = full
                    route = self._routes[flow]
                    for r, w in zip(route.resources, route.weights, strict=True):
                        left[r] = max(0.0, left[r] - share * w)
                        del open_flows[r][flow]
        return rates


class FifoSharing:
    """A flow holds all resources of its route from first byte to last; each resource serves flows in the order in which they
    became ready, lower message numbers first within an instant."""

    def __init__(self, capacity: Sequence[float]) -> None:
        self.capacity = capacity
        self.limit: dict[int, int] = {}
        self._lines: list[dict[int, None]] = [{} for _ in capacity]
        self._routes: dict[int, Route] = {}
        self._new: list[int] = []
        self._freed: set[int] = set()

    def add(self, flow: int, route: Route) -> None:
        self._routes[flow] = route
        self._new.append(flow)

    def remove(self, flow: int) -> None:
        route = self._routes.pop(flow)
        for resource in route.resources:
            del self._lines[resource][flow]
        self._freed.update(route.resources)

    def settle(self) -> list[tuple[int, float]]:
        self._new.sort()
        for flow in self._new:
            for resource in self._routes[flow].resources:
                self._lines[resource][flow] = None
        heads = {next(iter(self._lines[r])) for r in self._freed if self._lines[r]}
        granted = []
        for flow in sorted(heads.union(self._new)):
            route = self._routes[flow]
            if all(next(iter(self._lines[r])) == flow for r in route.resources):
                rate, self.limit[flow] = min((self.capacity[r] / w, r) for r, w in zip(route.resources, route.weights, strict=True))
                granted.append((flow, rate))
        self._new, self._freed = [], set()
        return granted
