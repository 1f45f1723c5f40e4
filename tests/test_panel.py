"""The panel without a browser: what pages show, what forms do, and that stored text stays text."""

import contextlib
import re
from html.parser import HTMLParser
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from starlette.testclient import TestClient
from test_store import fill

from graphmem import Config, Memory, Part, Situation, Triple
from graphmem.surfaces.http.app import create_app
from graphmem.surfaces.panel import notes, overview, pages, rendering, scenes
from graphmem.surfaces.panel.asking import Asked, Given
from graphmem.surfaces.panel.pages import routes
from graphmem.surfaces.panel.texts import LANGUAGES, TEXTS

PORT = 8765
TOKEN = "a-token-of-the-tests"  # noqa: S105
ORIGIN = f"http://127.0.0.1:{PORT}"
FROM_A_PAGE = {"Origin": ORIGIN}
VOID = frozenset({"meta", "link", "input", "br"})


class Page(HTMLParser):
    """A page as it is read: elements with their attributes, text but what is edited, what is not closed as opened."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.open, self.wrong = [], [], [], []
        self.feed(text)
        self.close()
        self.wrong += self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if len({name for name, _ in attrs}) < len(attrs):
            self.wrong.append((tag, attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"/{tag}")

    def handle_data(self, data):
        if "textarea" not in self.open:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def all(self, tag, **wanted):
        return [each for name, each in self.elements if name == tag and wanted.items() <= each.items()]

    def form(self, action):
        """The fields of a form that are sent as they are."""
        return next(each for each in self.all("form") if each.get("action") == action)


@contextlib.contextmanager
def browser(memory, *, let_in=True, **options):
    app = create_app(memory, port=PORT, token=TOKEN, pages=routes(), error_page=pages.refused, **options)
    with TestClient(app, base_url=ORIGIN, raise_server_exceptions=False) as client:
        if let_in:
            client.get(f"/enter?token={TOKEN}")
        yield client


@pytest.fixture
def filled(memory):
    fill(memory)
    return memory


@pytest.fixture
def client(filled):
    with browser(filled) as client:
        yield client


def seen(client, address, status=200, **options):
    answer = client.get(address, **options)
    assert answer.status_code == status, answer.text
    return Page(answer.text)


def sent(client, address, **fields):
    """Send a form as a browser does, and return where it leads."""
    answer = client.post(address, data=fields, headers=FROM_A_PAGE, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


# ---- pages

EVERY_PAGE = (
    "/",
    "/operations",
    "/scenes",
    "/scenes?prefix=chan&contains=q&origin=declared&sort=refs",
    "/scene?key=chan:qq",
    "/entity?name=老大&depth=2",
    "/notes",
    "/notes?status=all",
    "/notes?q=deploy&mode=keyword&status=all",
    "/notes/1",
    "/notes/new",
    "/situation",
    "/situation?chan=qq&peer=boss&topics=deploy&text=deploy",
    "/history",
    "/history?q=部署",
    "/session?name=s1",
    "/parts/1",
    "/upkeep",
    "/upkeep?look=damage",
    "/upkeep?look=scenes",
)


@pytest.mark.parametrize("address", EVERY_PAGE)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("let_in", [True, False])
def test_pages_are_well_formed_in_each_language(filled, address, language, let_in):
    with browser(filled, let_in=let_in) as client:
        page = seen(client, address, headers={"Accept-Language": f"{language}-XX,en;q=0.3"})

    assert page.wrong == []
    assert page.all("html")[0]["lang"] == TEXTS["language.tag"][LANGUAGES.index(language)]
    assert len(page.all("h1")) == len(page.all("main")) == 1
    ids = [each["id"] for _, each in page.elements if "id" in each]
    assert sorted(set(ids)) == sorted(ids)
    assert all(each["aria-labelledby"] in ids for _, each in page.elements if "aria-labelledby" in each)
    labelled = {each["for"] for each in page.all("label")}
    for tag in ("input", "select", "textarea"):
        assert all(each["id"] in labelled for each in page.all(tag) if each.get("type") != "hidden")


@pytest.mark.parametrize("address", EVERY_PAGE)
def test_pages_hold_no_script_and_no_style_and_lead_nowhere_else(client, address):
    answer = client.get(address)
    page = Page(answer.text)

    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert answer.headers["referrer-policy"] == "same-origin"  # else browsers send forms with `Origin: null`
    assert [each.get("src") for each in page.all("script")] == ["/static/panel.js"]
    assert not page.all("style")
    assert not [each for _, each in page.elements if "style" in each or any(name.startswith("on") for name in each)]
    leads = [each[name] for _, each in page.elements for name in ("href", "src", "action") if name in each]
    assert all(re.match(r"/(?![/\\])|#", lead) for lead in leads)


@pytest.mark.parametrize("address", EVERY_PAGE)
def test_who_has_no_token_sees_all_but_what_changes_something(filled, address):
    with browser(filled, let_in=False) as client:
        page = seen(client, address)

    assert "graphmem serve" in page.text
    assert {each["action"] for each in page.all("form", method="post")} == {"/display"}


@pytest.mark.parametrize("name", pages._FILES)
def test_files_are_served_with_their_kind(client, name):
    answer = client.get(f"/static/{name}")

    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, pages._FILES[name])


@pytest.mark.parametrize("name", ["nothing.js", "..%2ftexts.py", "panel.css%00"])
def test_no_other_file_is_served(client, name):
    assert client.get(f"/static/{name}").status_code == 404


def test_an_empty_memory_has_pages_too(memory):
    with browser(memory) as client:
        for address in (
            "/",
            "/operations",
            "/scenes",
            "/notes",
            "/notes/new",
            "/situation?chan=qq",
            "/history",
            "/upkeep",
        ):
            assert seen(client, address).wrong == []


@pytest.mark.parametrize(
    ("address", "status", "told"),
    [
        ("/scene?key=chan:nope", 404, "chan:nope"),
        ("/entity?name=Nobody", 404, "Nobody"),
        ("/notes/999", 404, "999"),
        ("/notes?page=x", 400, "page"),
        ("/notes?page=" + "0" * 5000, 400, "page"),
        ("/notes?mode=magic", 400, "magic"),
        ("/scenes?sort=%3Cb%3E", 400, "<b>"),
        ("/session?name=nope", 404, "nope"),
        ("/parts/999", 404, "999"),
    ],
)
def test_what_cannot_be_shown_is_told_on_a_page(client, address, status, told):
    page = seen(client, address, status)

    assert page.wrong == []
    assert told in page.text
    assert page.all("p", role="alert")


def test_a_scene_shows_its_strength_by_day(memory, clock):
    for _ in range(4):
        memory.enter_scene(Situation.of(chan="qq", peer="boss"))
        memory.enter_scene(Situation.of(chan="qq", peer="boss"))
        memory.upkeep()
        clock.advance(days=2)
    (scene,) = memory.scenes()
    assert len(memory.scene(scene.key).strengths) == 4
    with browser(memory) as client:
        page = seen(client, f"/scene?key={quote(scene.key)}")

    (line,) = page.all("polyline")
    places = [tuple(map(float, point.split(","))) for point in line["points"].split()]
    assert [x for x, _ in places] == pytest.approx([0, 320 / 3, 640 / 3, 320], abs=0.1)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
    assert page.wrong == []


# ---- the catalogue


def test_the_catalogue_says_the_same_in_each_language():
    for key, texts in TEXTS.items():
        assert len(texts) == len(LANGUAGES), key
        assert all(texts), key
        assert len({frozenset(re.findall(r"\{\w+\}", text)) for text in texts}) == 1, key


def test_pages_use_every_text_and_only_these():
    folder = rendering._PAGES.loader
    templates = "\n".join(folder.get_source(rendering._PAGES, name)[0] for name in rendering._PAGES.list_templates())
    named = set(re.findall(r"""\bt\(['"]([\w.,]+)['"][,)]""", templates))
    begun = set(re.findall(r"""\bt\(['"]([\w]+\.)['"] \+""", templates)) | set(
        re.findall(r'"(\w+\.)"\) \}\}', templates)
    )

    assert named <= TEXTS.keys()
    unused = [key for key in TEXTS if key not in named and not any(key.startswith(beginning) for beginning in begun)]
    assert unused == []


