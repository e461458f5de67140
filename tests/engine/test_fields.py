"""Fields: joined unit vectors, beside plain loops."""

import numpy as np
import pytest

from rankspace import Fields, Index

rng = np.random.default_rng(0)
TITLE, BODY = rng.normal(size=(20, 3)), rng.normal(size=(20, 4))


def test_inner_products_are_sums_of_cosines():
    title = TITLE.copy()
    title[4] = np.nan
    title[5] = 0
    items = Fields({"title": title, "body": BODY})
    queries = Fields({"title": TITLE[:6], "body": 3 * BODY[:6]})
    found = np.asarray(queries) @ np.asarray(items).T
    for q in range(6):
        for x in range(20):
            expected = (
                BODY[q] @ BODY[x] / np.linalg.norm(BODY[q]) / np.linalg.norm(BODY[x])
            )
            if x not in (4, 5):
                lengths = np.linalg.norm(TITLE[q]) * np.linalg.norm(title[x])
                expected += TITLE[q] @ title[x] / lengths
            assert found[q, x] == pytest.approx(expected)
    assert (items.shape, len(items), items.widths) == ((20, 7), 20, (3, 4))
    assert items.n_missing == {"title": 2, "body": 0}
    assert repr(items) == "Fields(20 rows: title 3, body 4)"
    ranking = Index(np.asarray(items), similarity="dot").rank(np.asarray(queries))
    np.testing.assert_array_equal(ranking[0][0], np.argsort(-found[0], kind="stable"))


def test_rows_are_matched_by_id(tmp_path):
    np.save(tmp_path / "body.npy", BODY[:2].astype("f4"))
    found = Fields.from_ids(
        {
            "title": (TITLE[:3], ["c", "a", "b"]),
            "body": (tmp_path / "body.npy", ["b", "d"]),
        },
        ids=["a", "b", "c", "d"],
    )
    nan = np.full(4, np.nan)
    expected = Fields(
        {
            "title": [*TITLE[[1, 2, 0]], nan[:3]],
            "body": [nan, BODY[0], nan, BODY[1]],
        }
    )
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)
    assert found.n_missing == {"title": 1, "body": 2}


def test_single_precision_stays_single():
    assert Fields({"a": TITLE.astype("f2"), "b": BODY.astype("f4")}).dtype == np.float32


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({}, "fields must be a mapping of names to matrices.*: got none"),
        (TITLE, "fields must be a mapping of names to matrices.*: got ndarray"),
        (
            {"title": TITLE, "body": BODY[:9]},
            "all fields must have the same number of rows: got title 20, body 9. Give items",
        ),
        ({"title": TITLE[0]}, "the field 'title' must be a matrix"),
        (
            {"title": np.where(TITLE[3, 1] == TITLE, np.nan, TITLE)},
            "the field 'title' must be finite, or NaN as a whole: got row 3",
        ),
        ({"title": np.full((3, 2), np.nan)}, "some row must have the field 'title'"),
        ({"title": np.full((3, 2), np.inf)}, "the field 'title' must be finite"),
    ],
)
def test_wrong_fields_are_named(blocks, message):
    with pytest.raises(ValueError, match=message):
        Fields(blocks)


def test_an_index_takes_joined_fields_and_names_the_way_to_join_them():
    fields = {"title": TITLE, "body": BODY}
    index = Index(Fields(fields), similarity="dot")
    assert index.rank(Fields(fields), 1).items.tolist() == list(range(len(TITLE)))
    with pytest.raises(ValueError, match=r"got a mapping. Join .* by Fields\(X\)"):
        Index(fields)


def test_wrong_ids_are_named():
    with pytest.raises(
        ValueError, match="'title' must have an id for each row: got 2 ids and 3"
    ):
        Fields.from_ids({"title": (TITLE[:3], ["a", "b"])}, ids=["a", "b"])
    with pytest.raises(
        ValueError, match="'title' must be among ids: got 'z', one of 1"
    ):
        Fields.from_ids({"title": (TITLE[:2], ["a", "z"])}, ids=["a", "b"])
    with pytest.raises(
        ValueError, match=r"ids of the field 'title' must not repeat.*'a'"
    ):
        Fields.from_ids({"title": (TITLE[:2], ["a", "a"])}, ids=["a", "b"])
    with pytest.raises(ValueError, match="ids must not repeat a name"):
        Fields.from_ids({"title": (TITLE[:2], ["a", "b"])}, ids=["a", "b", "a"])


def test_fields_with_ids_in_other_orders_are_refused():
    pd = pytest.importorskip("pandas")
    title = pd.DataFrame({"id": ["a", "b"], "v": [[1.0], [2.0]]})
    body = pd.DataFrame({"id": ["b", "a"], "v": [[1.0], [2.0]]})
    assert Fields({"title": title, "body": np.eye(2)}).row_ids == ["a", "b"]
    with pytest.raises(ValueError, match=r"those of 'body' differ.*Fields.from_ids"):
        Fields({"title": title, "body": body})
