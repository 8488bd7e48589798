"""Configuration of nginx and HAProxy, for settings that have a directive there."""

from __future__ import annotations

from collections.abc import Sequence

from tcplab._advice._settings import Change, Way


def files(title: str, ways: Sequence[tuple[Change, Way]]) -> dict[str, str]:
    """`nginx.conf` and `haproxy.cfg`, if a change has a directive there."""
    made = {}
    if nginx := [how.nginx for _, how in ways if how.nginx]:
        made["nginx.conf"] = _nginx(title, nginx)
    if haproxy := [how.haproxy for _, how in ways if how.haproxy[0]]:
        made["haproxy.cfg"] = _haproxy(title, haproxy)
    return made


def _nginx(title: str, lines: Sequence[str]) -> str:
    """Parameters of `listen` (ngx_http_core_module), and directives."""
    listen = [line for line in lines if not line.endswith(";")]
    text = f"# {title}\n# Parts of a `server` block, to be merged with the one that is there.\n"
    text += "server {\n"
    if listen:
        text += (
            "    # One `listen` of an address and port has these parameters; others share them.\n"
        )
        text += f"    listen 443 ssl {' '.join(listen)};\n"
    for line in lines:
        if line.endswith(";"):
            text += f"    {line}\n"
    return text + "}\n"


_ABOUT_HAPROXY = {
    "cc": "HAProxy 3.3 and later",
    "tune.notsent-lowat.client": "HAProxy 3.2 and later",
    "option": "the times are those of the sysctls",
}


def _haproxy(title: str, lines: Sequence[tuple[str, str]]) -> str:
    """Sections of the configuration manual: 3.2 (global), 4.2 (defaults), 5.1 (bind)."""
    text = f"# {title}\n# Parts of sections, to be merged with those that are there.\n"
    for section in ("global", "defaults"):
        own = [line for where, line in lines if where == section]
        if own:
            text += f"{section}\n" + "".join(f"    {line}{_about(line)}\n" for line in own) + "\n"
    bind = [line for where, line in lines if where == "bind"]
    if bind:
        text += "frontend www\n"
        text += "".join(f"    #{_about(line)[3:]}: {line}\n" for line in bind if _about(line))
        text += f"    bind :443 {' '.join(bind)}\n"
    return text.rstrip() + "\n"


def _about(line: str) -> str:
    about = _ABOUT_HAPROXY.get(line.split(maxsplit=1)[0])
    return f"  # {about}" if about else ""