# ---- what is chosen


def test_the_language_is_that_of_the_browser_until_one_is_chosen(client):
    assert seen(client, "/", headers={"Accept-Language": "zh-CN,zh;q=0.9"}).all("html")[0]["lang"] == "zh-Hans"
    assert seen(client, "/", headers={"Accept-Language": "fr"}).all("html")[0]["lang"] == "en"

    assert sent(client, "/display", language="zh", back="/notes") == "/notes"

    assert seen(client, "/", headers={"Accept-Language": "en"}).all("html")[0]["lang"] == "zh-Hans"


def test_the_look_is_kept(client):
    assert sent(client, "/display", look="dark", back="/") == "/"
    assert seen(client, "/").all("html")[0]["data-look"] == "dark"
    sent(client, "/display", look="pink", language="xx", back="/")
    assert seen(client, "/").all("html")[0]["data-look"] == "dark"


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "\n//x"]
)
def test_forms_lead_back_to_this_server_alone(client, back):
    assert sent(client, "/display", look="dark", back=back) == "/"
    assert sent(client, "/notes/1/archive", back=back).startswith("/?")


# ---- forms


def test_a_note_is_edited_in_place_and_that_is_undone(client, filled):
    page = seen(client, "/notes/1")
    mark = page.all("input", name="mark")[0]["value"]
    leads = sent(client, "/notes/1/edit", title="Deploy with pnpm", body="Not npm.\r\nNever.", kind="lesson",
                 slot="deploy", labels="部署\r\nship it, now", load_when="tool:pnpm", pinned="yes", reason="asked for",
                 mark=mark, back="/notes?status=all")  # fmt: skip

    note = filled.inspect(1).note
    assert (note.title, note.body, note.kind, note.pinned) == ("Deploy with pnpm", "Not npm.\nNever.", "lesson", True)
    assert set(note.labels) == {"部署", "ship it, now"}
    assert urlsplit(leads).path == "/notes"
    told = parse_qs(urlsplit(leads).query)
    assert (told["status"], told["done"], told["number"]) == (["all"], ["edited"], ["1"])
    page = seen(client, leads)
    assert "Note 1 is changed." in page.text
    operation = told["operation"][0]
    assert page.all("a", href=f"/operations#o{operation}")

    rehearsed = client.post(f"/operations/{operation}/undo", data={"back": "/operations"}, headers=FROM_A_PAGE)
    assert rehearsed.status_code == 200
    assert filled.inspect(1).note.title == "Deploy with pnpm"
    assert "Nothing is changed yet" in Page(rehearsed.text).text

    assert "done=undone" in sent(client, f"/operations/{operation}/undo", confirmed="yes", back="/operations")
    assert filled.inspect(1).note.title == "Deploy with npm"


