"""Requests and batches as predictors and trainers get them: when they wait, their order, and how they end."""

import fcntl
import threading
from types import SimpleNamespace

import helpers
import numpy as np
import pytest

import ga3c_tf.systems.ga3c.request_queue
from ga3c_tf.config import Config
from ga3c_tf.experience.batch_builder import BatchBuilder
from ga3c_tf.experience.buffers import RolloutBuffers
from ga3c_tf.experience.queues import INDEX, IndexQueue, RecordQueue, Sender
from ga3c_tf.experience.reply_pipes import ReplyPipes
from ga3c_tf.experience.segments import FreeSlots, Segments
from ga3c_tf.systems.ga3c.batch_queue import BatchQueue
from ga3c_tf.systems.ga3c.request_queue import RequestQueue
from ga3c_tf.workers.thread import WorkerErrors

CONFIG = Config(num_agents=4, t_max=3, min_training_batch=0)


def memory_of(config=CONFIG):
    return RolloutBuffers(config, helpers.SPEC)


def batches_of(*slots, permits=9, config=CONFIG, most=1):
    """Batches of one segment each, of these slots, and the errors of their updates."""
    memory = memory_of(config)
    memory.lengths[:] = 1
    messages = IndexQueue()
    messages.set_readers(1)
    messages.put(list(slots))
    errors = WorkerErrors(RecordQueue(INDEX))
    segments = Segments(messages, FreeSlots(memory), BatchBuilder(memory, config.min_training_batch))
    return BatchQueue(config, segments, permits, errors, most), errors


def test_at_the_end_only_batches_that_were_overtaken_are_trained_on():
    batches, _ = batches_of(0, 1, 2, 3, permits=1)
    order = []
    begin = [threading.Event() for _ in range(4)]
    started = threading.Semaphore(0)

    def train(number):
        begun = batches._begin

        def begin_late(batch_number):
            started.release()
            begin[batch_number - 1].wait()
            return begun(batch_number)

        batches._begin = begin_late
        with batches.next() as given:
            order.append((number, bool(given)))
        batches._begin = begun

    threads = []
    for number in range(1, 5):
        thread = threading.Thread(target=train, args=[number])
        thread.start()
        started.acquire()
        threads.append(thread)
    for number in (3, "close", 4, 1, 2):
        if number == "close":
            batches.close()
            continue
        begin[number - 1].set()
        threads[number - 1].join()
    assert order == [(3, True), (4, False), (1, True), (2, True)]


def test_a_trainer_gets_the_batches_that_wait_in_order_and_never_waits_for_more():
    batches, _ = batches_of(*range(11), most=8)
    sizes = []
    agents = []
    for _ in range(2):
        with batches.next() as given:
            sizes.append(len(given))
            agents += [int(batch.agents[0]) for batch in given]
    assert sizes == [8, 3]
    slots_per_agent = memory_of().slots_per_agent
    assert agents == [slot // slots_per_agent for slot in range(11)]


def test_a_trainer_that_should_end_first_trains_on_the_batches_before():
    batches, _ = batches_of(0, 1, most=8)
    batches._segments.messages.set_readers(0)
    sizes = []
    for _ in range(2):
        with batches.next() as given:
            sizes.append(len(given))
    assert sizes == [2, 0]


def test_a_pause_that_is_interrupted_is_over(monkeypatch):
    batches, _ = batches_of(0)

    def interrupted(predicate):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(batches._changed, "wait_for", interrupted)
        with batches.paused():
            pass
    with batches.next() as given:
        assert len(given) == 1


def test_an_update_that_fails_is_known_before_anyone_can_save_its_weights():
    batches, errors = batches_of(0)
    noted = []

    class Watched(threading.Condition):
        def notify_all(self):
            noted.append(errors.first)
            super().notify_all()

    batches._changed = Watched()
    with pytest.raises(ZeroDivisionError), batches.next():
        raise ZeroDivisionError
    assert noted and isinstance(noted[0], ZeroDivisionError)


def test_segments_of_a_dead_process_are_left_out_and_their_slots_are_not_handed_back():
    memory = memory_of()
    memory.lengths[:] = 1
    messages = IndexQueue()
    replies = ReplyPipes(memory, np.array([0, 1, 0, 1]))
    readers = [replies.open(process) for process in (0, 1)]
    for generation in (0, 1):
        Sender(messages, generation).put([memory.slots_of(0)[generation]])
    Sender(messages, 0).put(memory.slots_of(1)[0])
    replies.close(0)
    successor = replies.open(0)
    segments = Segments(messages, replies, BatchBuilder(memory, 0))
    trained = [batch.agents.tolist() for batch in segments.waiting()]
    assert trained == [[0], [1]] and segments.gathered == 2
    assert successor.poll(0) and readers[1].poll(0) and not len(messages)


def test_a_segment_whose_slot_is_filled_anew_while_it_is_copied_is_left_out():
    memory = memory_of()
    memory.lengths[:] = 1
    messages = IndexQueue()
    messages.put(0)
    valid = iter([True, False])
    released = []
    owners = SimpleNamespace(is_valid=lambda *_: next(valid), released=lambda *slot: released.append(slot))
    segments = Segments(messages, owners, BatchBuilder(memory, 0))
    assert list(segments.waiting()) == [] and not released


def test_a_full_training_queue_does_not_hold_up_the_end():
    """A trainer that ended with the queue full would leave no room for the message that ends the others."""
    batches, _ = batches_of()
    messages = batches._segments.messages
    messages.set_readers(2)
    fcntl.fcntl(messages.writer.fileno(), fcntl.F_SETPIPE_SZ, 4096)
    messages.put(np.zeros(512, np.uint32))
    batches._closed = True
    threads = [threading.Thread(target=lambda: batches._gather(), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    closing = threading.Thread(target=batches.close, daemon=True)
    closing.start()
    for thread in (closing, *threads):
        thread.join()


def requests_of(config, batches):
    messages = IndexQueue()
    messages.set_readers(1)
    return RequestQueue(config, messages, batches), messages


@pytest.mark.parametrize(("behind", "answered"), [(True, [0, 1, 2]), (False, [0])])
def test_requests_gather_while_the_trainers_are_behind(monkeypatch, behind, answered):
    requests, messages = requests_of(CONFIG, SimpleNamespace(is_behind=behind, is_full=False))
    messages.put(0)

    def sleep(seconds):
        messages.put([1, 2])

    monkeypatch.setattr(ga3c_tf.systems.ga3c.request_queue, "time", SimpleNamespace(sleep=sleep))
    assert requests.next()["index"].tolist() == answered
    assert requests.waited() == behind and requests.waited() == 0


def test_requests_are_held_as_long_as_the_training_queue_is_full(monkeypatch):
    looks = iter([True, True, False])

    class Full:
        is_behind = False
        is_full = property(lambda self: next(looks))

    requests, messages = requests_of(CONFIG, Full())
    messages.put(5)
    slept = []
    monkeypatch.setattr(ga3c_tf.systems.ga3c.request_queue, "time", SimpleNamespace(sleep=slept.append))
    assert requests.next()["index"].tolist() == [5] and len(slept) == 2
