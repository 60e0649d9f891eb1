"""Airflow in Debian's Chromium, as its users see it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from contexture_sandbox.airflow import Login

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

SCREENSHOTS_VARIABLE = "CONTEXTURE_SCREENSHOTS"
"""A folder for the pictures of README and documentation; nothing is kept where it is not set."""

_PATIENCE_SECONDS = 120.0
_SWITCHES = (
    "--headless=new",
    # Tests may run as root, in a container with little shared memory.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--window-size=1440,960",
)
Found = TypeVar("Found")


def missing() -> str:
    """Why there is no browser; empty when there is one."""
    if find_spec("selenium") is None:
        return "selenium not installed"
    programs = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(programs)} not installed (Debian: chromium, chromium-driver)" if programs else ""


@contextmanager
def browser(url: str, folder: Path) -> Iterator[Browser]:
    """A browser that is ended with the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(shutil.which("chromium"))
    for switch in (*_SWITCHES, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(switch)
    quiet = {**os.environ, "SE_OFFLINE": "true", "NO_PROXY": "127.0.0.1,localhost"}
    service = Service(str(shutil.which("chromedriver")), log_output=str(folder / "chromedriver.log"), env=quiet)
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.set_page_load_timeout(_PATIENCE_SECONDS)
        yield Browser(driver, url)
    finally:
        driver.quit()


class Browser:
    """One window.

    Args:
        driver: of the window.
        url: of Airflow.
    """

    def __init__(self, driver: Any, url: str) -> None:
        self.driver = driver
        self._url = url

    @property
    def address(self) -> str:
        """The address that the window was opened for."""
        return self._url

    def log_in(self, login: Login) -> None:
        """Logs out the last user, opens the page of the navigation, and logs in by the form that appears instead."""
        self.driver.switch_to.default_content()
        self.driver.delete_all_cookies()
        self.driver.get(f"{self._url}/plugin/contexture")
        self.find("input[name=username]").send_keys(login.user)
        self.find("input[name=password]").send_keys(login.password)
        self.find("button[type=submit]").click()
        self._enter()

    def open(self, publication: str = "", part: str = "") -> None:
        """Opens the page in its frame, then a publication in it, and a part of that."""
        self.driver.switch_to.default_content()
        self.driver.get(f"{self._url}/plugin/contexture")
        self._enter()
        for name in (publication, part):
            if name:
                self.follow(name)

    def open_airflow(self, path: str) -> None:
        """Opens a page of Airflow's own."""
        self.driver.switch_to.default_content()
        self.driver.get(f"{self._url}/{path}")

    def follow(self, text: str) -> None:
        """Clicks on a link whose text begins like this, and waits for its page."""
        before = self.find("html").id
        self._until(lambda: self._linked(text), f"link {text!r}").click()
        self._until(lambda: self.driver.find_element("css selector", "html").id != before or None, "next page")

    def confirm(self, reason: str) -> None:
        """Says why, and confirms."""
        before = self.find("html").id
        self.find("input[name=reason]").send_keys(reason)
        self.find("form button[type=submit]").click()
        self._until(lambda: self.driver.find_element("css selector", "html").id != before or None, "next page")

    def press(self, selector: str, text: str = "", *, place: int = 0) -> None:
        """Clicks on one of the elements whose text begins like this, by its place among them, once that can be done."""
        self._until(lambda: self._pressed(selector, text, place), f"{selector} {text!r} to press")

    def write(self, selector: str, text: str) -> None:
        """Types a text in the place of what a field holds."""
        from selenium.webdriver.common.keys import Keys

        field = self.find(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)
        assert field.get_attribute("value") == text

    def await_gone(self, selector: str) -> None:
        """Waits until no element matches a selector."""
        self._until(lambda: True if self._first(selector) is None else None, f"end of {selector}")

    def find(self, selector: str) -> WebElement:
        """The first element that a selector matches, once it is there."""
        found: WebElement = self._until(lambda: self._first(selector), selector)
        return found

    @property
    def text(self) -> str:
        """What a person reads."""
        return str(self.find("main").text)

    def await_text(self, text: str) -> str:
        """What a person reads once this is among it."""
        return self._until(lambda: self.text if text in self.text else None, f"text {text!r}")

    def await_address(self, part: str) -> str:
        """The address of the page once this is a part of it."""
        return self._until(
            lambda: self.driver.current_url if part in self.driver.current_url else None, f"address with {part!r}"
        )

    def ask(self, script: str, *given: object) -> Any:
        """What a script answers."""
        return self.driver.execute_script(script, *given)

    def post_from_airflow(self, path: str) -> int:
        """The status of a form sent by a script in Airflow's own page, as the user who is logged in."""
        self.driver.switch_to.default_content()
        self.driver.get(f"{self._url}/")
        sent = "fetch(arguments[0], {method: 'POST', body: new URLSearchParams({reason: 'why', token: 'x'})})"
        script = f"const done = arguments[1]; {sent}.then(answer => done(answer.status))"
        return int(self.driver.execute_async_script(script, f"/contexture/{path}"))

    def theme(self, theme: str) -> str:
        """Asks for a light or dark page, as the system's setting does; gives the colour of its ground."""
        given = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", given)
        return str(self.ask("return getComputedStyle(document.body).backgroundColor"))

    def picture(self, name: str) -> None:
        """Keeps a picture of the window, where pictures are wanted."""
        folder = os.environ.get(SCREENSHOTS_VARIABLE)
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))

    def _enter(self) -> None:
        frame = self.find("iframe")
        self.driver.switch_to.frame(frame)
        self.find("main h1")

    def _linked(self, text: str) -> WebElement | None:
        links = self.driver.find_elements("css selector", "main a")
        return next((link for link in links if link.text.startswith(text)), None)

    def _pressed(self, selector: str, text: str, place: int) -> bool | None:
        found = self.driver.find_elements("css selector", selector)
        fitting = [each for each in found if each.is_displayed() and each.text.startswith(text)]
        if len(fitting) <= place or not fitting[place].is_enabled():
            return None
        # What lies over it just now is an error of the driver's, and waited for.
        fitting[place].click()
        return True

    def _first(self, selector: str) -> WebElement | None:
        return next(iter(self.driver.find_elements("css selector", selector)), None)

    def _until(self, look: Callable[[], Found | None], what: str) -> Found:
        from selenium.common.exceptions import StaleElementReferenceException, WebDriverException

        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                found = look()
            except (StaleElementReferenceException, WebDriverException):
                # The page has just been left, or is not there yet.
                found = None
            if found is not None:
                return found
            assert time.monotonic() < deadline, f"no {what} within {_PATIENCE_SECONDS:.0f} s"
            time.sleep(0.1)