def test_a_note_that_was_changed_meanwhile_is_not_overwritten(client, filled):
    mark = seen(client, "/notes/1").all("input", name="mark")[0]["value"]
    filled.edit_note(1, title="Deploy by hand")

    answer = client.post("/notes/1/edit", data={"title": "Deploy with pnpm", "mark": mark}, headers=FROM_A_PAGE)

    assert answer.status_code == 409
    assert "changed meanwhile" in Page(answer.text).text
    assert Page(answer.text).all("input", id="f-title")[0]["value"] == "Deploy with pnpm"  # what was typed is not lost
    assert filled.inspect(1).note.title == "Deploy by hand"


@pytest.mark.parametrize(("field", "value"), [("title", "  "), ("kind", "song"), ("summary", "x" * 101)])
def test_what_cannot_be_kept_is_told_beside_what_was_typed(client, filled, field, value):
    before = filled.inspect(1).note
    mark = seen(client, "/notes/1").all("input", name="mark")[0]["value"]
    given = {"title": "Another", "kind": "fact", field: value, "mark": mark}

    answer = client.post("/notes/1/edit", data=given, headers=FROM_A_PAGE)

    assert answer.status_code == 400
    assert [each["name"] for _, each in Page(answer.text).elements if "aria-invalid" in each] == [field]
    assert filled.inspect(1).note == before


