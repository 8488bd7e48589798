// The interactive part of a report: charts, sorting, downloads, the choice of runs. All texts and
// tables are in the page already, and stay there if this script cannot run.
// @ts-check
"use strict";

/**
 * @typedef {{name: string, kind: string, times: number[], values: number[]}} Series
 * @typedef {{run: string, label: string, end: number, panels: Object<string, Series[]>,
 *   note: string}} Run
 * @typedef {{key: string, title: string}} Panel
 * @typedef {{schema: string, themes: {light: object, dark: object},
 *   comparisons: Object<string, object[]>,
 *   csv: Object<string, string>, panels: Panel[], runs: Run[], dashes: number[][],
 *   links: {light: string[], dark: string[]}}} Data
 * @typedef {{series: string, run: string, time: number, value: number}} Point
 * @typedef {{finalize: () => void}} View
 * @typedef {{view: View}} Embedded
 * @typedef {(where: Element, spec: object, options: object) => Promise<Embedded>} Embed
 */

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Vega views by their element. @type {Map<Element, View>} */
const views = new Map();

/** @type {Promise<void>} */
let drawn = Promise.resolve();

/** Runs work after all earlier work has finished. @param {() => Promise<void>} work */
function inTurn(work) {
  drawn = drawn.then(work).catch(failed);
  return drawn;
}

/** @param {string} id @returns {HTMLElement} */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
}

/** Decompresses the content of a script element. @param {string} id */
async function unpacked(id) {
  const packed = atob(element(id).textContent ?? "");
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** Loads the drawing libraries as a separate script. @returns {Promise<Embed>} */
async function libraries() {
  const address = URL.createObjectURL(
    new Blob([await unpacked("libraries")], { type: "text/javascript" }),
  );
  await new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.onload = resolve;
    script.onerror = () => reject(new Error("the drawing libraries cannot be loaded"));
    script.src = address;
    document.head.append(script);
  });
  URL.revokeObjectURL(address);
  return /** @type {any} */ (window).vegaEmbed;
}

/**
 * Draws a chart in the place of the one before.
 * @param {Embed} embed @param {Element} where @param {object} spec @param {Data} data
 */
async function draw(embed, where, spec, data) {
  views.get(where)?.finalize();
  const config = dark.matches ? data.themes.dark : data.themes.light;
  // Expressions are interpreted, because the page's policy forbids generated code.
  const options = { actions: false, ast: true, renderer: "svg", config };
  const { view } = await embed(where, spec, options);
  views.set(where, view);
  // The surrounding element has the label, and the table below has the numbers.
  where.querySelector("svg")?.setAttribute("aria-hidden", "true");
}

/** Draws the charts of the chosen metric. @param {Embed} embed @param {Data} data */
async function comparison(embed, data) {
  const chosen = /** @type {HTMLInputElement | null} */ (
    document.querySelector("input[name=metric]:checked")
  );
  const metric = chosen?.value ?? Object.keys(data.comparisons)[0];
  for (const part of document.querySelectorAll(".comparison")) {
    const is_shown = part.getAttribute("data-metric") === metric;
    /** @type {HTMLElement} */ (part).hidden = !is_shown;
    if (!is_shown) continue;
    const places = part.querySelectorAll(".canvas");
    for (const [place, spec] of data.comparisons[metric].entries()) {
      await draw(embed, places[place], spec, data);
    }
  }
}

/** The one or two chosen runs. @param {Data} data @returns {Run[]} */
function chosenRuns(data) {
  const [first, second] = ["run", "second"].map(
    (id) => /** @type {HTMLSelectElement} */ (element(id)).value,
  );
  const one = data.runs.find((run) => run.run === first) ?? data.runs[0];
  const other = data.runs.find((run) => run.run === second && run !== one);
  return other ? [one, other] : [one];
}

/** @param {string} id @param {number} otherwise */
function typed(id, otherwise) {
  const text = /** @type {HTMLInputElement} */ (element(id)).value;
  const value = Number(text);
  return text === "" || !Number.isFinite(value) ? otherwise : value;
}

