"""Queues with none, one, many and more than the maximum of records; queues that are stopped or closed."""

import fcntl
import multiprocessing
import threading
import time

import numpy as np
import pytest

from ga3c_tf.experience.queues import EPISODE, IndexQueue, RecordQueue, Sender, ServerGone


def indices(messages):
    return messages["index"].tolist()


def test_one_record_comes_back():
    queue = IndexQueue()
    queue.put(7)
    assert len(queue) == 1
    assert indices(queue.get(10)) == [7]
    assert len(queue) == 0


def test_one_read_returns_all_that_wait_in_order():
    queue = IndexQueue()
    for index in range(5):
        queue.put(index)
    queue.put([5, 6])
    assert indices(queue.get(100)) == list(range(7))


def test_a_read_returns_at_most_the_maximum_and_leaves_the_rest():
    queue = IndexQueue()
    queue.put(np.arange(10))
    assert indices(queue.get(4)) == [0, 1, 2, 3]
    assert len(queue) == 6
    assert indices(queue.get(100)) == [4, 5, 6, 7, 8, 9]


def test_a_read_waits_for_the_first_record():
    queue = IndexQueue()
    got = []
    reader = threading.Thread(target=lambda: got.append(indices(queue.get(10))))
    reader.start()
    reader.join(0.1)
    assert reader.is_alive() and not got
    queue.put(3)
    reader.join()
    assert got == [[3]]


def test_what_waits_is_handed_out_before_a_stop():
    queue = IndexQueue()
    queue.put([1, 2])
    queue.set_readers(1)
    queue.stop()
    assert indices(queue.get(10)) == [1, 2]
    assert len(queue.get(10)) == 0
    assert len(queue) == 0


def test_each_stop_ends_one_reader():
    queue = IndexQueue()
    ended = []

    def read():
        while len(queue.get(10)):
            pass
        ended.append(1)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(4)]
    for reader in readers:
        reader.start()
    queue.set_readers(4)
    queue.set_readers(1)
    while len(ended) < 3:
        time.sleep(0.01)
    queue.set_readers(0)
    for reader in readers:
        reader.join()
    assert len(ended) == 4


def test_a_message_tells_the_generation_of_its_process():
    queue = IndexQueue()
    Sender(queue, 3).put([5, 6])
    queue.put(7)
    assert queue.get(10).tolist() == [(5, 3), (6, 3), (7, 0)]


def test_a_queue_whose_writers_are_closed_ends_its_readers():
    queue = IndexQueue()
    queue.put(1)
    queue.writer.close()
    assert indices(queue.get(10)) == [1]
    assert len(queue.get(10)) == 0


def test_writing_to_a_queue_nobody_reads_is_an_error():
    queue = IndexQueue()
    queue.reader.close()
    with pytest.raises(ServerGone):
        queue.put(1)


def test_a_queue_has_the_room_that_it_was_given():
    queue = RecordQueue(np.dtype(np.uint64), 2**20)
    room = fcntl.fcntl(queue.writer.fileno(), fcntl.F_GETPIPE_SZ)
    if room < 2**20:
        pytest.skip("the system gives no more room")
    for _ in range(256):
        queue.put(np.arange(512))  # 1 MiB in all, which nobody reads
    assert len(queue) == 2**17


def test_records_of_many_fields():
    queue = RecordQueue(EPISODE)
    queue.put((3, 1000, -20.5))
    queue.put((4, 1, 2.0**60))
    assert queue.get(10).tolist() == [(3, 1000, -20.5), (4, 1, 2.0**60)]


def _put_many(queue, first, count):
    for index in range(first, first + count):
        queue.put(index)


def test_many_processes_write_whole_records_and_each_in_its_order():
    queue = IndexQueue()
    count = 2000
    context = multiprocessing.get_context("forkserver")
    writers = [context.Process(target=_put_many, args=(queue, number * 10_000, count)) for number in range(3)]
    for writer in writers:
        writer.start()
    got: list[int] = []
    while len(got) < 3 * count:
        got += indices(queue.get(64))
    for writer in writers:
        writer.join()
    for number in range(3):
        mine = [index for index in got if index // 10_000 == number]
        assert mine == list(range(number * 10_000, number * 10_000 + count))


def test_a_reader_ends_though_more_keeps_coming():
    queue = IndexQueue()
    queue.put([1, 2])
    queue.set_readers(1)
    queue.stop()
    assert indices(queue.get(10)) == [1, 2]
    queue.put([3])
    assert len(queue.get(10)) == 0
    assert indices(queue.get(10)) == [3]  # another reader's