def test_saving_what_was_not_changed_changes_nothing(client, filled):
    filled.edit_note(1, body="\n  indented\n\nlast", labels=["a"])
    before = filled.inspect(1)
    page = seen(client, "/notes/1")
    fields = {each["name"]: each.get("value", "") for each in page.all("input") if "name" in each}
    areas = re.findall(r'<textarea [^>]*name="(\w+)"[^>]*>([^<]*)<', client.get("/notes/1").text)
    fields |= {name: text.removeprefix("\n") for name, text in areas} | {"kind": before.note.kind}
    del fields["pinned"], fields["typed"]

    assert "done=unchanged" in sent(client, "/notes/1/edit", **fields)

    assert filled.inspect(1) == before


def test_a_note_is_archived_found_among_the_archived_and_restored(client, filled):
    assert "done=archived" in sent(client, "/notes/1/archive", back="/notes")
    assert not seen(client, "/notes").all("a", href="/notes/1")
    assert seen(client, "/notes?status=archived").all("a", href="/notes/1")
    assert seen(client, "/notes?status=live,archived&q=deploy").all("a", href="/notes/1")
    assert "done=restored" in sent(client, "/notes/1/restore", back="/notes")
    assert filled.inspect(1).note.status == "live"


def test_proposals_are_decided_upon(client, filled):
    first, second = (each.id for each in filled.inspect().proposals)
    page = seen(client, "/")
    assert {f"/notes/{first}/approve", f"/notes/{second}/reject"} <= {each["action"] for each in page.all("form")}

    assert "done=approved" in sent(client, f"/notes/{first}/approve", back="/")
    assert "done=rejected" in sent(client, f"/notes/{second}/reject", back="/")

    assert [filled.inspect(each).note.status for each in (first, second)] == ["live", "forgotten"]
    assert filled.inspect(first).acts[-1].actor == "user"


@pytest.mark.parametrize("typed", ["", "2", "yes"])
def test_nothing_is_removed_for_good_unless_that_was_typed(client, filled, typed):
    answer = client.post("/notes/1/remove", data={"typed": typed}, headers=FROM_A_PAGE)

    assert answer.status_code == 400
    assert filled.inspect(1).note.title == "Deploy with npm"


def test_what_was_typed_removes_for_good(client, filled):
    assert sent(client, "/notes/1/remove", typed="1", back="/notes/1").startswith("/notes?done=removed")
    seen(client, "/notes/1", 404)


def test_a_new_note_is_the_users(client, filled):
    leads = sent(client, "/notes/new", title="Never deploy by hand", kind="rule", scope="user")
    number = int(parse_qs(urlsplit(leads).query)["number"][0])

    note = filled.inspect(number).note
    assert (note.source, note.status, note.kind) == ("user", "live", "rule")
    answer = client.post("/notes/new", data={"title": "", "body": "typed", "kind": "rule"}, headers=FROM_A_PAGE)
    assert answer.status_code == 400
    assert ">typed</textarea>" in answer.text


def test_a_failure_is_forgotten(client, filled):
    number = filled.incidents()[0].id
    assert "done=incident_forgotten" in sent(client, f"/incidents/{number}/forget", back="/")
    assert not filled.incidents()


