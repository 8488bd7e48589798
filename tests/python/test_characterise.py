"""Characteristics of the traffic of captures and logs, and models of it."""

from __future__ import annotations

import gzip
import importlib.util
import json
import tomllib
import warnings
from pathlib import Path
from typing import Any

import martic
import numpy as np
import polars as pl
import pytest
from conftest import Command

import tcplab as lab
from tcplab._capture import fitted

ROOT = Path(__file__).parents[2]

# ---- families

PLACES = (np.arange(4000) + 0.5) / 4000


def normal(places: np.ndarray) -> np.ndarray:
    """Quantiles of the normal distribution, by bisection."""
    from scipy import special  # noqa: PLC0415

    return np.asarray(special.ndtri(places), dtype=float)


QUANTILES = {
    # For each family: quantiles by the inverse of its distribution function, and its parameters.
    "exponential": (-7 * np.log1p(-PLACES), {"mean": 7.0}),
    "lognormal": (np.exp(2 + 1.5 * normal(PLACES)), {"median": float(np.exp(2)), "sigma": 1.5}),
    "weibull": (3 * (-np.log1p(-PLACES)) ** (1 / 0.6), {"shape": 0.6, "scale": 3.0}),
    # Truncated at 1000 times the least value.
    "pareto": (4 * (1 - PLACES * (1 - 1000**-1.3)) ** (-1 / 1.3), {"shape": 1.3}),
    "constant": (np.full(4000, 5.0), {"value": 5.0}),
}


@pytest.mark.parametrize("family", QUANTILES)
def test_a_family_is_found_with_its_parameters(family: str) -> None:
    values, parameters = QUANTILES[family]
    best = fitted.chosen(fitted.fits(values), values)
    assert best is not None
    assert best.family == family
    for name, value in parameters.items():
        assert best.parameters[name] == pytest.approx(value, rel=0.01)
    assert best.distance < 0.005
    assert best.mean == pytest.approx(values.mean(), rel=0.03)


def test_no_family_fits_two_sizes() -> None:
    # Half are 1, half are 100: at 1, a continuous distribution is off by half in either direction.
    values = np.repeat([1.0, 100.0], 500)
    every = fitted.fits(values)
    assert fitted.chosen(every, values) is None
    assert all(fit.distance >= 0.25 for fit in every)


def test_an_empirical_distribution_keeps_mean_and_shape() -> None:
    values = QUANTILES["lognormal"][0]
    few = fitted.empirical(values)
    assert len(few) == fitted.TERMS
    assert few.mean() == pytest.approx(values.mean())
    # Each value stands for 1/200 of all values.
    assert fitted.ks_between(few, values) <= 1 / 200


def test_ks_distances_match_arithmetic() -> None:
    # Distribution functions 0, 1/2, 1 and 0, 1/4, 1 differ by 1/4.
    assert fitted.ks_between(np.array([1.0, 2.0]), np.array([1.0, 2.0, 2.0, 2.0])) == 0.25
    # A single value in a uniform distribution from 0 to 1: 1/2 on both sides.
    assert fitted.ks(np.array([0.5]), lambda x: x) == 0.5
    # With a zero: the zero is half of the values, the other value the rest.
    assert fitted.ks(np.array([0.5]), lambda x: x, zeros=1) == 0.5


def test_poisson_arrivals_differ_from_constant_and_bursty_ones() -> None:
    random = np.random.default_rng(3)
    gaps = random.exponential(2.0, 2000)
    assert fitted.is_poisson(gaps)
    assert not fitted.is_poisson(np.full(2000, 2.0))
    # Exponential gaps, each repeated once.
    assert not fitted.is_poisson(np.repeat(gaps[:1000], 2))
    assert fitted.is_poisson_by_counts(random.poisson(3.0, 2000).astype(float))
    assert not fitted.is_poisson_by_counts(np.full(2000, 3.0))
    assert not fitted.is_poisson_by_counts(2.0 * random.poisson(1.5, 2000))


