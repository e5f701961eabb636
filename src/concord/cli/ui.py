"""`kb ui`: the page, from a server that is the user's alone."""

from __future__ import annotations

from pathlib import Path

import click

from concord.cli import output
from concord.cli.command import Flags, command, settings_of


@command("ui", "kb ui", "kb ui --no-open")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=0, help="The port to listen on.")
@click.option("--no-open", is_flag=True, help="Print the address, which works once, and open nothing.")
def ui(flags: Flags, port: int, no_open: bool, as_json: bool) -> None:
    """Open the page in the browser, from a server that is yours alone.

    Other users of this machine cannot ask that server: the address holds a code that works once, within two
    minutes. Another `kb ui` opens the page of the server that runs already.
    """
    from concord.web import ui as page

    def show(url: str, file: Path) -> None:
        is_open = not (no_open or as_json) and page.in_browser(url, file)
        if as_json:
            output.emit_json({"url": url})
        elif is_open:
            output.talk("the page is open in your browser")
        else:
            output.emit(url)
            output.talk("open this address in a browser: it works once, within two minutes")

    try:
        page.open_page(settings_of(flags), port, Path.cwd(), show)
    except KeyboardInterrupt:
        output.talk("stopped serving")