def test_upkeep_is_rehearsed_before_it_runs(client, filled):
    before = filled.operations()
    answer = client.post("/upkeep/pass", data={"back": "/upkeep"}, headers=FROM_A_PAGE)
    assert answer.status_code == 200
    assert filled.operations() == before
    assert Page(answer.text).all("button", name="run")
    ran = client.post("/upkeep/pass", data={"run": "yes"}, headers=FROM_A_PAGE)
    assert (ran.status_code, "What it did" in Page(ran.text).text) == (200, True)


def test_what_the_engine_refuses_is_a_page(client, filled):
    answer = client.post("/notes/1/restore", data={"back": "/notes"}, headers=FROM_A_PAGE)

    assert answer.status_code == 409
    page = Page(answer.text)
    assert page.all("p", role="alert")
    assert page.all("a", href="/notes")


# ---- who may write

ACTS = tuple(path.replace("{number:int}", "1") for path in pages._CHANGED)


@pytest.mark.parametrize("address", ACTS)
@pytest.mark.parametrize(
    ("cookie", "headers", "status"),
    [
        (False, FROM_A_PAGE, 401),
        (True, {}, 403),  # no browser of today sends a form without either; a page of another port cannot add one
        (True, {"Origin": "http://127.0.0.1:9999"}, 403),
        (True, {"Origin": "null"}, 403),
        (True, {"Origin": "http://evil.example"}, 403),
        (True, {"Sec-Fetch-Site": "cross-site"}, 403),
        (True, {"Sec-Fetch-Site": "same-site"}, 403),
        (True, {"Sec-Fetch-Site": "none"}, 403),
    ],
)
def test_no_other_page_sends_a_form(filled, address, cookie, headers, status):
    before = (filled.notes(statuses=()), filled.operations(), filled.incidents())
    with browser(filled, let_in=cookie) as client:
        answer = client.post(address, data={"typed": "1", "confirmed": "yes", "title": "x"}, headers=headers)

    assert answer.status_code == status
    assert (filled.notes(statuses=()), filled.operations(), filled.incidents()) == before


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, "does not say that it comes from a page of this server"),
        ({"Accept-Language": "zh"}, "没有说明它来自此服务器的页面"),
    ],
)
def test_who_has_the_token_is_told_what_a_form_lacks(client, headers, told):
    answer = client.post("/notes/1/archive", data={}, headers=headers)

    assert (answer.status_code, "www-authenticate" in answer.headers) == (403, False)
    assert told in Page(answer.text).text
    assert "token" not in Page(answer.text).text


def test_a_memory_that_nobody_may_change_offers_nothing(filled, path):
    with Memory.open(path, config=Config(read_only=True)) as memory, browser(memory) as client:
        page = seen(client, "/notes/1")
        assert "let nobody change it" in page.text
        assert {each["action"] for each in page.all("form", method="post")} == {"/display"}
        answer = client.post("/notes/1/archive", data={"back": "/notes"}, headers=FROM_A_PAGE)
        assert answer.status_code >= 400
        assert Page(answer.text).all("p", role="alert")


@pytest.mark.parametrize("address", EVERY_PAGE)
def test_a_private_server_tells_nothing_without_the_token(filled, address):
    with browser(filled, let_in=False, private=True) as client:
        page = seen(client, address, 401, headers={"Sec-Fetch-Site": "none"})
        assert "needs the token" in page.text
        assert filled.path not in page.text
        client.get(f"/enter?token={TOKEN}", headers={"Sec-Fetch-Site": "none"})
        seen(client, address, headers={"Sec-Fetch-Site": "none"})
        seen(client, address, headers={"Sec-Fetch-Site": "same-origin"})


