"""Files of the data folder are made from those of their origins: small stand-ins, and real ones."""

import gzip
import json
import shutil
import tarfile

import numpy as np
import pytest
from scipy.io import savemat

from experiments.data.convert import CONVERTERS, SHA256, convert, main
from rankspace.datasets._origins import describe_origins, list_origins


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty data folder."""
    monkeypatch.setenv("RANKSPACE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def origin(tmp_path):
    folder = tmp_path / "origin"
    folder.mkdir()
    return folder


def text(path):
    return gzip.decompress(path.read_bytes()).decode()


def records(path):
    return [json.loads(line) for line in text(path).splitlines()]


def test_covertype_loses_its_header(home, origin):
    (origin / "covtype.csv").write_text("Elevation,Class\n1,2\n3,4\n")
    (path,) = convert("uci-covertype", origin, check=False)
    assert path == home / "uci-covertype" / "covtype.data.gz"
    assert text(path) == "1,2\n3,4\n"


def test_isolet_is_written_as_text_part_by_part(home, origin):
    for part in range(1, 5):
        found = {"fea": np.array([[0.5, -0.25 * part]]), "gnd": [[part]]}
        savemat(origin / f"Isolet{part}.mat", found)
    (origin / "isolet5.data").write_text("5.\n")
    path, test = convert("uci-isolet", origin, check=False)
    assert text(test) == "5.\n"
    lines = text(path).splitlines()
    assert (lines[0], lines[3]) == ("0.5000, -0.2500, 1.", "0.5000, -1.0000, 4.")


@pytest.mark.parametrize("name", ["mnist", "reuters21578"])
def test_files_that_are_only_packed(home, origin, name):
    names = [file.removeprefix(f"{name}/") for file in SHA256 if file.startswith(name)]
    for file in names:
        (origin / file.removesuffix(".gz").removeprefix("r8-")).write_text(file)
    paths = convert(name, origin, check=False)
    assert sorted(path.name for path in paths) == sorted(names)
    assert all(text(path) == path.name for path in paths)


def test_newsgroups_are_packed_with_their_folders(home, origin):
    for part, name in (("train", "b/2"), ("test", "a/1"), ("train", "a/3")):
        path = origin / f"20news-bydate-{part}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"caf\xe9")
    (path,) = convert("20newsgroups", origin, check=False)
    with tarfile.open(path) as archive:
        names = archive.getnames()
        assert archive.extractfile(names[0]).read() == b"caf\xe9"
    folder = "20news-bydate"
    assert names == [f"{folder}-test/a/1", f"{folder}-train/a/3", f"{folder}-train/b/2"]


def test_clinc_loses_what_is_out_of_scope(home, origin):
    content = {"train": [["pay", "bill"]], "val": [], "test": [["hi", "greet"]]}
    content["oos_test"] = [["?", "oos"]]
    (origin / "data_full.json").write_text(json.dumps(content))
    found = records(convert("lab-clinc150", origin, check=False)[0])
    assert found == [
        {"_id": "train0", "label": "bill", "part": "train", "text": "pay"},
        {"_id": "test0", "label": "greet", "part": "test", "text": "hi"},
    ]


def test_cranfield_fields_and_codes(home, origin):
    parts = {
        "cran.all.1400": ".I 1\n.T\nwings\nin air .\n.A\nme\n.B\n"
        ".W\nwings\nin air .\n  lift\nrises .\n.W\nmore\n",
        "cran.qry": ".I 007\n.W\nwhat\nlifts .\n",
        "cranqrel": "1 1 2\n1 2 -1\n",
    }
    for name, content in parts.items():
        (origin / name).write_text(content)
    with tarfile.open(origin / "cran.tar.gz", "w:gz") as archive:
        for name in parts:
            archive.add(origin / name, name)
    corpus, queries, qrels = convert("ir-cran", origin, check=False)
    (document,) = records(corpus)
    assert document == {
        "_id": "1",
        "title": "wings in air .",
        "text": "lift rises . more",
    }
    assert records(queries) == [{"_id": "1", "text": "what lifts .", "orig_id": "007"}]
    assert qrels.read_text().splitlines()[1:] == ["1\t1\t3"]


def test_npl_records_end_with_a_slash(home, origin):
    (origin / "doc-text").write_text("\n4\ncompact\nmemories\n   /\n5\nx\n   /\n")
    (origin / "query-text").write_text("1\nMEMORY\n/\n")
    (origin / "rlv-ass").write_text("1\n   4\n   5\n   /\n")
    corpus, queries, qrels = convert("ir-npl", origin, check=False)
    assert records(corpus)[0] == {"_id": "4", "title": "", "text": "compact memories"}
    assert records(queries) == [{"_id": "1", "text": "MEMORY"}]
    assert qrels.read_text().splitlines()[1:] == ["1\t4\t1", "1\t5\t1"]


def test_another_version_of_the_origin_is_refused(home, origin, capsys):
    (origin / "covtype.csv").write_text("header\n1\n")
    with pytest.raises(ValueError, match="another version of the origin"):
        convert("uci-covertype", origin)
    assert not home.exists()
    with pytest.raises(ValueError, match="name must be one of 20newsgroups"):
        convert("umist", origin)


def test_real_collections_come_out_as_they_are_in_the_data_folder(
    data_folder, home, origin, capsys
):
    shutil.copy(data_folder / "ir-cran/cran.tar.gz", origin)
    assert main(["ir-cran", str(origin)]) == 0
    written = [home / "ir-cran" / name for name in ("corpus.jsonl.gz", "qrels.tsv")]
    assert str(written[0]) in capsys.readouterr().out
    ours = data_folder / "ir-cran"
    assert text(written[0]) == text(ours / "corpus.jsonl.gz")
    assert written[1].read_bytes() == (ours / "qrels.tsv").read_bytes()


def test_the_catalogue_names_what_makes_a_file():
    made = {file for file, origin in list_origins().items() if origin.made_by}
    converted = {f for f in made if list_origins()[f].made_by == "convert"}
    assert converted == set(SHA256)
    assert {file.partition("/")[0] for file in converted} == set(CONVERTERS)
    assert all(file.endswith("_minilm_f16.npy") for file in made - converted)
    command = "python -m experiments.data.convert uci-covertype FOLDER"
    assert command in describe_origins(["uci-covertype/covtype.data.gz"])
    assert "'rankspace embed'" in describe_origins(["ir-npl/corpus_minilm_f16.npy"])
