"""A real browser on a real server. Fails on a traceback, a console error, an exception box, or a request to another host."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
PROBE = re.compile(r"/_stcore/(health|host-config)$")  # on sub-pages Streamlit first asks /page/_stcore/* and gets a 404


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            pytest.fail("streamlit exited:\n" + log.read_text())
        try:
            if urllib.request.urlopen(url + "/_stcore/health", timeout=1).read() == b"ok":
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail("not healthy in 30 s:\n" + log.read_text())


@pytest.fixture(scope="session")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's address; pytest-playwright puts it before relative addresses."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"{CHROMIUM} is missing: install Debian's chromium, or set CHROMIUM")
    port, log = _free_port(), tmp_path_factory.mktemp("streamlit") / "server.log"
    options = {
        "port": str(port), "address": "127.0.0.1", "headless": "true", "fileWatcherType": "none",
    }  # fmt: skip
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *(f"--server.{key}={value}" for key, value in options.items())]
    with log.open("w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(url, server, log)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
    bad = [line for line in log.read_text().splitlines() if "Traceback" in line or "will be removed after" in line]
    assert not bad, log.read_text()


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any], base_url: str) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": CHROMIUM, "headless": True, "args": ARGS}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "viewport": {"width": 1280, "height": 720}, "locale": "en-US", "reduced_motion": "reduce"}


@pytest.fixture
def visit(page: Page, base_url: str) -> Iterator[Callable[..., Page]]:
    """``visit("/?gpus=4")`` opens a page and waits until the script is done."""
    errors: list[str] = []
    outside: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"pageerror {error}"))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" and not PROBE.search(m.location.get("url", "")) else None)
    page.on("request", lambda r: outside.append(r.url) if not r.url.startswith((base_url, "data:", "blob:")) else None)
    page.set_default_timeout(20_000)

    def go(path: str = "/") -> Page:
        page.goto(path)
        return idle(page)

    yield go
    assert page.locator("[data-testid=stException]").count() == 0
    assert not errors, errors
    assert not outside, outside


def idle(page: Page) -> Page:
    """Wait until Streamlit has nothing left to do."""
    page.wait_for_selector("[data-testid=stApp][data-test-connection-state='CONNECTED']")
    page.wait_for_selector("[data-testid=stApp][data-test-script-state='notRunning']")
    return page
