"use strict";
// Sorts and filters what is already in the page, opens what a link leads to; without it all can be read.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  const filters = [];
  for (const tools of all("[data-tools]")) {
    const search = tools.querySelector("input");
    const kinds = all("button[data-kind]", tools);
    const told = tools.querySelector("output");
    const more = document.querySelector("[data-more]");
    let most = 25; // rows of a table that nothing was searched in, until somebody asks for all
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const wanted = kinds.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.kind);
      const isWhole = words.length + wanted.length > 0;
      let shown = 0;
      for (const item of all("[data-case]")) {
        const name = item.dataset.case.toLowerCase();
        item.hidden = !words.every((word) => name.includes(word)) || (wanted.length > 0 && !wanted.includes(item.dataset.kind));
        shown += item.tagName === "TR" && !item.hidden ? 1 : 0;
        if (item.tagName === "TR") item.hidden ||= !isWhole && shown > most;
      }
      more.hidden = isWhole || shown <= most;
      more.textContent = `Show all ${shown}`;
      told.textContent = `${shown} of ${all("tr[data-case]").length} cases`;
    };
    search.addEventListener("input", filter);
    for (const kind of kinds) {
      kind.addEventListener("click", () => {
        kind.setAttribute("aria-pressed", String(kind.getAttribute("aria-pressed") !== "true"));
        filter();
      });
    }
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
        event.preventDefault();
        search.focus();
      }
    });
    const show = (count) => {
      most = count;
      filter();
    };
    let asked = most;
    more.addEventListener("click", () => show((asked = Infinity)));
    addEventListener("beforeprint", () => show(Infinity));
    addEventListener("afterprint", () => show(asked));
    filters.push(filter);
    tools.hidden = false;
    filter();
  }

  const read = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.value;
    if (value === undefined) return cell.textContent.trim();
    return value === "" ? null : Number(value);
  };
  const compare = (one, other) =>
    typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
  const sort = (table, column, sign) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [read(row, column), row]);
    rows.sort(([one], [other]) => (one === null) - (other === null) || (one === null ? 0 : sign * compare(one, other)));
    body.append(...rows.map(([, row]) => row));
    for (const filter of filters) filter();
  };
  for (const table of all("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending" || (!head.hasAttribute("aria-sort") && head.classList.contains("number"));
        for (const one of heads) one.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(table, column, down ? -1 : 1);
      });
    });
  }

  const open = () => {
    let name = location.hash.slice(1);
    try {
      name = decodeURIComponent(name);
    } catch {
      return;
    }
    let place = document.getElementById(name);
    if (!place) return;
    place.hidden = false;
    for (let one = place; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    place.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();

  const folded = [];
  addEventListener("beforeprint", () => {
    for (const one of all("details.case:not([open])")) folded.push(one), (one.open = true);
  });
  addEventListener("afterprint", () => {
    for (const one of folded.splice(0)) one.open = false;
  });

  if (navigator.clipboard) {
    for (const block of all("pre.command")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      const text = block.textContent;
      button.addEventListener("click", () => navigator.clipboard.writeText(text).then(() => (button.textContent = "Copied"), () => {}));
      block.append(button);
    }
  }
})();