def test_a_look_of_a_person_is_no_use_of_a_note(filled):
    def uses():
        filled.remember("Uses are written with the next write")
        return [filled.inspect(each.id).uses for each in filled.notes(kinds=("fact", "rule", "lesson"), limit=3)]

    filled.remember("The pelican lives in the harbour", scenes="chan:qq")
    before = uses()
    with browser(filled) as client:
        for address in ("/notes?q=pelican", "/scene?key=chan:qq", "/situation?chan=qq&q=pelican", "/history?q=pelican"):
            client.get(address)
        looked = uses()
        client.post("/api/recall", json={"query": "pelican", "kinds": "note"})

    assert looked == before
    assert sum(uses()) > sum(before)


SHOWS = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Site": "none"}


@pytest.mark.parametrize(
    ("address", "status", "told"),
    [
        ("/enter?token=no", 401, ("open the whole address", "请打开 'graphmem serve' 显示的完整地址")),
        ("/nowhere", 404, ("There is no such page.", "没有这个页面。")),
        ("/notes/nine", 404, ("There is no such page.", "没有这个页面。")),
    ],
)
def test_a_browser_is_shown_a_page_where_http_refuses_and_a_program_json(filled, address, status, told):
    with browser(filled, let_in=False) as client:
        for language, text in zip(("en", "zh"), told, strict=True):
            page = seen(client, address, status, headers={**SHOWS, "Accept-Language": language})
            assert text in page.text
        answer = client.get(address)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("address", ACTS)
def test_forms_are_posted(client, address):
    assert client.get(address).status_code in (200, 405)
    if address != "/notes/new":
        assert client.get(address).status_code == 405


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_only_forms_are_taken(client, filled, kind):
    answer = client.post("/notes/1/archive", content=b"back=/", headers={**FROM_A_PAGE, "Content-Type": kind})

    assert answer.status_code == 415
    assert Page(answer.text).all("p", role="alert")
    assert filled.inspect(1).note.status == "live"


def test_a_form_has_a_size(client):
    answer = client.post("/notes/new", data={"title": "x" * (1 << 20)}, headers=FROM_A_PAGE)
    assert answer.status_code == 413


# ---- stored text stays text (WEB-03)

NASTY = (
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "</script><script>alert(1)</script>",
    "[click](javascript:alert(1))",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "</textarea><script>alert(1)</script>",
    "--><svg onload=alert(1)>",
    "a\u202eb\u2066c",
    "&lt;b&gt;",
    "'><b>",
)
BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


def spoil(memory):
    """Put nasty texts wherever one can be."""
    for i, text in enumerate(NASTY):
        name = f"{text} {i}"
        memory.commit([Triple(name, f"is {text}", f"{text} object {i}", sentence=text)], scenes=["nasty", f"x:{text}"],
                      session=f"s {text}")  # fmt: skip
        memory.remember(f"Note {name}", body=f"{text}\n{text}", kind="lesson", slot=f"slot {text}", labels=[f"{text}"],
                        load_when=[f"when {text}"], summary=text, highlight=text, reason=text, source="user",
                        session=f"s {text}", place=f"/{text}", scenes=["nasty"])  # fmt: skip
        memory.remember(f"Rule {name}", kind="rule", reason=text)
        memory.mirror(
            f"s {text}", [Part(id=f"p{i}", author=f"who {text}", role="tool", tool=text, text=f"nasty {text}")]
        )
        memory.record_failure(f"tool{i}", f"failed: {text}")
        for _ in range(2):
            memory.enter_scene(Situation.of(chan=f"c{text}", peer=f"p{text}", topics=[f"t{text}"], tool=f"u{text}"))
        memory.put_block(f"block {text}", scenes=["nasty"])
        memory.put_document(f"document {text}", summary=f"summary {text}", scenes=["nasty"])
        memory.edit_note(memory.notes(kinds="lesson", limit=1)[0].id, title=f"Edited {name}")


