"""`tcplab serve`: access control, and the page while a sweep runs."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import Command

import tcplab as lab

SWEEP = """
name = "watched"
duration = "{duration}"
repeat = {repeat}
[network.chain]
rate = "{rate}"
delay = "10 ms"
queue = "1 BDP"
[[flows]]
from = "server"
to = "client"
[sweep]
"flows[0].cc" = ["cubic", "bbr"]
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Four runs."""
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP.format(duration="1 s", rate="10 Mbit/s", repeat=2))
    lab.run(file, out=tmp_path / "out")
    return tmp_path / "out"


@contextmanager
def serving(place: object, *words: str) -> Iterator[str]:
    """The address of a server that is stopped by Ctrl-C."""
    command = [sys.executable, "-m", "tcplab.cli", "serve", str(place), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0
    assert said == "Ctrl-C stops the server. Anyone with this address can see the results:\n"


def asked(address: str, path: str = "", method: str = "GET", **headers: str) -> tuple[int, str]:
    """The server's answer. `path` is appended to the address, or replaces it if it begins with a
    slash.
    """
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    where = path if path.startswith("/") else parts.path + path
    connection.request(method, where, headers=headers)
    answer = connection.getresponse()
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in answer.headers
    content = answer.read().decode()
    connection.close()
    return answer.status, content


def test_requests_without_the_secret_path_are_refused(store: Path) -> None:
    with serving(store) as address:
        parts = urlsplit(address)
        assert parts.hostname == "127.0.0.1"
        # 24 random bytes are 32 characters of base64.
        assert len(parts.path.strip("/")) == 32
        assert asked(address)[0] == 200
        for path in ("/", "/state", "/report", f"{parts.path[:-2]}/", "//", "/%", "/../etc/passwd"):
            assert asked(address, path)[0] == 404
        assert asked(address, Host="tcplab.example")[0] == 403
        assert asked(address, Host=f"localhost:{parts.port}")[0] == 200
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert asked(address, method=method)[0] == 405
        assert asked(address, method="HEAD") == (200, "")
        for path in ("../", "runs.json", "run/", "run/../../runs.json", "run/0123456789abcdef"):
            assert asked(address, path)[0] == 404


def test_the_port_is_bound_to_localhost(store: Path) -> None:
    with serving(store) as address, socket.socket() as other:
        others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None)}
        for host in others - {"127.0.0.1", "127.0.1.1", "::1"}:
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((str(host), urlsplit(address).port), timeout=5)
        # The server does not listen on other loopback addresses.
        with pytest.raises(ConnectionRefusedError):
            other.connect(("127.0.0.2", urlsplit(address).port))


def test_runs_are_listed_and_found(store: Path) -> None:
    results = lab.run(store.parent / "sweep.toml", out=store)
    with serving(store) as address:
        _, page = asked(address)
        assert "<strong>4 of 4</strong> runs are finished." in page
        for run in results.runs["run"]:
            assert f'href="run/{run}"' in page
        _, page = asked(address, "?find=cc=BBR+repetition=1")
        second = results.runs.filter(pl.col("flows[0].cc") == "bbr", repetition=1)["run"].to_list()
        assert len(second) == 1
        assert [run for run in results.runs["run"] if f'href="run/{run}"' in page] == second
        _, page = asked(address, "?find=nothing&page=99999")
        assert "None of 4 runs has these words." in page
        assert asked(address, "?page=0")[0] == asked(address, "?page=x")[0] == 200
        _, page = asked(address, "?find=%3Cscript%3E")
        assert 'value="&lt;script&gt;"' in page


def test_reports_are_those_of_the_command(store: Path) -> None:
    results = lab.stored(store)
    lab.report(results, store.parent / "report.html")
    run = results.runs["run"][2]
    lab.report(results[run], store.parent / "run.html")
    with serving(store) as address:
        assert asked(address, "report") == (200, (store.parent / "report.html").read_text())
        assert asked(address, f"run/{run}") == (200, (store.parent / "run.html").read_text())


def test_the_server_waits_for_results_that_do_not_exist_yet(tmp_path: Path) -> None:
    with serving(tmp_path / "later") as address:
        assert "The folder is not there yet." in asked(address)[1]
        before = json.loads(asked(address, "state")[1])
        file = tmp_path / "sweep.toml"
        file.write_text(SWEEP.format(duration="1 s", rate="10 Mbit/s", repeat=1))
        lab.run(file, out=tmp_path / "later")
        assert within(20, lambda: "<strong>2 of 2</strong>" in asked(address)[1])
        assert json.loads(asked(address, "state")[1]) != before


def test_damaged_results_are_reported_and_earlier_ones_stay(store: Path) -> None:
    with serving(store) as address:
        assert "<strong>4 of 4</strong>" in asked(address)[1]
        group = next(store.glob("group-*"))
        table = group / "flows.parquet"
        content = bytearray(table.read_bytes())
        content[len(content) // 2] ^= 1
        table.write_bytes(content)
        (store / "runs.json").touch()
        assert within(20, lambda: "flows.parquet is damaged" in asked(address)[1])
        assert "<strong>4 of 4</strong>" in asked(address)[1]


def within(seconds: float, condition: Any) -> bool:
    """Whether a condition becomes true within this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def test_folders_that_cannot_be_served_are_refused(tcplab: Command, store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = tcplab("serve", store, "--port", port)
    said = f"error: --port: {port} is not available: address already in use\n"
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", said)
    refused = tcplab("serve", store, "--port", "65536")
    assert refused.returncode == 2
    assert "a port is a number up to 65535" in refused.stderr


def test_a_sweep_is_watched_while_it_runs(browser: Any, tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    file.write_text(SWEEP.format(duration="250 s", rate="100 Mbit/s", repeat=4))
    said: list[str] = []
    requests: list[str] = []
    with serving(out) as address:
        context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        command = [sys.executable, "-m", "tcplab.cli", "run", file, "--out", out, "--workers", "1"]
        running = subprocess.Popen([*command, "--quiet", "--no-chart"], stdout=subprocess.DEVNULL)
        # The sweep is stopped after a few runs until the page reports them: computers differ in
        # speed.
        while running.poll() is None and len(list(out.glob("group-*"))) < 2:
            time.sleep(0.005)
        assert running.poll() is None
        running.send_signal(signal.SIGSTOP)
        try:
            page.wait_for_selector("text=/^[1-7] of 8 runs are finished/", timeout=20_000)
        finally:
            running.send_signal(signal.SIGCONT)
        assert running.wait(timeout=60) == 0
        # The count grows without reloading the page.
        page.wait_for_selector("text=8 of 8 runs are finished.", timeout=20_000)
        assert sum(url == address for url in requests) >= 2
        lab.report(lab.stored(out), tmp_path / "report.md")
        headline = page.inner_text("#said .headline")
        answer = (tmp_path / "report.md").read_text().replace("\\", "").replace("*", "")
        assert headline.replace("\u00a0", " ") in answer
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        serious = [
            one["id"]
            for one in Axe().run(page).response["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == []
        # By keyboard: the search, and the first run found.
        page.focus("input[name=find]")
        page.keyboard.type("cc=bbr repetition=3")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Runs 1 to 1 of 1.")
        page.focus("#runs tbody a")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-ready=yes]", timeout=30_000)
        own = urlsplit(address).netloc
        assert {urlsplit(url.removeprefix("blob:")).netloc for url in requests} == {own}
        context.close()
    assert said == []