/**
 * The names of flows, or of links, with what carries them: the same in all charts, so that each has
 * one colour. A flow of two runs is one, whatever carries it in each.
 * @param {Run[]} runs @param {boolean} ofLinks @returns {Map<string, string>}
 */
function labelsOf(runs, ofLinks) {
  /** @type {Map<string, Set<string>>} */
  const kinds = new Map();
  for (const run of runs) {
    for (const [key, panel] of Object.entries(run.panels)) {
      if ((key === "queue") !== ofLinks) continue;
      for (const { name, kind } of panel) {
        kinds.set(name, (kinds.get(name) ?? new Set()).add(kind));
      }
    }
  }
  const labels = new Map();
  for (const [name, own] of kinds) {
    const said = [...own].filter(Boolean).join(", ");
    labels.set(name, said ? `${name} (${said})` : name);
  }
  return labels;
}

/**
 * The chart of a quantity over time.
 * @param {Panel} panel @param {Run[]} runs @param {Data} data @param {[number, number]} span
 */
function overTime(panel, runs, data, span) {
  const ofLinks = panel.key === "queue";
  const labels = labelsOf(runs, ofLinks);
  /** @type {Point[]} */
  const points = runs.flatMap((run) =>
    (run.panels[panel.key] ?? []).flatMap((series) =>
      series.times.map((time, place) => ({
        series: labels.get(series.name) ?? series.name,
        run: run.label,
        time,
        value: series.values[place],
      })),
    ),
  );
  const names = [...labels.values()];
  const colours = ofLinks ? { range: dark.matches ? data.links.dark : data.links.light } : {};
  const shown = runs.map((run) => run.label);
  return {
    $schema: data.schema,
    data: { values: points },
    width: "container",
    height: 190,
    autosize: { type: "fit-x", contains: "padding" },
    params: [{ name: "brush", select: { type: "interval", encodings: ["x"] } }],
    mark: { type: "line", clip: true, strokeWidth: 1.5 },
    encoding: {
      x: {
        field: "time",
        type: "quantitative",
        title: "time (s)",
        scale: { domain: span, nice: false },
      },
      y: { field: "value", type: "quantitative", title: null },
      color: {
        field: "series",
        type: "nominal",
        scale: { domain: names, ...colours },
        legend: { title: null, symbolType: "stroke", symbolStrokeWidth: 3 },
      },
      strokeDash: {
        field: "run",
        type: "nominal",
        scale: { domain: shown, range: data.dashes.slice(0, shown.length) },
        legend: shown.length > 1 ? { title: null, symbolType: "stroke" } : null,
      },
      detail: { field: "run" },
    },
  };
}

/** Draws the chosen runs over time. @param {Embed} embed @param {Data} data */
async function oneRun(embed, data) {
  const runs = chosenRuns(data);
  const end = Math.max(...runs.map((run) => run.end));
  const [from, to] = [typed("from", 0), typed("to", end)];
  /** @type {[number, number]} */
  const span = from < to ? [from, to] : [0, end];
  element("run-note").textContent = runs
    .filter((run) => run.note)
    .map((run) => `${run.label}: ${run.note}.`)
    .join(" ");
  for (const panel of data.panels) {
    const part = element(`panel-${panel.key}`);
    const is_there = runs.some((run) => run.panels[panel.key]?.length);
    part.hidden = !is_there;
    if (!is_there) continue;
    const canvas = /** @type {Element} */ (part.querySelector(".canvas"));
    await draw(embed, canvas, overTime(panel, runs, data, span), data);
    const view = /** @type {any} */ (views.get(canvas));
    /** @type {number[] | undefined} */
    let brushed;
    view.addSignalListener("brush", (/** @type {string} */ _, /** @type {any} */ value) => {
      brushed = value.time;
    });
    const looked = () => {
      if (!brushed || brushed[0] === brushed[1]) return;
      const [low, high] = [...brushed].sort((a, b) => a - b);
      /** @type {HTMLInputElement} */ (element("from")).value = low.toFixed(3);
      /** @type {HTMLInputElement} */ (element("to")).value = high.toFixed(3);
      brushed = undefined;
      void inTurn(() => oneRun(embed, data));
    };
    // The pointer may leave the chart before the button is released.
    /** @type {HTMLElement} */ (canvas).onpointerdown = () => {
      addEventListener("pointerup", () => setTimeout(looked), { once: true });
    };
    const open = /** @type {HTMLDetailsElement} */ (part.querySelector("details"));
    const fill = () => open.open && pointsTable(open, panel, runs, span);
    open.ontoggle = fill;
    fill();
  }
}

