// Live updates, actions and keys. Reading works without this script.
"use strict";

const $ = id => document.getElementById(id);
const meta = name => document.querySelector(`meta[name="landlane-${name}"]`)?.content ?? "";
const trusted = window.trustedTypes ? trustedTypes.createPolicy("landlane", { createHTML: text => text }) : { createHTML: text => text };
const store = {
  get(name) { try { return localStorage.getItem("landlane-" + name); } catch { return null; } },
  set(name, text) { try { localStorage.setItem("landlane-" + name, text); } catch { /* private window */ } },
};

// ---------------------------------------------------------------- theme

const THEMES = ["automatic", "light", "dark"];
let theme = store.get("theme") ?? "automatic";
function showTheme() {
  if (theme === "automatic") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
  $("theme")?.setAttribute("aria-label", "Theme: " + theme);
}
showTheme();
$("theme").addEventListener("click", () => { theme = THEMES[(THEMES.indexOf(theme) + 1) % 3]; store.set("theme", theme); showTheme(); });

// ---------------------------------------------------------------- the key of this tab

let key = sessionStorage.getItem("landlane-key") ?? "";
let skew = 0; // how far the server's clock is ahead
const others = "BroadcastChannel" in window ? new BroadcastChannel("landlane") : null;
if (others) {
  others.onmessage = event => {
    if (event.data === "key?" && key) others.postMessage({ key });
    else if (event.data?.key && !key) { key = event.data.key; sessionStorage.setItem("landlane-key", key); $("looking").hidden = true; connect(); }
  };
  if (!key) others.postMessage("key?");
}
setTimeout(() => { $("looking").hidden = Boolean(key); }, 400);

const hex = bytes => [...new Uint8Array(bytes)].map(byte => byte.toString(16).padStart(2, "0")).join("");

// The key itself is never sent: it signs method, address, time, a number used once, and body.
async function sign(method, target, body) {
  const encoder = new TextEncoder();
  const nonce = hex(crypto.getRandomValues(new Uint8Array(12)));
  const at = Math.round(Date.now() + skew);
  const imported = await crypto.subtle.importKey("raw", encoder.encode(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const digest = await crypto.subtle.sign("HMAC", imported, encoder.encode(`${method}\n${target}\n${at}\n${nonce}\n${body}`));
  return `${at}.${nonce}.${hex(digest)}`;
}

async function send(action, given) {
  const target = action === "sign-out" ? "/sign-out" : "/do/" + action;
  const body = JSON.stringify(given);
  const headers = { "Content-Type": "application/json", "X-Landlane-Token": meta("token"), "X-Landlane-Signature": await sign("POST", target, body) };
  const response = await fetch(target, { method: "POST", headers, body });
  return response.json();
}

// ---------------------------------------------------------------- messages and dialogs

let toastTimer = 0;
function toast(text, stays = false) {
  const shown = $("toast");
  shown.textContent = text;
  shown.showPopover();
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => shown.hidePopover(), stays ? 12000 : 2500);
}

function ask(button) {
  const { title, explain, label, asks, command, placeholder } = button.dataset;
  const dialog = $("ask"), words = $("ask-w"), isRequired = "required" in button.dataset;
  $("ask-t").textContent = title ?? label;
  $("ask-e").textContent = explain ?? "";
  $("ask-c").textContent = command ?? "";
  $("ask-x").textContent = "";
  $("ask-l").hidden = words.hidden = !asks;
  words.value = ""; words.placeholder = placeholder ?? ""; words.required = isRequired;
  $("ask-y").textContent = label;
  $("ask-y").classList.toggle("b-bad", button.classList.contains("b-bad"));
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise(done => dialog.addEventListener("close", () => done(dialog.returnValue === "yes" ? words.value.trim() : null), { once: true }));
}

async function run(button) {
  let given = JSON.parse(button.dataset.given || "{}");
  if (button.form && button.form.id !== "ask") given = { ...Object.fromEntries(new FormData(button.form)), ...given };
  if (button.dataset.title || button.dataset.asks) {
    const words = await ask(button);
    if (words === null) return;
    if (button.dataset.asks && words) given[button.dataset.asks] = words;
  }
  if (!key) { toast("This tab cannot act. Open a link: landlane ui", true); return; }
  button.disabled = true;
  try {
    const answer = await send(button.dataset.do, given);
    if (answer.ok) {
      toast(answer.message ? answer.message[0].toUpperCase() + answer.message.slice(1) : "Done");
      if (button.dataset.do === "sign-out") { sessionStorage.removeItem("landlane-key"); location.href = "/sign-in"; return; }
      if (button.form && button.form.id !== "ask") button.form.reset();
      if (button.dataset.then) { location.href = button.dataset.then; return; }
    } else {
      const late = ["NOT_WAITING", "HEAD_MOVED"].includes(answer.code) ? "Somebody was faster, or it has changed: " : "";
      toast(late + answer.message + (answer.hint ? ". " + answer.hint : ""), true);
      if (answer.can_force && button.form) {
        const forced = button.form.querySelector("[data-forced]");
        if (forced) forced.hidden = false;
      }
    }
    await refresh(true);
  } catch {
    toast("Not connected: nothing was sent, or its answer was lost. Look before you repeat it.", true);
  } finally {
    button.disabled = false;
  }
}

document.addEventListener("click", event => {
  const copy = event.target.closest("[data-copy]");
  if (copy) { navigator.clipboard?.writeText(copy.dataset.copy).then(() => toast("Copied: " + copy.dataset.copy), () => toast("Not copied: the browser forbids it")); return; }
  const button = event.target.closest("[data-do]");
  if (button) { event.preventDefault(); run(button); }
});
document.addEventListener("submit", event => {
  const button = event.target.querySelector?.("button[data-do]");
  if (button && event.target.id !== "ask") { event.preventDefault(); run(button); }
});

// ---------------------------------------------------------------- patch the page in place

const keyOf = node => node.id || "";

function patchAttributes(from, to) {
  const isOpen = from.tagName === "DETAILS";
  for (const { name, value } of [...to.attributes]) if (!(isOpen && name === "open") && from.getAttribute(name) !== value) from.setAttribute(name, value);
  for (const { name } of [...from.attributes]) {
    if (to.hasAttribute(name) || (isOpen && name === "open") || (name === "aria-current" && from.classList.contains("need"))) continue;
    if (name === "disabled" || name === "data-at-end") continue;
    from.removeAttribute(name);
  }
}

function isInUse(node) {
  const selection = getSelection();
  return node.matches(":hover") || node.contains(document.activeElement) || (selection && !selection.isCollapsed && node.contains(selection.anchorNode));
}

function patch(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) { from.replaceWith(to.cloneNode(true)); return; }
  if (from.nodeType === Node.TEXT_NODE) { if (from.data !== to.data) from.data = to.data; return; }
  if (from.nodeType !== Node.ELEMENT_NODE) return;
  if ("keep" in from.dataset) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(from.tagName)) return; // what is typed stays
  const wasCurrent = from.classList.contains("need") ? from.getAttribute("aria-current") : null;
  patchAttributes(from, to);
  if (from.classList.contains("need") && wasCurrent !== from.getAttribute("aria-current")) {
    if (wasCurrent) from.setAttribute("aria-current", wasCurrent); else from.removeAttribute("aria-current");
  }
  patchChildren(from, to);
}