# ---- the study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The capture of `martic-2013`."""
    path = tmp_path_factory.mktemp("martic") / "study.pcap"
    path.write_bytes(martic.capture())
    return path


def test_figures_1_and_3_of_the_study_come_out(study: Path) -> None:
    about = lab.capture.info(study)
    (row,) = about.totals.iter_rows(named=True)
    assert (row["packets"], row["bytes"]) == (4453, 2_397_076)
    assert round(row["duration_s"], 3) == 8.169
    assert round(row["packets_per_s"], 3) == 545.083
    assert round(row["packet_mean_bytes"], 3) == 538.306
    assert round(row["bytes"] / row["duration_s"], 3) == 293_421.125
    assert round(row["rate_mbit_s"], 3) == 2.347
    lengths = about.lengths.filter(pl.col("packets") > 0).select("length", "packets", "percent")
    assert [(a, b, round(c, 2)) for a, b, c in lengths.rows()] == [
        ("40-79", 2416, 54.26),
        ("80-159", 84, 1.89),
        ("160-319", 166, 3.73),
        ("320-639", 354, 7.95),
        ("640-1279", 245, 5.50),
        ("1280-2559", 1188, 26.68),
    ]


def test_figure_4_of_the_study_comes_out(study: Path) -> None:
    columns = ["client_port", "server", "server_port", "client_packets", "server_packets"]
    flows = lab.capture.flows(study).sort("server_wire_bytes", descending=True)
    told = flows.select(*columns, "client_wire_bytes", "server_wire_bytes").head(22).rows()
    assert sorted(told) == sorted(martic.SESSIONS)


def test_figure_6_of_the_study_comes_out(study: Path) -> None:
    flows = lab.capture.flows(study)
    ((number, rtt),) = (
        flows.filter(pl.col("client_port") == martic.TALK_PORT)
        .select("connection", "server_near_rtt_ms")
        .rows()
    )
    assert round(rtt, 3) == 6.12
    packets = lab.capture.packets(study, number)
    sides = [back for _, _, back in martic.TALK]
    assert packets["time_s"].to_list() == pytest.approx([at for at, _, _ in martic.TALK])
    assert [int(side == "server") for side in packets["sender"]] == sides
    # Frames without headers; the SYN and the SYN-ACK have options.
    data = [0, 0, *(length - 54 for _, length, _ in martic.TALK[2:])]
    assert packets["payload_bytes"].to_list() == data
    told = lab.capture.characterise(study)
    (session,) = told.sessions.filter(pl.col("client_port") == martic.TALK_PORT).iter_rows(
        named=True
    )
    assert session["turns"] == 8
    turns = told.turns.filter(pl.col("session") == session["session"])
    waits = [6.348, 8.874, 10.122, 1.236, 15.220, 10.360, 18.950, 19.429]
    assert turns["wait_ms"].to_list() == pytest.approx(waits, abs=1e-5)
    # Without the round trip of 6.12 ms, which one answer was faster than.
    least = [max(wait - 6.12, 0) for wait in waits]
    assert turns["server_ms"].to_list() == pytest.approx(least, abs=1e-5)


def test_table_1_of_the_study_comes_out(study: Path) -> None:
    classes = lab.capture.characterise(study).classes
    told = classes.select("class", "from_bytes", "to_bytes", "sessions", "sessions_percent").rows()
    assert [(*row[:4], round(row[4], 2)) for row in told] == [
        ("small", 0, 10_000, 133, 75.14),
        ("medium", 10_000, 100_000, 38, 21.47),
        ("large", 100_000, 200_000, 6, 3.39),
    ]


