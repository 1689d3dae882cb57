"""Each server gets few requests at a time, in turn, and quiet when it wants it."""

from __future__ import annotations

import concurrent.futures
import threading
import time

import pytest

from htrflow_batch import errors, hosts


def _waits(limits: hosts.Hosts, host: str, names: list[str], order: list[str], arrive: float = 0.05) -> None:
    """Threads that come one after the other; each notes its name when its turn comes."""

    def wait(name: str) -> None:
        with limits.turn(host):
            order.append(name)
            time.sleep(0.01)

    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        waiting = []
        for name in names:
            waiting.append(pool.submit(wait, name))
            time.sleep(arrive)
        for future in waiting:
            future.result(10)


@pytest.mark.parametrize("connections", [1, 2, 5])
def test_a_server_gets_no_more_than_its_connections(connections: int) -> None:
    limits = hosts.Hosts(connections)
    lock, now, most = threading.Lock(), 0, 0

    def work(_: int) -> None:
        nonlocal now, most
        with limits.turn("example.org"):
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.02)
            with lock:
                now -= 1

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(24)))

    assert most == connections


def test_a_single_server_can_have_its_own_limit() -> None:
    limits = hosts.Hosts(1, by_host={"strong.org": 3})

    with limits.turn("strong.org"), concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: limits.turn("strong.org").__enter__()).result(5)


def test_turns_come_in_the_order_of_arrival() -> None:
    limits, order = hosts.Hosts(1), list[str]()
    names = [str(number) for number in range(8)]

    with limits.turn("example.org"):
        holder = threading.Thread(target=_waits, args=(limits, "example.org", names, order))
        holder.start()
        time.sleep(0.6)
    holder.join(10)

    assert order == names


def test_a_busy_server_holds_up_no_other() -> None:
    limits, order = hosts.Hosts(1), list[str]()

    with limits.turn("busy.org"):
        _waits(limits, "free.org", ["a"], order)

    assert order == ["a"]


def test_a_turn_that_ends_with_an_error_is_given_back() -> None:
    limits = hosts.Hosts(1)

    for _ in range(3):
        with pytest.raises(ZeroDivisionError), limits.turn("example.org"):
            raise ZeroDivisionError


def test_a_short_pause_is_sat_out_by_all_who_ask_the_server() -> None:
    limits = hosts.Hosts(2)
    limits.pause("example.org", 1.5)
    began = time.monotonic()

    _waits(limits, "other.org", ["a"], [], 0)
    other = time.monotonic() - began
    _waits(limits, "example.org", ["a", "b", "c"], [], 0)

    assert other < 1
    assert time.monotonic() - began >= 1.5


def test_a_long_pause_is_for_later_at_once() -> None:
    limits = hosts.Hosts(patience=5)
    limits.pause("example.org", 100)

    with pytest.raises(errors.LaterError, match=r"example\.org wants no requests for another") as raised:
        limits.turn("example.org").__enter__()

    assert raised.value.after == pytest.approx(100, abs=5)


def test_a_pause_that_comes_while_others_wait_holds_for_them_too() -> None:
    limits = hosts.Hosts(1, patience=5)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with limits.turn("example.org"):
            waiting = pool.submit(lambda: limits.turn("example.org").__enter__())
            time.sleep(0.1)
            limits.pause("example.org", 100)
        with pytest.raises(errors.LaterError):
            waiting.result(5)


def test_a_pause_is_capped_and_never_shortened() -> None:
    limits = hosts.Hosts(longest=50)

    assert limits.pause("example.org", 1e12) == 50
    limits.pause("example.org", 1)
    assert limits.quiet("example.org") == pytest.approx(50, abs=5)
    assert limits.quiet("other.org") == 0


def test_a_server_that_does_not_say_how_long_gets_pauses_that_double_until_it_answers() -> None:
    limits = hosts.Hosts()

    first = limits.pause("example.org")
    again = limits.pause("example.org")
    time.sleep(first + 0.05)
    second = limits.pause("example.org")
    time.sleep(second + 0.05)
    limits.fine("example.org")

    assert first == 1
    assert again <= first
    assert second == 2
    assert limits.pause("example.org") == 1


def test_closing_wakes_who_waits_and_refuses_who_comes() -> None:
    limits = hosts.Hosts(1)

    with concurrent.futures.ThreadPoolExecutor(2) as pool, limits.turn("busy.org"):
        limits.pause("quiet.org", 10)
        waiting = [pool.submit(limits.turn(host).__enter__) for host in ("busy.org", "quiet.org")]
        time.sleep(0.1)
        limits.close()
        for future in waiting:
            with pytest.raises(hosts.Closing):
                future.result(2)
    assert limits.closed
    with pytest.raises(hosts.Closing):
        limits.turn("new.org").__enter__()


@pytest.mark.parametrize("by_host", [{}, {"example.org": 1}])
def test_a_limit_below_one_is_refused(by_host: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="never asked"):
        hosts.Hosts(0, by_host=by_host)