function patchChildren(from, to) {
  const isStill = "list" in from.dataset && isInUse(from);
  const known = new Map([...from.children].filter(keyOf).map(node => [keyOf(node), node]));
  let wanted = [...to.childNodes];
  if (isStill) {
    const now = [...from.children].map(keyOf).filter(Boolean), then = wanted.map(keyOf).filter(Boolean);
    const kept = now.filter(id => then.includes(id));
    if (kept.join() !== then.filter(id => now.includes(id)).join()) {
      $("moved").hidden = false;
      const byKey = new Map(wanted.filter(keyOf).map(node => [keyOf(node), node]));
      wanted = [...kept, ...then.filter(id => !now.includes(id))].map(id => byKey.get(id));
    }
  }
  let place = from.firstChild;
  for (const node of wanted) {
    const match = keyOf(node) ? known.get(keyOf(node)) : null;
    if (match) {
      if (match !== place) from.insertBefore(match, place); else place = place.nextSibling;
      patch(match, node);
      continue;
    }
    if (place && !keyOf(place) && !keyOf(node) && place.nodeName === node.nodeName) {
      const next = place.nextSibling;
      patch(place, node);
      place = next;
    } else from.insertBefore(node.cloneNode(true), place);
  }
  while (place) { const next = place.nextSibling; place.remove(); place = next; }
}

let tag = "", isReading = false, isDue = false;

