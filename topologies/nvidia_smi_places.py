"""``Matrix`` of ``nvidia-smi topo -m`` -> where GPUs and NICs sit: under which PCIe switch and CPU, on which NVLinks, by which NIC out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from topologies.errors import TopologyError
from topologies.nvidia_smi_text import LEVELS, Matrix

NODE = LEVELS["NODE"]


def joined(names: Sequence[str], near: Callable[[str, str], bool]) -> list[list[str]]:
    """Groups of names that hang together by pairs that are ``near``; groups and names in the order given."""
    groups: list[list[str]] = []
    left = list(names)
    while left:
        group, frontier = {left[0]}, [left[0]]
        while frontier:
            frontier = [name for name in left if name not in group and any(near(name, other) for other in frontier)]
            group.update(frontier)
        groups.append([name for name in left if name in group])
        left = [name for name in left if name not in group]
    return groups


def pcie_tree(matrix: Matrix, cpus: dict[str, str]) -> dict[str, str]:
    """Parent of every GPU, NIC and PCIe switch. PIX: under one switch. PXB: under switches below a common one, or all under that one where
    no two are PIX. Others hang on their CPU. Raises TopologyError where words of three devices contradict each other."""
    parent: dict[str, str] = {}
    switches = 0
    for wide in _groups(matrix, matrix.devices, "PXB"):
        tight = [group for group in _groups(matrix, wide, "PIX") if len(group) > 1]
        cpu = cpus[wide[0]]
        for gpu in wide:
            if gpu in matrix.gpus and cpus[gpu] != cpu:
                raise TopologyError(f"row {wide[0]}, column {gpu}: on one PCIe switch ({', '.join(wide[:8])}), with other affinity")
        top = cpu
        if len(wide) > 1 and tight != [wide]:
            top, switches = f"pcie{switches}", switches + 1
            parent[top] = cpu
        for group in tight:
            switch, switches = f"pcie{switches}", switches + 1
            parent |= dict.fromkeys(group, switch) | {switch: top}
        parent |= {device: top for device in wide if device not in parent}
    return parent


def _groups(matrix: Matrix, names: Sequence[str], word: str) -> list[list[str]]:
    most = LEVELS[word]
    groups = joined(names, lambda a, b: (level := matrix.level(a, b)) is not None and level <= most)
    for a, b in (pair for group in groups for pair in combinations(group, 2)):
        level = matrix.level(a, b)
        if level is not None and level > most:
            raise TopologyError(f"row {a}, column {b}: {matrix.words[a, b]}, but other devices are {word} or nearer to both")
    return groups


def cpus_of(matrix: Matrix) -> tuple[dict[str, str], list[str]]:
    """``cpu1`` of every device, and what had to be assumed. GPUs by NUMA number, else by equal CPU lists, else on as few CPUs as the words
    allow; a NIC with the nearest GPU."""
    notes: list[str] = []
    keys = next((known for known in (matrix.numa, matrix.cpus) if all(key not in ("", "N/A") for key in known.values())), None)
    if keys is None:
        notes.append("the affinity columns do not tell the CPU of every GPU; devices are placed on as few CPUs as their words allow")
        return _by_words(matrix), notes
    order = list(dict.fromkeys(keys.values()))
    numbered = all(key.isdigit() and len(key) <= 4 for key in order)
    place = {gpu: f"cpu{int(key) if numbered else order.index(key)}" for gpu, key in keys.items()}
    for nic in matrix.nics:
        near = [(level, i) for i, gpu in enumerate(matrix.gpus) if (level := matrix.level(nic, gpu)) is not None and level <= NODE]
        if near:
            place[nic] = place[matrix.gpus[min(near)[1]]]
    lost = [nic for nic in matrix.nics if nic not in place]
    if lost:
        known = sorted(set(place.values()))
        there = known[0] if len(known) > 1 else f"cpu{int(known[0][3:]) + 1}"
        place |= dict.fromkeys(lost, there)
        shown = ", ".join(f"{nic} ({matrix.names[nic]})" if nic in matrix.names else nic for nic in lost[:8])
        notes.append(f"{shown}{', ...' if len(lost) > 8 else ''}: near no GPU, the CPU is not known; taken as {there}")
    odd = [(a, b) for a, b in combinations(matrix.devices, 2) if a not in lost and b not in lost and _contradicts(matrix, place, a, b)]
    if odd:
        a, b = odd[0]
        same = "one CPU" if place[a] == place[b] else "two CPUs"
        notes.append(f"row {a}, column {b}: {matrix.words[a, b]}, but on {same} by affinity, which is taken ({len(odd)} such pairs)")
    return place, notes


def _contradicts(matrix: Matrix, place: dict[str, str], a: str, b: str) -> bool:
    level = matrix.level(a, b)
    return level is not None and (level > NODE) == (place[a] == place[b])


def _by_words(matrix: Matrix) -> dict[str, str]:
    cpus: list[list[str]] = []
    for group in joined(matrix.devices, lambda a, b: (level := matrix.level(a, b)) is not None and level <= NODE):
        apart = (cpu for cpu in cpus if not any(matrix.words.get((a, b)) == "SYS" for a in group for b in cpu))
        home = next(apart, None)
        if home is None:
            cpus.append(list(group))
        else:
            home += group
    return {device: f"cpu{i}" for i, cpu in enumerate(cpus) for device in cpu}


def nvlinks(matrix: Matrix, most: int, model: str, switched: bool | None) -> tuple[list[tuple[str, str, int]], list[dict[str, int]]]:
    """Direct NVLinks (two GPUs, how many), and for each NVSwitch the links of every GPU to it. ``most``: NVLinks of the GPU ``model``.

    GPUs whose words add up to no more than that are joined directly; words that add up to more go through an NVSwitch, where two
    GPUs are joined by as many links as the one with fewer has. ``switched`` decides where both can be. Raises TopologyError with
    row and column of a word that is neither."""
    direct: list[tuple[str, str, int]] = []
    through: list[dict[str, int]] = []
    for group in joined(matrix.gpus, lambda a, b: matrix.nvlinks(a, b) > 0):
        widest = {a: max((matrix.nvlinks(a, b), b) for b in group) for a in group}
        for a, (count, b) in widest.items():
            if count > most:
                raise TopologyError(f"row {a}, column {b}: NV{count}, but gpu={model} has {most} NVLinks; name the GPU that was measured")
        total = {a: sum(matrix.nvlinks(a, b) for b in group) for a in group}
        if len(group) == 1 or (not switched and max(total.values()) <= most):
            direct += [(a, b, matrix.nvlinks(a, b)) for a, b in combinations(group, 2) if matrix.nvlinks(a, b)]
            continue
        if switched is False:
            gpu = max(group, key=lambda a: total[a])
            raise TopologyError(f"row {gpu}: {total[gpu]} NVLinks, but gpu={model} has {most}; leave nvswitch=false out")
        for a, b in combinations(group, 2):
            rule = min(widest[a][0], widest[b][0])
            if matrix.nvlinks(a, b) != rule:
                gpu = max(group, key=lambda a: total[a])
                raise TopologyError(
                    f"row {a}, column {b}: {matrix.words[a, b]}; behind an NVSwitch NV{rule} would stand there, and direct links would be "
                    f"{total[gpu]} of {gpu}, where gpu={model} has {most}"
                )
        through.append({a: count for a, (count, _) in widest.items()})
    return direct, through


def rails(matrix: Matrix) -> dict[str, str]:
    """The NIC by which each GPU leaves the server: the nearest, of equals the one with fewest GPUs, then the first. Empty without NICs."""
    way: dict[str, str] = {}
    choices = {gpu: _nearest(matrix, gpu) for gpu in matrix.gpus}
    for gpu in sorted(matrix.gpus, key=lambda gpu: len(choices[gpu])):
        used = list(way.values())
        if choices[gpu]:
            way[gpu] = min(choices[gpu], key=used.count)
    return {gpu: way[gpu] for gpu in matrix.gpus if gpu in way}


def _nearest(matrix: Matrix, gpu: str) -> list[str]:
    levels = {nic: level for nic in matrix.nics if (level := matrix.level(gpu, nic)) is not None}
    return [nic for nic, level in levels.items() if level == min(levels.values())]


def above(parent: dict[str, str], devices: Iterable[str]) -> list[str]:
    """The PCIe switches and CPUs over some devices, each once."""
    found: dict[str, None] = {}
    for device in devices:
        while device in parent:
            device = parent[device]
            found[device] = None
    return list(found)
