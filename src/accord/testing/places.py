"""The contract that every place for records is held to."""

import threading
from abc import ABC, abstractmethod

from accord.store.places import Place


class PlaceContract(ABC):
    """Inherit this in a test class and say how to make a fresh, empty place."""

    @abstractmethod
    def make_place(self) -> Place:
        """Return a place with nothing in it."""

    def test_nothing_is_there_at_first(self) -> None:
        """A fresh place holds no key and no child."""
        place = self.make_place()
        assert place.get("a/b") is None
        assert place.children() == []
        assert place.children("a") == []

    def test_what_was_put_is_got(self) -> None:
        """The last bytes put under a key are there, empty ones too."""
        place = self.make_place()
        place.put("a/b", b"one")
        place.put("a/b", b"two")
        place.put("empty", b"")
        assert place.get("a/b") == b"two"
        assert place.get("empty") == b""

    def test_create_never_overwrites(self) -> None:
        """Only the first `create` of a key writes, and says so."""
        place = self.make_place()
        assert place.create("a", b"first")
        assert not place.create("a", b"second")
        assert place.get("a") == b"first"

    def test_children_are_the_names_one_level_down(self) -> None:
        """Deeper names count once, by their first part."""
        place = self.make_place()
        for key in ("b/c/d", "b/c/e", "b/f", "a"):
            place.put(key, b"x")
        assert place.children() == ["a", "b"]
        assert place.children("b") == ["c", "f"]
        assert place.children("b/c") == ["d", "e"]

    def test_of_many_creators_one_wins(self) -> None:
        """Eight threads create one key; exactly one is told that it wrote."""
        place = self.make_place()
        won: list[bytes] = []

        def create(data: bytes) -> None:
            if place.create("contested", data):
                won.append(data)

        threads = [threading.Thread(target=create, args=(b"%d" % i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [place.get("contested")] == won
