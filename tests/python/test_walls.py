"""The isolation of programs: each attack is tried, and everything that programs need works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import Command

import tcplab as lab

pytestmark = pytest.mark.usefixtures("kernel")

NOBODY = 65534

CACHE = Path(os.environ.get("TCPLAB_CACHE", Path.home() / ".cache/tcplab"))


def system_call(*numbers: int) -> str:
    """A command line that makes a system call of x86-64, and fails if the call does."""
    call = f"ctypes.CDLL(None).syscall({', '.join(map(str, numbers))})"
    return f'python3 -c "import ctypes; exit({call} < 0)"'


ATTACKS = {
    "remount": "mount -o remount,rw /",
    "remount of programs": "mount -o remount,rw,bind /usr",
    "second mount of the machine": "mkdir /tmp/m && mount -t hostfs none /tmp/m -o /",
    "namespace": "unshare -m true || unshare -U true || unshare -n true",
    "root of process 1": "ls /proc/1/root/ || cat /proc/1/status",
    "files of process 1": "ls /proc/1/fd || ls /output || cat /job.json",
    "end of process 1": "kill -9 1 && sleep 0.1",
    "tracing of process 1": system_call(101, 16, 1, 0, 0),
    "the reporting device": "echo end > /proc/tcplab",
    "its reading": "cat /proc/tcplab",
    "an open file of process 1": "for n in 3 4 5 6 7 8 9; do echo end >&$n && break; done",
    "settings of a host": "echo 1 > /proc/sys/net/ipv4/tcp_sack",
    "settings of the kernel": "echo 0 > /proc/sys/kernel/randomize_va_space",
    "a crash": "echo c > /proc/sysrq-trigger",
    "a device": "mknod /tmp/d c 1 1 || mknod /tmp/d b 0 1",
    "memory": "head -c 1 /dev/mem || head -c 1 /dev/kmem || head -c 1 /proc/kcore",
    "another kernel": system_call(246, 0, 0, 0, 0),
    "a module": system_call(313, 0, 0, 0),
    "links of hosts": "ip link set lo down || tc qdisc del dev eth0 root",
    "raw packets": (
        'python3 -c "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768)"'
    ),
    "another user": 'python3 -c "import os; os.setuid(0)" || su -c true',
    "the machine's secrets": "cat /etc/shadow || cat /etc/passwd | grep -v -e ^root -e ^program",
    "homes": "ls /root /home || ls /var/lib || ls /opt",
    "programs": "echo x > /usr/bin/tcplab-was-here",
    "the root": "touch /here || mkdir /etc/here || touch /dev/here",
    "the host's name": "hostname elsewhere",
    "the clock": "date -s 2020-01-01",
    "chroot": "chroot /tmp true || chroot / true",
}


def link() -> lab.Network:
    """Two hosts and a link of 10 Mbit/s and 20 ms."""
    return lab.Network(links=[lab.Link(between=("a", "b"), rate="10 Mbit/s", delay="20 ms")])


def output(client: str, server: str = "true") -> str:
    """The output of the client."""
    traffic = lab.CommandTraffic(server=server, client=client)
    flow = lab.Flow(from_="a", to="b", traffic=traffic)
    experiment = lab.Experiment(duration="5 s", network=link(), flows=[flow])
    results = lab.run(experiment, backend="linux", progress=False)
    return results.files(results.plans[0].id)["flow1-client.txt"].decode()


def experiment_file(folder: Path, client: str) -> Path:
    """An experiment with this client."""
    folder.mkdir(parents=True, exist_ok=True)
    # Root's programs run as `nobody`, who cannot enter pytest's folders.
    folder.chmod(0o755)
    path = folder / "walls.toml"
    path.write_text(
        'duration = "2 s"\n'
        'network.links = [{ between = ["a", "b"], rate = "10 Mbit/s", delay = "1 ms" }]\n'
        '[[flows]]\nfrom = "a"\nto = "b"\n'
        f"traffic = {{ kind = \"command\", server = \"true\", client = '''{client}''' }}\n"
    )
    return path


def tried(attacks: dict[str, str]) -> str:
    """A command line that names the attacks that succeed."""
    return "; ".join(
        f"if ( {line} ) > /dev/null 2>&1; then echo '{name}'; fi" for name, line in attacks.items()
    )


def test_no_attack_succeeds() -> None:
    assert output(f"{tried(ATTACKS)}; echo tried") == "tried\n"


def test_the_attack_harness_detects_success() -> None:
    assert output(tried({"possible": "true", "impossible": "false"})) == "possible\n"


def test_programs_have_no_rights_at_all() -> None:
    said = output("grep -E '^(Cap|NoNewPrivs|Uid|Gid|Groups)' /proc/self/status; umask; pwd")
    lines = dict(line.split(":\t") for line in said.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(lines[name], 16) == 0, name
    assert lines["NoNewPrivs"] == "1"
    assert lines["Groups"].strip() == ""
    user = os.getuid() or NOBODY
    assert lines["Uid"].split() == [str(user)] * 4
    assert "0" not in lines["Gid"].split()


def test_programs_see_neither_other_processes_nor_more_files_than_they_need() -> None:
    said = output("ls -a / /etc | sort -u | tr '\\n' ' '; cd /proc; ls -d [0-9]* | wc -l")
    names = set(said.split()[:-1])
    assert names >= {"usr", "bin", "etc", "tmp", "proc", "ld.so.cache", "passwd"}
    assert not names & {"root", "home", "shadow", "boot", "opt", "srv", "machine", "output"}
    # The shell, `ls` and `wc`.
    assert int(said.split()[-1]) <= 4


def test_programs_have_the_resources_they_need() -> None:
    needs = {
        "ping": "ping -c 1 {server}" if shutil.which("ping") else "true",
        "temporary files": "echo x > /tmp/x && mkdir /tmp/y && echo x > ~/z && test -w .",
        "devices": "head -c 10 /dev/zero && head -c 10 /dev/urandom && echo x > /dev/null",
        "shared memory": "echo x > /dev/shm/x",
        "congestion controls": (
            'python3 -c "import socket; s = socket.socket(); '
            "s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'vegas')\""
        ),
        "ports below 1024": (
            "python3 -c \"import socket; socket.create_server(('', 80)).close()\""
        ),
        "names of users": "test $(whoami) = program",
        "figures of the network": "cat /proc/net/snmp && ls /sys/class/net/eth0",
    }
    assert (
        output(
            "; ".join(
                f"( {line} ) > /dev/null 2>&1 || echo '{name}'" for name, line in needs.items()
            )
            + "; echo tried"
        )
        == "tried\n"
    )


def test_programs_may_open_their_output_by_its_name() -> None:
    said = output(
        "echo one > /dev/stdout; echo two | tee /dev/stderr; echo three >> /proc/self/fd/2"
    )
    assert sorted(said.split()) == ["one", "three", "two", "two"]


def test_programs_print_64_mib_together_at_most() -> None:
    with pytest.raises(lab.RunError, match="more than 64 MiB together"):
        output("head -c 40M /dev/zero", server="head -c 40M /dev/zero")


def test_output_up_to_the_limit_is_whole() -> None:
    assert len(output("head -c 30M /dev/zero | tr '\\0' x")) == 30 << 20


def test_output_at_the_end_of_the_experiment_is_kept() -> None:
    said = output("(while :; do echo still there; sleep 1; done) & echo away")
    # At 0, 1, 2, 3 and 4 s.
    assert sorted(said.splitlines()) == ["away", *["still there"] * 5]


def test_runs_with_programs_repeat() -> None:
    def digests() -> object:
        # Asks the server itself: not every machine has `ping`.
        fetch = "import urllib.request as it; print(it.urlopen('http://{server}/').read())"
        traffic = lab.CommandTraffic(
            server="python3 -m http.server 80 -d /usr/share",
            client=f'sleep 1; python3 -c "{fetch}"',
        )
        flow = lab.Flow(from_="a", to="b", traffic=traffic)
        bulk = lab.Flow(from_="a", to="b", cc="bbr")
        experiment = lab.Experiment(duration="3 s", network=link(), flows=[flow, bulk])
        return lab.run(experiment, backend="linux", progress=False).digests

    assert digests() == digests()


def test_the_experiments_folder_is_read_but_no_results(tcplab: Command, tmp_path: Path) -> None:
    look = f"cat {tmp_path}/mine/data; ls {tmp_path}/mine/results {tmp_path}; true"
    experiment_file(tmp_path / "mine", look)
    (tmp_path / "mine/data").write_text("for programs\n")
    (tmp_path / "mine/results/other").mkdir(parents=True)
    (tmp_path / "yours").mkdir()
    done = tcplab("run", "mine/walls.toml", "--on", "linux", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert f"client on b: cat {tmp_path}/mine/data" in done.stderr
    assert "server on a: true" in done.stderr
    assert f"they may read the machine's programs and libraries and {tmp_path}/mine" in done.stderr
    (said,) = tmp_path.glob("out/*/*/flow1-client.txt")
    assert said.read_text().split() == [
        *("for", "programs"),
        *(f"{tmp_path}:", "mine"),
        f"{tmp_path}/mine/results:",
    ]


def test_allow_read_opens_further_folders(tcplab: Command, tmp_path: Path) -> None:
    experiment_file(tmp_path / "mine", f"cat {tmp_path}/yours/data")
    (tmp_path / "yours").mkdir()
    (tmp_path / "yours/data").write_text("lent\n")
    refused = tcplab("run", "mine/walls.toml", "--on", "linux")
    assert refused.returncode == 2
    assert "No such file or directory" in refused.stderr
    done = tcplab("run", "mine/walls.toml", "--on", "linux", "--allow-read", "yours")
    assert done.returncode == 0, done.stderr
    assert f"/mine and {tmp_path}/yours" in done.stderr
    (said,) = tmp_path.glob("results/*/*/*/flow1-client.txt")
    where = f"output  {said.parent.relative_to(tmp_path)} (NAME-server.txt, NAME-client.txt)"
    assert where in done.stderr.splitlines()
    assert said.read_text() == "lent\n"


def test_runs_of_programs_are_as_good_as_what_these_read(tcplab: Command, tmp_path: Path) -> None:
    experiment_file(tmp_path / "mine", f"cat {tmp_path}/mine/data")
    (tmp_path / "yours").mkdir()
    data = tmp_path / "mine/data"

    def printed(text: str, *allowed: str) -> tuple[str, str]:
        if not data.exists() or data.read_text() != text:
            data.write_text(text)
        done = tcplab("run", "mine/walls.toml", "--on", "linux", "--out", "out", *allowed)
        assert done.returncode == 0, done.stderr
        (said,) = tmp_path.glob("out/*/*/flow1-client.txt")
        return said.read_text(), done.stderr

    assert printed("one\n")[0] == "one\n"
    assert "(1 of them before)" in printed("one\n")[1]
    said, told = printed("two\n")
    assert said == "two\n"
    assert "its programs may read other files than they could then" in told
    assert "computed anew" in printed("two\n", "--allow-read", "yours")[1]
    # A run is repeated with access that the user allows, not with access that a stored file asks
    # for.
    again = tcplab("verify", "out", "--again")
    assert again.returncode == 1
    assert f"its programs could read {tmp_path}/mine and {tmp_path}/yours" in again.stdout
    allowed = ("--allow-read", "mine", "--allow-read", "yours")
    again = tcplab("verify", "out", "--again", *allowed)
    assert (again.returncode, again.stdout) == (0, "1 run checked, 0 wrong\n")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere", "there is no such file or folder"),
        ("/", "it is the whole machine; name the folders they need"),
        ("/proc/self", "they have a /proc"),
        ("/tmp", "they have a /tmp of their own"),
    ],
)
def test_unsafe_folders_to_read_are_refused(
    tcplab: Command, tmp_path: Path, path: str, problem: str
) -> None:
    experiment_file(tmp_path, "true")
    done = tcplab("run", "walls.toml", "--on", "linux", "--allow-read", path)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_a_home_folder_is_not_opened_as_experiment_folder(
    tcplab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TCPLAB_CACHE", str(CACHE))
    monkeypatch.setenv("HOME", str(tmp_path / "mine"))
    experiment_file(tmp_path / "mine", f"ls {tmp_path}/mine || echo closed")
    done = tcplab("run", "mine/walls.toml", "--on", "linux", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert f"not {tmp_path}/mine, where the experiment lies" in done.stderr
    (said,) = tmp_path.glob("out/*/*/flow1-client.txt")
    assert said.read_text().endswith("closed\n")


def test_check_prints_the_commands_that_would_run(tcplab: Command, tmp_path: Path) -> None:
    experiment_file(tmp_path, "echo {server}")
    done = tcplab("check", "walls.toml")
    assert done.returncode == 0, done.stderr
    assert "programs that would run:\n  server on a: true\n  client on b: echo" in done.stdout


def test_symlinks_written_by_the_guest_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a run is closed to other users, and is removed afterwards."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert output("true") == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="all tests run as an ordinary user already")
def test_the_sandbox_works_for_an_ordinary_user(
    kernel: lab.Kernel,
) -> None:
    # pytest's folders are closed to other users.
    with tempfile.TemporaryDirectory() as place:
        run_as_nobody(kernel, Path(place).resolve())


def run_as_nobody(kernel: lab.Kernel, tmp_path: Path) -> None:
    """Tries all attacks as an ordinary user, in a folder of that user."""
    python = next(
        (
            python
            for python in (sys.executable, "/usr/bin/python3")
            if subprocess.run(as_nobody(python, "-c", "import sys"), check=False).returncode == 0
        ),
        None,
    )
    if python is None or sys.version_info[:2] != (3, 11):
        pytest.skip("an ordinary user has no Python here")
    shutil.copytree(CACHE / "kernels" / kernel.name, tmp_path / "cache/kernels" / kernel.name)
    experiment_file(tmp_path / "mine", f"{tried(ATTACKS)}; id -u; cat {tmp_path}/mine/data")
    (tmp_path / "mine/data").write_text("tried\n")
    for path in [tmp_path, *tmp_path.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    paths = [str(Path(lab.__file__).parent.parent), *(path for path in sys.path if path)]
    done = subprocess.run(
        as_nobody(python, "-m", "tcplab.cli", "run", "walls.toml", "--on", "linux"),
        cwd=tmp_path / "mine",
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TCPLAB_CACHE": str(tmp_path / "cache"),
            "PYTHONPATH": os.pathsep.join(paths),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (said,) = tmp_path.glob("mine/results/*/*/*/flow1-client.txt")
    assert said.read_text() == f"{NOBODY}\ntried\n"


def as_nobody(*words: str) -> list[str]:
    """A command run as an ordinary user without groups."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words]
