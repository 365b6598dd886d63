"""Checks every admin page with Chromium, by the WebDriver protocol: forms work, no errors, pages fit a phone.

usage: browse.py SERVER KEYFILE FOLDER
"""

import base64
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

WAIT_SECONDS = 90
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """One Chromium behind one chromedriver."""

    def __init__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.address = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        options = {
            "browserName": "chrome", "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        for _ in range(100):
            try:
                session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
                break
            except urllib.error.URLError:
                time.sleep(0.2)
        else:
            raise SystemExit("chromedriver did not start")
        self.address += f"/session/{session['sessionId']}"

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.address + path, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"the browser refused {path}: {error.read().decode()[:500]}") from error

    def open(self, address):
        self.call("POST", "/url", {"url": address})

    def evaluate(self, expression):
        return self.call("POST", "/execute/sync", {"script": f"return {expression}", "args": []})

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def press(self, key):
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}]})

    def tool(self, command, parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def window(self, width, height, dark=False):
        self.tool("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        scheme = "dark" if dark else "light"
        self.tool("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def complaints(self):
        """The browser's warnings and errors since the last call; hints about style do not count."""
        entries = self.call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("WARNING", "SEVERE")]

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


def expect(truth, sentence):
    if not truth:
        raise SystemExit(sentence)


class Visit:
    """One walk through the pages."""

    def __init__(self, browser, server, folder):
        self.browser, self.server, self.folder = browser, server, folder

    def wait(self, expression, complaint):
        """A click may return before its page has loaded, so this waits up to twenty seconds."""
        for _ in range(100):
            if self.browser.evaluate(expression):
                return
            time.sleep(0.2)
        raise SystemExit(complaint)

    def heading(self, text):
        heading = "document.querySelector('h1')"
        self.wait(f"{heading} !== null && {heading}.textContent.startsWith({json.dumps(text)})", f"no heading {text!r}")

    def silent(self, name):
        complaints = self.browser.complaints()
        expect(complaints == [], f"{name}: the browser reports: {complaints}")

    def keep(self, name):
        """Stores a desktop picture in light mode, and checks the same page at phone size."""
        image = self.browser.call("GET", "/screenshot")
        with open(os.path.join(self.folder, f"{name}.png"), "wb") as file:
            file.write(base64.b64decode(image))
        self.silent(name)
        self.browser.window(360, 740)
        wide = self.browser.evaluate("document.documentElement.scrollWidth")
        expect(wide <= 360, f"{name} is {wide} wide on a phone of 360")
        self.browser.window(1200, 900)

    def sign_in(self, key):
        self.browser.open(f"{self.server}/admin")
        self.heading("Sign in")
        self.browser.press("\ue004")
        focused = self.browser.evaluate("document.activeElement.className")
        expect(focused == "skip", "the first key of Tab does not reach the skip link")
        self.keep("sign-in")
        self.browser.type("#key", "perennial_wrong")
        self.browser.click("main button")
        self.wait("document.querySelector('[role=alert]') !== null", "no message about a wrong key")
        # A refusal is a response of status 403, which Chromium logs as an error.
        self.browser.complaints()
        self.browser.type("#key", key + "\n")
        self.heading("Overview")

    def overview(self):
        for _ in range(WAIT_SECONDS):
            self.browser.open(f"{self.server}/admin?days=365")
            text = self.browser.evaluate("document.querySelector('main').textContent")
            if "too small" not in text and "summarised anything" not in text and "MRR" in text:
                break
            time.sleep(1)
        else:
            raise SystemExit("the overview did not fill within a minute and a half")
        self.keep("overview")
        self.browser.window(1200, 900, dark=True)
        self.keep("overview-dark")
        self.browser.window(390, 844)
        self.keep("overview-phone")
        self.browser.click("summary")
        expect(self.browser.evaluate("document.querySelector('details table').offsetHeight") > 0, "no table of figures")
        self.browser.click(".choices button")
        # The page before has the same heading.
        self.wait("location.search.includes('environment=')", "the choice was not sent")
        self.heading("Overview")

    def customer(self):
        self.browser.click("nav a[href='/admin/customers']")
        self.heading("Customers")
        self.browser.type("#q", "c\n")
        self.keep("customers")
        # One with access shows more.
        self.browser.open(f"{self.server}/admin/customers?state=active")
        self.browser.click("tbody a")
        self.heading("Customer ")
        self.keep("customer")
        self.browser.click(".steps summary")
        expect(self.browser.evaluate("document.querySelector('.steps details pre').offsetHeight") > 0, "no answer of Apple")
        self.browser.click("table a[href^='/admin/receipts/']")
        self.heading("Receipt ")
        self.keep("receipt")
        self.browser.click("main form button")
        # The previous page has the same heading, so only the answer shows that the new page has loaded.
        self.wait("document.querySelector('[role=status]') !== null", "no message after asking Apple")
        self.heading("Receipt ")
        self.silent("asking Apple")

    def lists(self):
        """Filters the list of customers, and opens the pages of cohorts."""
        self.browser.open(f"{self.server}/admin/customers")
        self.browser.click(".filters select[name=state] option[value=active]")
        self.browser.click(".filters button")
        self.wait("location.search.includes('state=active')", "the filter was not sent")
        expect(self.browser.evaluate("document.querySelectorAll('tbody tr').length") > 0, "no customer is active")
        self.keep("customer-list")
        for name in ("Retention", "Cohorts", "Trials"):
            self.browser.click(f"nav a[href='/admin/{name.lower()}']")
            self.heading(name)
            self.keep(name.lower())

    def grant(self):
        """Grants an entitlement to a customer with a confirmation."""
        self.browser.open(f"{self.server}/admin/customers?state=active")
        self.browser.click("tbody a")
        self.heading("Customer ")
        entitlement = self.browser.evaluate("document.querySelector('.right h3').textContent.split(':')[0]")
        self.browser.click("a.button[href*='action=grant']")
        self.heading("Grant an entitlement")
        self.keep("grant")
        for field, text in (("entitlement", entitlement), ("actor", "lee"), ("reason", "a test")):
            self.browser.type(f"#{field}", text)
        self.browser.click("main form button")
        self.wait("document.querySelector('input[name=confirmed]') !== null", "no confirmation of a grant")
        self.keep("grant-confirmation")
        self.browser.click("main form button")
        self.wait("document.querySelector('[role=status]') !== null", "no message after a grant")
        self.silent("granting")

    def delivery(self):
        """Skips what is due of the customer seen before."""
        self.browser.click("a[href^='/admin/customer?']")
        self.heading("Customer ")
        self.browser.click("a[href^='/admin/deliveries/']")
        self.heading("Delivery ")
        self.keep("delivery")
        self.browser.type("#reason", "a test")
        self.browser.click("main form button")
        status = "document.querySelector('[role=status]')"
        expect(self.browser.evaluate(f"{status} === null"), "a delivery was skipped without a confirmation")
        self.browser.click("input[name=confirmed]")
        self.browser.click("main form button")
        self.wait(f"{status} !== null", "no message after skipping a delivery")
        self.silent("skipping a delivery")

    def leave(self):
        self.browser.click("nav a[href='/admin/incidents']")
        self.heading("Incidents")
        self.keep("incidents")
        self.browser.click("header button")
        self.heading("Sign in")
        self.browser.open(f"{self.server}/admin")
        self.heading("Sign in")
        self.silent("signing out")


def main(server, key_file, folder):
    with open(key_file, encoding="ascii") as file:
        key = file.read().strip()
    for _ in range(150):
        try:
            urllib.request.urlopen(f"{server}/readyz", timeout=5).close()
            break
        except OSError:
            time.sleep(0.2)
    browser = Browser()
    try:
        browser.window(1200, 900)
        visit = Visit(browser, server, folder)
        visit.sign_in(key)
        visit.overview()
        visit.customer()
        visit.delivery()
        visit.lists()
        visit.grant()
        visit.leave()
    finally:
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