def test_a_model_of_the_study_has_its_sessions(study: Path) -> None:
    told = lab.capture.characterise(study)
    results = lab.run(told.experiment())
    sent = told.sessions.filter(pl.col("size") > 0)
    flows = results.flows
    assert len(flows) == len(sent)
    # Groups have the mean of their sizes, in whole bytes.
    turned = pl.min_horizontal("client_bytes", "server_bytes") > 0
    one_way = sent.filter(~turned)
    mine = flows.filter(pl.col("class") != "requests")
    assert abs(int(mine["bytes"].sum()) - int(one_way["size"].sum())) <= len(one_way)
    both = sent.filter(turned)
    answered = flows.filter(pl.col("class") == "requests")["bytes"].sum()
    assert abs(int(answered) - int(both["server_bytes"].sum())) <= int(both["turns"].sum())


# ---- logs: two connections, of 400 B and 20 kB in 1.5 s, and of 600 B and 3 kB in half a second

SESSIONS = [
    ("10.0.0.1", 40000, "10.0.0.2", 80, 1.7e9, 1.5, 400, 20_000),
    ("10.0.0.1", 40001, "10.0.0.3", 443, 1.7e9 + 2.5, 0.5, 600, 3000),
]

ZEEK = """#separator \\x09
#set_separator	,
#unset_field	-
#path	conn
#fields	ts	uid	id.orig_h	id.orig_p	id.resp_h	id.resp_p	proto	duration	orig_bytes	resp_bytes	conn_state	missed_bytes	orig_ip_bytes	resp_ip_bytes
#types	time	string	addr	port	addr	port	enum	interval	count	count	string	count	count	count
1700000000.000000	C1	10.0.0.1	40000	10.0.0.2	80	tcp	1.500000	400	20000	SF	0	928	20832
1700000003.000000	C3	10.0.0.1	53000	10.0.0.3	53	udp	0.010000	40	100	SF	0	68	128
1700000002.500000	C2	10.0.0.1	40001	10.0.0.3	443	tcp	0.500000	600	3000	SF	0	868	3268
#close	2023-11-14-22-13-30
"""  # noqa: E501

ZEEK_JSON = "\n".join(
    json.dumps(
        {
            "ts": start, "id.orig_h": client, "id.orig_p": client_port, "id.resp_h": server,
            "id.resp_p": server_port, "proto": "tcp", "duration": duration, "orig_bytes": ahead,
            "resp_bytes": back, "conn_state": "SF", "missed_bytes": 0,
        }
    )
    for client, client_port, server, server_port, start, duration, ahead, back in SESSIONS
)  # fmt: skip

# Packets have 52 bytes of headers, SYNs 60: ten packets in one direction and 16 in the other, then
# five and five.
NFDUMP = """ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt,in,out
2023-11-14 22:13:20.000,2023-11-14 22:13:21.500,1.500,10.0.0.2,10.0.0.1,80,40000,TCP,...AP.SF,0,0,16,20840,0,0,0,0
2023-11-14 22:13:20.000,2023-11-14 22:13:20.400,0.400,10.0.0.1,10.0.0.2,40000,80,TCP,...AP.S.,0,0,6,720,0,0,0,0
2023-11-14 22:13:21.400,2023-11-14 22:13:21.500,0.100,10.0.0.1,10.0.0.2,40000,80,TCP,...A...F,0,0,4,208,0,0,0,0
2023-11-14 22:13:22.500,2023-11-14 22:13:23.000,0.500,10.0.0.1,10.0.0.3,40001,443,TCP,...AP.SF,0,0,5,868,0,0,0,0
2023-11-14 22:13:22.500,2023-11-14 22:13:23.000,0.500,10.0.0.3,10.0.0.1,443,40001,TCP,...AP.SF,0,0,5,3268,0,0,0,0
2023-11-14 22:13:22.600,2023-11-14 22:13:22.600,0.000,10.0.0.1,10.0.0.3,5353,53,UDP,........,0,0,1,68,0,0,0,0
Summary
flows,bytes,packets,avg_bps,avg_pps,avg_bpp
6,25972,37,0,0,0
"""  # noqa: E501