async function refresh(now = false) {
  if (isReading) { isDue = true; return; }
  isReading = true;
  try {
    const response = await fetch(location.pathname + location.search, { headers: { Accept: "text/html", "X-Landlane-Partial": "1", ...(tag && !now ? { "If-None-Match": tag } : {}) } });
    const at = Number(response.headers.get("x-landlane-now"));
    if (at) skew = at - Date.now();
    if (response.redirected && response.url.includes("/sign-in")) { location.href = "/sign-in"; return; }
    if (response.status === 200) {
      tag = response.headers.get("etag") ?? "";
      const fresh = new DOMParser().parseFromString(trusted.createHTML(await response.text()), "text/html");
      document.title = fresh.title;
      for (const id of ["status", "notices", "main", "mini-you"]) { const one = $(id), other = fresh.getElementById(id); if (one && other) patch(one, other); }
      document.querySelector(".foot").firstElementChild.textContent = fresh.querySelector(".foot").firstElementChild.textContent;
      tick();
      document.dispatchEvent(new Event("landlane-patched"));
    }
    showOnline(true);
  } catch {
    showOnline(false);
  } finally {
    isReading = false;
    if (isDue) { isDue = false; setTimeout(refresh, 250); }
  }
}

$("sort-now")?.addEventListener("click", () => { $("moved").hidden = true; document.activeElement?.blur(); getSelection()?.removeAllRanges(); refresh(true); });

// ---------------------------------------------------------------- times that run

