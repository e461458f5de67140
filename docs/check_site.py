"""Open every page of the built site in Chromium, on a screen and on a phone.

Checked on each page: its title, that the console is silent, that no formula is left as raw TeX,
that no name of a measure is an address of mail, and that the page is no wider than the screen.
Nothing is loaded but the files of the site.

python docs/check_site.py docs/_build/html [--pictures FOLDER] [--pages index quickstart]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --hide-scrollbars "
    "--allow-file-access-from-files --remote-debugging-pipe"
)
WIDTHS = (1280, 390)
# Text of the page but for code, where a dollar sign is a dollar sign.
PROSE = """(() => {
  const copy = document.body.cloneNode(true);
  copy.querySelectorAll('pre, code, script, style, math').forEach(part => part.remove());
  return copy.textContent;
})()"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Browser:
    """Chromium, driven by its DevTools protocol over a pipe: no port is opened."""

    def __init__(self, program: str, profile: str) -> None:
        receive, self._write = os.pipe()
        self._read, send = os.pipe()
        # Chromium reads commands from descriptor 3 and answers on descriptor 4.
        command = f'exec "$@" 3<&{receive} 4>&{send}'
        words = [program, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", *words],
            pass_fds=(receive, send),
            stderr=subprocess.DEVNULL,
        )
        os.close(receive)
        os.close(send)
        self._rest = b""
        self._number = 0
        self._session = ""
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            while b"\0" not in self._rest:
                more = os.read(self._read, 1 << 16)
                if not more:
                    raise ConnectionError("Chromium ended.")
                self._rest += more
            message, self._rest = self._rest.split(b"\0", 1)
            yield json.loads(message)

    def _until(self, name: str, value: object) -> dict[str, Any]:
        """Read up to the message with this value; note what the console says meanwhile."""
        for message in self._messages():
            self._listen(message)
            if message.get(name) == value:
                return message
        raise AssertionError("unreachable")

    def _listen(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        if message.get("method") == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"]["text"])
        elif parameters.get("type") in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters.get("args")))

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command, and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method}
        message["params"] = parameters
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._until("id", self._number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, page: Path, width: int, height: int = 900) -> None:
        """Load a page on a screen of this size."""
        self.complaints.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Page.navigate", url=page.resolve().as_uri())
        self._until("method", "Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return done["result"].get("value")

    def look(self, scheme: str, medium: str = "screen") -> None:
        """Prefer a colour scheme, "light" or "dark", on a medium, "screen" or "print"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=medium, features=features)

    def picture(self, path: Path, whole: bool = True) -> None:
        """Save what is seen, or the whole page."""
        done = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(done["data"]))

    def close(self) -> None:
        self._session = ""
        self.call("Browser.close")
        self._process.wait(timeout=30)


def find_browser() -> str | None:
    """The Chromium of this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def titles_of(site: Path) -> dict[str, str]:
    """The title of every page, from the index of Sphinx's search."""
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    content = json.loads(re.sub(r"^Search\.setIndex\(|\)$", "", index.strip()))
    return dict(zip(content["docnames"], content["titles"], strict=True))


def plain(title: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", title)).strip()


def faults_of(browser: Browser, title: str) -> list[str]:
    """What is wrong with the page that is open."""
    faults = [f"console: {complaint}" for complaint in browser.complaints]
    shown = browser.value("document.title")
    if not shown.startswith(plain(title)):
        faults.append(f"title: {shown!r}, not {plain(title)!r}")
    if "$" in browser.value(PROSE):
        faults.append("a raw dollar sign")
    if browser.value("document.querySelector('a[href^=\"mailto:\"]') !== null"):
        faults.append("a link to an address of mail")
    if browser.value(OVERFLOW) > 0:
        faults.append(f"{browser.value(OVERFLOW)} pixels wider than the screen")
    return faults


def check(site: Path, pictures: Path | None, only: list[str]) -> list[str]:
    """Faults of all pages at all widths."""
    found = []
    program = find_browser()
    assert program is not None
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(program, profile)
        titles = titles_of(site)
        for name in only or sorted(titles):
            for width in WIDTHS:
                browser.open(site / f"{name}.html", width)
                for fault in faults_of(browser, titles[name]):
                    found.append(f"{name} at {width} pixels: {fault}")
                if pictures:
                    browser.picture(pictures / f"{name.replace('/', '-')}-{width}.png")
        browser.close()
    print(f"{len(only or titles)} pages opened at {len(WIDTHS)} widths")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path, help="save a picture of each page")
    parser.add_argument("--pages", nargs="*", default=[], help="these pages only")
    given = parser.parse_args()
    if find_browser() is None:
        print("No Chromium was found: the pages were not opened.")
        return 0
    faults = check(given.site, given.pictures, given.pages)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