IPFIX = """flowStartMilliseconds|flowEndMilliseconds|sourceIPv4Address|destinationIPv4Address|sourceTransportPort|destinationTransportPort|protocolIdentifier|packetTotalCount|octetTotalCount|reversePacketTotalCount|reverseOctetTotalCount
1700000000000|1700000001500|10.0.0.1|10.0.0.2|40000|80|6|10|928|16|20840
2023-11-14T22:13:22.500Z|2023-11-14T22:13:23.000Z|10.0.0.1|10.0.0.3|40001|443|6|5|868|5|3268
"""  # noqa: E501

IPFIX_JSON = "\n".join(
    json.dumps(
        {
            "iana:flowStartMilliseconds": int(start * 1000),
            "iana:flowEndMilliseconds": int((start + duration) * 1000),
            "iana:sourceIPv4Address": client, "iana:destinationIPv4Address": server,
            "iana:sourceTransportPort": client_port, "iana:destinationTransportPort": server_port,
            "iana:protocolIdentifier": 6, "iana:octetDeltaCount": ahead + 60 + 52,
            "iana:packetDeltaCount": 2, "iana@reverse:octetDeltaCount": back + 60 + 52,
            "iana@reverse:packetDeltaCount": 2,
        }
    )
    for client, client_port, server, server_port, start, duration, ahead, back in SESSIONS
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ZEEK, id="zeek"),
        pytest.param(ZEEK_JSON, id="zeek as JSON"),
        pytest.param(NFDUMP, id="nfdump"),
        pytest.param(IPFIX, id="ipfix"),
        pytest.param(IPFIX_JSON, id="ipfix as JSON"),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_connection_logs_give_the_expected_sessions(
    text: str, is_packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(text.encode()) if is_packed else text.encode())
    told = lab.capture.characterise(path)
    columns = ["client", "client_port", "server", "server_port", "start_s", "duration_s"]
    rows = told.sessions.select(*columns, "client_bytes", "server_bytes").rows()
    # Times of 2023 have seven decimals.
    assert [row[:4] + row[6:] for row in rows] == [row[:4] + row[6:] for row in SESSIONS]
    for row, truth in zip(rows, SESSIONS, strict=True):
        assert row[4:6] == pytest.approx(truth[4:6], rel=0, abs=1e-6)
    assert told.totals["bytes"][0] == 23_000
    assert told.experiment().plans()


def test_requests_of_a_browser_are_turns(tmp_path: Path) -> None:
    def entry(at: str, connection: str, connect: float, body: int) -> dict[str, Any]:
        times = {"blocked": 0, "dns": -1, "connect": connect, "ssl": -1, "send": 0}
        return {
            "startedDateTime": f"2024-05-01T10:00:{at}Z",
            "time": max(connect, 0) + 60,
            "request": {"url": "http://a.example/x", "headersSize": 300, "bodySize": 0},
            "response": {"headersSize": 200, "bodySize": body},
            "timings": times | {"wait": 50, "receive": 10},
            "serverIPAddress": "192.0.2.1",
            "connection": connection,
        }

    entries = [
        entry("00.000", "7", 30, 9800),
        entry("00.290", "7", -1, 4800),
        entry("01.000", "8", 30, 800),
    ]
    path = tmp_path / "page.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}, indent=1))
    told = lab.capture.characterise(path)
    assert told.sessions["turns"].to_list() == [2, 1]
    assert told.sessions["client_bytes"].to_list() == [600, 300]
    assert told.sessions["server_bytes"].to_list() == [15_000, 1000]
    assert told.sessions["rtt_ms"].to_list() == [30, 30]
    # The first answer arrived 90 ms after 10:00:00; the next request came 200 ms later.
    assert told.turns["think_ms"].to_list() == pytest.approx([None, 200, None])
    # There is no known round trip to the server.
    assert told.turns["wait_ms"].to_list() == [50, 50, 50]
    assert told.turns["server_ms"].to_list() == pytest.approx([20, 20, 20])


