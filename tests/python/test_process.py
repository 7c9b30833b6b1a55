# SPDX-License-Identifier: Apache-2.0
"""What happens around the loader: leaks, forks, signals, exits. Each in a process of its own where it matters."""

import gc
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import stoker

X = np.zeros((8, 4), np.float32)


def python(code):
    """Runs a program in which no time that was measured moves functions into other processes."""
    code = "import stoker\nstoker._processes.WORTH_S = 1e9\n" + textwrap.dedent(code)
    env = {**os.environ, "STOKER_CACHE_DIR": "off"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=env)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def census():
    stoker._stoker.wait()  # until the loaders that were dropped before are closed
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def test_ten_thousand_epochs_leak_nothing():
    loader = stoker.Loader(X, batch_size=4, output="numpy", threads=1)
    for _ in range(1000):
        list(loader)
    gc.collect()
    before, things = resident(), census()
    for _ in range(9000):
        for _ in loader:
            pass
    gc.collect()
    assert census() == things and resident() - before < 2 << 20


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT"])
def test_a_crash_in_a_worker_leaves_a_trace(name):
    code = f"""
        import faulthandler, signal, threading
        import numpy as np, stoker
        faulthandler.enable()

        def crash_here(image, rng):
            if threading.current_thread() is not threading.main_thread():
                signal.pthread_kill(threading.get_ident(), signal.{name})
            return image

        images = np.zeros((8, 8, 8, 3), np.uint8)
        list(stoker.Loader(images, [stoker.CenterCrop(8), crash_here], threads=2, output="numpy"))
    """
    done = python(code)
    assert done.returncode == -getattr(signal, name)
    assert "Fatal Python error" in done.stderr and "in crash_here" in done.stderr


def test_a_bad_pointer_in_a_worker_leaves_a_trace():
    code = """
        import ctypes, faulthandler, threading
        import numpy as np, stoker
        faulthandler.enable()

        def read_null(image, rng):
            if threading.current_thread() is not threading.main_thread():
                ctypes.string_at(0)
            return image

        images = np.zeros((8, 8, 8, 3), np.uint8)
        list(stoker.Loader(images, [stoker.CenterCrop(8), read_null], threads=2, output="numpy"))
    """
    done = python(code)
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr and "in read_null" in done.stderr


def test_a_function_asks_its_loader_while_it_restarts():
    code = """
        import threading
        import numpy as np, stoker
        started, asked = threading.Event(), threading.Event()

        def ask(image, rng):
            if loader and not started.is_set():
                started.set()
                for _ in range(2000):
                    loader.stats(), loader.state_dict(), loader.epoch, loader.bad_samples(), loader.explain()
                asked.set()
            return image

        loader = None
        images = np.zeros((64, 8, 8, 3), np.uint8)
        loader = stoker.Loader(images, [stoker.CenterCrop(8), ask], batch_size=8, threads=2, output="numpy")
        loader.set_epoch(1)
        started.wait()
        state = loader.state_dict()
        loader.load_state_dict({**state, "epoch": 3})
        assert asked.is_set() and loader.epoch == 3
        print(len(list(loader)))
    """
    assert python(code).stdout == "8\n"


def test_a_thousand_loaders_leak_nothing(photos):
    def once():
        loader = stoker.Loader(photos, "RandomCrop(8)", batch_size=2, output="numpy", threads=2, memory="64M")
        return next(iter(loader)).image[0, 0, 0, 0]

    for _ in range(100):
        once()
    gc.collect()
    before, things = resident(), census()
    for _ in range(900):
        once()
    gc.collect()
    assert census() == things and resident() - before < 4 << 20


def test_memory_of_kept_batches_comes_back():
    big = np.zeros((64, 1 << 18), np.float32)  # a batch is 8 MiB
    loader = stoker.Loader(big, batch_size=8, output="numpy")
    list(loader)
    before, ring = resident(), loader.stats().memory_bytes
    kept = [b for _ in range(4) for b in loader]
    assert loader.stats().kept_bytes > 200 << 20
    del kept
    gc.collect()
    list(loader)
    ring = loader.stats().memory_bytes - ring  # which may look further ahead by now
    assert resident() - before - ring < 20 << 20 and loader.stats().kept_bytes < 20 << 20


class Uneven:
    def __len__(self):
        return 400

    def __getitem__(self, i):
        return np.ones(1 << (10 if i % 4 == 0 else 19), np.uint8)


def test_what_was_skipped_is_not_kept():
    loader = stoker.Loader(Uneven(), on_error="skip", max_bad=1, output="numpy", memory="64M")
    before = resident()
    with pytest.warns(RuntimeWarning, match="300 bad"):
        assert len(list(loader)) == 100  # of 400 batches of one sample
    assert resident() - before < 60 << 20  # of 150 MiB


def grown(call):
    """Objects that 60 calls leave behind."""
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(60):
        call()
    gc.collect()
    return sys.getallocatedblocks() - before


