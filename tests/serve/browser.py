# SPDX-License-Identifier: Apache-2.0
"""A real browser, and a site of an attacker whose page it shows."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.clients.tools import need

ATTACKER = "attacker.example"

# Requests that a browser sends without a script, and those that scripts may send. Each sends a message with its name.
PAGE = """<!DOCTYPE html>
<title>cats</title>
<meta name="referrer" content="no-referrer-when-downgrade">
<link rel="stylesheet" href="TARGETstylesheet">
<link rel="prefetch" href="TARGETprefetch">
<link rel="preload" as="image" href="TARGETpreload">
<link rel="icon" href="TARGETicon">
<style>p { background: url("TARGETbackground") }</style>
<p>Cats</p>
<img src="http://HOST/?Action=ListQueues&MessageBody=listing">
<img src="TARGETimage">
<img src="http://user:password@HOST/000000000000/orders?Action=SendMessage&MessageBody=image with a password">
<img src="/redirect?image behind a redirect">
<script src="TARGETscript"></script>
<video src="TARGETvideo" preload="auto"></video>
<object data="TARGETobject"></object>
<iframe src="TARGETframe"></iframe>
<iframe src="http://user:password@HOST/000000000000/orders?Action=SendMessage&MessageBody=frame with a password">
</iframe>
<iframe src="/refresh"></iframe>
<iframe src="/reported"></iframe>
<iframe sandbox="allow-forms allow-scripts" srcdoc="<form method=post action='TARGETsandboxed form'></form>
<script>document.forms[0].submit()</script>"></iframe>
<iframe name="none"></iframe>
<a id="ping" target="none" href="/empty" ping="TARGETping">link</a>
<script>
function submit(name, method, encoding, policy) {
    const frame = document.createElement("iframe"), form = document.createElement("form")
    frame.name = form.target = name
    form.method = method
    form.enctype = encoding
    form.rel = policy || ""
    form.action = "TARGET" + name
    for (const [key, value] of [["Action", "SendMessage"], ["MessageBody", name]]) {
        const field = document.createElement("input")
        field.name = key
        field.value = value
        form.append(field)
    }
    document.body.append(frame, form)
    form.submit()
}
submit("form that gets", "get", "")
submit("form", "post", "application/x-www-form-urlencoded")
submit("plain form", "post", "text/plain")
submit("form of parts", "post", "multipart/form-data")
submit("form without referrer", "post", "application/x-www-form-urlencoded", "noreferrer")
document.getElementById("ping").click()
navigator.sendBeacon("TARGETbeacon", "")
new WebSocket("TARGETsocket".replace("http", "ws"))
new EventSource("TARGETevents")
for (const [name, options] of Object.entries({
    "fetch": {},
    "opaque fetch": {mode: "no-cors"},
    "opaque fetch that posts": {mode: "no-cors", method: "POST", body: "x"},
    "fetch that posts": {method: "POST", body: "x"},
    "fetch of a range": {mode: "no-cors", headers: {Range: "bytes=0-1"}},
    "fetch with a key": {headers: {Authorization: "AWS4-HMAC-SHA256"}},
    "opaque fetch with a key": {mode: "no-cors", headers: {Authorization: "AWS4-HMAC-SHA256"}},
    "fetch of JSON": {headers: {"X-Amz-Target": "AmazonSQS.PurgeQueue"}},
    "fetch by HEAD": {mode: "no-cors", method: "HEAD"},
})) fetch("TARGET" + name, options).catch(() => {})
const worker = URL.createObjectURL(new Blob(["fetch('TARGETworker', {mode: 'no-cors'})"]))
new Worker(worker)
window.open("TARGETwindow")
window.open("http://user:password@HOST/000000000000/orders?Action=SendMessage&MessageBody=window with a password")
fetch("/shown", {method: "POST"})
</script>
"""


class _Site(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        page, name = self.path.partition("?")[::2]
        if page == "/redirect":
            self.send_response(302)
            self.send_header("Location", server.target + name)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        headers, text = {}, ""
        if page == "/":
            text = PAGE.replace("TARGET", server.target).replace("HOST", server.host)
        elif page == "/refresh":
            text = f'<meta http-equiv="refresh" content="0; url={server.target}refresh">'
        elif page == "/reported":
            headers = {"Content-Security-Policy": f"img-src 'none'; report-uri {server.target}report"}
            text = '<img src="/cat">'
        body = text.encode()
        self.send_response(200)
        for header, value in {"Content-Type": "text/html", "Content-Length": len(body), **headers}.items():
            self.send_header(header, str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.send_response(204)
        self.end_headers()
        self.server.shown.set()

    def log_message(self, *_):
        """Say nothing."""


@contextlib.contextmanager
def visiting(host):
    """Show the attacker's page, which attacks the server at `host`, in a browser until the block ends."""
    chromium = need("chromium", "apt-get install chromium")
    site = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    site.host = host
    site.target = f"http://{host}/000000000000/orders?Action=SendMessage&MessageBody="
    site.shown = threading.Event()
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    profile = tempfile.mkdtemp()
    command = [
        chromium,
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-popup-blocking"),
        *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
        f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP *.example 127.0.0.1, MAP * ~NOTFOUND , EXCLUDE localhost, EXCLUDE 127.0.0.1",
        "--remote-debugging-port=0",  # without it the browser ends at once
        f"http://{ATTACKER}:{site.server_port}/",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert site.shown.wait(300)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(300)
        site.shutdown()
        thread.join(300)
        site.server_close()
        shutil.rmtree(profile, ignore_errors=True)
