"""An HTTP server for one local browser: on loopback, with a token in the address."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tcplab import _core
from tcplab._serve import _pages
from tcplab._serve._state import Watching

HOST = "127.0.0.1"

RUN = re.compile(r"[0-9a-f]{16}")

LONGEST_FIND = 200

PAGE = "text/html; charset=utf-8"


class Server(ThreadingHTTPServer):
    """Serves one store."""

    daemon_threads = True

    def __init__(self, watching: Watching, port: int) -> None:
        """Port 0 is any free port.

        Raises:
            ConfigError: The port is not available.
        """
        self.watching = watching
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            why = (error.strerror or "unknown").lower()
            raise _core.ConfigError(f"--port: {port} is not available: {why}") from None
        # DNS rebinding: a foreign page whose name resolves to this host sends that name in the
        # request.
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "tcplab"
    sys_version = ""
    # An idle connection must not occupy a thread for ever.
    timeout = 30

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _refuse(self) -> None:
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n", "text/plain")

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silent: the terminal shows the address only."""

    def _answer(self) -> None:
        if self.headers.get("Host", "") not in self.server.hosts:
            self._send(HTTPStatus.FORBIDDEN, b"not this host\n", "text/plain")
            return
        try:
            asked = urlsplit(self.path)
            parts = asked.path.split("/")
            query = parse_qs(asked.query, max_num_fields=4)
        except ValueError:
            parts, query = [], {}
        token = parts[1] if len(parts) > 2 else ""
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")
            return
        self._page(parts[2:], {name: values[0] for name, values in query.items()})

    def _page(self, parts: list[str], query: dict[str, str]) -> None:
        state = self.server.watching.state
        match parts:
            case [""]:
                number = query.get("page", "1")
                page = int(number) if re.fullmatch(r"[0-9]{1,6}", number) else 1
                find = query.get("find", "")[:LONGEST_FIND]
                self._send(HTTPStatus.OK, _pages.overview(state, find, page).encode(), PAGE)
            case ["state"]:
                content = json.dumps({"number": state.number}).encode()
                self._send(HTTPStatus.OK, content, "application/json")
            case ["report"]:
                self._send_report(state.report)
            case ["run", run] if RUN.fullmatch(run):
                self._send_report(state.report_of(run))
            case _:
                self._send(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")

    def _send_report(self, report: bytes | None) -> None:
        if report is None:
            self._send(HTTPStatus.NOT_FOUND, b"there are no such results\n", "text/plain")
        else:
            # The report contains its own policy.
            self._send(HTTPStatus.OK, report, PAGE, policy=None)

    def _send(self, status: HTTPStatus, content: bytes, kind: str, policy: str | None = "") -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
        }
        if policy is not None:
            headers["Content-Security-Policy"] = policy or _policy()
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _policy() -> str:
    """The content security policy: only the script of the page runs, and it contacts only this
    server.
    """
    digest = base64.b64encode(hashlib.sha256(_pages.script().encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
