"""The panel in a real Chromium, with the server in a process of its own.

It is skipped where there is no Chromium, or no `graphmem[browser]`; GRAPHMEM_CHROMIUM names one that is elsewhere.
GRAPHMEM_SCREENSHOTS is a folder into which every page is drawn.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from test_panel import EVERY_PAGE, NASTY, nasty_pages, spoil
from test_store import fill

from graphmem import Memory, Triple

playwright = pytest.importorskip("playwright.sync_api", reason="needs graphmem[browser]")
CHROMIUM = os.environ.get("GRAPHMEM_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.needs_browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
SCREENSHOTS = os.environ.get("GRAPHMEM_SCREENSHOTS")
# No sandbox, since root has none; the rest keeps Chromium from looking for its maker's servers.
SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync")  # fmt: skip
LOCALES = {"en": "en-US", "zh": "zh-CN"}
PHONE = {"width": 375, "height": 720}


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@contextlib.contextmanager
def serving(folder, prepare):
    """Serve a memory that was prepared; yield how its server is reached."""
    path = folder / "memory.db"
    with Memory.open(path) as memory:
        prepare(memory)
    command = (sys.executable, "-m", "graphmem", "--db", str(path), "serve", "--port", "0", "--json")
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "settings")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment)
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=30)


def richly(memory):
    """Fill a memory so that each page has something to show."""
    fill(memory)
    people, things = ("老大", "Ann Berg", "小王", "Bo"), ("payments", "gateway", "发票系统", "docs-site")
    memory.commit([Triple(who, "owns", what, sentence=f"{who} owns {what}.") for who in people for what in things],
                  scenes=["chan:qq"])  # fmt: skip
    for i in range(60):
        memory.declare_scene(f"task:ticket-{i:03d}")
    body = "npm changes the lock file.\nRun `pnpm install` first."
    told = {"kind": "lesson", "labels": ["部署"], "load_when": ["tool:pnpm"], "scenes": ["chan:qq"]}
    memory.remember("Deploy with pnpm, not npm", body=body, source="user", **told)
    memory.remember("The office moves in June", source="user")
    memory.remember("The kettle is in the kitchen", source="user")
    memory.upkeep()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("panel"), richly) as running:
        yield running


@pytest.fixture
def opened(chromium, server):
    """Open a window that was let in; whatever its console complains of fails the test."""
    contexts, complaints = [], []

    def window(running=server, **options):
        context = chromium.new_context(viewport={"width": 1200, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.set_default_timeout(20_000)
        page.goto(running["entrance"])
        return page

    yield window
    for context in contexts:
        context.close()
    assert complaints == []


def drawn(page, name):
    """Draw a page for people to look at."""
    if SCREENSHOTS:
        Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png", full_page=True)


def named(address):
    return re.sub(r"\W+", "-", address).strip("-") or "overview"


# ---- how pages are


@pytest.mark.parametrize(("language", "look"), [("en", "light"), ("zh", "dark")])
def test_every_page_can_be_used_by_everybody(opened, server, language, look):
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    page = opened(locale=LOCALES[language], color_scheme=look)
    found = {}
    for address in EVERY_PAGE:
        page.goto(server["url"] + address)
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        page.evaluate(axe)
        violations = page.evaluate("axe.run().then(found => found.violations)")
        found |= {
            (address, each["id"]): [node["html"] + " " + str(node["failureSummary"]) for node in each["nodes"]][:3]
            for each in violations
            if each["impact"] in ("serious", "critical", "moderate")
        }
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = false; })")
        drawn(page, f"{named(address)}-{language}-{look}")
    assert found == {}


def test_every_page_fits_a_phone(opened, server):
    page = opened(locale="zh-CN")
    page.set_viewport_size(PHONE)
    wider = {}
    for address in EVERY_PAGE:
        page.goto(server["url"] + address)
        width = page.evaluate("document.documentElement.scrollWidth")
        drawn(page, f"{named(address)}-phone")
        if width > PHONE["width"]:
            wider[address] = width
    assert wider == {}


def test_the_keyboard_reaches_the_content_first(opened, server):
    page = opened()
    page.goto(server["url"] + "/notes")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_language_and_look_are_switched_and_kept(opened, server):
    page = opened(locale="en-US", color_scheme="light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    with page.expect_navigation():  # else the page that goes may have no body any more
        page.get_by_role("button", name="Dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    with page.expect_navigation():
        page.get_by_role("button", name="中文").click()
    page.goto(server["url"] + "/scenes")
    assert page.locator("h1").inner_text() == "场景"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light


# ---- what is done


def test_a_note_is_edited_in_the_list_and_that_is_undone(opened, server):
    page = opened(locale="en-US")
    page.goto(server["url"] + "/notes")
    row = page.locator("tr", has_text="Deploy with pnpm, not npm")
    row.get_by_role("link", name="Edit").click()
    title = page.locator("tr.editing [name=title]")
    title.wait_for()  # where it is awaited with its focus, playwright trips over the form's field "labels"
    playwright.expect(title).to_be_focused()
    title.press("Escape")
    playwright.expect(page.locator("tr.editing")).to_have_count(0)
    playwright.expect(row.get_by_role("link", name="Edit")).to_be_focused()
    row.get_by_role("link", name="Edit").press("Enter")
    title.fill("Deploy with pnpm only")
    drawn(page, "edit-in-the-list")
    page.get_by_role("button", name="Save").click()

    outcome = page.get_by_role("status")
    playwright.expect(outcome).to_contain_text("is changed")
    playwright.expect(outcome).to_be_focused()
    assert page.url == server["url"] + "/notes"
    assert page.get_by_role("link", name="Deploy with pnpm only", exact=True).is_visible()
    drawn(page, "outcome")

    outcome.get_by_role("link").click()
    page.locator("tr:target").get_by_role("button").click()
    assert page.get_by_text("Nothing is changed yet").is_visible()
    drawn(page, "undo-rehearsed")
    page.locator("main form").get_by_role("button", name="Undo").click()
    playwright.expect(page.get_by_role("status")).to_contain_text("is undone")
    page.goto(server["url"] + "/notes")
    assert page.get_by_role("link", name="Deploy with pnpm, not npm", exact=True).is_visible()


def test_who_clicks_twice_edits_once(opened, server):
    page = opened(locale="en-US")
    page.goto(server["url"] + "/notes")
    link = page.locator("tr", has_text="The office moves in June").get_by_role("link", name="Edit")
    link.evaluate("link => { link.click(); link.click() }")
    page.wait_for_load_state("networkidle")
    playwright.expect(page.locator("tr.editing")).to_have_count(1)


def test_a_note_is_archived_in_two_steps_and_restored(opened, server):
    page = opened(locale="en-US")
    page.goto(server["url"] + "/notes")
    row = page.locator("tr", has_text="The office moves in June")
    button = row.get_by_role("button", name="Archive")
    assert not button.is_visible()
    row.locator("summary").click()
    button.click()
    playwright.expect(page.get_by_role("status")).to_contain_text("is archived")
    assert page.get_by_text("The office moves in June").count() == 0

    page.get_by_label("Status").select_option("archived")
    page.get_by_role("button", name="Show").click()
    page.locator("tr", has_text="The office moves in June").get_by_role("button", name="Restore").click()
    playwright.expect(page.get_by_role("status")).to_contain_text("is back")
    assert "status=archived" in page.url


def test_a_note_is_removed_for_good_once_its_number_is_typed(opened, server):
    page = opened(locale="en-US")
    page.goto(server["url"] + "/notes?q=kettle")
    page.get_by_role("link", name="The kettle is in the kitchen", exact=True).click()
    page.locator(".danger summary").click()
    page.get_by_label("to confirm").fill(page.url.rpartition("/")[2])
    page.get_by_role("button", name="Remove for good").click()
    playwright.expect(page.get_by_role("status")).to_contain_text("gone for good")


def test_a_proposal_is_approved(opened, server):
    page = opened(locale="en-US")
    page.get_by_role("button", name="Approve: Never force push").click()
    playwright.expect(page.get_by_role("status")).to_contain_text("is in force")
    assert page.get_by_role("button", name="Approve: Never force push").count() == 0


def test_scenes_are_filtered(opened, server):
    page = opened(locale="en-US")
    page.goto(server["url"] + "/scenes")
    page.get_by_label("Key contains").fill("ticket-01")
    page.get_by_label("Key contains").press("Enter")
    assert page.locator("tbody tr").count() == 10
    page.get_by_role("link", name="task:ticket-013").click()
    assert page.locator("h1").inner_text().startswith("task:ticket-013")


def test_what_cannot_be_done_is_told_on_a_page(chromium, server):
    page = chromium.new_page()  # its status is an error for the console
    page.goto(server["entrance"])
    page.goto(server["url"] + "/scene?key=chan:nowhere")
    playwright.expect(page.get_by_role("alert")).to_contain_text("chan:nowhere")
    playwright.expect(page.get_by_role("alert")).to_be_focused()
    drawn(page, "error")
    page.close()


# ---- the picture


@pytest.fixture
def picture(opened, server):
    page = opened(locale="en-US")
    page.goto(server["url"] + "/scene?key=chan:qq")
    page.locator(".canvas").scroll_into_view_if_needed()
    return page


def shown(page):
    return [float(number) for number in page.locator(".canvas svg").get_attribute("viewBox").split()]


def test_the_picture_is_zoomed_and_moved(picture):
    whole = shown(picture)
    box = picture.locator(".canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    picture.mouse.move(x, y)
    picture.mouse.wheel(0, -400)
    picture.wait_for_function("n => document.querySelector('.canvas svg').viewBox.baseVal.width < n", arg=whole[2])
    near = shown(picture)
    picture.mouse.down()
    picture.mouse.move(x + 80, y + 30, steps=4)
    picture.mouse.up()
    moved = shown(picture)
    assert moved[2] == near[2] < whole[2]
    assert moved[0] < near[0]
    assert "/scene" in picture.url  # nothing was clicked by it
    picture.get_by_role("button", name="Whole").click()
    assert shown(picture) == whole
    picture.get_by_role("button", name="Zoom in").click()
    assert shown(picture)[2] < whole[2]
    picture.locator(".canvas a").first.focus()
    before = shown(picture)
    picture.keyboard.press("ArrowRight")
    assert shown(picture)[0] > before[0]


def test_an_entity_of_the_picture_is_clicked(picture):
    node = picture.locator(".canvas a", has_text="gateway").locator("circle")
    node.hover()
    assert picture.locator(".canvas svg.dim .near").count() > 1
    drawn(picture, "picture-near")
    node.click()
    assert picture.locator("h1").inner_text() == "gateway"


def test_an_entity_of_the_picture_is_opened_by_the_keyboard(picture):
    picture.locator(".canvas a", has_text="payments").focus()
    picture.keyboard.press("Enter")
    picture.wait_for_url("**/entity?**")
    assert picture.locator("h1").inner_text() == "payments"


# ---- without script, and with texts that would be


def test_everything_works_without_script(opened, server):
    page = opened(locale="en-US", java_script_enabled=False)
    page.goto(server["url"] + "/notes")
    page.locator("tr", has_text="The office moves in June").get_by_role("link", name="Edit").click()
    page.get_by_label("Title").fill("The office moves in July")
    page.get_by_role("button", name="Save").click()
    playwright.expect(page.get_by_role("status")).to_contain_text("is changed")
    page.locator(".badges summary").click()
    page.get_by_role("button", name="Archive").click()
    page.get_by_role("button", name="Restore").click()
    playwright.expect(page.get_by_role("status")).to_contain_text("is back")
    page.goto(server["url"] + "/scene?key=chan:qq")
    page.locator(".canvas a", has_text="gateway").locator("circle").click()
    assert page.locator("h1").inner_text() == "gateway"


def test_stored_text_is_never_run(opened, tmp_path):  # WEB-03
    addresses = []

    def prepare(memory):
        spoil(memory)
        addresses.extend(
            address for address in nasty_pages(memory) if "page=" not in address and "?done" not in address
        )

    with serving(tmp_path, prepare) as running:
        page = opened(running)
        for address in addresses[:: max(1, len(addresses) // 60)]:
            status = page.request.get(running["url"] + address).status
            if status == 200:  # the console calls any other an error
                page.goto(running["url"] + address)
                assert page.locator("main img, main b, main script").count() == 0
        page.goto(running["url"] + "/scene?key=nasty")
        assert page.get_by_text(NASTY[0]).count() > 0
        drawn(page, "nasty")
