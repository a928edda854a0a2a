// Keys of the workbench. Pages are links, so a key only has to follow one.
"use strict";

const isTyping = (element) => element.closest("input, textarea, select, [contenteditable], .cm-editor, .q-dialog") !== null;

function follow(key) {
  const link = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (link) link.click();
  return link !== null;
}

function moveBy(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (rows.length === 0) return false;
  const at = rows.indexOf(document.activeElement);
  const to = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1);
  rows[to].focus();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.activeElement?.matches(".wb-ask input")) document.activeElement.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  let isDone;
  if (event.key === "/") {
    isDone = document.querySelector(".wb-ask input");
    isDone?.focus();
  } else if (event.key === "j" || event.key === "ArrowDown") isDone = document.activeElement?.matches("[data-row]") || event.key === "j" ? moveBy(1) : false;
  else if (event.key === "k" || event.key === "ArrowUp") isDone = document.activeElement?.matches("[data-row]") || event.key === "k" ? moveBy(-1) : false;
  else isDone = follow(event.key);
  if (isDone) event.preventDefault();
});

// A graph that is wider than its place is shown from what it is about, not from its edge.
new MutationObserver(() => {
  for (const graph of document.querySelectorAll(".wb-graph:not([data-seen])")) {
    const goal = graph.querySelector(".goal");
    if (!graph.firstElementChild) continue;
    graph.dataset.seen = "";
    if (!goal || graph.scrollWidth <= graph.clientWidth) continue;
    const box = goal.getBoundingClientRect();
    graph.scrollLeft += box.left + box.width / 2 - graph.getBoundingClientRect().left - graph.clientWidth / 2;
  }
}).observe(document.documentElement, { childList: true, subtree: true });
