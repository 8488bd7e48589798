// @ts-check
// Reloads the results section of the page when results change.
"use strict";

const PERIOD_MS = 1000;

/** @param {string} id @returns {HTMLElement} */
function part(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no part ${id}`);
  return found;
}

/** Keeps opened details and the scroll position. */
async function replace() {
  const answer = await fetch(location.href, { cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const focused = document.activeElement?.getAttribute("data-key");
  for (const id of ["progress", "said", "runs"]) {
    const next = page.getElementById(id);
    if (next === null) continue;
    const now = part(id);
    const open = [...now.querySelectorAll("details[open]")].map((one) => one.id);
    now.replaceChildren(...next.childNodes);
    for (const one of open) document.getElementById(one)?.setAttribute("open", "");
  }
  if (focused) {
    const again = document.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (again instanceof HTMLElement) again.focus({ preventScroll: true });
  }
  document.documentElement.dataset.number = page.documentElement.dataset.number;
  document.title = page.title;
}

async function watch() {
  const gone = part("gone");
  try {
    const answer = await fetch("state", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const { number } = await answer.json();
    if (String(number) !== document.documentElement.dataset.number) await replace();
    gone.hidden = true;
  } catch {
    gone.hidden = false;
  }
  setTimeout(watch, PERIOD_MS);
}

watch();
