// Comfort for the pages, which all work without it: pictures that move, editing in the list, focus on what was done.
"use strict";

for (const canvas of document.querySelectorAll(".canvas")) picture(canvas);

function picture(canvas) {
  const svg = canvas.querySelector("svg"), tools = canvas.previousElementSibling;
  const whole = svg.getAttribute("viewBox").split(" ").map(Number);
  let view = whole.slice(), held = null, moved = false;
  const show = () => svg.setAttribute("viewBox", view.join(" "));
  const scale = () => Math.max(view[2] / svg.clientWidth, view[3] / svg.clientHeight);
  const move = (x, y) => { view[0] += x; view[1] += y; show(); };
  const zoom = (by, x, y) => {
    const width = Math.min(Math.max(view[2] * by, whole[2] / 40), whole[2] * 4);
    by = width / view[2];
    const point = x === undefined
      ? { x: view[0] + view[2] / 2, y: view[1] + view[3] / 2 }
      : new DOMPoint(x, y).matrixTransform(svg.getScreenCTM().inverse());
    view = [point.x + (view[0] - point.x) * by, point.y + (view[1] - point.y) * by, width, view[3] * by];
    show();
  };
  const reset = () => { view = whole.slice(); show(); };

  canvas.classList.add("moves");
  tools.hidden = false;
  for (const [name, act] of [["in", () => zoom(0.8)], ["out", () => zoom(1.25)], ["whole", reset]]) {
    tools.querySelector(`[data-zoom="${name}"]`).addEventListener("click", act);
  }
  svg.addEventListener("wheel", event => {
    event.preventDefault();
    zoom(Math.exp(event.deltaY * 0.0015), event.clientX, event.clientY);
  }, { passive: false });
  svg.addEventListener("pointerdown", event => { held = [event.clientX, event.clientY]; moved = false; });
  svg.addEventListener("dragstart", event => event.preventDefault());
  window.addEventListener("pointerup", () => { held = null; });
  window.addEventListener("pointermove", event => {
    if (!held) return;
    const [x, y] = [event.clientX - held[0], event.clientY - held[1]];
    if (!moved && Math.hypot(x, y) < 4) return;
    moved = true;
    move(-x * scale(), -y * scale());
    held = [event.clientX, event.clientY];
  });
  // A picture that was dragged by one of its links is not left by it.
  svg.addEventListener("click", event => { if (moved) event.preventDefault(); }, true);
  svg.addEventListener("dblclick", reset);
  canvas.addEventListener("keydown", event => {
    const step = view[2] / 12;
    const act = {
      "+": () => zoom(0.8), "=": () => zoom(0.8), "-": () => zoom(1.25), "0": reset,
      ArrowLeft: () => move(-step, 0), ArrowRight: () => move(step, 0),
      ArrowUp: () => move(0, -step), ArrowDown: () => move(0, step),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });

  const near = new Map();
  for (const fact of svg.querySelectorAll("[data-of]")) {
    const ends = fact.dataset.of.split(" ");
    for (const end of ends) near.set(end, [...(near.get(end) || []), fact, ...ends.map(id => document.getElementById(id))]);
  }
  for (const node of svg.querySelectorAll(".node")) {
    const mark = on => {
      svg.classList.toggle("dim", on);
      for (const each of [node, ...(near.get(node.id) || [])]) each?.classList.toggle("near", on);
    };
    node.addEventListener("pointerenter", () => mark(true));
    node.addEventListener("pointerleave", () => mark(false));
    node.addEventListener("focus", () => { mark(true); reveal(node); });
    node.addEventListener("blur", () => mark(false));
  }

  // What has the focus is in sight, whatever part of the picture is shown.
  function reveal(node) {
    const circle = node.querySelector("circle"), x = Number(circle.getAttribute("cx")), y = Number(circle.getAttribute("cy"));
    if (x > view[0] && x < view[0] + view[2] && y > view[1] && y < view[1] + view[3]) return;
    view[0] = x - view[2] / 2;
    view[1] = y - view[3] / 2;
    show();
  }
}

// Editing in the list: the form of the note's own page, below its row.
for (const link of document.querySelectorAll("a.edit")) {
  link.addEventListener("click", async event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const row = link.closest("tr");
    if (row.nextElementSibling?.classList.contains("editing")) { close(row, link); return; }
    if (link.ariaBusy) return;
    link.ariaBusy = "true";
    const page = await fetch(link.pathname).then(answer => answer.text()).catch(() => "");
    link.ariaBusy = null;
    const form = new DOMParser().parseFromString(page, "text/html").querySelector("form#edit");
    if (!form) { location.assign(link.href); return; }
    form.removeAttribute("id");
    form.querySelector("[name=back]").value = location.pathname + location.search;
    const editing = document.createElement("tr"), cell = document.createElement("td");
    editing.className = "editing";
    cell.colSpan = row.cells.length;
    cell.append(document.adoptNode(form));
    editing.append(cell);
    row.after(editing);
    link.setAttribute("aria-expanded", "true");
    editing.addEventListener("keydown", key => { if (key.key === "Escape") close(row, link); });
    form.querySelector("[name=title]").focus();
  });
}

function close(row, link) {
  row.nextElementSibling.remove();
  link.setAttribute("aria-expanded", "false");
  link.focus();
}

// What was done is told to whoever cannot see it, and not again when the page is loaded again.
const outcome = document.querySelector(".outcome, .error");
if (outcome) outcome.focus({ preventScroll: outcome.classList.contains("outcome") });
const address = new URL(location.href);
if (address.searchParams.has("done")) {
  for (const name of ["done", "number", "operation"]) address.searchParams.delete(name);
  history.replaceState(null, "", address);
}
