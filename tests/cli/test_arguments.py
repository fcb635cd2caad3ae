"""What several commands are given is read in one way."""

from pathlib import Path

import pytest

from accord.cli._arguments import check_local
from accord.errors import ChoiceError


@pytest.mark.parametrize("url", ["s3://bucket/x", "gs://bucket", "memory://x", "file:///tmp/x"])
def test_a_url_is_no_folder(url):
    with pytest.raises(ChoiceError, match=r"a folder of this machine; got the URL .*Recorder writ"):
        check_local(Path(url))


@pytest.mark.parametrize("path", ["runs/paper", "/shared/a:b/c", "C:/paper", "a:"])
def test_folders_with_odd_names_are_folders(path):
    check_local(Path(path))
