"""Small topology files of NCCL, written for the tests, and what looks at the result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from topologies import Topology
from topologies.errors import RingscopeError
from topologies.nccl_xml import read_nccl_xml

PAIR = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="8">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="90" rank="1" gdr="1"><nvlink target="0000:21:00.0" count="6" tclass="0x030200"/>
        <nvlink target="0000:05:00.0" count="5" tclass="0x068000"/><nvlink target="0000:06:00.0" count="7" tclass="0x068000"/></gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020000" vendor="0x15b3" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic><net name="a" dev="1" speed="180000" port="1" latency="1.5"/><net name="b" dev="2" speed="180000" port="2" latency="0"/></nic>
      </pci>
    </pci>
    <pci busid="0000:30:00.0" class="0x060400" link_speed="8 GT/s" link_width="16">
      <pci busid="0000:31:00.0" class="0x010802" link_speed="8 GT/s" link_width="4"/>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:20:00.0" class="0x060400" link_speed="5.0 GT/s PCIe" link_width="16">
      <pci busid="0000:22:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
        <pci busid="0000:21:00.0" class="0x030200" link_speed="" link_width="0">
          <gpu dev="0" sm="90" rank="0" gdr="1"><nvlink target="0000:11:00.0" count="6" tclass="0x030200"/>
          <nvlink target="fffffff:ffff:ff" count="12" tclass="0x068000"/></gpu>
        </pci>
      </pci>
    </pci>
    <nic><net name="eth0" dev="0" speed="-1" port="0"/></nic>
  </cpu>
</system>
"""
"""Two GPUs, numbered against the order of the file, with all that real files have: bridges in bridges, a disk, two ports, no speed."""

VM = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
    </pci>
    <pci busid="ffff:ff:02.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0002:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>
      <pci busid="0102:00:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
    </pci>
  </cpu>
</system>
"""
CARDS = VM.replace(
    '0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>', '0x030200" link_speed="8 GT/s" link_width="16"><gpu sm="70"/></pci>'
)


def reader(directory: Path) -> Callable[..., Topology]:
    """Reads text or bytes as the file ``box.xml``; keywords are parameters."""

    def read(text: str | bytes, **params: object) -> Topology:
        path = directory / "box.xml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_nccl_xml(path, params)  # type: ignore[arg-type]

    return read


def refusal(call, *args, **kwargs) -> str | None:
    """The one line of a refusal; None where there is none. Anything but a RingscopeError fails the test."""
    try:
        call(*args, **kwargs)
    except RingscopeError as error:
        return str(error)
    return None


def cables(topology: Topology) -> dict[tuple[str, str], tuple[str, int]]:
    return {(link.src, link.dst): (link.kind, link.lanes) for link in topology.links if (link.src, link.dst) < (link.dst, link.src)}
