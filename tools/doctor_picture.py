# SPDX-License-Identifier: Apache-2.0
"""A picture of the doctor's HTML report, for the README: from its verdict down to its table.

doctor_picture.py REPORT.json OUT.png           REPORT.json: from stoker doctor --json

Flat colours need no more than 64 of them: the file is a third as large.
"""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python"))
from browser import Browser  # noqa: E402
from PIL import Image  # noqa: E402
from stoker.doctor import report_html  # noqa: E402

WIDTH = 860
LAST = "document.getElementById('tried').closest('section').getBoundingClientRect().bottom"


def main(source: str, out: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "report.html"
        report_html.write(json.loads(Path(source).read_text()), page)
        browser = Browser(Path(place))
        try:
            browser.open(page, WIDTH)
            browser.screenshot(Path(out), (0, 0, WIDTH, browser.run(LAST) + 16), scale=2)
            Image.open(out).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(out, optimize=True)
        finally:
            browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