const UNITS = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];
function rough(length) {
  for (const [name, size] of UNITS) if (length >= size) return `${Math.floor(length / size)} ${name}`;
  return "0 s";
}
function clock(length) {
  const seconds = Math.floor(Math.max(length, 0) / 1000), hours = Math.floor(seconds / 3600), two = n => String(n).padStart(2, "0");
  return hours ? `${hours}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}` : `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
}
let isOnline = true, lastEventAt = 0;
function tick() {
  if (!isOnline) return; // a page that is not connected must not look alive
  const now = Date.now() + skew;
  const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  for (const node of document.querySelectorAll("time[data-since]")) {
    const age = Math.max(now - Number(node.dataset.since), 0);
    if (age < 86400000) put(node, rough(age) + (node.dataset.suffix ?? ""));
  }
  for (const node of document.querySelectorAll("time[data-until]")) put(node, rough(Math.max(Number(node.dataset.until) - now, 0)));
  for (const node of document.querySelectorAll("time[data-clock]")) put(node, clock(now - Number(node.dataset.clock)));
  for (const node of document.querySelectorAll("progress[data-clock]")) node.value = Math.min(100 * (now - Number(node.dataset.clock)) / Number(node.dataset.length), 100);
  if (lastEventAt) put($("live").lastElementChild, `Live, last event ${rough(Date.now() - lastEventAt)} ago`);
}
setInterval(tick, 1000);

function showOnline(is) {
  if (is === isOnline && !$("offline").hidden === !is) return;
  isOnline = is;
  $("offline").hidden = is;
  $("live").classList.toggle("on", is && Boolean(stream));
  if (!is) $("offline-at").textContent = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

// ---------------------------------------------------------------- live: server-sent events, read with fetch so that they can be signed

let stream = null, last = meta("position"), wait = 500, refreshTimer = 0;

function wantsStream() { return !document.hidden || (window.Notification && Notification.permission === "granted" && store.get("notify") === "yes"); }

async function connect() {
  if (stream || !key || !wantsStream()) return;
  const mine = stream = new AbortController();
  const target = "/live" + (document.hidden ? "?only=needs" : "");
  let isDenied = false;
  try {
    const response = await fetch(target, { headers: { "Last-Event-ID": last, "X-Landlane-Signature": await sign("GET", target, "") }, signal: mine.signal });
    if (!response.ok || !response.body) { isDenied = response.status === 403 || response.status === 401; throw new Error("refused"); }
    wait = 500;
    showOnline(true);
    $("live").classList.add("on");
    $("live").lastElementChild.textContent = "Live";
    await refresh();
    await read(response.body.pipeThrough(new TextDecoderStream()).getReader());
  } catch { /* below */ }
  if (stream === mine) stream = null;
  $("live").classList.remove("on");
  if (mine.signal.aborted || isDenied) { if (isDenied) denied(); return; }
  showOnline(false);
  wait = Math.min(wait * 2, 10000);
  setTimeout(connect, wait);
}

async function denied() {
  await refresh(); // a wrong clock, or this browser was signed out; the next request shows which
  if (isOnline && key && wait < 10000) { wait *= 2; setTimeout(connect, wait); } else $("looking").hidden = false;
}

async function read(reader) {
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) take(part);
  }
}

function take(part) {
  const fields = Object.fromEntries(part.split("\n").filter(line => !line.startsWith(":")).map(line => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trimStart()]));
  if (fields.id) last = fields.id;
  if (fields.event === "needs") { notify(JSON.parse(fields.data)); return; }
  if (fields.event === "entry") { const entry = JSON.parse(fields.data); lastEventAt = Math.min(Date.parse(entry.at) - skew, Date.now()); }
  if (fields.event === "entry" || fields.event === "reset") { clearTimeout(refreshTimer); refreshTimer = setTimeout(refresh, 120); }
}

function disconnect() { stream?.abort(); stream = null; $("live").classList.remove("on"); }

document.addEventListener("visibilitychange", () => { disconnect(); if (wantsStream()) { wait = 500; connect(); } if (!document.hidden) refresh(); });
setInterval(() => { if (!document.hidden && document.body.dataset.still !== "yes") refresh(); }, 4000); // signs of life and clocks are not in the journal
addEventListener("pagehide", disconnect);
addEventListener("pageshow", event => { if (event.persisted) connect(); });

// ---------------------------------------------------------------- notifications

let told = null;
function notify(items) {
  if (told && document.hidden && window.Notification?.permission === "granted") {
    for (const item of items.filter(one => !told.has(one.id)).slice(0, 3)) {
      const shown = new Notification(item.what, { tag: item.id, body: "Landlane" });
      shown.onclick = () => { focus(); location.href = "/item/" + item.id; };
    }
  }
  told = new Set(items.map(one => one.id));
}
if (window.Notification && Notification.permission !== "denied") {
  const button = $("notify"), show = () => { button.textContent = store.get("notify") === "yes" && Notification.permission === "granted" ? "Notifications on" : "Notify me when something needs me"; };
  button.hidden = false;
  show();
  button.addEventListener("click", async () => {
    if (store.get("notify") === "yes") store.set("notify", "no");
    else if (await Notification.requestPermission() === "granted") store.set("notify", "yes");
    show();
  });
}

// ---------------------------------------------------------------- keys

const SECTIONS = { n: "needs", w: "working", l: "landing", c: "claims", t: "timeline" };
let prefix = "";
const cards = () => [...document.querySelectorAll(".need")];
function select(card) {
  for (const one of cards()) one.toggleAttribute("aria-current", false);
  if (!card) return;
  card.setAttribute("aria-current", "true");
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
}
const selected = () => document.querySelector(".need[aria-current]");
document.addEventListener("click", event => { const card = event.target.closest(".need"); if (card && card !== selected()) { for (const one of cards()) one.removeAttribute("aria-current"); card.setAttribute("aria-current", "true"); } });

const keysOff = $("keys-off");
keysOff.checked = store.get("keys") === "off";
keysOff.addEventListener("change", () => store.set("keys", keysOff.checked ? "off" : "on"));

const COMMANDS = {
  "?": () => $("keys").togglePopover(),
  "/": () => $("jump").focus(),
  j: () => move(1), k: () => move(-1),
  Enter: () => { const link = selected()?.querySelector(".sign"); if (link && document.activeElement?.classList.contains("need")) location.href = link.href; },
  e: () => { const one = selected()?.querySelector("details"); if (one) one.open = !one.open; },
  a: () => selected()?.querySelector('[data-key="a"]')?.click(),
  r: () => selected()?.querySelector('[data-key="r"]')?.click(),
  c: () => selected()?.querySelector("[data-copy]")?.click(),
  p: () => document.querySelector(".status [data-do]")?.click(),
  g: () => { prefix = "g"; setTimeout(() => { prefix = ""; }, 1500); },
};
function move(step) {
  const all = cards();
  if (all.length) select(all[Math.min(Math.max(all.indexOf(selected()) + step, 0), all.length - 1)]);
}
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || keysOff.checked) return;
  if (event.target.closest("input, textarea, select, dialog, [contenteditable]")) return;
  if (prefix === "g" && SECTIONS[event.key]) {
    prefix = "";
    event.preventDefault();
    const section = $(SECTIONS[event.key]);
    if (section) { section.scrollIntoView(); section.querySelector("a, button, [tabindex]")?.focus({ preventScroll: true }); } else location.href = "/#" + SECTIONS[event.key];
    return;
  }
  const command = COMMANDS[event.key];
  if (!command || (event.key === "Enter" && event.target.closest("a, button, summary"))) return;
  if (event.key !== "Enter") event.preventDefault();
  command();
});

document.addEventListener("toggle", event => {
  const card = event.target.closest?.(".need");
  if (card && event.target.open && key) send("shown", { id: card.id }).catch(() => {});
}, true);

// A log follows only while it is scrolled to its end.
function followLog() { const log = document.querySelector("[data-follow]"); if (log && (log.dataset.atEnd ?? "yes") === "yes") log.scrollTop = log.scrollHeight; }
document.addEventListener("scroll", event => { const log = event.target; if (log.dataset && "follow" in log.dataset) log.dataset.atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4 ? "yes" : "no"; }, true);
document.addEventListener("landlane-patched", followLog);
followLog();

window.landlane = { send, toast, refresh };
connect();
tick();
