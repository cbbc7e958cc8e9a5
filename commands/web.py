"""The web app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commands.options import say


def start_app(port: Annotated[str, typer.Option(help="of 127.0.0.1")] = "8501") -> None:
    """The web app, in a browser on this machine."""
    from screens.serve import serve
    from views.arguments import whole

    serve(Path(__file__).parents[1] / "app.py", whole(port, "--port", 1, 65535), say)
