// Review: comments on lines, files seen, and what changed since the last look. Drafts stay in this browser until they are sent.
"use strict";

(() => {
  const rev = document.getElementById("rev");
  if (!rev) return;
  const id = rev.dataset.review, head = rev.dataset.head, mayComment = "can" in rev.dataset;
  const draftsAt = `landlane-drafts-${id}-${head}`, seenAt = `landlane-files-${id}-${head}`;
  const load = (name, empty) => { try { return JSON.parse(localStorage.getItem(name)) ?? empty; } catch { return empty; } };
  const save = (name, what) => { try { localStorage.setItem(name, JSON.stringify(what)); } catch { /* private window */ } };
  let drafts = load(draftsAt, []);
  let row = null;

  const since = document.getElementById("since"), lookedAt = `landlane-looked-${since.dataset.task}`;
  const looked = load(lookedAt, "");
  if (looked && looked !== head && !location.search.includes("since=")) {
    since.hidden = false;
    const link = document.createElement("a");
    link.href = `/review/${id}?since=${encodeURIComponent(looked)}`;
    link.textContent = "Show what changed since you last looked";
    document.getElementById("since-says").replaceChildren(link);
  }
  if (head) save(lookedAt, head);

  function make(tag, props, ...children) { const node = Object.assign(document.createElement(tag), props); node.append(...children); return node; }

  function show() {
    for (const one of rev.querySelectorAll(".draft-row")) one.remove();
    drafts.forEach((draft, at) => {
      const file = [...rev.querySelectorAll("figure[data-path]")].find(one => one.dataset.path === draft.path);
      const line = file && [...file.querySelectorAll("tr[data-line]")].find(one => Number(one.dataset.line) === draft.line);
      if (!line) return;
      const remove = make("button", { type: "button", className: "b b-s", textContent: "Delete" });
      remove.addEventListener("click", () => { drafts.splice(at, 1); save(draftsAt, drafts); show(); });
      const cell = make("td", { colSpan: line.cells.length === 6 ? 6 : 3 }, make("div", { className: "thread draft" }, make("p", {}, make("b", { textContent: "Your comment" }), ` ${draft.severity}, not sent yet`), make("p", { textContent: draft.text }), make("p", {}, remove)));
      line.after(make("tr", { className: "draft-row" }, cell));
    });
    const count = document.getElementById("n-drafts");
    if (count) count.textContent = drafts.length ? `${drafts.length} comment${drafts.length === 1 ? "" : "s"}` : "No comments";
    const reject = document.getElementById("v-reject");
    if (reject) reject.textContent = drafts.length ? `Send back with ${drafts.length} comment${drafts.length === 1 ? "" : "s"}` : "Send back";
  }

  function comment(line) {
    if (!mayComment || !line || line.nextElementSibling?.classList.contains("editor")) return;
    const file = line.closest("figure").dataset.path;
    const text = make("textarea", { className: "field", maxLength: 2000 });
    text.setAttribute("aria-label", `Comment on ${file}, line ${line.dataset.line}`);
    const severity = make("select", { className: "field" }, ...["note", "minor", "major", "blocker", "praise"].map(word => make("option", { textContent: word, selected: word === "minor" })));
    severity.setAttribute("aria-label", "How bad it is");
    const keep = make("button", { type: "submit", className: "b b-1 b-s", textContent: "Keep" });
    const cancel = make("button", { type: "button", className: "b b-s", textContent: "Cancel" });
    const form = make("form", { className: "thread draft" }, text, make("div", { className: "tf" }, severity, keep, cancel));
    const editor = make("tr", { className: "editor" }, make("td", { colSpan: line.cells.length === 6 ? 6 : 3 }, form));
    const close = () => { editor.remove(); line.focus(); };
    cancel.addEventListener("click", close);
    text.addEventListener("keydown", event => { if (event.key === "Escape") close(); if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
    form.addEventListener("submit", event => {
      event.preventDefault();
      if (text.value.trim()) { drafts.push({ path: file, line: Number(line.dataset.line), severity: severity.value, text: text.value.trim() }); save(draftsAt, drafts); }
      close();
      show();
    });
    line.after(editor);
    text.focus();
  }

  if (mayComment) for (const cell of rev.querySelectorAll("tr[data-line] td:last-child")) {
    const line = cell.parentElement, button = make("button", { type: "button", className: "say", textContent: "+" });
    button.setAttribute("aria-label", `Comment on line ${line.dataset.line}`);
    button.tabIndex = -1;
    cell.classList.add("lc");
    cell.append(button);
    button.addEventListener("click", () => comment(line));
  }

  const seen = load(seenAt, []);
  for (const box of rev.querySelectorAll("[data-seen]")) {
    box.checked = seen.includes(box.dataset.seen);
    box.addEventListener("change", () => save(seenAt, [...rev.querySelectorAll("[data-seen]:checked")].map(one => one.dataset.seen)));
  }

  const lines = () => [...rev.querySelectorAll("tr[data-line]")];
  const files = () => [...rev.querySelectorAll("figure[data-path]")];
  function go(line) { if (!line) return; row = line; line.focus({ preventScroll: true }); line.scrollIntoView({ block: "nearest" }); }
  rev.addEventListener("click", event => { const line = event.target.closest("tr[data-line]"); if (line) row = line; });
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("keys-off").checked) return;
    if (event.target.closest("input, textarea, select, dialog")) return;
    const all = lines(), at = all.indexOf(row);
    const does = {
      j: () => go(all[Math.min(at + 1, all.length - 1)]), k: () => go(all[Math.max(at - 1, 0)]),
      m: () => comment(row ?? all[0]),
      n: () => { const every = files(), now = row ? every.indexOf(row.closest("figure")) : -1; const next = every[Math.min(now + 1, every.length - 1)]; next?.scrollIntoView(); go(next?.querySelector("tr[data-line]")); },
      v: () => { const box = (row?.closest("figure") ?? files()[0])?.querySelector("[data-seen]"); box?.click(); },
    }[event.key];
    if (does) { event.preventDefault(); event.stopImmediatePropagation(); does(); }
  }, true);

  async function give(verdict, button) {
    const summary = document.getElementById("summary").value.trim();
    if (verdict === "reject" && !summary && !drafts.length) { landlane.toast("Say why: a summary, or a comment on a line", true); return; }
    button.disabled = true;
    const answer = await landlane.send("review", { id, verdict, summary, head, findings: drafts }).catch(() => ({ message: "not connected" }));
    button.disabled = false;
    if (answer.ok) { drafts = []; save(draftsAt, drafts); landlane.toast(answer.message[0].toUpperCase() + answer.message.slice(1)); show(); landlane.refresh(true); document.getElementById("verdict")?.remove(); }
    else landlane.toast(answer.message + (answer.hint ? ". " + answer.hint : ""), true);
  }
  document.getElementById("v-approve")?.addEventListener("click", event => give("approve", event.target));
  document.getElementById("v-reject")?.addEventListener("click", event => give("reject", event.target));
  show();
})();