# ---- models


def bench() -> Any:
    """The benchmark that measures the mixes."""
    where = importlib.util.spec_from_file_location(
        "bench_characterise", ROOT / "benches" / "characterise.py"
    )
    assert where is not None
    assert where.loader is not None
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    return module


def test_models_of_known_mixes_reproduce_them(tmp_path: Path) -> None:
    mixes = bench()
    good = []
    for name in mixes.MIXES:
        rate, mean, ks = mixes.measured(name, "sim", 1, tmp_path)
        good.append(max(abs(rate), abs(mean)) <= 5 and ks <= 0.05)
    assert len(good) == 10
    assert sum(good) >= 9


@pytest.mark.usefixtures("kernel")
def test_a_model_of_traffic_on_linux_reproduces_it(tmp_path: Path) -> None:
    rate, mean, ks = bench().measured("lognormal", "linux", 1, tmp_path)
    assert max(abs(rate), abs(mean)) <= 5
    assert ks <= 0.05


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of 60 connections of five requests, and of 600 transfers of lognormal sizes."""
    ends = {"from_": "left1", "to": "right1"}
    requests = lab.RequestsTraffic(
        request="400 B", response="20 kB", requests=5, think="50 ms", server_time="7 ms"
    )
    sizes = lab.LognormalSizes(median="10 kB", sigma=1)
    experiment = lab.Experiment(
        duration="40 s",
        network=lab.Network(dumbbell=lab.Dumbbell(rate="1 Gbit/s", delay="4 ms", rtts=["40 ms"])),
        flows=[
            lab.Flow(name="r", count=60, start_jitter="30 s", traffic=requests, **ends),
            lab.Flow(
                name="t",
                traffic=lab.ArrivalsTraffic(per_second=20, sizes=sizes, transfers=600),
                **ends,
            ),
        ],
        record=lab.Record(samples="off", links="off", captures=["left>right", "right>left"]),
    )
    results = lab.run(experiment)
    path = tmp_path_factory.mktemp("talk") / "talk.pcapng"
    path.write_bytes(results.files(results.plans[0].id)["capture.pcapng"])
    # The simulator's table of transfers is the truth.
    results.transfers.select("flow", "bytes").write_csv(path.with_name("truth.csv"))
    return path


def test_turns_and_times_are_those_of_the_experiment(talk: Path) -> None:
    told = lab.capture.characterise(talk)
    (row,) = told.totals.iter_rows(named=True)
    truth = pl.read_csv(talk.with_name("truth.csv"))
    sent = truth.filter(pl.col("flow") == "t")["bytes"]
    assert row["sessions"] == 660
    assert row["bytes"] == sent.sum() + 60 * 5 * 20_000
    assert (row["sessions_with_turns"], row["turns_mean"], row["turns_max"]) == (60, 5, 5)
    assert (row["request_mean_bytes"], row["response_mean_bytes"]) == (400, 20_000)
    assert row["think_p50_ms"] == pytest.approx(50, abs=0.1)
    assert row["server_p50_ms"] == pytest.approx(7, abs=0.1)
    assert row["rtt_min_ms"] == pytest.approx(40, abs=0.1)
    assert row["arrivals"] == "Poisson"
    think = told.fits.filter((pl.col("quantity") == "think") & pl.col("fits"))
    assert think["family"].to_list() == ["constant"]
    blocks = told.experiment().flows
    assert isinstance(blocks, list)
    (block,) = [one for one in blocks if one.class_ == "requests"]
    assert block.count == pytest.approx(60, abs=3)
    assert (block.traffic.requests, block.traffic.response) == (5, "20 kB")


def test_a_session_in_two_captures_counts_once(talk: Path) -> None:
    one, both = lab.capture.characterise(talk), lab.capture.characterise([talk, talk])
    assert both.totals.equals(one.totals)
    assert both.turns.equals(one.turns)


def test_classes_are_found_from_the_data(tmp_path: Path) -> None:
    # Three clusters of sizes, each within 10 % of 1 kB, 30 kB and 1 MB.
    rows = [
        {
            "ts": 1.7e9 + n, "id.orig_h": "10.0.0.1", "id.orig_p": 10_000 + n, "proto": "tcp",
            "id.resp_h": "10.0.0.2", "id.resp_p": 80, "duration": 0.1, "orig_bytes": 0,
            "resp_bytes": size + size * n // 1000, "conn_state": "SF",
        }
        for n in range(90)
        for size in [(1000, 30_000, 1_000_000)[n % 3]]
    ]  # fmt: skip
    path = tmp_path / "conn.log"
    path.write_text("\n".join(map(json.dumps, rows)))
    classes = lab.capture.characterise(path, classes="found").classes
    assert classes["sessions"].to_list() == [30, 30, 30]
    fixed = lab.capture.characterise(path).classes
    assert fixed.filter(pl.col("sessions") > 0)["class"].to_list() == ["small", "medium", "1-10 MB"]
    # Constant gaps of one second are not a Poisson process.
    assert lab.capture.characterise(path).totals["arrivals"][0] == "neither"


def test_the_command_writes_a_model_that_runs(tcplab: Command, talk: Path, tmp_path: Path) -> None:
    done = tcplab("capture", "characterise", talk, "-o", "model.toml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("660 sessions in ")
    assert "arrivals are Poisson" in done.stdout
    assert "model   model.toml" in done.stderr
    text = (tmp_path / "model.toml").read_text()
    assert text.startswith("# Traffic like that of 660 sessions with data")
    assert tomllib.loads(text)["name"] == "model"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lab.load(tmp_path / "model.toml").plans("sim")
        assert lab.load(tmp_path / "model.toml").plans("linux")
    tables = json.loads(tcplab("capture", "characterise", talk, "--format", "json").stdout)
    assert [*tables] == ["totals", "classes", "fits", "peers"]
    rows = tcplab("capture", "characterise", talk, "--table", "sessions", "--format", "csv").stdout
    assert len(rows.splitlines()) == 661


def test_files_that_are_neither_capture_nor_log_are_refused(
    tcplab: Command, tmp_path: Path
) -> None:
    (tmp_path / "x.txt").write_text("no log\n")
    (tmp_path / "x.json").write_text('{"a": 1}\n')
    (tmp_path / "ssl.log").write_text("#separator \\x09\n#fields\tts\tuid\tserver_name\n")
    (tmp_path / "cut.log").write_text(ZEEK.replace("\tSF\t0\t928\t20832", ""))
    (tmp_path / "word.csv").write_text(NFDUMP.replace(",16,20840,", ",16,many,"))
    for arguments, said in [
        (["x.txt"], "error: x.txt: is not a capture: it begins with 6e 6f 20 6c"),
        (["x.json"], "error: x.json: this JSON is neither a HAR file, nor records of"),
        (["ssl.log"], "error: ssl.log:2: this log of Zeek is not a conn.log"),
        (["cut.log"], "error: cut.log:7: has 10 columns; #fields has 14"),
        (["word.csv"], "error: word.csv:2: 'many' is not a number"),
        (["nowhere"], "error: nowhere: no such file or directory"),
        (["x.txt", "-o", "x.csv"], "error: x.csv: a model is written as .toml"),
    ]:
        done = tcplab("capture", "characterise", *arguments)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert done.stderr.startswith(said), done.stderr
    with pytest.raises(lab.ConfigError, match='classes: "x" is neither "fixed" nor "found"'):
        lab.capture.characterise(tmp_path / "x.txt", classes="x")
