"""Image files are decoded, resized and cropped like torchvision does."""

import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from accord.data._image_files import ImageFiles, decode_ahead, decode_image
from accord.errors import ChoiceError, ExtraMissing, SourceError


def noise_pixels(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture
def files(tmp_path, picture):
    names = tuple(f"{number}.png" for number in range(5))
    for number, name in enumerate(names):
        picture(tmp_path / name, pixels=noise_pixels(8, 8, number))
    return ImageFiles(tmp_path, names, size=8, resize=8)


def test_images_of_the_right_size_are_unchanged(files, tmp_path):
    images = files.read(np.array([4, 0]))
    assert (images.shape, images.dtype) == ((2, 3, 8, 8), np.uint8)
    np.testing.assert_array_equal(images[0].transpose(1, 2, 0), noise_pixels(8, 8, 4))
    np.testing.assert_array_equal(images[1].transpose(1, 2, 0), noise_pixels(8, 8, 0))


def test_the_exif_orientation_is_applied(tmp_path):
    image = Image.fromarray(noise_pixels(8, 8))
    exif = image.getexif()
    exif[0x0112] = 6  # turned by a quarter
    image.save(tmp_path / "a.png", exif=exif)
    turned = decode_image(tmp_path / "a.png", size=8, resize=8).transpose(1, 2, 0)
    np.testing.assert_array_equal(turned, np.rot90(noise_pixels(8, 8), -1))


@pytest.mark.parametrize(("height", "width"), [(40, 61), (61, 40), (33, 33), (20, 90), (32, 51)])
def test_the_shorter_side_is_resized_and_the_middle_kept(tmp_path, picture, height, width):
    picture(tmp_path / "a.png", pixels=noise_pixels(height, width))
    ours = decode_image(tmp_path / "a.png", size=24, resize=32).transpose(1, 2, 0)
    # As torchvision: the longer side is cut to a whole number, the crop's corner rounded.
    sides = (32, int(32 * height / width)) if width <= height else (int(32 * width / height), 32)
    whole = np.asarray(
        Image.fromarray(noise_pixels(height, width)).resize(sides, Image.Resampling.BILINEAR)
    )
    top, left = round((sides[1] - 24) / 2), round((sides[0] - 24) / 2)
    np.testing.assert_array_equal(ours, whole[top : top + 24, left : left + 24])


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "CMYK", "I;16"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    path = tmp_path / f"a.{'tif' if mode in ('CMYK', 'I;16') else 'png'}"
    Image.new(mode, (9, 9)).save(path)
    assert decode_image(path, size=9, resize=9).shape == (3, 9, 9)


@pytest.mark.parametrize("ending", ["png", "tif", "pgm"])
def test_grey_of_16_bits_keeps_its_upper_8(tmp_path, ending):
    grey = np.arange(0, 2**16, 2**16 // 81, dtype=np.uint16)[:81].reshape(9, 9)
    Image.fromarray(grey).save(tmp_path / f"a.{ending}")
    image = decode_image(tmp_path / f"a.{ending}", size=9, resize=9)
    np.testing.assert_array_equal(image, np.broadcast_to(grey >> 8, (3, 9, 9)))


@pytest.mark.parametrize("pixels", [np.float32(0.5), np.int32(2**16), np.int32(-1)])
def test_grey_of_no_known_range_is_refused(tmp_path, pixels):
    Image.fromarray(np.full((9, 9), pixels)).save(tmp_path / "a.tif")
    with pytest.raises(SourceError, match=r"its pixels are \w+ in .* 8 or 16 bits"):
        decode_image(tmp_path / "a.tif", size=9, resize=9)


def test_a_palette_with_transparency_is_read_without_a_warning(tmp_path):
    image = Image.new("P", (9, 9))
    image.putpalette([0, 0, 0, 200, 100, 50])
    image.putdata([1] * 81)
    image.save(tmp_path / "a.png", transparency=b"\x80\xff")
    assert decode_image(tmp_path / "a.png", size=9, resize=9)[:, 0, 0].tolist() == [200, 100, 50]


@given(st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=4), st.integers(0, 3))
def test_a_stream_yields_every_batch_in_order(batches, ahead):
    done = decode_ahead(lambda position: position * 10, map(np.array, batches), ahead=ahead)
    assert list(done) == [[position * 10 for position in batch] for batch in batches]


def test_a_stream_reads_what_read_reads(files):
    batches = [np.array([0, 1]), np.array([], int), np.array([4])]
    for batch, images in zip(batches, files.stream(batches), strict=True):
        np.testing.assert_array_equal(images, files.read(batch))


def test_a_stream_that_is_closed_stops_decoding():
    decoded, slow = [], threading.Event()

    def decode(position):
        decoded.append(position)
        if position:  # all but the first batch are slow
            slow.wait(0.01)

    stream = decode_ahead(decode, (np.full(200, number) for number in range(9)), ahead=2)
    next(stream)
    stream.close()
    assert len(decoded) < 400  # of 600 that were waiting


@pytest.mark.parametrize("content", [b"", b"not an image", b"\x89PNG\r\n\x1a\n broken"])
def test_an_unreadable_file_is_named(files, content):
    (files.root / "2.png").write_bytes(content)
    with pytest.raises(SourceError, match=r"2\.png: cannot be read as an image.*skip_unreadable"):
        files.read(np.array([1, 2]))


def test_a_truncated_file_is_named(files):
    data = (files.root / "3.png").read_bytes()
    (files.root / "3.png").write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError, match=r"3\.png: cannot be read as an image"):
        files.read(np.array([3]))


def test_a_missing_file_is_named(files):
    (files.root / "1.png").unlink()
    with pytest.raises(SourceError, match=r"1\.png: cannot be read as an image: .*No such file"):
        files.read(np.array([1]))


def test_unreadable_files_are_found(files):
    (files.root / "0.png").write_bytes(b"?")
    (files.root / "3.png").write_bytes(b"?")
    assert files.find_unreadable().tolist() == [0, 3]
    assert files.choose(np.array([1, 3, 4])).find_unreadable().tolist() == [1]


@pytest.mark.parametrize(("size", "resize"), [(0, 8), (9, 8)])
def test_a_crop_larger_than_the_image_is_refused(tmp_path, size, resize):
    with pytest.raises(ChoiceError, match=rf"got size={size}, resize=8. Set both"):
        ImageFiles(tmp_path, ("a",), size=size, resize=resize)


def test_without_pillow_the_extra_is_named(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ExtraMissing, match=r"pip install 'accord\[train\]'"):
        files.read(np.array([0]))
