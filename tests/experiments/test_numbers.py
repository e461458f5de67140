"""Numbers in prose are those of the results files, and a wrong digit in any page is found."""

import json
import re

import pytest

from experiments import numbers
from experiments.numbers import Quote, check, list_pages, main, problems, read_entries

TABLES = {
    "tables": [
        {"title": "First", "header": ["method", "MAP"], "rows": [["A", "0.1 ± 0.2"]]},
        {
            "title": "Second (2 sets)",
            "header": ["method", "m", "MAP", "10 % (n = 3)", "share"],
            "rows": [
                ["A", "5", "0.755 ± 0.008", "-1.5 (+0.25, safe)", 0.0432],
                ["A", "20", "0.865", "1,234", 1],
                ["A, tuned", "5", "0.9", "30985", 0.5],
            ],
        },
    ]
}


@pytest.fixture
def results(tmp_path, monkeypatch):
    folder = tmp_path / "results" / "demo"
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(TABLES))
    monkeypatch.setattr(numbers, "HOME", tmp_path)
    numbers._results.cache_clear()
    yield
    numbers._results.cache_clear()


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("First > A | MAP", "0.1"),
        ("Second > A, 5 | MAP", "0.755"),
        ("Second > A, 5 | MAP | .2f", "0.76"),
        ("Second > A, 5 | MAP | s", "0.755 ± 0.008"),
        ("Second > A, 5 | 10 %", "-1.5"),
        ("Second > A, 5 | 10 % #2", "+0.25"),
        ("Second > A, 5 | share | .0%", "4"),
        ("Second > A, 20 | 10 % | .2g", "1,200"),
        ("Second > A, tuned | 10 % | .2g", "31,000"),
        ("Second > A, tuned minus A, 5 | MAP | .3f", "0.145"),
        ("Second > A, 20 | 10 % minus m | .0f", "1214"),
    ],
)
def test_a_place_is_a_cell(results, place, expected):
    assert Quote("page", f"{{{place}}}", "demo").numbers() == [expected]


@pytest.mark.parametrize(
    "place", ["Second > A | MAP", "First > A | AUC", "Third > A | m"]
)
def test_a_place_that_is_no_cell_is_refused(results, place):
    with pytest.raises(ValueError, match="demo"):
        Quote("page", f"{{{place}}}", "demo").numbers()


def test_numbers_are_written_across_line_breaks(results):
    quote = Quote(
        "page", "MAP of {First > A | MAP} and {Second > A, 20 | MAP}.", "demo"
    )
    content = "The MAP\nof 9,999.5 ± 0.3 and 7. It took 3 s.\n"
    assert quote.written(content) == "The MAP\nof 0.1 and 0.865. It took 3 s.\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("MAP of 0.1. ", []),
        ("MAP of 0.2. ", ["page has 0.2, demo has 0.1"]),
        (
            "MAP of 0.1. MAP of 0.1. ",
            ["has them 2 times", *["line 1: 0.1 has no entry"] * 2],
        ),
        ("AP of 0.1. ", ["has them 0 times", "line 1: 0.1 has no entry"]),
        ("MAP of 0.1. `0.3` $0.4$ [x](a0.5.md)", []),
        ("MAP of 0.1. In 2010, 12 sets\nin 3 s.", ["line 2: 3 has no entry"]),
        ("MAP of 0.1. With 1,200 MB", ["line 1: 1,200 has no entry"]),
        ("MAP of 0.1. 74,000 documents a second", ["line 1: 74,000 has no entry"]),
        ("MAP of 0.1. Best on 18 of 20 splits", ["line 1: 18 has no entry"]),
        ("MAP of 0.1. 30-fold in 2 hours", ["1: 30 has no", "1: 2 has no entry"]),
        ("MAP of 0.1. NDCG@10 of 5, the top 10 of 20", []),
    ],
)
def test_what_is_wrong_with_a_page(results, content, expected):
    quotes = [Quote("page", "MAP of {First > A | MAP}.", "demo")]
    found = list(problems("page", content, quotes, []))
    assert len(found) == len(expected)
    assert all(part in line for part, line in zip(expected, found, strict=True))


def test_constants_are_known_and_must_be_there():
    assert list(problems("page", "at 10 % and 10 %", [], ["10 %"])) == []
    assert len(list(problems("page", "at 110 %", [], ["10 %"]))) == 2


@pytest.mark.parametrize("page", list_pages())
def test_numbers_of_a_page_are_those_of_the_results(page):
    path = numbers.ROOT / page
    if not path.exists():
        pytest.skip("the pages are not beside the tests")
    assert check(page, path.read_text(encoding="utf-8")) == []


PAGES_WITH_NUMBERS = sorted({quote.page for quote in read_entries()[0]})


def test_the_pages_that_people_read_first_have_numbers():
    assert {"README.md", "experiments/README.md"} <= set(PAGES_WITH_NUMBERS)


@pytest.mark.parametrize("page", PAGES_WITH_NUMBERS)
def test_a_wrong_digit_is_found(page):
    content = (numbers.ROOT / page).read_text(encoding="utf-8")
    quotes = [quote for quote in read_entries()[0] if quote.page == page]
    for quote in quotes[:: max(1, len(quotes) // 4)]:
        found = quote.find(content)
        for start, end in found.regs[1:]:
            digit = max(m.start() for m in re.finditer(r"\d", content[start:end]))
            place = start + digit
            wrong = str((int(content[place]) + 1) % 10)
            assert check(page, content[:place] + wrong + content[place + 1 :])


def test_the_caption_of_the_picture_has_its_numbers():
    """The picture is drawn by docs/demo_picture.py, from what ``rankspace demo`` measures."""
    picture = (numbers.ROOT / "docs/_static/demo.svg").read_text(encoding="utf-8")
    readme = (numbers.ROOT / "README.md").read_text(encoding="utf-8")
    (caption,) = re.findall(r"!\[(Held-out NDCG@10 .*?)\]", readme)
    before, after = re.findall(r"\d\.\d+", caption)
    shown = re.findall(r"all held-out claims \((\d+)\): ([\d.]+) → ([\d.]+)", picture)[
        0
    ]
    assert shown[0] in caption
    assert (before, after) == (f"{float(shown[1]):.2f}", f"{float(shown[2]):.2f}")
    gain, lose = re.findall(r"(\d+) claims gain and (\d+) lose", caption)[0]
    assert f">{gain} better<" in picture
    assert f">{lose} worse<" in picture


def test_the_number_of_errata_is_that_of_their_table():
    errata = (numbers.ROOT / "docs/errata.md").read_text(encoding="utf-8")
    index = (numbers.ROOT / "docs/index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [A-Z]+-[PC]\d+ \|", errata, re.MULTILINE)
    assert f"{len(rows)} errata" in index


def test_the_command_says_that_all_is_well(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out == ""
