# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through its debugging pipe: messages are JSON that ends with a zero byte."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SECONDS = 120  # until a browser that does not answer is given up


class Browser:
    def __init__(self, folder: Path) -> None:
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if program is None:
            pytest.skip("chromium is not installed; tools/setup.sh frameworks installs it")
        theirs, self._to = os.pipe()
        self._from, back = os.pipe()
        words = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={folder / 'profile'}",
            "--remote-debugging-pipe",  # reads 3, writes 4
        ]
        shell = f'exec "$@" 3<&{theirs} 4>&{back}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", program, *words],
            pass_fds=(theirs, back),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(back)
        self._buffer, self._count = b"", 0
        self.events: list[dict[str, Any]] = []
        self._tab = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._tab = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], SECONDS)[0]:
                raise TimeoutError("chromium does not answer")
            data = os.read(self._from, 1 << 20)
            if not data:
                raise EOFError("chromium ended")
            self._buffer += data
        one, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(one)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._tab:
            message["sessionId"] = self._tab
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, path: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            answer = self._message()
            if "method" in answer:
                self.events.append(answer)

    def run(self, code: str) -> Any:
        """The value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9}[key])

    def screenshot(self, path: Path, area: tuple[float, ...] | None = None, scale: float = 1) -> None:
        """A picture of the page, or of an area of it: left, top, width, height."""
        clip = {"clip": {**dict(zip(("x", "y", "width", "height"), area, strict=True)), "scale": scale}} if area else {}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, **clip)["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Errors, warnings, requests to anything but the file itself, and dialogs since the page was opened."""
        found = []
        for event in self.events:
            method, params = event["method"], event["params"]
            url = params.get("request", {}).get("url", "")
            if method == "Network.requestWillBeSent" and not url.startswith(("file:", "data:", "blob:")):
                found.append(f"request: {url}")
            elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                found.append(json.dumps(params)[:300])
            elif method == "Page.javascriptDialogOpening":
                found.append(f"dialog: {params}")
        return found

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(SECONDS)
        os.close(self._to)
        os.close(self._from)