/** @param {Series} series */
const seriesName = ({ name, kind }) => (kind ? `${name} (${kind})` : name);

/**
 * What is drawn, as a table.
 * @param {HTMLElement} where @param {Panel} panel @param {Run[]} runs @param {number[]} span
 */
function pointsTable(where, panel, runs, span) {
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const [place, text] of ["run", "of", "time (s)", panel.title].entries()) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    if (place < 2) cell.className = "text";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const run of runs) {
    for (const series of run.panels[panel.key] ?? []) {
      for (const [place, time] of series.times.entries()) {
        if (time < span[0] || time > span[1]) continue;
        const row = body.insertRow();
        for (const [number, text] of [run.label, seriesName(series)].entries()) {
          const cell = row.insertCell(number);
          cell.textContent = text;
          cell.className = "text";
        }
        row.insertCell().textContent = String(time);
        row.insertCell().textContent = String(series.values[place]);
      }
    }
  }
  where.querySelector(".scroll")?.replaceChildren(table);
}

/** Makes heads sort their table; a second click reverses the order. */
function sortable() {
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.querySelectorAll("thead th")];
    for (const [place, head] of heads.entries()) {
      head.querySelector("button")?.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortBy(/** @type {HTMLTableElement} */ (table), place, down ? -1 : 1);
      });
    }
  }
}

/**
 * Cells without a number come last.
 * @param {HTMLTableElement} table @param {number} place @param {number} sign
 */
function sortBy(table, place, sign) {
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => {
    const cell = row.cells[place];
    const number = cell.dataset.value;
    const text = cell.textContent ?? "";
    return { row, text, number: number === undefined ? NaN : Number(number) };
  });
  const of_numbers = keyed.some((one) => !Number.isNaN(one.number));
  keyed.sort((a, b) => {
    if (!of_numbers) return sign * a.text.localeCompare(b.text, "en", { numeric: true });
    if (Number.isNaN(a.number) || Number.isNaN(b.number)) {
      return Number(Number.isNaN(a.number)) - Number(Number.isNaN(b.number));
    }
    return sign * (a.number - b.number);
  });
  body.append(...keyed.map((one) => one.row));
}

/** Adds buttons that save a file. @param {Data} data */
function downloads(data) {
  for (const button of document.querySelectorAll("button[data-csv]")) {
    const name = button.getAttribute("data-csv") ?? "";
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([data.csv[name]], { type: "text/csv" }));
      link.download = name;
      link.click();
      URL.revokeObjectURL(link.href);
    });
    /** @type {HTMLElement} */ (button).hidden = false;
  }
}

/** Reports that charts are missing, and why. @param {Error} error */
function failed(error) {
  const said = document.createElement("p");
  said.className = "remark bad";
  said.textContent = `Charts cannot be drawn here (${error.message}); the tables have all numbers.`;
  document.querySelector("main")?.prepend(said);
}

async function main() {
  sortable();
  /** @type {Data} */
  const data = JSON.parse(await unpacked("data"));
  downloads(data);
  const embed = await libraries();
  const compare = () => inTurn(() => comparison(embed, data));
  const look = () => inTurn(() => (data.runs.length ? oneRun(embed, data) : Promise.resolve()));
  for (const input of document.querySelectorAll("input[name=metric]")) {
    input.addEventListener("change", compare);
  }
  for (const id of ["run", "second", "from", "to"]) {
    document.getElementById(id)?.addEventListener("change", look);
  }
  document.getElementById("whole")?.addEventListener("click", () => {
    for (const id of ["from", "to"]) /** @type {HTMLInputElement} */ (element(id)).value = "";
    void look();
  });
  dark.addEventListener("change", () => {
    void compare();
    void look();
  });
  await compare();
  await look();
  document.documentElement.dataset.ready = "yes";
}

main().catch(failed);