def test_no_call_leaks_an_object(photos, tmp_path):
    """Every way into the engine, also those that end in an exception: as many objects after 60 calls as before."""
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "1.png").write_bytes(b"not an image")
    loader = stoker.Loader(photos, "RandomCrop(8) | RandomHorizontalFlip", batch_size=4, output="numpy", threads=1)
    bad = stoker.Loader(tmp_path, "CenterCrop(8)", output="numpy", threads=1)
    source, engine = stoker.Source(photos), loader._engine
    state = loader.state_dict()

    def wrong(function, *args):
        try:
            function(*args)
        except (stoker.Error, TypeError, ValueError, StopIteration):
            pass

    calls = [
        lambda: loader.get([1, 2], epoch=3),
        lambda: loader.get(positions=[5], epoch=1),
        lambda: wrong(bad.get, 0),
        lambda: wrong(bad.drawn, 0),
        lambda: wrong(loader.get, 99),
        lambda: wrong(engine.get, "x", None, 0),
        lambda: wrong(engine.get, None, None, 0),
        lambda: wrong(engine.drawn, "x", None, 0),
        lambda: (loader.peek(), loader.stats(), loader.explain(), loader.classes, repr(loader)),
        lambda: (loader.load_state_dict(state), loader.state_dict(), loader.set_epoch(2)),
        lambda: wrong(loader.load_state_dict, {"epoch": 1}),
        lambda: (loader.show(tmp_path / "s.png", n=2), next(iter(loader))),
        lambda: wrong(bad.show, tmp_path / "s.png"),
        lambda: wrong(next, iter(bad)),
        lambda: bad.bad_samples(),
        lambda: (source[3], source.labels, source.paths, source.keys, source.split(0.5)),
        lambda: (stoker.verify(tmp_path / "bad"), stoker.ls(photos)),
        lambda: wrong(stoker.Source, "/no/such/place"),
        lambda: wrong(stoker.Loader, photos, "CenterCrop(8) | Nothing"),
        lambda: wrong(stoker._stoker.sheet, b"", 8, 8, 3, 2, "", "", ["a"]),
        lambda: wrong(stoker._stoker.sheet, b"x" * 192, 8, 8, 3, 2, "", "", [1]),
        lambda: wrong(engine.select, ("x",)),
        lambda: stoker.Loader(photos, ["CenterCrop(8)", np.negative], output="numpy", threads=1, memory="64M").close(),
    ]
    gc.collect()
    gc.freeze()  # what other tests brought in takes long to look through
    for number, call in enumerate(calls):
        assert any(grown(call) < 55 for _ in range(5)), f"call {number} leaks"  # less than one a call, caches filled
    gc.unfreeze()


def test_an_idle_loader_costs_nothing(photos):
    """Its threads come to rest: nothing polls. Until then it reads ahead, for as long as a busy machine makes it."""
    loader = stoker.Loader(photos, "RandomCrop(8)", batch_size=2, output="numpy")
    next(iter(loader))

    def switches_in_half_a_second():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        time.sleep(0.5)
        return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before

    assert any(switches_in_half_a_second() < 10 for _ in range(60))


def test_ctrl_c_ends_a_wait_and_leaves_the_loader_usable():
    class Slow:
        def __len__(self):
            return 4

        def __getitem__(self, i, rng):  # in parallel
            if i == 2:
                go.wait()
            return np.float32(i)

    go = threading.Event()
    loader = stoker.Loader(Slow(), output="numpy", threads=2)
    it = iter(loader)
    assert float(next(it).image[0]) == 0
    next(it)

    def interrupt():
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        threading.Thread(target=interrupt).start()
        next(it)
    assert not go.is_set()  # the sample is still being waited for
    go.set()
    assert [float(b.image[0]) for b in it] == [2, 3]


def test_exit_with_a_loader_open():
    done = python("""
        import numpy as np, stoker
        class D:
            def __len__(self): return 1000000
            def __getitem__(self, i): return np.zeros(1000)
        loaders = [stoker.Loader(D(), batch_size=8, output="numpy") for _ in range(3)]
        its = [iter(l) for l in loaders]
        kept = [next(it) for it in its]
        print("fine")
    """)
    assert done.returncode == 0 and done.stdout == "fine\n" and done.stderr == ""


def test_exit_code_after_an_error():
    done = python("""
        import stoker
        stoker.Loader("/no/such/place", "CenterCrop(8)")
    """)
    assert done.returncode == 1 and "NotFoundError" in done.stderr and "/no/such/place" in done.stderr


