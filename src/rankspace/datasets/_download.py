"""Downloads of data files, whose size and SHA-256 are checked before they are used."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from .._engine.files import replacing
from .._engine.optional import require
from ._catalogue import CATALOGUE
from ._folder import TIMEOUT_SECONDS, cache_folder, data_folder
from ._origins import Origin, describe_origins, list_origins

CHUNK = 2**16  # bytes
MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
PARTIAL = 206  # the answer to a request for the rest of a file


def download_dataset(name: str) -> list[Path]:
    """Download the missing files of a data set into the data folder.

    Each is written under a temporary name, and takes its own once size and SHA-256 are right. What
    a cut connection has left is continued by the next call. This needs the extra ``data``.

    Parameters
    ----------
    name : str
        One of `list_datasets`, or a folder of the data folder, such as ``"umist"``.

    Returns
    -------
    list of path
        The files that were downloaded.

    Raises
    ------
    ValueError
        If a missing file has no address, as it was made from its origin in several steps, or if a
        download is not the file that was expected.

    Examples
    --------
    >>> from rankspace.datasets import download_dataset
    >>> download_dataset("wine")
    []
    """
    files = _files_of(name)
    missing = [file for file in files if not (data_folder() / file).exists()]
    origins = list_origins()
    made = [file for file in missing if origins[file].address is None]
    if made:
        raise ValueError(
            f"{name} cannot be downloaded as it is: {describe_origins(made)}. Put these files "
            f"under {data_folder()}."
        )
    return [_download(origins[file], data_folder() / file) for file in missing]


def _files_of(name: str) -> Sequence[str]:
    if name.replace("-", "_") in CATALOGUE:
        return CATALOGUE[name.replace("-", "_")].files
    files = [file for file in list_origins() if file.startswith(f"{name}/")]
    if not files:
        folders = dict.fromkeys(file.partition("/")[0] for file in list_origins())
        raise ValueError(
            f"name must be one of {', '.join([*CATALOGUE, *folders])}: got {name!r}."
        )
    return files


def _download(origin: Origin, path: Path) -> Path:
    pooch = require("pooch", extra="data")
    pooch.get_logger().setLevel("WARNING")
    parts = cache_folder() / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    downloader = _Downloader(origin, parts / origin.sha256)
    try:
        found = pooch.retrieve(
            origin.address,
            f"sha256:{origin.sha256}",
            fname=f"{origin.sha256}.whole",
            path=parts,
            downloader=downloader,
        )
    except ValueError as error:
        raise ValueError(
            f"{origin.address} must have the SHA-256 {origin.sha256}: it has another one, and was "
            "not kept. The origin has changed, or somebody between it and you."
        ) from error
    content = Path(found).read_bytes()
    if origin.is_packed:
        content = gzip.compress(content, mtime=0)
    with replacing(path) as out:
        out.write(content)
    Path(found).unlink()
    return path


class _Downloader:
    """What pooch calls: fetches a file of known size, and continues what was cut off."""

    def __init__(self, origin: Origin, part: Path) -> None:
        self.origin = origin
        self.part = part

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        requests = require("requests", extra="data")
        try:
            self._fetch(url)
        except requests.RequestException as error:
            raise OSError(f"{url} cannot be downloaded: {error}.") from error
        n_bytes = self.part.stat().st_size
        if n_bytes < self.origin.size:
            raise OSError(
                f"{url} was cut off after {n_bytes:,} of {self.origin.size:,} bytes. Try again: "
                "the download continues there."
            )
        self.part.replace(output_file)

    def _fetch(self, url: str) -> None:
        start = self.part.stat().st_size if self.part.exists() else 0
        if start >= self.origin.size:
            return
        with _request(url, start) as response:
            response.raise_for_status()
            mode = "ab" if response.status_code == PARTIAL else "wb"
            n_bytes = start if mode == "ab" else 0
            with open(self.part, mode) as out:
                for chunk in response.iter_content(CHUNK):
                    n_bytes += len(chunk)
                    if n_bytes > self.origin.size:
                        break
                    out.write(chunk)
        if n_bytes > self.origin.size:
            self.part.unlink()
            raise OSError(
                f"{url} must have {self.origin.size:,} bytes: it has more, and was not kept."
            )


def _request(url: str, start: int) -> Any:
    """The answer to a request for a file from a byte on; redirects keep the scheme."""
    requests = require("requests", extra="data")
    # Packed on the way, a file would have another size.
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    scheme = urlsplit(url).scheme
    for _ in range(MAX_REDIRECTS):
        response = requests.get(
            url,
            headers=headers,
            stream=True,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
        )
        if response.status_code not in REDIRECTS:
            return response
        response.close()
        url = urljoin(url, response.headers.get("Location", ""))
        if urlsplit(url).scheme != scheme:
            raise OSError(f"a download by {scheme} must not be redirected to {url}.")
    raise OSError(f"{url} was redirected more than {MAX_REDIRECTS} times.")