def nasty_pages(memory):
    yield from ("/", "/operations", "/scenes", "/scene?key=nasty", "/notes?status=all", "/notes?q=nasty", "/history")
    yield from ("/history?q=nasty", "/upkeep?look=damage", "/upkeep?look=scenes", "/notes/new")
    yield from (f"/notes/{note.id}" for note in memory.notes(statuses=(), limit=100))
    yield from (f"/scene?key={quote(scene.key, safe='')}" for scene in memory.scenes())
    yield from (f"/session?name={quote(each.name, safe='')}" for each in memory.sessions())
    yield from (f"/parts/{number}" for number in range(1, len(NASTY) + 1))
    for i, text in enumerate(NASTY):
        asked = quote(text, safe="")
        yield f"/entity?name={quote(f'{text} {i}', safe='')}"
        yield f"/situation?chan=c{asked}&peer=p{asked}&topics=t{asked}&text={asked}"
    for asked in (quote(text, safe="") for text in NASTY[:3]):
        yield from (
            f"{path}={asked}" for path in ("/scene?key", "/entity?name", "/notes?q", "/notes?scope", "/notes?kind")
        )
        yield from (f"{path}={asked}" for path in ("/scenes?contains", "/scenes?prefix", "/scenes?page", "/history?q"))
        yield from (
            f"{path}={asked}" for path in ("/history?q=a&session", "/?done", "/?done=undone&number", "/upkeep?look")
        )


def test_stored_text_is_never_markup(memory):
    spoil(memory)
    shown = set()
    with browser(memory) as client:
        for address in nasty_pages(memory):
            answer = client.get(address)
            page = Page(answer.text)
            assert answer.status_code in (200, 400, 404), (address, answer.status_code, page.text)
            assert page.wrong == [], address
            assert not page.all("img"), address
            assert not page.all("b"), address
            assert [each.get("src") for each in page.all("script")] == ["/static/panel.js"], address
            attributes = {name for _, each in page.elements for name in each}
            assert not [name for name in attributes if name.startswith("on") or name == "style"], address
            leads = [each[name] for _, each in page.elements for name in ("href", "src", "action") if name in each]
            assert all(re.match(r"/(?![/\\])|#", lead) for lead in leads), address
            shown |= {text for text in NASTY if text in page.text}
            assert not BIDI.search(page.text), address
    assert shown == {text for text in NASTY if not BIDI.search(text)}


def test_an_outcome_is_one_of_the_catalogue(client):
    assert "evil" not in seen(client, "/?done=evil&number=3").text
    assert not seen(client, "/?done=evil").all("p", role="status")
    assert "Note 0 is changed" in seen(client, "/?done=edited&number=evil").text


# ---- sizes


def test_lists_are_shown_a_page_at_a_time(memory):
    for i in range(120):
        memory.declare_scene(f"task:{i:03d}")
        memory.remember(f"Fact number {i}", source="user")
    with browser(memory) as client:
        for path, row in (("/scenes?sort=key", "/scene?key=task%3A{:03d}"), ("/notes", "/notes/{}")):
            rows = []
            address = path
            while address:
                page = seen(client, address)
                rows.append(
                    [each["href"] for each in page.all("a") if re.fullmatch(r"/scene\?key=.*|/notes/\d+", each["href"])]
                )
                address = next((each["href"] for each in page.all("a", rel="next")), None)
            assert [len(each) for each in rows] == [50, 50, 20], row
            assert len({each for several in rows for each in several}) == 120


def rows_of(page):
    return [each["href"] for each in page.all("a") if re.fullmatch(r"/notes/\d+", each["href"])]


def test_a_search_finds_the_few_of_a_kind_among_many_of_others(memory):
    for i in range(60):
        memory.remember(f"Deploy deploy target number {i}", source="user")
    lesson = memory.remember("Deploy with pnpm, since npm breaks the lock file of the whole workspace", kind="lesson")
    with browser(memory) as client:
        for status in ("live", "live,archived", "all"):
            page = seen(client, "/notes", params={"q": "deploy", "kind": "lesson", "status": status})
            assert rows_of(page) == [f"/notes/{lesson.note.id}"]
            assert not page.all("a", rel="next")