def test_garbage_inside_the_loaders_own_threads():
    """The collector runs where memory is taken, also in a function that the loader calls."""
    done = python("""
        import gc, threading, numpy as np, stoker
        gc.disable()
        hits = threading.Event()

        def make(seeded):
            def collect(x, rng=None):
                gc.collect()
                hits.set()
                return x
            function = (lambda x: collect(x)) if seeded else collect
            loader = stoker.Loader(np.zeros((1000, 4, 4, 3), np.uint8), ["CenterCrop(4)", function], output="numpy",
                                   threads=2)
            function.__dict__["circle"] = loader
            return iter(loader)

        for i in range(40):
            hits.clear()
            it = make(i % 2)
            next(it)
            del it
            hits.wait()
        while len(stoker._loader._alive):  # one collection at a time: another thread may be at it
            gc.collect()
        stoker._stoker.wait()
        print("fine")
    """)
    assert done.returncode == 0 and done.stdout == "fine\n", (done.returncode, done.stdout, done.stderr)


WAITING = {
    "close": "loader.close()",
    "set_epoch": "loader.set_epoch(3)",
    "load_state_dict": "loader.load_state_dict(loader.state_dict())",
    "iter": "iter(loader)",
    "next": "next(batches)",
    "next of forever": "next(endless)",
    "peek": "loader.peek()",
    "get": "loader.get(0)",
    "show": "loader.show()",
}


@pytest.mark.parametrize("call", WAITING)
def test_a_function_makes_its_own_loader_wait(call):
    done = python(f"""
        import numpy as np, stoker
        zeros = np.zeros((4, 4, 4, 3), np.uint8)

        def ask(x):
            if ready:
                loader.stats(), loader.state_dict(), loader.epoch, loader.explain(), repr(loader), len(loader)
                try:
                    {WAITING[call]}
                except stoker.UsageError as error:
                    words.append(str(error))
            return x

        class Set:
            def __len__(self):
                return 4

            def __getitem__(self, i):
                return ask(zeros[i])

        class SetWithRng(Set):
            def __getitem__(self, i, rng):
                return ask(zeros[i])

        ops = ["CenterCrop(4)", lambda x: ask(x)], ["CenterCrop(4)", lambda x, rng: ask(x)]
        for given in (zeros, ops[0]), (zeros, ops[1]), (Set(),), (SetWithRng(),):
            ready, words = False, []
            loader = stoker.Loader(*given, output="numpy", threads=2)
            batches, endless = iter(loader), loader.forever()
            ready = True
            while not words:
                next(endless)
            print(words[0])
            loader.close()
    """)
    words = "was called by a function that the loader itself runs; call it outside of that function"
    line = f"{call.split()[0]}() {words}\n"
    assert done.returncode == 0 and done.stdout == 4 * line, done.stderr


def test_fork():
    done = python("""
        import os, numpy as np, stoker
        loader = stoker.Loader(np.zeros((100, 4)), batch_size=4, output="numpy")
        it = iter(loader)
        kept = next(it)
        if os.fork() == 0:
            try:
                next(it)
            except stoker.Error as error:
                assert "fork" in str(error), error
            assert kept.x.sum() == 0
            loader.close()
            mine = stoker.Loader(np.zeros((100, 4)), batch_size=4, output="numpy")
            assert len(list(mine)) == 25
            raise SystemExit(0)
        assert os.wait()[1] == 0
        assert len(list(it)) == 24
        print("fine")
    """)
    assert done.stdout == "fine\n", done.stderr


def test_resume_in_another_process(tmp_path):
    from conftest import make_photos

    root = make_photos(tmp_path / "set", 40)
    code = f"""
        import hashlib, json, sys, stoker
        steps, threads, rank, world, state = json.loads(sys.argv[1])
        loader = stoker.Loader({str(root)!r}, "RandomResizedCrop(16) | RandomHorizontalFlip", batch_size=8 // world,
                               shuffle=True, seed=5, threads=threads, rank=rank, world_size=world, output="numpy")
        if state:
            loader.load_state_dict(state)
        it, rows = loader.forever(), []
        for _ in range(steps):
            x, y = next(it)
            rows.append([hashlib.md5(x[i].tobytes()).hexdigest() + str(int(y[i])) for i in range(len(y))])
        print(json.dumps([rows, loader.state_dict()]))
    """
    import json

    def run(*what):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), json.dumps(what)], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    whole, _ = run(100, 2, 0, 1, None)
    first, state = run(50, 2, 0, 1, None)
    assert len(json.dumps(state)) < 300
    rest, _ = run(50, 16, 0, 1, state)
    assert first + rest == whole
    ranks = [run(50, 3, r, 2, state)[0] for r in range(2)]
    assert [a + b for a, b in zip(*ranks, strict=True)] == whole[50:]


def test_import_brings_nothing_heavy():
    done = python("import sys, stoker; print([m for m in ('torch', 'jax', 'tensorflow', 'PIL') if m in sys.modules])")
    assert done.stdout == "[]\n"


def test_the_command_is_the_same_program():
    command = os.path.join(os.path.dirname(sys.executable), "stoker")
    if not os.path.exists(command):
        pytest.skip("the command is not beside this Python")
    done = subprocess.run([command, "info"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and stoker.__version__ in done.stdout
