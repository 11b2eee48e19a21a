"""The condition variable of the compile service."""

import threading
import time

from cl_driver.service.condition import Condition


def waiters(condition: Condition, count: int) -> tuple[list[threading.Thread], list[int]]:
    """Threads that wait for the condition, in their order."""
    woken: list[int] = []

    def wait(number: int) -> None:
        with condition:
            condition.wait()
            woken.append(number)

    threads = []
    for number in range(count):
        thread = threading.Thread(target=wait, args=(number,), daemon=True)
        thread.start()
        threads.append(thread)
        while len(condition._waiting) <= number:
            time.sleep(0.001)
    return threads, woken


def test_notify_wakes_one_and_the_first():
    condition = Condition()
    threads, woken = waiters(condition, 3)
    for number in range(3):
        with condition:
            condition.notify()
        threads[number].join(10)
        assert woken == list(range(number + 1))
    with condition:
        condition.notify()  # nobody waits


def test_notify_all():
    condition = Condition()
    threads, woken = waiters(condition, 5)
    with condition:
        condition.notify_all()
        assert woken == []  # the lock is held
    for thread in threads:
        thread.join(10)
    assert sorted(woken) == list(range(5)) and not condition._waiting


def test_it_is_a_lock():
    condition, total = Condition(), [0]

    def add() -> None:
        for _ in range(1000):
            with condition:
                total[0] = total[0] + 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == [4000]
