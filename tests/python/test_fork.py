# SPDX-License-Identifier: Apache-2.0
"""Loaders in a forked child: one clear error from every call, none of them waits, and closing is harmless.

The parent forks while another thread holds the loader's locks, so that whatever waits for them hangs each time.
"""

import subprocess
import sys
import textwrap

import pytest

OPEN = {
    "arrays": "stoker.Loader(np.zeros((100, 4)), batch_size=4, shuffle=True, output='numpy')",
    "dataset": "stoker.Loader([{'x': i, 't': str(i)} for i in range(100)], batch_size=4, output='numpy')",
    "sampler": "stoker.Loader(np.zeros((100, 4)), batch_size=4, sampler=range(100), output='numpy')",
}

CALLS = """
calls = {
    "next": lambda: next(it), "iter": lambda: iter(loader), "for": lambda: list(loader), "len": lambda: len(loader),
    "epoch": lambda: loader.epoch, "set_epoch": lambda: loader.set_epoch(3), "same epoch": lambda: loader.set_epoch(0),
    "state_dict": loader.state_dict, "load_state_dict": lambda: loader.load_state_dict(state), "peek": loader.peek,
    "forever": lambda: next(loader.forever()), "in forever": lambda: next(forever), "get": lambda: loader.get([1]),
    "get at": lambda: loader.get([1], epoch=0), "drawn": lambda: loader.drawn([1]), "load_all": loader.load_all,
    "classes": lambda: loader.classes, "class_to_idx": lambda: loader.class_to_idx, "stats": loader.stats,
    "bad_samples": loader.bad_samples, "explain": loader.explain, "show": loader.show,
    "pickle": loader.__getstate__,
}
"""

CHILD = """
import os, signal, threading, numpy as np, stoker
loader = {open}
state = loader.state_dict()
{calls}
forever = loader.forever()
next(forever)
it = iter(loader)
kept = next(it)
loader.peek()
held, let_go = threading.Event(), threading.Event()

def hold():
    with loader._lock, forever._lock:
        held.set()
        let_go.wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    for name, call in calls.items():
        try:
            call()
        except stoker.Error as error:
            assert "before fork()" in str(error) and "open a new loader" in str(error), (name, error)
        else:
            raise SystemExit(f"{{name}} raised nothing")
    assert "before fork()" in repr(loader), repr(loader)
    loader.close()
    assert "closed" in repr(loader)
    mine = {open}
    assert len(list(mine)) == 25
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
let_go.set()
assert len(list(it)) == 24
print("fine")
"""


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", OPEN)
def test_every_call_in_a_child(name):
    done = python(CHILD.format(open=OPEN[name], calls=CALLS))
    assert done.stdout == "fine\n", done.stderr


def test_repr_never_waits(photos):
    """The engine's own locks: forks in the middle of the work."""
    done = python(
        textwrap.dedent(f"""
        import os, signal, stoker
        loader = stoker.Loader({str(photos)!r}, "RandomResizedCrop(8)", shuffle=True, threads=4, output="numpy")
        batches = loader.forever()
        for _ in range(100):
            next(batches)
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                repr(loader)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        print("fine")
        """)
    )
    assert done.stdout == "fine\n", done.stderr


def test_a_source_goes_on_in_a_child(tmp_path):
    """It has no threads of its own; the engine that reads its fields is opened again."""
    (tmp_path / "all.csv").write_text("name,score\na,1\nb,2\nc,3\n")
    done = python(
        textwrap.dedent(f"""
        import os, signal, stoker
        src = stoker.Source({str(tmp_path / "all.csv")!r})
        part = src.take(2)
        assert src[1]["score"] == 2 and part[0]["score"] == 1
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            assert src[1]["score"] == 2 and part[1]["score"] == 2 and src.take(1)[0]["score"] == 1
            assert len(src) == 3 and "3 samples" in repr(src)
            raise SystemExit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert src[2]["score"] == 3
        print("fine")
        """)
    )
    assert done.stdout == "fine\n", done.stderr


def test_children_of_a_program_whose_threads_run_python():
    """A thread of the engine that gets a thread state must not stop a child inside os.fork()."""
    done = python(
        textwrap.dedent("""
        import os, signal, threading, numpy as np, stoker

        def same(x, rng):  # with an rng of its own it runs in the engine's threads
            return x

        ballast = np.ones(100 << 20, np.uint8)  # a fork takes longer
        images = np.zeros((1000, 2, 2, 3), np.uint8)
        stoker._processes.WORTH_S = 1e9
        loader = stoker.Loader(images, ["CenterCrop(2)", same], 4, threads=4, output="numpy")
        assert not loader._way.here and not loader._way.processes
        ended = threading.Event()
        threading.Thread(target=lambda: [None for _ in loader.forever() if ended.is_set() and os._exit(0)]).start()
        for _ in range(300):
            child = os.fork()
            if child == 0:
                os._exit(0)
            signal.alarm(100)
            os.waitpid(child, 0)
        print("fine", flush=True)
        ended.set()
        """)
    )
    assert done.stdout == "fine\n", done.stderr