def test_a_search_is_shown_a_page_at_a_time(memory):
    for i in range(60):
        memory.remember(f"Deploy target number {i}", source="user")
    away = memory.forget(memory.remember("Deploy nothing on Fridays", source="user").note.id, source="user")
    with browser(memory) as client:
        first = seen(client, "/notes?q=deploy&status=all")
        second = seen(client, next(each["href"] for each in first.all("a", rel="next")))

    assert [len(rows_of(page)) for page in (first, second)] == [50, 11]
    assert len({*rows_of(first), *rows_of(second)}) == 61
    assert rows_of(second)[-1] == f"/notes/{away.id}"
    assert not second.all("a", rel="next")


def test_a_search_tells_where_it_did_not_look_at_all(memory, monkeypatch):
    monkeypatch.setattr(notes, "_LOOKED_THROUGH", 20)
    for i in range(20):
        memory.remember(f"Deploy target number {i}", source="user")
    with browser(memory) as client:
        assert "only the first" not in seen(client, "/notes?q=deploy&kind=fact&status=all").text
        memory.remember("Deploy with pnpm", kind="lesson")
        for status in ("live", "all"):
            assert "only the first 20" in seen(client, f"/notes?q=deploy&kind=rule&status={status}").text


@pytest.mark.parametrize("status", ["live", "all"])
def test_a_search_for_the_past_finds_each_note_once(memory, status):
    old = memory.remember("Deploy with npm", slot="tool", source="user").note
    new = memory.remember("Deploy with pnpm", slot="tool", source="user").note
    with browser(memory) as client:
        found = rows_of(seen(client, f"/notes?q=what+was+deploy+before&status={status}"))

    assert sorted(found) == [f"/notes/{each.id}" for each in ([new] if status == "live" else [old, new])]


def test_a_large_picture_tells_what_it_leaves_out(memory):
    memory.commit([Triple("hub", "links", f"node {i}") for i in range(250)], scenes=["big"])
    with browser(memory) as client:
        usual = client.get("/scene?key=big")
        larger = next(each["href"] for each in Page(usual.text).all("a") if "nodes=200" in each["href"])
        most = client.get(larger)

    assert [text.count('class="node"') for text in (usual.text, most.text)] == [80, 200]
    assert "80 of 251 entities" in Page(usual.text).text
    assert "200 of 251 entities" in Page(most.text).text
    assert not [each for each in Page(most.text).all("a") if "nodes=" in each["href"]]
    assert len(most.content) < 300_000


def test_entities_of_a_picture_are_links(client):
    page = seen(client, "/scene?key=chan:qq")
    nodes = [each for _, each in page.elements if each.get("class") == "node"]
    assert nodes
    for node in nodes:
        assert seen(client, node["href"]).wrong == []


@pytest.mark.parametrize("page", [overview.overview, scenes.scenes, notes.notes])
def test_pages_ask_for_no_more_when_there_is_more(memory, page):
    """What a page costs is a matter of what it shows: statements do not grow with the memory."""

    def grow(numbers):
        for i in numbers:
            memory.remember(f"Fact {i}", source="user")
            memory.declare_scene(f"a:{i}")

    def asked():
        statements = []
        with memory._store.read() as tx:
            tx.set_trace_callback(statements.append)
        page(Asked(memory, "/", Given()))
        with memory._store.read() as tx:
            tx.set_trace_callback(None)
        return len(statements)

    grow(range(60))
    few = asked()
    grow(range(60, 300))
    assert 0 < asked() <= few


def test_a_server_shows_the_panel(path, clock):
    with Memory.open(path, clock=clock) as memory, browser(memory, let_in=False) as client:
        answer = client.get(f"/enter?token={TOKEN}", follow_redirects=True)
    assert (answer.status_code, answer.url.path) == (200, "/")
    assert Page(answer.text).all("a", href="/notes")
