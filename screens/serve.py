"""The web app as a process of its own on this machine: the port is tried before Streamlit takes the terminal over."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from topologies.errors import RingscopeError


def serve(page: Path, port: int, say: Callable[[str], None]) -> None:
    """Replace this process by Streamlit on ``page``. RingscopeError where the page is missing or the port is taken."""
    if not page.is_file():
        raise RingscopeError(f"{page}: there is no such file; run ringscope from a checkout")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise RingscopeError(f"--port {port} cannot be used: {error.strerror}; write another, as --port {port % 65535 + 1}") from None
    say(f"ringscope app: http://127.0.0.1:{port}  (Ctrl-C stops it)")
    options = ["--server.headless=true", "--server.address=127.0.0.1", f"--server.port={port}", "--browser.gatherUsageStats=false"]
    os.chdir(page.parent)  # Streamlit reads .streamlit/config.toml from here
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", str(page), *options])
